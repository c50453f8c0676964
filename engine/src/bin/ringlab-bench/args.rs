//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};

use crate::band::{Band, bytes};

const HOW: &str = "\
How it measures: the sizes are cut into bands of few executions each. In every one of --rounds rounds a band is run once by ringlab-perf
and once by the peer, each as a process of its own with a deadline; the side that begins changes with every round. A row's figures are the
medians over rounds of one size. Both sides time -n executions back to back on the host's clock and divide by -n. Elements are checked
with tolerance 0 in the first round.

gloo and openmpi run a process for each rank. ringlab-perf's CPU back end runs its ranks inside one process, on a thread for each core: the
table says so. nccl is timed by one of two programs. nccl-tests runs a process for each rank where ranks share a GPU (its MPI build under
mpirun, NCCL_TESTS_DEVICE=0: within one process it takes a device for each rank) and one process where each rank has its GPU. nccl_perf,
a program of ours, runs all ranks in one process on one GPU, which nccl-tests cannot ask for.

Other commands, each with its --help: `ringlab-bench gpu` runs every comparison with NCCL on one GPU; `robust` random operations,
sanitizers and kills; `copy` the bandwidth of a copy in the GPU's memory; `tables` writes the tables of engine/PERFORMANCE.md and
engine/README.md from stored runs; `store` puts runs among them.

Exit code: 0 all right, 1 wrong elements or, with --enforce, a target missed, 2 bad arguments, 3 could not run.";

/// Measures a collective of the Ringlab engine beside the same collective of a peer, in turns within one run.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench", version, after_help = HOW)]
pub struct Args {
    /// gloo (PyTorch), openmpi or nccl.
    #[arg(long, value_enum)]
    pub peer: PeerKind,

    /// all_reduce, all_gather, reduce_scatter, broadcast or all_to_all.
    #[arg(long, value_enum, default_value = "all_reduce")]
    pub collective: Collective,

    /// Numbers of ranks to measure, one after the other.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,4",
          value_parser = clap::value_parser!(u32).range(2..=64))]
    pub ranks: Vec<u32>,

    /// A band of sizes: FIRST-LAST,iters=COUNT and, for ringlab-perf, algo=, channels=, slot=, proto=, chunk-steps= and slice-steps=.
    /// May be given several times; without, bands of 8 bytes to 256M (CPU) or 8 bytes to 1G (CUDA).
    #[arg(long = "band", value_name = "BAND")]
    bands: Vec<Band>,

    /// Multiplies from one size to the next.
    #[arg(short = 'f', long, value_name = "FACTOR", default_value_t = 2,
          value_parser = clap::value_parser!(u64).range(2..))]
    pub factor: u64,

    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Cores that both sides are bound to (CPU peers).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<u32>,

    /// Seconds after which a process is ended, with all that it started.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub deadline: u64,

    /// ringlab-perf; without, the one beside this program.
    #[arg(long, value_name = "PATH")]
    ours: Option<PathBuf>,

    /// Flag for every ringlab-perf run, as --our-arg=--devices=0.
    #[arg(long = "our-arg", value_name = "FLAG", allow_hyphen_values = true)]
    pub our_args: Vec<String>,

    /// Python with PyTorch, for gloo.
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub python: PathBuf,

    /// Folder of nccl-tests' built programs; for ranks that share a GPU, of its MPI build.
    #[arg(long, value_name = "FOLDER")]
    pub nccl_tests: Option<PathBuf>,

    /// `engine/bench/nccl_perf.cu`, built: NCCL with all ranks in one process on one GPU, which nccl-tests cannot ask for.
    #[arg(long, value_name = "PATH")]
    pub nccl_perf: Option<PathBuf>,

    /// How NCCL's ranks are placed; one-process needs --nccl-perf instead of --nccl-tests.
    #[arg(long, value_enum, default_value = "shared")]
    pub gpus: Gpus,

    /// Holds both sides to one algorithm: --algo for ours, NCCL_ALGO for NCCL. To meet the peer is then the target at each size.
    #[arg(long, value_enum, value_name = "NAME")]
    pub forced: Option<Forced>,

    /// Variable for the peer, NAME=VALUE; may be given several times.
    #[arg(long = "peer-env", value_name = "NAME=VALUE", value_parser = variable)]
    pub peer_env: Vec<(String, String)>,

    /// Writes everything that was measured, and on what, to this file.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,

    /// Ends with code 1 when a target is missed.
    #[arg(long)]
    pub enforce: bool,

    /// The words that all this was read from.
    #[arg(skip)]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeerKind {
    Gloo,
    Openmpi,
    #[value(alias = "nccl-tests")]
    Nccl,
}

/// An algorithm that NCCL has as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Forced {
    Ring,
    Tree,
}

impl Forced {
    pub const fn name(self) -> &'static str {
        match self {
            Forced::Ring => "ring",
            Forced::Tree => "tree",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    AllToAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Gpus {
    /// All ranks on device 0, a process each.
    Shared,
    /// All ranks on device 0, in one process.
    OneProcess,
    /// A device for each rank, in one process.
    Own,
}

impl PeerKind {
    pub const fn backend(self) -> &'static str {
        match self {
            PeerKind::Gloo | PeerKind::Openmpi => "cpu",
            PeerKind::Nccl => "cuda",
        }
    }
}

impl Collective {
    pub const fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::AllGather => "all_gather",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::Broadcast => "broadcast",
            Collective::AllToAll => "all_to_all",
        }
    }

    /// nccl-tests' program.
    pub const fn nccl_program(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce_perf",
            Collective::AllGather => "all_gather_perf",
            Collective::ReduceScatter => "reduce_scatter_perf",
            Collective::Broadcast => "broadcast_perf",
            Collective::AllToAll => "alltoall_perf",
        }
    }
}

impl Args {
    /// Reads a command line whose first word is the program's name; ends the process when it is wrong.
    pub fn of(words: impl IntoIterator<Item = String>) -> Args {
        let words: Vec<String> = words.into_iter().collect();
        Args { words: words.clone(), ..Args::parse_from(words) }
    }

    /// What timed the peer.
    pub const fn peer_name(&self) -> &'static str {
        match self.peer {
            PeerKind::Gloo => "gloo",
            PeerKind::Openmpi => "openmpi",
            PeerKind::Nccl if matches!(self.gpus, Gpus::OneProcess) => "nccl_perf",
            PeerKind::Nccl => "nccl-tests",
        }
    }

    /// What clap cannot see one flag at a time.
    pub fn validate(&self) -> Result<(), String> {
        let one_process = self.gpus == Gpus::OneProcess;
        if self.peer == PeerKind::Nccl && one_process && self.nccl_perf.is_none() {
            return Err("--gpus one-process needs --nccl-perf PATH: build engine/bench/nccl_perf.cu with `nvcc -O2 -o nccl_perf nccl_perf.cu \
                        -lnccl`, or let `ringlab-bench gpu` do so"
                .into());
        }
        if self.peer == PeerKind::Nccl && !one_process && self.nccl_tests.is_none() {
            return Err("--peer nccl needs --nccl-tests FOLDER or, with --gpus one-process, --nccl-perf PATH: build https://github.com/NVIDIA/nccl-tests (v2.19.6) with `make MPI=1` \
                        and give its build folder"
                .into());
        }
        if self.forced.is_some() && self.peer != PeerKind::Nccl {
            return Err("--forced is for --peer nccl: gloo and openmpi take no algorithm".into());
        }
        if !self.our_program().is_file() {
            return Err(format!(
                "{} is not there; build it with `cargo build --release -p ringlab-engine --bin ringlab-perf` or give --ours",
                self.our_program().display()
            ));
        }
        Ok(())
    }

    pub fn our_program(&self) -> PathBuf {
        self.ours.clone().unwrap_or_else(|| {
            let this = std::env::current_exe().unwrap_or_default();
            this.with_file_name("ringlab-perf")
        })
    }

    /// What to measure with so many ranks.
    pub fn bands(&self, ranks: u32) -> Vec<Band> {
        let mut bands = self.bands.clone();
        if bands.is_empty() {
            bands = Band::standard(self.peer.backend(), self.collective, ranks);
        }
        if let Some(forced) = self.forced {
            for band in &mut bands {
                band.set("algo", forced.name());
            }
        }
        bands
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.into(), value.into()))
}

impl FromStr for Band {
    type Err = String;
    fn from_str(text: &str) -> Result<Band, String> {
        let wrong = || {
            format!(
                "`{text}` is not a band; write FIRST-LAST,iters=COUNT and, after further commas, algo=, channels=, slot=, proto=, chunk-steps= or slice-steps="
            )
        };
        let mut parts = text.split(',');
        let (first, last) = parts.next().and_then(|range| range.split_once('-')).ok_or_else(wrong)?;
        let (first, last) = (bytes(first).ok_or_else(wrong)?, bytes(last).ok_or_else(wrong)?);
        let mut band = Band { first, last, iters: 20, ours: vec![] };
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            match key {
                "iters" => band.iters = value.parse().ok().filter(|&n: &u32| n > 0).ok_or_else(wrong)?,
                "algo" | "channels" | "slot" | "proto" | "chunk-steps" | "slice-steps" => {
                    band.set(key, value)
                }
                _ => return Err(wrong()),
            }
        }
        if first == 0 || first > last {
            return Err(format!("band `{text}` goes from {first} to {last} bytes"));
        }
        Ok(band)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_says_sizes_executions_and_our_flags() {
        let band: Band = "8-64K,iters=500,algo=exchange,proto=ll".parse().unwrap();
        let ours = ["--algo", "exchange", "--proto", "ll"].map(String::from).to_vec();
        assert_eq!(band, Band { first: 8, last: 64 << 10, iters: 500, ours });
        for wrong in ["8", "8-4", "0-8", "8-16,iters=0", "8-16,colour=red", "a-b"] {
            assert!(wrong.parse::<Band>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_forced_algorithm_replaces_that_of_a_band() {
        let line = "ringlab-bench --peer nccl --band 1K-1M,iters=3,algo=one_shot,slot=64K --forced ring";
        let bands = Args::of(line.split_whitespace().map(Into::into)).bands(2);
        assert_eq!(bands[0].ours, ["--algo", "ring", "--slot", "64K"]);
    }

    #[test]
    fn the_peer_is_named_after_the_program_that_timed_it() {
        let name = |line: &str| Args::of(line.split_whitespace().map(Into::into)).peer_name();
        assert_eq!(name("ringlab-bench --peer nccl --gpus one-process"), "nccl_perf");
        assert_eq!(name("ringlab-bench --peer nccl"), "nccl-tests");
        assert_eq!(name("ringlab-bench --peer gloo"), "gloo");
    }

    #[test]
    fn the_standard_bands_join_without_a_gap_or_an_overlap() {
        for backend in ["cpu", "cuda"] {
            for collective in Collective::value_variants() {
                for ranks in [2, 3] {
                    let bands = Band::standard(backend, *collective, ranks);
                    assert_eq!(bands[0].first, 8);
                    assert!(bands.windows(2).all(|pair| pair[0].last * 2 == pair[1].first), "{bands:?}");
                }
            }
        }
    }
}
