//! Runs a plan against a [`SimModel`] instead of a clock, and yields the timeline a real run would have on such a machine.
//!
//! Every rank and channel is a worker with a processor to itself that executes its steps in order. What crosses a connection does so in
//! slices as its [`Fifo`] cuts them, each with the bytes of its protocol's lines, and takes steps of the connection's
//! [`crate::plan::SLOTS`]. A transfer queues on the sender's way out, on the link and on the receiver's way in, and is over when the last
//! of them is done; a receive frees its steps, which the sender knows one alpha later. Times are whole picoseconds and ties go to the
//! lower rank, so that a simulation is the same everywhere.

mod engine;
mod fit;

pub use self::fit::{Observation, fit};
use crate::cost::SimModel;
use crate::fifo::{BadSteps, Fifo, Protocol};
use crate::plan::Plan;
use crate::plan::layout::{Layout, MOST_ELEMENTS};
use crate::text::Text;
use crate::trace::{Origin, Trace, VERSION};
use crate::types::DType;

/// Most chunk operations a simulation takes on: a second or two in a browser.
pub const MAX_OPERATIONS: u64 = 4_000_000;
/// Most spans a trace keeps; the rest is counted as dropped.
pub const MAX_SPANS: usize = 200_000;

/// Why there is no timeline.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", self.text().en)]
pub enum SimError {
    /// The plan's form is wrong; [`crate::verify`] says more.
    Malformed(Text),
    /// A number of the model is not positive, or `slot_bytes` is below 16.
    Model {
        what: &'static str,
        got: f64,
    },
    Steps(BadSteps),
    TooLarge {
        operations: u64,
    },
    /// The block, or the time it may take, is beyond what can be counted.
    TooLong {
        block: u64,
    },
    /// The plan waits for ever; [`crate::verify`] says where.
    Stopped,
}

impl SimError {
    /// For people: what is wrong and what to do.
    pub fn text(&self) -> Text {
        match self {
            SimError::Malformed(text) => text.clone(),
            SimError::Model { what, got } => Text::new(
                format!(
                    "模型的 {what} 是 {got}，它要是有限的正数（各 alpha_ns 和 step_ns 可以是 0，slot_bytes 至少 16）。"
                ),
                format!(
                    "{what} of the model is {got}; it must be finite and positive (alpha_ns and step_ns may be 0, slot_bytes \
                     is at least 16)."
                ),
            ),
            SimError::Steps(why) => why.text(),
            SimError::TooLarge { operations } => Text::new(
                format!("模拟需要 {operations} 次操作，上限 {MAX_OPERATIONS}；请减小消息，或增大槽位。"),
                format!(
                    "the simulation takes {operations} operations, the limit is {MAX_OPERATIONS}; use a smaller message or \
                     larger slots."
                ),
            ),
            SimError::TooLong { block } => Text::new(
                format!(
                    "每块 {block} 个元素的消息在这个模型上用的时间超出了可计的范围；请减小消息，或提高带宽。"
                ),
                format!(
                    "a message with blocks of {block} elements may take longer on this model than can be counted; use a smaller \
                     message or higher bandwidths."
                ),
            ),
            SimError::Stopped => Text::new(
                "计划会一直等下去；请先用校验器检查。",
                "the plan waits for ever; check it with the verifier first.",
            ),
        }
    }
}

/// The timeline of one execution for a block of `block` elements, with chunks of one step.
///
/// # Errors
/// [`SimError`] says why there is none.
pub fn simulate(
    plan: &Plan,
    model: &SimModel,
    block: u64,
    dtype: DType,
    slot_bytes: usize,
) -> Result<Trace, SimError> {
    simulate_with(plan, model, block, dtype, slot_bytes, Fifo::default())
}

/// The timeline of one execution over connections that carry data as `fifo` says, `slot_bytes` of payload a step.
///
/// # Errors
/// As [`simulate`]; a plan that [`crate::verify::verify_with`] accepts for the same `fifo` does not stop.
pub fn simulate_with(
    plan: &Plan,
    model: &SimModel,
    block: u64,
    dtype: DType,
    slot_bytes: usize,
    fifo: Fifo,
) -> Result<Trace, SimError> {
    let engine::Engine { mut spans, dropped, .. } =
        run(plan, model, block, dtype, (fifo, slot_bytes), MAX_SPANS)?;
    spans.sort_by_key(|s| (s.start_ns, s.rank, s.channel, s.tile, s.step));
    let origin = Origin::Simulated { model: model.describe([fifo.protocol]) };
    let (ranks, channels) = (plan.ranks, plan.channels);
    let trace =
        Trace { version: VERSION, origin, ranks, channels, fifo: None, slot_bytes: None, spans, dropped };
    Ok(trace.with_fifo(plan, fifo, slot_bytes))
}

/// An engine after its run.
fn run<'a>(
    plan: &'a Plan,
    model: &SimModel,
    block: u64,
    dtype: DType,
    (fifo, slot_bytes): (Fifo, usize),
    keeps: usize,
) -> Result<engine::Engine<'a>, SimError> {
    plan.check().map_err(|malformed| SimError::Malformed(malformed.message))?;
    check_model(model, slot_bytes)?;
    fifo.check().map_err(SimError::Steps)?;
    if block > MOST_ELEMENTS {
        return Err(SimError::TooLong { block });
    }
    let layout = Layout::new(block, dtype.size(), plan.chunks, plan.channels, fifo.chunk_bytes(slot_bytes));
    let slices = u64::from(fifo.slices());
    let per_tile: u64 =
        plan.programs.iter().flat_map(|p| &p.steps).map(|s| u64::from(s.chunk_len().max(1)) * slices).sum();
    let operations = per_tile.saturating_mul(layout.tiles());
    if operations > MAX_OPERATIONS {
        return Err(SimError::TooLarge { operations });
    }
    let tile_bytes = layout.tile_elems() * dtype.size() as u64;
    if operations as f64 * longest_operation(plan, model, fifo.protocol, tile_bytes) > MOST_NANOS {
        return Err(SimError::TooLong { block });
    }
    let mut engine = engine::Engine::new(plan, model, layout, dtype.size() as u64, (fifo, slot_bytes), keeps);
    engine.run()?;
    Ok(engine)
}

/// Half of what 64 bits of picoseconds hold.
const MOST_NANOS: f64 = 9e15;

/// Nanoseconds by which one operation on so many bytes can at most put off the end.
fn longest_operation(plan: &Plan, model: &SimModel, protocol: Protocol, bytes: u64) -> f64 {
    let SimModel { alpha_ns, step_ns, link_gbps, injection_gbps, local_gbps, .. } = *model;
    let peers = f64::from(plan.ranks) + 1.0;
    let on_wire = protocol.slice_wire_bytes(bytes) as f64;
    2.0 * alpha_ns.max(model.alpha(protocol))
        + step_ns
        + peers * on_wire * (1.0 / link_gbps + 1.0 / injection_gbps + 1.0 / local_gbps)
        + 2.0 * on_wire / model.line_gbps(protocol)
}

fn check_model(model: &SimModel, slot_bytes: usize) -> Result<(), SimError> {
    let bad = |what, got| Err(SimError::Model { what, got });
    for (what, got) in [
        ("link_gbps", model.link_gbps),
        ("injection_gbps", model.injection_gbps),
        ("local_gbps", model.local_gbps),
        ("ll_gbps", model.ll_gbps),
        ("ll128_gbps", model.ll128_gbps),
    ] {
        if !(1e-3..=1e9).contains(&got) {
            return bad(what, got);
        }
    }
    let latencies = [
        ("alpha_ns", model.alpha_ns),
        ("ll_alpha_ns", model.ll_alpha_ns),
        ("ll128_alpha_ns", model.ll128_alpha_ns),
        ("step_ns", model.step_ns),
    ];
    for (what, got) in latencies {
        if !(0.0..=1e9).contains(&got) {
            return bad(what, got);
        }
    }
    if slot_bytes < 16 { bad("slot_bytes", slot_bytes as f64) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
