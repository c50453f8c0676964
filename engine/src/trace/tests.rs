use std::collections::BTreeMap;

use super::*;
use crate::cost::SimModel;
use crate::fifo::Protocol;
use crate::plan::{Algorithm, generate};
use crate::sim::simulate_with;
use crate::types::{Collective, DType};

/// Both ends of a connection count the same steps, one after the other, without a gap.
#[test]
fn what_is_sent_and_received_are_the_same_steps() {
    let fifo = Fifo { protocol: Protocol::Ll, chunk_steps: 4, slice_steps: 2 };
    let plan = generate(Algorithm::Tree, Collective::AllReduce, 5, 2).unwrap();
    let trace = simulate_with(&plan, &SimModel::default(), 5000, DType::F32, 256, fifo).unwrap();
    assert_eq!((trace.fifo, trace.slot_bytes), (Some(fifo), Some(256)));
    let mut ways: [BTreeMap<_, Vec<Range<u64>>>; 2] = Default::default();
    for Span { rank, channel, from, to, crossing, .. } in &trace.spans {
        if let (Some(from), Some(steps)) = (from, &crossing.received) {
            ways[0].entry((*from, *rank, *channel)).or_default().push(steps.clone());
        }
        if let (Some(to), Some(steps)) = (to, &crossing.sent) {
            ways[1].entry((*rank, *to, *channel)).or_default().push(steps.clone());
        }
    }
    assert_eq!(ways[0], ways[1]);
    assert!(ways[0].len() >= 8);
    for steps in ways[0].values() {
        assert_eq!(steps[0], 0..4);
        assert!(steps.windows(2).all(|pair| pair[0].end == pair[1].start), "{steps:?}");
    }
}

/// As main wrote it before connections were kept.
#[test]
fn stored_traces_stay_readable() {
    let text = r#"{"version":1,"origin":{"kind":"simulated","model":"m"},"ranks":2,"channels":1,"dropped":0,"spans":[
        {"rank":0,"channel":0,"tile":0,"step":0,"op":"send","to":1,"bytes":8,"start_ns":0,"ready_ns":0,"end_ns":5}]}"#;
    let trace: Trace = serde_json::from_str(text).unwrap();
    assert_eq!((trace.fifo, &trace.spans[0].crossing), (None, &Crossing::default()));
    let again: Trace = serde_json::from_str(&serde_json::to_string(&trace).unwrap()).unwrap();
    assert_eq!(again, trace);
}
