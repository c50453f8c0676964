//! A trace in few figures.

use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::SLOTS;
use ringlab_engine::trace::{Origin, Trace};
use ringlab_engine::types::{ChannelId, Rank};
use ringlab_labs::text::Lang;

use crate::strings as t;

/// What one rank did on one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSummary {
    pub rank: Rank,
    pub channel: ChannelId,
    pub spans: u64,
    pub waiting_ns: u64,
    pub moving_ns: u64,
    /// Bytes of the steps that send to a peer.
    pub sent: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

/// Lanes in order of rank, then channel; lanes without a span are left out.
pub fn summarise(trace: &Trace) -> Vec<LaneSummary> {
    let mut lanes: Vec<LaneSummary> = Vec::new();
    for span in &trace.spans {
        let lane = match lanes.iter_mut().find(|l| l.rank == span.rank && l.channel == span.channel) {
            Some(lane) => lane,
            None => {
                lanes.push(LaneSummary {
                    rank: span.rank,
                    channel: span.channel,
                    spans: 0,
                    waiting_ns: 0,
                    moving_ns: 0,
                    sent: 0,
                    first_ns: span.start_ns,
                    last_ns: 0,
                });
                lanes.last_mut().expect("pushed just now")
            }
        };
        lane.spans += 1;
        lane.waiting_ns += span.ready_ns.saturating_sub(span.start_ns);
        lane.moving_ns += span.end_ns.saturating_sub(span.ready_ns);
        if span.to.is_some() {
            lane.sent += span.bytes;
        }
        lane.first_ns = lane.first_ns.min(span.start_ns);
        lane.last_ns = lane.last_ns.max(span.end_ns);
    }
    lanes.sort_by_key(|l| (l.rank, l.channel));
    lanes
}

/// Where the times come from and how connections carried data, in words.
pub fn origin_text(lang: Lang, trace: &Trace) -> String {
    let origin = match &trace.origin {
        Origin::Measured { backend, hardware, clock } => {
            format!("{}: {backend}, {hardware} ({clock})", t::measured(lang))
        }
        Origin::Simulated { model } => format!("{}: {model}", t::simulated(lang)),
    };
    match trace.fifo {
        Some(fifo) => format!("{origin} · {}", fifo_text(lang, fifo)),
        None => origin,
    }
}

fn fifo_text(lang: Lang, fifo: Fifo) -> String {
    let Fifo { protocol, chunk_steps, slice_steps } = fifo;
    match lang {
        Lang::Zh => {
            format!("{protocol}，连接有 {SLOTS} 步，chunk 占 {chunk_steps} 步，slice 占 {slice_steps} 步")
        }
        Lang::En => format!(
            "{protocol}, connections of {SLOTS} steps, a chunk takes {chunk_steps} and a slice {slice_steps}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_engine::fifo::Protocol;
    use ringlab_engine::trace::{Crossing, Span};

    fn span(rank: u32, start: u64, ready: u64, end: u64, to: Option<u32>) -> Span {
        Span {
            rank: Rank(rank),
            channel: ChannelId(0),
            tile: 0,
            step: 0,
            op: "send".into(),
            from: None,
            to: to.map(Rank),
            bytes: 64,
            start_ns: start,
            ready_ns: ready,
            end_ns: end,
            crossing: Crossing::default(),
        }
    }

    #[test]
    fn waiting_and_moving_add_up_per_lane() {
        let trace = Trace {
            version: 1,
            origin: Origin::Simulated { model: "test".into() },
            ranks: 2,
            channels: 1,
            fifo: None,
            slot_bytes: None,
            spans: vec![span(1, 0, 5, 9, Some(0)), span(0, 1, 2, 4, Some(1)), span(1, 9, 9, 12, None)],
            dropped: 0,
        };
        let lanes = summarise(&trace);
        assert_eq!(lanes.len(), 2);
        assert_eq!((lanes[0].rank, lanes[0].waiting_ns, lanes[0].moving_ns), (Rank(0), 1, 2));
        assert_eq!((lanes[1].waiting_ns, lanes[1].moving_ns, lanes[1].sent), (5, 7, 64));
        assert_eq!((lanes[1].first_ns, lanes[1].last_ns, lanes[1].spans), (0, 12, 2));
        assert_eq!(origin_text(Lang::En, &trace), "Simulated: test");
        let fifo = Some(Fifo { protocol: Protocol::Ll, chunk_steps: 4, slice_steps: 2 });
        let said = origin_text(Lang::En, &Trace { fifo, ..trace });
        assert_eq!(said, "Simulated: test · LL, connections of 8 steps, a chunk takes 4 and a slice 2");
    }
}
