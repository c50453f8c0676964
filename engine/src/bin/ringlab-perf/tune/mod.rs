//! The tuner on the command line: what it would choose (`--explain`), what it chooses (`--algo auto`), and how well (`--tune-report`).

mod explain;
mod measure;
mod regret;
mod report;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

pub use explain::explain;
pub use report::report;
use ringlab_engine::exec::Backend;
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::{self, Algorithm, MAX_CHANNELS, Plan};
use ringlab_engine::text::Lang;
use ringlab_engine::tuner::{Choice, Domain, List, Overrides, Profile, Protocol, Query, Tuner};

use crate::args::Args;
use crate::channels::Channels;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tuner")]
pub struct TuneArgs {
    /// Prints what the tuner would choose at each size and why, and runs nothing. With `--profile nccl` (the default here): what NCCL
    /// 2.22.3 would, with its NCCL_ALGO, NCCL_PROTO, NCCL_NTHREADS and NCCL_LL128_NTHREADS.
    #[arg(long, conflicts_with = "tune_report")]
    pub explain: bool,

    /// Measures every algorithm of these collectives (of --collective without a list; `all` for all), fits a profile to every other
    /// size or takes --profile, and prints what the tuner would choose, what was best, and the regret. With --procs the profile is one
    /// for communicators (RINGLAB_TUNER_PROFILE).
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with = "threads")]
    pub tune_report: Option<String>,

    /// Numbers of ranks to measure (default: -g).
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "tune_report")]
    pub tune_ranks: Vec<u32>,

    /// Numbers of channels to measure and choose between (default: --channels, or those of --profile).
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "tune_report",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CHANNELS)))]
    pub tune_channels: Vec<u32>,

    /// Protocols to measure: LL, LL128, Simple.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "Simple",
        requires = "tune_report"
    )]
    pub tune_protocols: Vec<Protocol>,

    /// Writes the profile that was fitted, to all sizes, to this file.
    #[arg(long, value_name = "PATH", requires = "tune_report", conflicts_with = "profile")]
    pub save_profile: Option<PathBuf>,

    /// Keeps what the file of --save-profile has of other measurements on the same device: other numbers of ranks, other collectives.
    #[arg(long, requires = "save_profile")]
    pub merge_profile: bool,

    /// A profile of --tune-report, or for --explain also `nccl` (a DGX H100) or `nccl:FILE` (a communicator as JSON).
    #[arg(long, value_name = "PATH")]
    pub profile: Option<String>,

    /// Nodes that --profile nccl spreads the ranks over.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub nccl_nodes: u32,

    /// Language of explanations: en or zh.
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = lang)]
    pub lang: Lang,
}

fn lang(code: &str) -> Result<Lang, String> {
    Lang::from_code(code).ok_or_else(|| format!("unknown language `{code}`; known: zh, en"))
}

/// What `--algo` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algo {
    Auto,
    Named(Algorithm),
}

impl FromStr for Algo {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(Algo::Auto),
            _ => s.parse().map(Algo::Named).map_err(|err| format!("{err}, auto")),
        }
    }
}

impl std::fmt::Display for Algo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Algo::Auto => f.write_str("auto"),
            Algo::Named(algorithm) => algorithm.fmt(f),
        }
    }
}

/// Where the plan of a size comes from.
pub enum Chooser {
    Fixed { algorithm: Algorithm, channels: Channels },
    Auto(Box<Tuner>),
}

impl Chooser {
    pub fn new(args: &Args, channels: Channels) -> Result<Chooser, String> {
        Ok(match args.algo {
            Algo::Named(algorithm) => Chooser::Fixed { algorithm, channels },
            Algo::Auto => Chooser::Auto(Box::new(tuner(args)?)),
        })
    }

    /// Whether every size has so many channels.
    pub fn fixes(&self, channels: u32) -> bool {
        matches!(self, Chooser::Fixed { channels: Channels::Fixed(fixed), .. } if *fixed == channels)
    }

    /// The plan for a size, how its connections carry data, and the choice when there was one.
    pub fn plan(&self, args: &Args, bytes: u64) -> Result<(Plan, Fifo, Option<Choice>), String> {
        let collective = args.collective();
        let (algorithm, channels, fifo, choice) = match self {
            Chooser::Fixed { algorithm, channels } => {
                (*algorithm, channels.of(bytes), args.fifo.fifo(), None)
            }
            Chooser::Auto(tuner) => {
                let choice = tuner.choose(Query { collective, bytes }).map_err(|err| err.to_string())?;
                let algorithm =
                    choice.algorithm().expect("a profile's candidates are algorithms of the engine");
                let protocol = choice
                    .winner()
                    .protocol
                    .parse()
                    .expect("a profile's candidates have the engine's protocols");
                (algorithm, choice.launched.channels, args.fifo.with(protocol), Some(choice))
            }
        };
        let plan =
            plan::generate(algorithm, collective, args.ranks, channels).map_err(|err| err.to_string())?;
        Ok((plan, fifo, choice))
    }
}

/// A line above a size's row.
pub fn comment(choice: &Choice) -> String {
    let winner = choice.winner();
    let predicted = winner
        .cost
        .as_ref()
        .map_or("no prediction".into(), |cost| format!("predicted {:.2} us", cost.time_us));
    format!("# {} B: {}, {predicted}\n", choice.bytes, winner.name(Lang::En))
}

/// The tuner of `--algo auto`: the profile, and what the environment and `--channels` override.
fn tuner(args: &Args) -> Result<Tuner, String> {
    let Some(path) = &args.tune.profile else {
        return Err(
            "choosing takes a profile: give --profile PATH, made by --tune-report --save-profile PATH".into(),
        );
    };
    let mut overrides = Overrides::from_env().map_err(|err| err.to_string())?;
    if args.channels.is_some() {
        (overrides.min_channels, overrides.max_channels) = (args.channels, args.channels);
    }
    if let Some(protocol) = args.fifo.proto {
        overrides.protocols = Some(List::parse(protocol.name()));
    }
    Tuner::new(load(path, args)?, overrides, args.ranks).map_err(|err| err.to_string())
}

/// To standard output.
fn write(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|err| format!("cannot write the report: {err}"))
}

/// What a profile of such a run holds for.
fn domain(args: &Args) -> Domain {
    match args.backend {
        Backend::Cpu => Domain::Cpu,
        Backend::Cuda if args.procs => Domain::SharedGpuRanks,
        Backend::Cuda => Domain::SharedGpu,
    }
}

/// Reads a profile and sees that it is for such a run.
fn load(path: &str, args: &Args) -> Result<Profile, String> {
    let profile = Profile::load(path.as_ref()).map_err(|err| err.to_string())?;
    let (of, wants) = (profile.domain, domain(args));
    if of == wants {
        return Ok(profile);
    }
    let flags = match of {
        Domain::Cpu => "--backend cpu",
        Domain::SharedGpu => "--backend cuda without --procs",
        Domain::SharedGpuRanks => "--backend cuda --procs",
    };
    Err(format!("{path} is a profile of {}, and this run is of {}; give {flags}", of.name(), wants.name()))
}
