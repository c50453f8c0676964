//! `ringlab-bench gpu`: every comparison with NCCL on one GPU, each into a file of its own. A file that is there is not measured again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use clap::ValueEnum as _;

use crate::args::{Args as BesideArgs, Collective};
use crate::child::{Line, Scratch, read_json, write_json};
use crate::{copy, store};

/// NCCL with all ranks in one process on one GPU; nobody else brings such a program.
const NCCL_PERF: &str = include_str!("../../../bench/nccl_perf.cu");

const COMPILING: Duration = Duration::from_secs(300);

/// Measures every collective beside NCCL with ranks that share one GPU, the ring of both beside each other, and our kernels among each
/// other; a file for each comparison and number of ranks. What is already in the folder is not measured again.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench gpu")]
pub struct Args {
    /// NCCL 2.30.3 or newer: libnccl.so.2, or a folder with include/nccl.h and lib/libnccl.so.2; without, the compiler's own paths.
    #[arg(long, value_name = "PATH")]
    nccl: Option<PathBuf>,

    /// engine/bench/nccl_perf.cu, built; without, nvcc builds it here.
    #[arg(long, value_name = "PATH", conflicts_with = "nccl")]
    nccl_perf: Option<PathBuf>,

    /// Folder for the JSON files.
    #[arg(long, value_name = "FOLDER", default_value = "bench-runs")]
    out: PathBuf,

    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,4,8",
          value_parser = clap::value_parser!(u32).range(2..=64))]
    ranks: Vec<u32>,

    /// all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, ring and kernels, or some of them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "all_reduce,all_gather,reduce_scatter,broadcast,all_to_all,\
          ring,kernels", value_parser = part)]
    only: Vec<Part>,

    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Seconds after which a process is ended.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    deadline: u64,

    /// ringlab-perf; without, the one beside this program.
    #[arg(long, value_name = "PATH")]
    ours: Option<PathBuf>,

    /// Prints the command of every comparison and measures nothing.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Beside(Collective),
    Ring,
    Kernels,
}

fn part(name: &str) -> Result<Part, String> {
    match name {
        "ring" => Ok(Part::Ring),
        "kernels" => Ok(Part::Kernels),
        name => Collective::from_str(name, false)
            .map(Part::Beside)
            .map_err(|_| format!("`{name}` is not a collective that NCCL has, ring or kernels")),
    }
}

/// One file.
#[derive(Debug)]
struct Step {
    file: String,
    /// The command, with its program but without `--json` and `--ours`.
    words: Vec<String>,
}

/// Blocks that NCCL may take for a communicator, so that all ranks' kernels are resident together.
fn cap(ranks: u32) -> Option<u32> {
    match ranks {
        ..=2 => None,
        3..=4 => Some(16),
        _ => Some(8),
    }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace().map(Into::into)
}

fn beside(args: &Args, nccl_perf: &Path, ranks: u32, rest: &str) -> Vec<String> {
    let mut line = vec!["ringlab-bench".to_owned()];
    line.extend(words("--peer nccl --gpus one-process --nccl-perf"));
    line.push(nccl_perf.display().to_string());
    let (rounds, deadline) = (args.rounds, args.deadline);
    line.extend(words(&format!("--ranks {ranks} --rounds {rounds} -f 4 --deadline {deadline} {rest}")));
    // A stream of each rank has to make progress while the others' wait.
    line.extend(words("--our-arg=--devices=0 --peer-env CUDA_DEVICE_MAX_CONNECTIONS=32"));
    if let Some(cap) = cap(ranks) {
        line.extend(words(&format!("--peer-env NCCL_MAX_CTAS={cap}")));
    }
    line
}

fn steps(args: &Args, nccl_perf: &Path) -> Vec<Step> {
    let mut steps = Vec::new();
    for (part, &ranks) in args.only.iter().flat_map(|part| args.ranks.iter().map(move |ranks| (part, ranks)))
    {
        match *part {
            Part::Beside(collective) => {
                let algorithm = if collective == Collective::AllReduce { "two_shot" } else { "one_shot" };
                let name = collective.name();
                let bands = format!(
                    "--collective {name} --band 1K-1M,iters=200,algo={algorithm} --band 4M-1G,iters=10,algo={algorithm}"
                );
                let file = format!("bench-nccl-{}-{ranks}.json", name.replace('_', "-"));
                steps.push(Step { file, words: beside(args, nccl_perf, ranks, &bands) });
            }
            Part::Ring => {
                let bands = "--collective all_reduce --forced ring --band 1K-1M,iters=50,algo=ring --band \
                             4M-1G,iters=5,algo=ring,slot=512K,chunk-steps=4,slice-steps=2";
                let file = format!("bench-nccl-all-reduce-ring-{ranks}.json");
                steps.push(Step { file, words: beside(args, nccl_perf, ranks, bands) });
            }
            Part::Kernels => {
                for kernel in ["specialised", "fused", "interpreter"] {
                    let line = format!(
                        "ringlab-perf --backend cuda --devices 0 -g {ranks} --collective all_reduce --algo two_shot --kernel {kernel} -b 1M \
                         -e 1G -f 4 -n 40 -w 4 --rounds {}",
                        args.rounds
                    );
                    let file = format!("kernels-all-reduce-two-shot-{kernel}-{ranks}.json");
                    steps.push(Step { file, words: words(&line).collect() });
                }
            }
        }
    }
    steps
}

/// Whether every element was right. A comparison that fails does not keep the others from being made.
pub fn run(args: &Args) -> Result<bool, String> {
    if args.list {
        let nccl_perf = args.nccl_perf.clone().unwrap_or_else(|| "NCCL_PERF".into());
        for Step { file, words } in steps(args, &nccl_perf) {
            println!("{} --json {file}", words.join(" "));
        }
        return Ok(true);
    }
    copy::hardware(0)?;
    let scratch = Scratch::named("gpu")?;
    let needs_nccl = args.only.iter().any(|part| *part != Part::Kernels);
    let nccl_perf = match &args.nccl_perf {
        Some(built) => built.clone(),
        None if needs_nccl => built(args.nccl.as_deref(), &scratch)?,
        None => PathBuf::new(),
    };
    std::fs::create_dir_all(&args.out)
        .map_err(|err| format!("cannot create {}: {err}", args.out.display()))?;
    let (mut right, mut failed) = (true, Vec::new());
    for step in steps(args, &nccl_perf) {
        let path = args.out.join(&step.file);
        if path.exists() {
            eprintln!("{} is there", path.display());
            continue;
        }
        eprintln!("{}", step.words.join(" "));
        match step.run(args, &scratch, &path) {
            Ok(all_right) => right &= all_right,
            Err(why) => {
                eprintln!("ringlab-bench: {why}");
                failed.push(step.file);
            }
        }
    }
    if failed.is_empty() {
        return Ok(right);
    }
    Err(format!("not measured: {}; run the same command again for these alone", failed.join(", ")))
}

impl Step {
    fn run(&self, args: &Args, scratch: &Scratch, path: &Path) -> Result<bool, String> {
        if self.words[0] == "ringlab-perf" {
            let this = std::env::current_exe().unwrap_or_default();
            let ours = args.ours.clone().unwrap_or_else(|| this.with_file_name("ringlab-perf"));
            let json = scratch.path("kernels.json");
            let line = Line::new(ours).args(&self.words[1..]).arg("--json").arg(&json);
            println!("{}", line.run(Duration::from_secs(args.deadline))?);
            let mut file = read_json(&json)?;
            store::clean(&mut file);
            write_json(path, &file)?;
            return Ok(true);
        }
        let mut words = self.words.clone();
        if let Some(ours) = &args.ours {
            words.extend(["--ours".into(), ours.display().to_string()]);
        }
        words.extend(["--json".into(), path.display().to_string()]);
        crate::run(&BesideArgs::of(words))
    }
}

/// Builds the program that times NCCL.
fn built(nccl: Option<&Path>, scratch: &Scratch) -> Result<PathBuf, String> {
    let (source, program) = (scratch.path("nccl_perf.cu"), scratch.path("nccl_perf"));
    std::fs::write(&source, NCCL_PERF).map_err(|err| format!("cannot write {}: {err}", source.display()))?;
    let toolkit = Path::new("/usr/local/cuda/bin/nvcc");
    let nvcc = if toolkit.is_file() { toolkit } else { Path::new("nvcc") };
    let mut line = Line::new(nvcc).args(["-O2", "-std=c++17", "-o"]).arg(&program).arg(&source);
    match nccl {
        None => line = line.arg("-lnccl"),
        Some(path) => {
            let library = if path.is_dir() { path.join("lib/libnccl.so.2") } else { path.to_owned() };
            if !library.is_file() {
                return Err(format!(
                    "{} is not there; --nccl takes libnccl.so.2 or a folder with lib/libnccl.so.2",
                    library.display()
                ));
            }
            let library = std::path::absolute(&library).map_err(|err| format!("{path:?}: {err}"))?;
            let folder = library.parent().expect("a file is in a folder");
            if let Some(root) = folder.parent() {
                line = line.arg("-I").arg(root.join("include"));
            }
            // nvcc takes no libnccl.so.2, only a name that the linker completes to libnccl.so.
            let link = scratch.path("libnccl.so");
            std::os::unix::fs::symlink(&library, &link)
                .map_err(|err| format!("cannot create {}: {err}", link.display()))?;
            let named = link.parent().expect("a file is in a folder");
            line = line.arg("-L").arg(named).arg("-lnccl");
            // Found again at run time without a variable.
            line = line.args(["-Xlinker", "-rpath", "-Xlinker"]).arg(folder);
        }
    }
    line.run(COMPILING).map_err(|why| {
        format!(
            "cannot build the program that times NCCL; it needs nvcc (CUDA toolkit) and NCCL 2.30.3 or newer, as `pip install \
             --no-deps --target nccl nvidia-nccl-cu13` and --nccl nccl/nvidia/nccl; or give a built one with --nccl-perf\n{why}"
        )
    })?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str) -> Vec<Step> {
        steps(&Args::parse_from(words(line)), Path::new("np"))
    }

    #[test]
    fn every_command_of_the_set_is_one_that_this_program_takes() {
        let all = all("gpu");
        assert_eq!(all.len(), (5 + 1 + 3) * 3);
        for step in all.iter().filter(|step| step.words[0] == "ringlab-bench") {
            let read =
                BesideArgs::try_parse_from(&step.words).unwrap_or_else(|why| panic!("{}: {why}", step.file));
            assert_eq!((read.peer_name(), read.bands(2).len()), ("nccl_perf", 2), "{step:?}");
        }
    }

    #[test]
    fn nccl_is_capped_where_all_ranks_would_not_fit() {
        let line =
            |ranks: u32| all(&format!("gpu --only broadcast --ranks {ranks}")).remove(0).words.join(" ");
        assert!(!line(2).contains("MAX_CTAS"));
        assert!(line(4).ends_with("NCCL_MAX_CTAS=16"));
        assert!(line(8).ends_with("NCCL_MAX_CTAS=8"));
        assert!(line(8).contains("--collective broadcast --band 1K-1M,iters=200,algo=one_shot"));
    }

    #[test]
    fn files_have_the_names_that_stored_runs_have() {
        let files: Vec<String> = all("gpu --ranks 4").into_iter().map(|step| step.file).collect();
        for wanted in [
            "bench-nccl-all-to-all-4.json",
            "bench-nccl-all-reduce-ring-4.json",
            "kernels-all-reduce-two-shot-fused-4.json",
        ] {
            assert!(files.iter().any(|file| file == wanted), "{wanted} is not in {files:?}");
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let scratch = Scratch::named("gpu-test").unwrap();
        let why = built(Some(Path::new("/nonexistent/libnccl.so.2")), &scratch).unwrap_err();
        assert!(why.contains("/nonexistent/libnccl.so.2 is not there"), "{why}");
    }

    #[test]
    fn a_part_that_is_none_is_refused() {
        assert!(
            Args::try_parse_from(words("gpu --only all_reduce,spiral"))
                .unwrap_err()
                .to_string()
                .contains("spiral")
        );
    }
}
