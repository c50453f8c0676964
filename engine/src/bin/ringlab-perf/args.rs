//! The command line: nccl-tests' letters and defaults where the meaning is the same, long names for what is ours.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use ringlab_engine::comm::Config;
use ringlab_engine::data::MAX_RANKS;
use ringlab_engine::exec::{Backend, KernelChoice};
use ringlab_engine::plan::MAX_CHANNELS;
use ringlab_engine::types::{Collective, DType, Rank, RedOp};

use crate::fifo::FifoArgs;
use crate::tune::{Algo, TuneArgs};

const WHAT_IS_TIMED: &str = "\
What is timed: one round executes the collective -n times back to back between two readings of the host's monotonic clock, from before
the first launch to after the last rank has finished, and divides by -n. With -G the device replays a recording of those executions -G
times, and the time is divided by that as well; the recording is not timed. The table shows the median of --rounds rounds; --json holds
them all. Preparing buffers and connections, warm-up and checks are not timed.

Bandwidths follow nccl-tests: algbw = size / time; busbw = algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter,
all_to_all, gather and scatter, x 1 for broadcast, reduce and send_recv. size is the larger of a rank's two buffers, 1 GB = 10^9 bytes; for -b, -e and -i, K, M and G are powers of 1024.

#wrong counts elements that differ from the exact result in one execution on fresh inputs, with tolerance 0, and with them input
elements that an out-of-place execution changed. Exit code: 0 all right, 1 #wrong above 0, 2 bad arguments, 3 could not run.";

/// Measures and checks a collective on the Ringlab engine, in the manner of nccl-tests.
#[derive(Debug, Parser)]
#[command(name = "ringlab-perf", version, after_help = WHAT_IS_TIMED)]
pub struct Args {
    /// Ranks. CPU: each is one thread per channel. CUDA: spread over the devices in turn; ranks may share one.
    #[arg(short = 'g', long = "ngpus", value_name = "RANKS", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RANKS)))]
    pub ranks: u32,

    /// Each rank is a process of its own that launches for itself, instead of all ranks in one launch (CUDA; also under mpirun).
    #[arg(long)]
    pub procs: bool,

    /// Ranks of several processes register their buffers, so that plans may read peers' (one_shot, two_shot).
    #[arg(long, conflicts_with = "threads")]
    pub register: bool,

    /// Each rank is a communicator of this process; one thread queues an execution as one group of all of them, which the
    /// communicators carry out as they choose, whatever --algo and --kernel say (CUDA).
    #[arg(long, conflicts_with_all = ["procs", "random", "sim_report"])]
    pub threads: bool,

    /// With --threads all ranks queue on one stream instead of one each, which have to be joined.
    #[arg(long, requires = "threads")]
    pub one_stream: bool,

    /// Smallest size, with an optional K, M or G.
    #[arg(short = 'b', long = "minbytes", value_name = "SIZE", default_value = "32M")]
    pub min_bytes: Size,

    /// Largest size.
    #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", default_value = "32M")]
    pub max_bytes: Size,

    /// Added from one size to the next, unless -f is above 1.
    #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", default_value = "1M")]
    pub step_bytes: Size,

    /// Multiplies from one size to the next when above 1.
    #[arg(short = 'f', long = "stepfactor", value_name = "FACTOR", default_value_t = 1)]
    pub step_factor: u64,

    /// Executions per round.
    #[arg(short = 'n', long = "iters", value_name = "COUNT", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub iters: u32,

    /// Records a round's executions as a CUDA graph and replays it so many times; 0 launches each of them.
    #[arg(short = 'G', long = "cudagraph", value_name = "COUNT", default_value_t = 0)]
    pub replays: u32,

    /// Executions before the first timed round of each size.
    #[arg(short = 'w', long = "warmup_iters", value_name = "COUNT", default_value_t = 1)]
    pub warmup: u32,

    /// Executions to check per size; 0 checks nothing.
    #[arg(short = 'c', long = "check", value_name = "COUNT", default_value_t = 1)]
    pub check: u32,

    /// int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2 or all.
    #[arg(short = 'd', long = "datatype", value_name = "TYPE", default_value = "float")]
    pub dtype: OneOrAll<DType>,

    /// sum, prod, min, max, avg, mulsum (rank r's input times 1 if r is even, else 2) or all. Ignored where nothing is reduced.
    #[arg(short = 'o', long = "op", value_name = "OP", default_value = "sum")]
    pub op: OneOrAll<RedOp>,

    /// Root of a broadcast, reduce, gather or scatter.
    #[arg(
        short = 'r',
        long = "root",
        value_name = "RANK",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub root: u32,

    /// Seconds after which one execution is stopped and reported.
    #[arg(short = 'T', long = "timeout", value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,

    /// all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter or send_recv (all_to_all and send_recv
    /// out of place only).
    #[arg(long, value_name = "NAME", default_value = "all_reduce", value_parser = any_root)]
    collective: Collective,

    /// ring, one_shot, two_shot, chain, tree, halving_doubling, pairwise or exchange; or auto, by --profile at each size.
    #[arg(long, value_name = "NAME", default_value = "ring")]
    pub algo: Algo,

    /// Independent lanes per rank: a thread each on the CPU (default 1), a block each on a GPU (default: as many as fill it,
    /// fewer for short messages; 16 with --procs and --threads).
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CHANNELS)))]
    pub channels: Option<u32>,

    /// cpu or cuda.
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub backend: Backend,

    /// What executes the plan: interpreter, specialised (there is one for one_shot and two_shot on one GPU), or auto, the specialised
    /// one where there is one.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub kernel: KernelChoice,

    /// CUDA devices to use, all by default.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub devices: Vec<u32>,

    /// Bytes of a FIFO slot; a connection has eight (default: CPU 256K, CUDA 512K as in NCCL, with --procs
    /// --tune-report what communicators have).
    #[arg(long, value_name = "SIZE")]
    pub slot: Option<Size>,

    /// Rounds per size; the table shows their median.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Instead of the table, holds traced executions of all algorithms of the collective, with all protocols or that of --proto, against
    /// simulated ones: the median error of each at sizes to which the model was not fitted.
    #[arg(long, conflicts_with_all = ["procs", "register", "one_stream", "random", "algo", "tune_report", "explain"])]
    pub sim_report: bool,

    /// Executes so many random operations, each checked, in place of a table; of what else is given, --backend, --devices, -T and
    /// --seed count.
    #[arg(long, value_name = "COUNT")]
    pub random: Option<u64>,

    /// Of the first random operation; the n-th has this plus n.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Writes rows, hardware, driver, command and commit to this file.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub fifo: FifoArgs,

    #[command(flatten)]
    pub tune: TuneArgs,
}

impl Args {
    /// What clap cannot see one flag at a time.
    pub fn validate(&self) -> Result<(), String> {
        if self.min_bytes > self.max_bytes {
            return Err(format!("-b {} is above -e {}", self.min_bytes.0, self.max_bytes.0));
        }
        if self.step_factor <= 1 && self.step_bytes.0 == 0 && self.min_bytes != self.max_bytes {
            return Err("-i 0 never reaches -e; give -i or -f".into());
        }
        if self.step_factor > 1 && self.min_bytes.0 == 0 {
            return Err("-b 0 multiplied by -f stays 0; start from another size or use -i".into());
        }
        if self.collective.root().is_some() && self.root >= self.ranks {
            return Err(format!(
                "-r {} is not a rank: -g {} has ranks 0 to {}",
                self.root,
                self.ranks,
                self.ranks - 1
            ));
        }
        if self.backend == Backend::Cpu && (self.procs || self.threads) {
            return Err("--procs and --threads are for --backend cuda".into());
        }
        if self.backend == Backend::Cpu && (self.register || !self.devices.is_empty()) {
            return Err("--register and --devices are for --backend cuda".into());
        }
        if let Some(path) = &self.json {
            // Now, and not when hours of measuring are over.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
                return Err(format!("--json {}: that is a folder, or lies in none", path.display()));
            }
        }
        if self.procs && self.tune.tune_ranks.iter().any(|ranks| *ranks != self.ranks) {
            return Err(format!(
                "--tune-ranks with --procs: the processes are of one communicator of -g {} ranks; run once for each number, with \
                 --merge-profile",
                self.ranks
            ));
        }
        if self.slot.is_some_and(|slot| slot.0 < 16 || slot.0 > 1 << 30) {
            return Err("--slot takes 16 bytes to 1G".into());
        }
        self.fifo.validate()
    }

    /// Sizes in bytes, in the order they are run.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        let (factor, step, max) = (self.step_factor, self.step_bytes.0, self.max_bytes.0);
        let next = move |&size: &u64| {
            let next = if factor > 1 { size.checked_mul(factor) } else { size.checked_add(step) };
            next.filter(|&next| next <= max && next > size)
        };
        std::iter::successors(Some(self.min_bytes.0), next)
    }

    pub fn collective(&self) -> Collective {
        Collective::named(self.collective.name(), Rank(self.root)).expect("a root changes no name")
    }

    /// Reductions to run: one, whichever it is, where nothing is reduced.
    pub fn ops(&self) -> Vec<RedOp> {
        if self.collective().reduces() { self.op.list(&RedOp::ALL) } else { vec![RedOp::Sum] }
    }

    pub fn channels(&self) -> u32 {
        self.channels.unwrap_or(match self.backend {
            Backend::Cpu => 1,
            Backend::Cuda => 16,
        })
    }

    /// Of any plan of this run.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "a communicator has to know"))]
    pub fn most_channels(&self) -> u32 {
        self.tune.tune_channels.iter().copied().chain([self.channels()]).max().expect("there is one")
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot.map_or(
            match self.backend {
                Backend::Cpu => 256 << 10,
                // A profile for communicators has to be of the slots that they have.
                Backend::Cuda if self.procs && self.tune.tune_report.is_some() => {
                    Config::default().slot_bytes as usize
                }
                Backend::Cuda => 512 << 10,
            },
            |slot| slot.0 as usize,
        )
    }
}

/// Bytes, read as nccl-tests does: a number with an optional K, M or G.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let (number, unit) = match s.char_indices().last() {
            Some((at, 'k' | 'K')) => (&s[..at], 1u64 << 10),
            Some((at, 'm' | 'M')) => (&s[..at], 1 << 20),
            Some((at, 'g' | 'G')) => (&s[..at], 1 << 30),
            _ => (s, 1),
        };
        let wrong =
            || format!("`{s}` is not a size; write bytes with an optional K, M or G, as 4K, 1.5M or 1G");
        let bytes = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(unit),
            Err(_) => {
                let bytes = number.parse::<f64>().map_err(|_| wrong())? * unit as f64;
                ((0.0..9e18).contains(&bytes)).then_some(bytes as u64)
            }
        };
        bytes.map(Size).ok_or_else(wrong)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneOrAll<T> {
    One(T),
    All,
}

impl<T: Copy> OneOrAll<T> {
    pub fn list(&self, all: &[T]) -> Vec<T> {
        match self {
            OneOrAll::One(one) => vec![*one],
            OneOrAll::All => all.to_vec(),
        }
    }
}

impl<T: FromStr<Err: ToString>> FromStr for OneOrAll<T> {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "all" => Ok(OneOrAll::All),
            _ => s.parse().map(OneOrAll::One).map_err(|err: T::Err| format!("{}, all", err.to_string())),
        }
    }
}

fn any_root(name: &str) -> Result<Collective, String> {
    collective(name, Rank(0))
}

/// The collective of a name.
pub fn collective(name: &str, root: Rank) -> Result<Collective, String> {
    Collective::named(name, root).ok_or_else(|| {
        let known = Collective::all(root).map(Collective::name).join(", ");
        format!("unknown collective `{name}`; known: {known}")
    })
}

#[cfg(test)]
mod tests {
    use ringlab_engine::fifo::{Fifo, Protocol};

    use super::*;

    fn args(line: &str) -> Args {
        Args::try_parse_from(std::iter::once("ringlab-perf").chain(line.split_whitespace())).unwrap()
    }

    #[test]
    fn a_profile_for_communicators_is_measured_with_their_slots() {
        let slot = |line: &str| args(line).slot_bytes() as u64;
        assert_eq!(slot("--backend cuda --procs --tune-report"), Config::default().slot_bytes);
        assert_eq!(slot("--backend cuda --procs --tune-report --slot 1M"), 1 << 20);
        assert_eq!([slot("--backend cuda --procs"), slot("--backend cuda --tune-report")], [512 << 10; 2]);
    }

    #[test]
    fn connections_are_as_the_flags_say() {
        let fifo = |line: &str| args(line).fifo.fifo();
        assert_eq!(fifo(""), Fifo::default());
        assert_eq!(fifo("--proto ll128"), Fifo::of(Protocol::Ll128));
        let nccl = Fifo { protocol: Protocol::Ll, chunk_steps: 4, slice_steps: 2 };
        assert_eq!(fifo("--proto LL --chunk-steps 4 --slice-steps 2"), nccl);
    }

    #[test]
    fn sizes_take_suffixes_and_fractions() {
        let size = |s: &str| s.parse::<Size>().map(|size| size.0).ok();
        assert_eq!(size("8"), Some(8));
        assert_eq!((size("1K"), size("4m"), size("1G")), (Some(1 << 10), Some(4 << 20), Some(1 << 30)));
        assert_eq!(size("1.5K"), Some(1536));
        assert_eq!([size(""), size("K"), size("-1"), size("1T"), size("1e30"), size("nan")], [None; 6]);
    }

    #[test]
    fn a_factor_multiplies_and_a_step_adds_up_to_the_end() {
        assert_eq!(args("-b 1K -e 16K -f 4").sizes().collect::<Vec<_>>(), [1024, 4096, 16384]);
        assert_eq!(args("-b 1 -e 10 -i 4").sizes().collect::<Vec<_>>(), [1, 5, 9]);
        assert_eq!(args("-b 8 -e 8 -f 2").sizes().collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        let refused = |line: &str| args(line).validate().unwrap_err();
        assert!(refused("-b 2K -e 1K").contains("-b 2048 is above -e 1024"));
        assert!(refused("-b 0 -e 1K -f 2").contains("stays 0"));
        assert!(refused("-b 1 -e 2 -i 0").contains("never reaches"));
        assert!(refused("--collective broadcast -g 2 -r 2").contains("-r 2 is not a rank"));
        assert!(refused("--threads -g 2").contains("--threads are for --backend cuda"));
        assert!(refused("--register").contains("--register and --devices are for --backend cuda"));
        assert!(refused("--devices 0,1").contains("for --backend cuda"));
        assert!(args("--backend cuda --devices 0 --procs --register").validate().is_ok());
        assert!(refused("--json /").contains("a folder, or lies in none"));
        assert!(refused("--json /no/such/folder/x.json").contains("--json /no/such/folder/x.json"));
        assert!(args("--json x.json").validate().is_ok());
        assert!(refused("--collective scatter -g 2 -r 2").contains("-r 2 is not a rank"));
        assert!(
            refused("--backend cuda --procs -g 2 --tune-report --tune-ranks 2,4")
                .contains("run once for each number")
        );
        assert!(refused("--chunk-steps 3").contains("--chunk-steps and --slice-steps: chunks of 3 steps"));
        assert!(refused("--slice-steps 2").contains("in slices of 2"));
        assert!(args("--collective all_to_all -g 2 -r 2").validate().is_ok());
        assert!(args("-b 0 -e 0").validate().is_ok());
    }

    #[test]
    fn numbers_out_of_range_are_told_by_name() {
        let told = |line: &str| {
            let words = std::iter::once("ringlab-perf").chain(line.split_whitespace());
            Args::try_parse_from(words).unwrap_err().to_string()
        };
        assert!(told("-r -1").contains("invalid value '-1' for '--root"));
        assert!(told("--channels 65").contains("65 is not in 1..=64"));
        for line in
            ["-g 0", "-g 65", "-n 0", "-T 0", "-T 86401", "--rounds 0", "--channels 0", "-n 4294967296"]
        {
            assert!(told(line).contains(" is not in "), "{line}: {}", told(line));
        }
    }

    #[test]
    fn a_report_of_simulations_has_connections_as_asked_and_refuses_what_it_would_ignore() {
        let report = args("--sim-report -g 4 --proto LL --chunk-steps 4 --slice-steps 2");
        assert!(report.validate().is_ok());
        assert_eq!(report.fifo.fifo(), Fifo { protocol: Protocol::Ll, chunk_steps: 4, slice_steps: 2 });
        for flag in [
            "--procs",
            "--threads",
            "--register",
            "--one-stream",
            "--random 1",
            "--algo ring",
            "--tune-report",
            "--explain",
        ] {
            let line = format!("ringlab-perf --backend cuda --sim-report {flag}");
            let refused = Args::try_parse_from(line.split_whitespace()).unwrap_err();
            assert_eq!(refused.kind(), clap::error::ErrorKind::ArgumentConflict, "{flag}: {refused}");
        }
    }

    #[test]
    fn a_collective_gets_the_root_of_its_flag() {
        let got = args("--collective gather -g 4 -r 3").collective();
        assert_eq!(got, Collective::Gather { root: Rank(3) });
        assert!(any_root("alltoall").unwrap_err().contains("all_to_all"));
    }

    #[test]
    fn all_runs_every_type_and_reduction_where_there_is_one() {
        assert_eq!(args("-d all -o all").ops().len(), 6);
        assert_eq!(args("-d all").dtype.list(&DType::ALL).len(), 12);
        assert_eq!(args("-o all --collective all_gather").ops(), [RedOp::Sum]);
        assert_eq!(args("-d half").dtype.list(&DType::ALL), [DType::F16]);
    }
}
