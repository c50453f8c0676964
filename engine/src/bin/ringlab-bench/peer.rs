//! The command lines of both sides.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::{Args, Gpus, PeerKind};
use crate::band::Band;
use crate::child::{Line, Scratch};

/// Our programs for peers that bring none: carried inside this one, so that it measures on a machine without our sources.
const GLOO_PERF: &str = include_str!("../../../bench/gloo_perf.py");
const MPI_PERF: &str = include_str!("../../../bench/mpi_perf.c");

/// Longest that compiling or asking a peer for its version may take.
const PREPARING: Duration = Duration::from_secs(120);

/// A peer that is there and ready.
#[derive(Debug)]
pub struct Peer {
    kind: PeerKind,
    program: PathBuf,
    env: BTreeMap<String, String>,
    /// Processes that share a GPU run at the same time only through it; ends with this value.
    #[cfg(feature = "cuda")]
    _mps: Option<ringlab_engine::comm::Mps>,
}

impl Peer {
    /// # Errors
    /// When the peer is not installed: the text says how to install it.
    pub fn prepare(args: &Args, scratch: &Scratch) -> Result<Peer, String> {
        let program = match args.peer {
            PeerKind::Gloo => gloo(args, scratch)?,
            PeerKind::Openmpi => openmpi(scratch)?,
            PeerKind::Nccl => nccl_tests(args)?,
        };
        // By name, so that what is given wins over what is set here.
        let mut env = BTreeMap::new();
        let mut set = |name: &str, value: &str| drop(env.insert(name.to_owned(), value.to_owned()));
        if args.peer == PeerKind::Nccl {
            // NVLink multicast stays off on both sides.
            set("NCCL_NVLS_ENABLE", "0");
            if args.gpus != Gpus::Own {
                set("NCCL_MULTI_RANK_GPU_ENABLE", "1");
            }
            if args.gpus == Gpus::Shared {
                set("NCCL_TESTS_DEVICE", "0");
            }
            if let Some(forced) = args.forced {
                set("NCCL_ALGO", forced.name());
            }
        }
        #[cfg(feature = "cuda")]
        let mps = mps(args, &mut env)?;
        env.extend(args.peer_env.iter().cloned());
        Ok(Peer {
            kind: args.peer,
            program,
            env,
            #[cfg(feature = "cuda")]
            _mps: mps,
        })
    }

    pub fn line(&self, args: &Args, ranks: u32, band: &Band, check: bool) -> Line {
        let collective = args.collective;
        let line = match self.kind {
            PeerKind::Gloo => bound(args, &args.python).arg(&self.program).args([
                collective.name(),
                "-g",
                &ranks.to_string(),
                "--cores",
                &cores(args),
            ]),
            PeerKind::Openmpi => mpirun(args, ranks).arg(&self.program).arg(collective.name()),
            PeerKind::Nccl if args.gpus == Gpus::Shared => {
                mpirun(args, ranks).arg(&self.program).args(["-g", "1"])
            }
            PeerKind::Nccl if args.gpus == Gpus::OneProcess => {
                bound(args, &self.program).args([collective.name(), "-g", &ranks.to_string()])
            }
            PeerKind::Nccl => bound(args, &self.program).args(["-g", &ranks.to_string()]),
        };
        Line { env: self.env.clone().into_iter().collect(), ..line.args(sweep(args, band, check)) }
    }
}

/// `ringlab-perf` on the same sizes; it writes its rows to `json`.
pub fn ours(args: &Args, ranks: u32, band: &Band, check: bool, json: &Path) -> Line {
    bound(args, &args.our_program())
        .args(["--backend", args.peer.backend(), "--collective", args.collective.name()])
        .args(["-g", &ranks.to_string(), "--rounds", "1"])
        .args(sweep(args, band, check))
        .args(&band.ours)
        .args(&args.our_args)
        .arg("--json")
        .arg(json)
}

/// Flags that all sides have in common. Sizes in bytes: our scripts know no suffixes.
fn sweep(args: &Args, band: &Band, check: bool) -> Vec<String> {
    let flags = [
        ("-b", band.first),
        ("-e", band.last),
        ("-f", args.factor),
        ("-n", u64::from(band.iters)),
        ("-w", u64::from(band.warmup())),
        ("-c", u64::from(check)),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value.to_string()]).collect()
}

fn cores(args: &Args) -> String {
    args.cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// `program`, and all that it starts, on the given cores.
fn bound(args: &Args, program: &Path) -> Line {
    if args.cores.is_empty() {
        return Line::new(program);
    }
    Line::new("taskset").args(["-c", &cores(args)]).arg(program)
}

fn mpirun(args: &Args, ranks: u32) -> Line {
    let line = bound(args, Path::new("mpirun"));
    let line = if rustix::process::geteuid().is_root() { line.arg("--allow-run-as-root") } else { line };
    // More ranks than cores give up the processor while they wait, which `--oversubscribe` alone makes Open MPI do.
    let line = line.args(["--oversubscribe", "-np", &ranks.to_string()]);
    match args.cores.len() {
        cores if cores >= ranks as usize => line.args(["--bind-to", "core", "--cpu-set", &self::cores(args)]),
        _ => line.args(["--bind-to", "none"]),
    }
}

fn carried(scratch: &Scratch, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = scratch.path(name);
    fs::write(&path, text).map_err(|err| format!("cannot write {}: {err}", path.display()))?;
    Ok(path)
}

fn gloo(args: &Args, scratch: &Scratch) -> Result<PathBuf, String> {
    let line =
        Line::new(&args.python).args(["-c", "import torch.distributed as d; assert d.is_gloo_available()"]);
    line.run(PREPARING).map_err(|why| {
        format!(
            "{} has no PyTorch with Gloo; install it with `python3 -m venv torch && torch/bin/pip install torch numpy` and give --python \
             torch/bin/python3\n{why}",
            args.python.display()
        )
    })?;
    carried(scratch, "gloo_perf.py", GLOO_PERF)
}

fn openmpi(scratch: &Scratch) -> Result<PathBuf, String> {
    let source = carried(scratch, "mpi_perf.c", MPI_PERF)?;
    let program = scratch.path("mpi_perf");
    let compile = Line::new("mpicc").arg("-O2").arg("-o").arg(&program).arg(source);
    compile.run(PREPARING).map_err(|why| {
        format!("cannot build the program that times Open MPI; install it with `apt-get install openmpi-bin libopenmpi-dev`\n{why}")
    })?;
    Ok(program)
}

fn nccl_tests(args: &Args) -> Result<PathBuf, String> {
    if let (Gpus::OneProcess, Some(program)) = (args.gpus, &args.nccl_perf) {
        return match program.is_file() {
            true => Ok(program.clone()),
            false => {
                Err(format!("{} is not there; build it from engine/bench/nccl_perf.cu", program.display()))
            }
        };
    }
    let folder = args.nccl_tests.as_ref().expect("`validate` asks for it");
    let program = folder.join(args.collective.nccl_program());
    if !program.is_file() {
        return Err(format!(
            "{} is not there; build https://github.com/NVIDIA/nccl-tests (v2.19.6) with `make MPI=1 CUDA_HOME=… NCCL_HOME=…` and give its \
             build folder",
            program.display()
        ));
    }
    Ok(program)
}

#[cfg(feature = "cuda")]
fn mps(args: &Args, env: &mut BTreeMap<String, String>) -> Result<Option<ringlab_engine::comm::Mps>, String> {
    use ringlab_engine::comm::Mps;
    if args.peer != PeerKind::Nccl || args.gpus != Gpus::Shared || Mps::is_given() {
        return Ok(None);
    }
    // Without it the peer's processes would take turns on the GPU and look a thousand times slower than they are.
    let mps = Mps::start().map_err(|err| err.to_string())?;
    env.extend(mps.environment().map(|(name, path)| (name.to_owned(), path.display().to_string())));
    Ok(Some(mps))
}
