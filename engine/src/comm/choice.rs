//! Which schedule a communicator runs: the tuner's choice among what its ranks can run, kept by collective and size. All ranks must
//! come to the same one, so they compare what it follows from ([`Terms`]) when they connect.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::debug::{self, log};
use super::env;
use super::error::CommError;
use super::hub::names;
use super::operation::Config;
use crate::plan::{Algorithm, Buffer, MAX_CHANNELS, Place, Plan, Step, generate};
use crate::text::{Lang, Text};
use crate::tuner::native::read_rules;
use crate::tuner::overrides::{ALGO, TUNER_FILE, TUNER_PROFILE};
use crate::tuner::{
    Choice, Domain, Gate, List, Overrides, Profile, Protocol, Query, RuleOfThumb, SelectError, Tuner,
};
use crate::types::{Collective, Rank, RedOp};
use crate::verify::verify;

/// Bytes of a channel's slice of a chunk that are worth a block of their own.
const SLICE_BYTES: u64 = 16 << 10;

/// Bytes that a rank sends in all up to which one hop to every peer beats few bytes in many hops.
const ONE_HOP_BYTES: u64 = 256 << 10;

/// Most ranks whose mutual connections a block waits for in one go: a warp has so many lanes.
const ONE_HOP_RANKS: u32 = 32;

/// Scratch chunks of a plan's channel that a rank keeps: what the exchange of all ranks with all needs.
const SCRATCH_CHUNKS: u32 = 2;

/// Choices kept. A program that asks for more sizes than this pays for choosing again.
const KEPT: usize = 4096;

/// Profiles that come with the engine, as JSON: measured on the device in [`crate::tuner::Origin`].
const BUILT_IN: &[&str] = &[include_str!("../../profiles/nvidia-h200.json")];

/// NCCL's algorithms that there is nothing like here.
const NCCL_ONLY: [&str; 4] = ["CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"];

/// What a choice follows from besides the operation; a line each, equal on all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms(Vec<(String, String)>);

impl Terms {
    /// # Errors
    /// [`CommError::InvalidUsage`] names the first thing in which ranks differ, and the ranks.
    pub(super) fn compare(all: &[Terms]) -> Result<(), CommError> {
        let Some((first, rest)) = all.split_first() else { return Ok(()) };
        for (at, (what, value)) in first.0.iter().enumerate() {
            let other = |terms: &&Terms| terms.0.get(at).is_none_or(|line| line.1 != *value);
            let Some(odd) = rest.iter().find(other) else { continue };
            let theirs = odd.0.get(at).map_or("nothing", |line| &line.1);
            let with = |wanted: &str| -> Vec<Rank> {
                let has = |terms: &Terms| terms.0.get(at).is_some_and(|line| line.1 == wanted);
                (0..).zip(all).filter(|(_, terms)| has(terms)).map(|(rank, _)| Rank(rank)).collect()
            };
            return Err(CommError::InvalidUsage(format!(
                "the ranks differ in {what}: {value} on {}, {theirs} on {}; give all ranks the same configuration, variables and files",
                names(&with(value)),
                names(&with(theirs)),
            )));
        }
        Ok(())
    }
}

/// What the choices of one process are made from, before it is known who the others are.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    overrides: Overrides,
    profile: Option<Profile>,
}

impl Wishes {
    /// From the configuration, and where it leaves things open from the environment.
    ///
    /// # Errors
    /// [`CommError::InvalidArgument`] for variables and files that mean nothing.
    pub(super) fn new(config: &Config) -> Result<Wishes, CommError> {
        let wrong = |why: String| CommError::InvalidArgument(why);
        let overrides = match &config.overrides {
            Some(overrides) => overrides.clone(),
            None => from_variables(variable)?,
        };
        let path = config.profile.clone().or_else(|| Some(variable(TUNER_PROFILE)?.1.into()));
        let profile =
            path.map(|path| Profile::load(&path)).transpose().map_err(|why| wrong(why.to_string()))?;
        if let Some(profile) = profile.as_ref().filter(|profile| profile.domain != Domain::SharedGpuRanks) {
            return Err(wrong(format!(
                "the profile `{}` is of {}, and a communicator needs {}; measure one with `ringlab-perf --backend cuda --procs \
                 --tune-report --save-profile PATH`",
                profile.name,
                profile.domain.name(),
                Domain::SharedGpuRanks.name()
            )));
        }
        Ok(Wishes { overrides, profile })
    }

    pub(super) fn terms(&self, config: &Config) -> Terms {
        let json = |value: &dyn Fn() -> serde_json::Result<String>| {
            value().expect("structures of strings and finite numbers can be written as JSON")
        };
        let profile = self.profile.as_ref().map_or("built in".into(), |profile| {
            let text = json(&|| serde_json::to_string(profile));
            format!("`{}` of {} ({:016x})", profile.name, profile.origin.date, digest(text.as_bytes()))
        });
        let lines = [
            ("the tuner's overrides", json(&|| serde_json::to_string(&self.overrides))),
            ("the tuner's profile", profile),
            ("channels", format!("{} to {}", config.min_channels, config.max_channels)),
            ("bytes of a slot", config.slot_bytes.to_string()),
            ("the comparison of calls", if config.check_mismatch { "on" } else { "off" }.into()),
        ];
        Terms(lines.map(|(what, value)| (what.to_owned(), value)).to_vec())
    }
}

/// FNV-1a: tells files apart that are meant to be the same.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

/// The tuner's variables by their names in [`crate::tuner::overrides`], under NCCL's names too where those are accepted.
fn variable(name: &str) -> Option<(String, String)> {
    env::lookup(name.strip_prefix("RINGLAB_").expect("the tuner's variables are named so"))
}

/// `lookup`: a variable's value, and the full name it was found under.
fn from_variables(lookup: impl Fn(&str) -> Option<(String, String)>) -> Result<Overrides, CommError> {
    let wrong = |why: String| CommError::InvalidArgument(why);
    let get = |name: &str| {
        let (full, value) = lookup(name)?;
        match full.strip_prefix("NCCL_") {
            None => Some(value),
            // Blocks here have other tasks than NCCL's, whose threads are no measure for them.
            Some("NTHREADS") => {
                log!(Warn, Env, "{full}={value} is not used: blocks choose their threads by the message");
                None
            }
            Some("ALGO") => Some(ours(&value)),
            Some(_) => Some(value),
        }
    };
    if let Some((full, value)) = lookup(ALGO).filter(|(full, _)| full.starts_with("NCCL_")) {
        let named = List::parse(&value);
        if !named.exclude && !named.names.is_empty() && ours(&value).is_empty() {
            return Err(wrong(format!(
                "{full}={value} names no algorithm of this library; use Ring or Tree, or unset it"
            )));
        }
    }
    let mut overrides = Overrides::from_variables(get).map_err(|why| wrong(why.to_string()))?;
    if let Some((_, file)) = lookup(TUNER_FILE) {
        overrides.rules = read_rules(Path::new(&file)).map_err(|why| wrong(why.to_string()))?;
    }
    Ok(overrides)
}

/// A list of NCCL's algorithms without those that there is nothing like here.
fn ours(value: &str) -> String {
    let mut list = List::parse(value);
    list.names.retain(|name| !NCCL_ONLY.iter().any(|only| only.eq_ignore_ascii_case(name)));
    if list.names.is_empty() { String::new() } else { list.to_string() }
}

/// What the choices depend on that the device says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Situation {
    pub ranks: u32,
    /// Name of the device, as the driver gives it.
    pub device: String,
    /// Whether all ranks are on one device.
    pub one_device: bool,
    /// Channels with which all ranks' blocks surely run together, on every device.
    pub resident: u32,
}

/// One way to run a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Chosen {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    pub channels: u32,
}

#[derive(Debug)]
pub(super) struct Choices {
    tuner: Tuner,
    rank: Rank,
    ranks: u32,
    kept: HashMap<(Collective, u64), Chosen>,
    /// Channels there may be.
    channels: (u32, u32),
}

impl Choices {
    /// # Errors
    /// [`CommError::InvalidArgument`] when an override asks for what there is not.
    pub(super) fn new(
        wishes: Wishes,
        config: &Config,
        situation: &Situation,
        rank: Rank,
    ) -> Result<Choices, CommError> {
        let Situation { ranks, resident, .. } = *situation;
        let Wishes { overrides, profile } = wishes;
        let failed = |why: SelectError| CommError::InvalidArgument(why.to_string());
        let mut tuner = match fitting(profile, situation) {
            Ok(profile) => Tuner::new(profile, overrides, ranks),
            Err(why) => Tuner::unmeasured(Domain::SharedGpuRanks, overrides, ranks, why),
        }
        .map_err(failed)?;
        for collective in Collective::all(Rank(0)) {
            for algorithm in Algorithm::ALL {
                if let Some(why) =
                    generate(algorithm, collective, ranks, 1).ok().and_then(|plan| cannot(&plan))
                {
                    tuner.exclude(algorithm, collective, Gate::new("port", why));
                }
            }
        }
        let most = config.max_channels.min(resident).clamp(1, MAX_CHANNELS);
        let fewest = config.min_channels.min(most);
        if fewest < config.min_channels {
            log!(
                Warn,
                Tuning,
                "rank {rank}: at least {} channels were asked for, but only {most} of each of the {ranks} ranks surely run together here",
                config.min_channels
            );
        }
        tuner.limit_channels(fewest, most);
        Ok(Choices { tuner, rank, ranks, kept: HashMap::new(), channels: (fewest, most) })
    }

    /// For blocks of so many bytes, at least one.
    ///
    /// # Errors
    /// [`CommError::InvalidUsage`] when the overrides leave nothing that can run.
    pub(super) fn choose(&mut self, collective: Collective, block_bytes: u64) -> Result<Chosen, CommError> {
        if let Some(chosen) = self.kept.get(&(collective, block_bytes)) {
            return Ok(*chosen);
        }
        let choice = self.explain(collective, block_bytes)?;
        let winner = choice.winner();
        let chosen = Chosen {
            algorithm: choice.algorithm().expect("the tuner's candidates are the engine's algorithms"),
            protocol: winner.protocol.parse().expect("the tuner's candidates have the engine's protocols"),
            channels: choice.launched.channels,
        };
        log!(
            Info,
            Tuning,
            "rank {}: {} of {} bytes: {}",
            self.rank,
            choice.collective,
            choice.bytes,
            spoken(&choice)
        );
        if debug::enabled(debug::Level::Trace, debug::Subsystem::Tuning) {
            choice.explain(Lang::En).lines().for_each(|line| log!(Trace, Tuning, "{line}"));
        }
        if self.kept.len() == KEPT {
            self.kept.clear();
        }
        self.kept.insert((collective, block_bytes), chosen);
        Ok(chosen)
    }

    /// Everything that was weighed.
    ///
    /// # Errors
    /// As [`Choices::choose`].
    pub(super) fn explain(&self, collective: Collective, block_bytes: u64) -> Result<Choice, CommError> {
        let blocks = u64::from(collective.input_blocks(self.ranks).max(collective.output_blocks(self.ranks)));
        let query = Query { collective, bytes: block_bytes * blocks };
        let rule = rule_of_thumb(collective, self.ranks, block_bytes, self.channels);
        self.tuner.choose_or(query, &rule).map_err(|why| CommError::InvalidUsage(why.to_string()))
    }
}

fn spoken(choice: &Choice) -> String {
    let text = &choice.sentences()[choice.chosen];
    format!("{} [{}]", text.en, choice.profile)
}

/// The profile whose figures hold here, or why there is none.
fn fitting(given: Option<Profile>, situation: &Situation) -> Result<Profile, Text> {
    if !situation.one_device {
        return Err(Text::new(
            "各 rank 分布在多个 GPU 上，而测量档案只适用于共享一个 GPU 的 rank",
            "the ranks are on several GPUs, and profiles are of ranks that share one",
        ));
    }
    let built_in = BUILT_IN.iter().map(|text| {
        serde_json::from_str::<Profile>(text).expect("a test reads every profile that comes with the engine")
    });
    let fits = |profile: &Profile| profile.origin.device.contains(&situation.device);
    if let Some(other) = given.as_ref().filter(|profile| !fits(profile)) {
        log!(
            Warn,
            Tuning,
            "the profile `{}` was measured on {}, and this is {}: its figures are followed, but may not hold here",
            other.name,
            other.origin.device,
            situation.device
        );
    }
    given.or_else(|| built_in.into_iter().find(fits)).ok_or_else(|| {
        let device = &situation.device;
        Text::new(
            format!("没有 {device} 的测量档案（{TUNER_PROFILE} 可以给出一个）"),
            format!("there is no measured profile for {device} ({TUNER_PROFILE} can name one)"),
        )
    })
}

/// Why a rank of a communicator cannot run a plan: it maps its peers' FIFOs, not their buffers, and keeps little scratch.
pub(super) fn cannot(plan: &Plan) -> Option<Text> {
    if plan_reads(plan, |_| true) {
        return Some(Text::new(
            "它直接读取其他 rank 的缓冲区，而通信器不映射这些缓冲区",
            "it reads peers' buffers, which a communicator does not map",
        ));
    }
    too_much_scratch(plan)
}

/// Whether a rank reads a buffer of a peer that is one of these.
fn plan_reads(plan: &Plan, which: impl Fn(Buffer) -> bool) -> bool {
    let foreign = |place: &Place| place.rank.is_some() && which(place.range.buffer);
    let reads = |step: &Step| match step {
        Step::Copy { src, .. } => foreign(src),
        Step::Reduce { srcs, .. } => srcs.iter().any(foreign),
        _ => false,
    };
    plan.programs.iter().flat_map(|program| &program.steps).any(reads)
}

/// As [`cannot`], where the ranks' inputs and outputs are registered.
///
/// Every rank launches for itself, so nothing but the plan orders what ranks do to each other's buffers: also not that a rank's caller
/// writes to its buffers again, once its own launch has ended, behind a peer that still reads them. Hence the proof.
pub(super) fn cannot_registered(plan: &Plan, op: RedOp, in_place: bool) -> Option<Text> {
    if plan_reads(plan, |buffer| matches!(buffer, Buffer::Scratch(_))) {
        return Some(Text::new(
            "它直接读取其他 rank 的暂存区，而通信器不映射暂存区",
            "it reads peers' scratch, which a communicator does not map",
        ));
    }
    if let Some(why) = too_much_scratch(plan) {
        return Some(why);
    }
    // In place every rank has multiplied its own input before.
    let scales = op == RedOp::PreMulSum && plan.collective.reduces() && !in_place;
    if scales && plan_reads(plan, |buffer| buffer == Buffer::Input) {
        return Some(Text::new(
            "它直接读取其他 rank 的输入，而预乘求和时每个 rank 只知道自己的系数",
            "it reads peers' inputs, and of a pre-multiplied sum each rank knows its own factor only",
        ));
    }
    if !plan_reads(plan, |_| true) {
        return None;
    }
    verify(plan, in_place).err().map(|refusal| {
        let why = refusal.message();
        Text::new(
            format!("它直接读取其他 rank 的缓冲区，因此必须先被证明正确：{}", why.zh),
            format!("it reads peers' buffers, so it has to be proved right first: {}", why.en),
        )
    })
}

fn too_much_scratch(plan: &Plan) -> Option<Text> {
    let scratch: u32 = plan.scratch.iter().map(|scratch| scratch.chunks).sum();
    (scratch > SCRATCH_CHUNKS).then(|| {
        Text::new(
            format!("它需要 {scratch} 个 chunk 的暂存区，而通信器只有 {SCRATCH_CHUNKS} 个"),
            format!("it needs {scratch} chunks of scratch, and a communicator has {SCRATCH_CHUNKS}"),
        )
    })
}

/// Where nothing was measured: one hop while few bytes are sent, the ring beyond. From all-reduce of float among processes on one H200:
/// the ring of 4 ranks took 24 us at 4 KiB, the exchange of 8 ranks 43 to 75 us, and they cross near 256 KiB sent by a rank.
fn rule_of_thumb(
    collective: Collective,
    ranks: u32,
    block_bytes: u64,
    (fewest, most): (u32, u32),
) -> RuleOfThumb {
    let blocks = u64::from(collective.input_blocks(ranks).max(collective.output_blocks(ranks)));
    let sent = match collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            block_bytes.saturating_mul(u64::from(ranks - 1))
        }
        _ => block_bytes.saturating_mul(blocks - 1),
    };
    let one_hop = (sent <= ONE_HOP_BYTES && ranks <= ONE_HOP_RANKS) || !Algorithm::Ring.supports(collective);
    let cut = if collective == Collective::AllReduce && !one_hop { u64::from(ranks) } else { 1 };
    let channels = (block_bytes / cut / SLICE_BYTES).clamp(fewest.into(), most.into()) as u32;
    let (order, why) = if one_hop {
        let why = Text::new(
            format!("每个 rank 只发送 {sent} 字节（不超过 {ONE_HOP_BYTES}），或没有环形调度：一步到位"),
            format!(
                "a rank sends {sent} bytes (one hop up to {ONE_HOP_BYTES}), or there is no ring for it: one hop to every peer"
            ),
        );
        ([Algorithm::Exchange, Algorithm::Ring], why)
    } else {
        let why = Text::new(
            format!("每个 rank 若一步到位要发送 {sent} 字节：用环以减少字节"),
            format!("in one hop a rank would send {sent} bytes: the ring sends fewer"),
        );
        ([Algorithm::Ring, Algorithm::Exchange], why)
    };
    RuleOfThumb { order: order.to_vec(), channels, why }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
