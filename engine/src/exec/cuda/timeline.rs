//! From the device's records to a timeline and a list of stalls.

use super::image::{self, TraceRecord};
use super::phases::{Part, Phases};
use crate::exec::Stall;
use crate::exec::program::Program;
use crate::trace::{Crossing, Span};

/// Spans of one block, at most `most`; returns how many were left out. Times are the device's, not yet relative.
pub fn spans(
    program: &Program,
    phases: &Phases,
    records: &[TraceRecord],
    tile: (u64, u64),
    most: usize,
    out: &mut Vec<Span>,
) -> u64 {
    let (tile_bytes, elem_size) = tile;
    let begin = out.len();
    for record in records {
        let phase = &phases.phases[record.phase as usize];
        for &(step, part) in &phase.parts {
            let (start, ready, end) = match part {
                Part::Wait => (record.begin, record.ready, record.ready),
                Part::Direct { .. } => (record.ready, record.ready, record.moved),
                Part::Fifo { .. } => (record.begin, record.ready, record.end),
                Part::Signal => (record.moved, record.moved, record.end),
            };
            let bytes = match part {
                Part::Direct { move_index } | Part::Fifo { move_index } => {
                    let slice = phase.moves[move_index].slice * elem_size;
                    slice.saturating_sub(record.tile * tile_bytes).min(tile_bytes)
                }
                Part::Wait | Part::Signal => 0,
            };
            // The chunks of one step are one span.
            if let Some(last) = out[begin..].last_mut()
                && (last.step, last.tile) == (step, record.tile)
            {
                last.ready_ns += ready - start;
                last.end_ns = end.max(last.end_ns);
                last.bytes += bytes;
                continue;
            }
            let instr = &program.steps[step as usize];
            out.push(Span {
                rank: program.rank,
                channel: program.channel,
                tile: record.tile,
                step,
                op: instr.name.into(),
                from: instr.from.map(|peer| peer.rank),
                to: instr.to.map(|peer| peer.rank),
                bytes,
                start_ns: start,
                ready_ns: ready,
                end_ns: end,
                crossing: Crossing::default(),
            });
        }
    }
    let left_out = (out.len() - begin).saturating_sub(most);
    out.truncate(begin + most.min(out.len() - begin));
    left_out as u64
}

/// Makes the earliest span begin at 0 and orders by start.
pub fn relative(spans: &mut [Span]) {
    let epoch = spans.iter().map(|span| span.start_ns).min().unwrap_or(0);
    for span in spans.iter_mut() {
        span.start_ns -= epoch;
        span.ready_ns -= epoch;
        span.end_ns -= epoch;
    }
    spans.sort_by_key(|span| (span.start_ns, span.rank, span.channel, span.step));
}

/// The record a block left, if it was stopped while it waited.
pub fn stall(program: &Program, left: &image::Stall) -> Option<Stall> {
    (left.valid != 0).then(|| Stall {
        rank: program.rank,
        channel: program.channel,
        peer: crate::types::Rank(left.peer),
        step: left.step,
        tile: left.tile,
        waiting_for: image::wanted(left.want),
        head: left.head,
        tail: left.tail,
    })
}
