//! A trace as a file for Perfetto (ui.perfetto.dev) and chrome://tracing: the Trace Event Format in JSON.
//!
//! A rank is a process and a channel a thread. Each step is a slice that holds a `wait` and a `move` slice where these took any time;
//! its arguments name the steps of its connections that it emptied and filled (`8..12`), and `otherData` the protocol and how many steps
//! a chunk and a slice take; arrows lead from a send to its receive and from a signal to its wait. Written by hand, since the pure part of
//! the engine carries no JSON library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use super::{Crossing, Origin, Span, Trace};
use crate::fifo::Fifo;
use crate::plan::SLOTS;

/// The whole file.
pub fn export(trace: &Trace) -> String {
    let mut events = Vec::new();
    for rank in 0..trace.ranks {
        events.push(format!(
            r#"{{"ph":"M","name":"process_name","pid":{rank},"tid":0,"args":{{"name":"rank {rank}"}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"M","name":"process_sort_index","pid":{rank},"tid":0,"args":{{"sort_index":{rank}}}}}"#
        ));
        events.extend((0..trace.channels).map(|channel| {
            format!(
                r#"{{"ph":"M","name":"thread_name","pid":{rank},"tid":{channel},"args":{{"name":"channel {channel}"}}}}"#
            )
        }));
    }
    for span in &trace.spans {
        slices(&mut events, span);
    }
    arrows(&mut events, trace);
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n",
        other_data(trace),
        events.join(",\n")
    )
}

fn other_data(trace: &Trace) -> String {
    let origin = match &trace.origin {
        Origin::Measured { backend, hardware, clock } => format!(
            r#""origin":"measured","backend":{},"hardware":{},"clock":{}"#,
            quote(backend),
            quote(hardware),
            quote(clock)
        ),
        Origin::Simulated { model } => format!(r#""origin":"simulated","model":{}"#, quote(model)),
    };
    let fifo = trace.fifo.map_or(String::new(), |fifo| {
        let Fifo { protocol, chunk_steps, slice_steps } = fifo;
        let (slices, credits) = (fifo.slices(), fifo.credits());
        format!(
            r#","protocol":"{protocol}","chunk_steps":{chunk_steps},"slice_steps":{slice_steps},"connection_steps":{SLOTS},"slices_per_chunk":{slices},"credits_in_chunks":{credits}"#
        )
    });
    let slot = trace.slot_bytes.map_or(String::new(), |bytes| format!(r#","step_bytes":{bytes}"#));
    format!(
        r#"{{{origin}{fifo}{slot},"trace_version":{},"ranks":{},"channels":{},"spans":{},"dropped_spans":{}}}"#,
        trace.version,
        trace.ranks,
        trace.channels,
        trace.spans.len(),
        trace.dropped
    )
}

fn slices(events: &mut Vec<String>, span: &Span) {
    let mut args = format!(r#""tile":{},"step":{},"bytes":{}"#, span.tile, span.step, span.bytes);
    for (name, peer) in [("from", span.from), ("to", span.to)] {
        if let Some(rank) = peer {
            let _ = write!(args, r#","{name}":{rank}"#);
        }
    }
    let Crossing { received, sent, wire_bytes, credit_ns } = &span.crossing;
    for (name, steps) in [("steps_received", received), ("steps_sent", sent)] {
        if let Some(Range { start, end }) = steps {
            let _ = write!(args, r#","{name}":"{start}..{end}""#);
        }
    }
    for (name, figure) in [("wire_bytes", wire_bytes), ("credit_wait_ns", credit_ns)] {
        if let Some(figure) = figure {
            let _ = write!(args, r#","{name}":{figure}"#);
        }
    }
    let mut slice = |name: &str, category: &str, start: u64, end: u64, args: &str| {
        events.push(format!(
            r#"{{"ph":"X","name":{},"cat":"{category}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{args}}}}}"#,
            quote(name),
            span.rank,
            span.channel,
            Micros(start),
            Micros(end.saturating_sub(start)),
        ));
    };
    slice(&span.op, "step", span.start_ns, span.end_ns, &args);
    if span.ready_ns > span.start_ns {
        slice("wait", "wait", span.start_ns, span.ready_ns, "");
    }
    if span.bytes > 0 && span.end_ns > span.ready_ns {
        slice("move", "move", span.ready_ns, span.end_ns, "");
    }
}

/// Data arrives in the order it was sent, so the k-th send of a connection meets its k-th receive. A connection whose ends do not
/// count the same (spans were dropped, or a step took several chunks on one side only) gets no arrows rather than wrong ones.
fn arrows(events: &mut Vec<String>, trace: &Trace) {
    type Ends<'a> = (Vec<&'a Span>, Vec<&'a Span>);
    let mut connections: BTreeMap<_, Ends<'_>> = BTreeMap::new();
    for span in &trace.spans {
        let signal = matches!(span.op.as_str(), "signal" | "wait");
        if let Some(to) = span.to {
            connections.entry((span.rank, to, span.channel, signal)).or_default().0.push(span);
        }
        if let Some(from) = span.from {
            connections.entry((from, span.rank, span.channel, signal)).or_default().1.push(span);
        }
    }
    let matched = connections.into_values().filter(|(sends, receives)| sends.len() == receives.len());
    for (id, (send, receive)) in
        matched.flat_map(|(sends, receives)| sends.into_iter().zip(receives)).enumerate()
    {
        let name = if send.op == "signal" { "signal" } else { "data" };
        for (ph, span) in [(r#""s""#, send), (r#""f","bp":"e""#, receive)] {
            events.push(format!(
                r#"{{"ph":{ph},"name":"{name}","cat":"flow","id":{id},"pid":{},"tid":{},"ts":{}}}"#,
                span.rank,
                span.channel,
                Micros(span.ready_ns)
            ));
        }
    }
}

/// Nanoseconds printed in the format's microseconds, without loss.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A JSON string.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => _ = write!(quoted, "\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fifo::Protocol;
    use crate::types::{ChannelId, Rank};

    fn span(rank: u32, op: &str, from: Option<u32>, to: Option<u32>, times: [u64; 3]) -> Span {
        let [start_ns, ready_ns, end_ns] = times;
        let (from, to) = (from.map(Rank), to.map(Rank));
        let (rank, channel) = (Rank(rank), ChannelId(0));
        Span {
            rank,
            channel,
            tile: 3,
            step: 1,
            op: op.into(),
            from,
            to,
            bytes: 64,
            start_ns,
            ready_ns,
            end_ns,
            crossing: Crossing::default(),
        }
    }

    fn trace(spans: Vec<Span>) -> Trace {
        let origin = Origin::Measured {
            backend: "cpu".into(),
            hardware: "a \"quoted\"\n\\ name".into(),
            clock: "c".into(),
        };
        Trace {
            version: super::super::VERSION,
            origin,
            ranks: 2,
            channels: 1,
            fifo: None,
            slot_bytes: None,
            spans,
            dropped: 5,
        }
    }

    fn events(trace: &Trace, keep: impl Fn(&Value) -> bool) -> Vec<Value> {
        let file: Value = serde_json::from_str(&export(trace)).unwrap();
        file["traceEvents"].as_array().unwrap().iter().filter(|event| keep(event)).cloned().collect()
    }

    #[test]
    fn a_step_holds_its_waiting_and_its_moving() {
        let trace = trace(vec![span(1, "recv", Some(0), None, [1, 2500, 1_000_003])]);
        let slice = |name: &str, cat: &str, ts: f64, dur: f64, args: Value| json!({"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": 0, "ts": ts, "dur": dur, "args": args});
        assert_eq!(
            events(&trace, |event| event["ph"] == "X"),
            [
                slice("recv", "step", 0.001, 1000.002, json!({"tile": 3, "step": 1, "bytes": 64, "from": 0})),
                slice("wait", "wait", 0.001, 2.499, json!({})),
                slice("move", "move", 2.5, 997.503, json!({})),
            ]
        );
    }

    #[test]
    fn protocol_chunks_slices_and_steps_are_named() {
        let mut span = span(1, "recv_reduce_send", Some(0), Some(0), [0, 5, 9]);
        let (received, sent) = (Some(8..12), Some(12..16));
        span.crossing = Crossing { received, sent, wire_bytes: Some(128), credit_ns: Some(3) };
        let fifo = Fifo { protocol: Protocol::Ll, chunk_steps: 4, slice_steps: 2 };
        let trace = Trace { fifo: Some(fifo), slot_bytes: Some(4096), ..trace(vec![span]) };
        let step = events(&trace, |event| event["cat"] == "step").remove(0);
        let args = json!({
            "tile": 3, "step": 1, "bytes": 64, "from": 0, "to": 0,
            "steps_received": "8..12", "steps_sent": "12..16", "wire_bytes": 128, "credit_wait_ns": 3,
        });
        assert_eq!(step["args"], args);
        let file: Value = serde_json::from_str(&export(&trace)).unwrap();
        let names = [
            "protocol",
            "chunk_steps",
            "slice_steps",
            "connection_steps",
            "slices_per_chunk",
            "credits_in_chunks",
            "step_bytes",
        ];
        let said = names.map(|name| file["otherData"][name].clone());
        assert_eq!(said, [json!("LL"), json!(4), json!(2), json!(8), json!(2), json!(2), json!(4096)]);
    }

    #[test]
    fn arrows_lead_from_the_kth_send_to_the_kth_receive() {
        let mut spans = vec![
            span(0, "send", None, Some(1), [0, 0, 10]),
            span(1, "recv", Some(0), None, [0, 10, 20]),
            span(0, "send", None, Some(1), [10, 30, 40]),
            span(1, "recv", Some(0), None, [20, 40, 50]),
        ];
        let arrow = |ph: &str, event: &Value| event["ph"] == ph;
        let starts = events(&trace(spans.clone()), |e| arrow("s", e));
        let ends = events(&trace(spans.clone()), |e| arrow("f", e));
        let of =
            |events: &[Value]| events.iter().map(|e| (e["id"].clone(), e["ts"].clone())).collect::<Vec<_>>();
        assert_eq!(of(&starts), [(json!(0), json!(0.0)), (json!(1), json!(0.03))]);
        assert_eq!(of(&ends), [(json!(0), json!(0.01)), (json!(1), json!(0.04))]);
        spans.pop();
        assert!(events(&trace(spans), |e| arrow("s", e)).is_empty(), "a lost receive leaves no wrong arrow");
    }

    #[test]
    fn the_file_says_where_its_times_come_from() {
        let file: Value = serde_json::from_str(&export(&trace(vec![]))).unwrap();
        let other = json!({
            "origin": "measured", "backend": "cpu", "hardware": "a \"quoted\"\n\\ name", "clock": "c",
            "trace_version": 1, "ranks": 2, "channels": 1, "spans": 0, "dropped_spans": 5,
        });
        assert_eq!(file["otherData"], other);
        let simulated = Trace { origin: Origin::Simulated { model: "m".into() }, ..trace(vec![]) };
        let file: Value = serde_json::from_str(&export(&simulated)).unwrap();
        assert_eq!(
            (&file["otherData"]["origin"], &file["otherData"]["model"]),
            (&json!("simulated"), &json!("m"))
        );
        let names = events(&simulated, |e| e["name"] == "process_name");
        assert_eq!(names[1]["args"]["name"], "rank 1");
    }
}
