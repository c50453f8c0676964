//! A trace in few figures.

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

/// Where the times come from, in words.
pub fn origin_text(lang: Lang, origin: &Origin) -> String {
    match origin {
        Origin::Measured { backend, hardware, clock } => {
            format!("{}: {backend}, {hardware} ({clock})", t::measured(lang))
        }
        Origin::Simulated { model } => format!("{}: {model}", t::simulated(lang)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_engine::trace::Span;

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
        }
    }

    #[test]
    fn waiting_and_moving_add_up_per_lane() {
        let trace = Trace {
            version: 1,
            origin: Origin::Simulated { model: "test".into() },
            ranks: 2,
            channels: 1,
            spans: vec![span(1, 0, 5, 9, Some(0)), span(0, 1, 2, 4, Some(1)), span(1, 9, 9, 12, None)],
            dropped: 0,
        };
        let lanes = summarise(&trace);
        assert_eq!(lanes.len(), 2);
        assert_eq!((lanes[0].rank, lanes[0].waiting_ns, lanes[0].moving_ns), (Rank(0), 1, 2));
        assert_eq!((lanes[1].waiting_ns, lanes[1].moving_ns, lanes[1].sent), (5, 7, 64));
        assert_eq!((lanes[1].first_ns, lanes[1].last_ns, lanes[1].spans), (0, 12, 2));
    }
}
