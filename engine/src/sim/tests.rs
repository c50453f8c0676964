use super::*;
use crate::cost::estimate_with;
use crate::fifo::Protocol;
use crate::plan::{Algorithm, generate};
use crate::types::{Collective, Rank};
use crate::verify::{verify, verify_with};

const MIB: u64 = 1 << 20;

fn plan(algorithm: Algorithm, collective: Collective, ranks: u32, channels: u32) -> Plan {
    generate(algorithm, collective, ranks, channels).unwrap()
}

/// Payload bytes from each rank to each other, at `from * ranks + to`.
fn traffic(plan: &Plan, block: u64, dtype: DType, slot_bytes: usize, fifo: Fifo) -> Vec<u64> {
    run(plan, &SimModel::default(), block, dtype, (fifo, slot_bytes), 0).unwrap().traffic
}

fn end(trace: &Trace) -> f64 {
    trace.spans.iter().map(|s| s.end_ns).max().unwrap_or(0) as f64
}

#[track_caller]
fn close(got: f64, want: f64, within: f64) {
    assert!((got - want).abs() <= within * want, "got {got} ns, expected {want} ns");
}

#[test]
fn a_ring_of_one_tile_takes_two_n_minus_one_hops() {
    let model = SimModel { step_ns: 0.0, local_gbps: 1e6, ..SimModel::default() };
    for ranks in [2, 4, 8] {
        let plan = plan(Algorithm::Ring, Collective::AllReduce, ranks, 1);
        let trace = simulate(&plan, &model, MIB, DType::F32, 4 << 20).unwrap();
        let chunk = 4.0 * MIB as f64 / f64::from(ranks);
        close(end(&trace), 2.0 * f64::from(ranks - 1) * (1000.0 + chunk / 100.0), 0.01);
    }
}

#[test]
fn tiles_of_a_chain_overlap() {
    let model = SimModel { alpha_ns: 0.0, step_ns: 0.0, local_gbps: 1e6, ..SimModel::default() };
    let plan = plan(Algorithm::Ring, Collective::Broadcast { root: Rank(0) }, 5, 1);
    // 4 MiB in 16 tiles over 4 hops: 19 tiles' time instead of 64.
    let trace = simulate(&plan, &model, MIB, DType::F32, 256 << 10).unwrap();
    close(end(&trace), 19.0 * f64::from(256 << 10) / 100.0, 0.02);
}

#[test]
fn closed_forms_agree_with_the_simulation() {
    // The forms leave out local work, which has steps too: no latency is as short as a step.
    let (ll_alpha_ns, ll128_alpha_ns) = (800.0, 900.0);
    let model = SimModel {
        local_gbps: 1e6,
        ll_gbps: 1e6,
        ll128_gbps: 1e6,
        ll_alpha_ns,
        ll128_alpha_ns,
        ..SimModel::default()
    };
    for collective in Collective::all(Rank(1)) {
        for algorithm in Algorithm::ALL {
            for (ranks, block) in [(2, 256), (4, 256), (4, 2 * MIB), (5, 2 * MIB), (8, 256), (8, 2 * MIB)] {
                for protocol in Protocol::ALL {
                    let of = (algorithm, collective, ranks, block * 4);
                    let Some(want) = estimate_with(of.0, of.1, of.2, of.3, &model, protocol) else {
                        continue;
                    };
                    let plan = plan(algorithm, collective, ranks, 1);
                    let fifo = Fifo::of(protocol);
                    let trace = simulate_with(&plan, &model, block, DType::F32, 64 << 20, fifo).unwrap();
                    let got = end(&trace);
                    assert!(
                        (got / want - 1.0).abs() < 0.25,
                        "{} of {ranks}, {block}, {protocol}: {got} against {want}",
                        plan.name
                    );
                }
            }
        }
    }
}

#[test]
fn one_shot_wins_when_small_and_loses_when_large() {
    let time = |algorithm, block| {
        let plan = plan(algorithm, Collective::AllReduce, 8, 1);
        end(&simulate(&plan, &SimModel::default(), block, DType::F32, 1 << 20).unwrap())
    };
    assert!(time(Algorithm::OneShot, 256) < time(Algorithm::Ring, 256));
    assert!(time(Algorithm::OneShot, 16 * MIB) > time(Algorithm::TwoShot, 16 * MIB));
}

#[test]
fn a_receiver_begins_after_the_first_slice() {
    let model = SimModel { alpha_ns: 0.0, step_ns: 0.0, local_gbps: 1e6, ..SimModel::default() };
    let plan = plan(Algorithm::Ring, Collective::Broadcast { root: Rank(0) }, 5, 1);
    // One chunk of 1 MiB over 4 hops: in four slices it is as 7 of them after each other, in one as 16.
    for (slice_steps, quarters) in [(4, 16.0), (2, 10.0), (1, 7.0)] {
        let fifo = Fifo { protocol: Protocol::Simple, chunk_steps: 4, slice_steps };
        let trace = simulate_with(&plan, &model, MIB / 4, DType::F32, 256 << 10, fifo).unwrap();
        close(end(&trace), quarters * f64::from(256 << 10) / 100.0, 0.01);
        let steps: usize = plan.programs.iter().map(|p| p.steps.len()).sum();
        assert_eq!(trace.spans.len(), steps, "slices are within the spans of their steps");
    }
}

#[test]
fn lines_take_their_bytes_and_their_latency() {
    let model =
        SimModel { step_ns: 0.0, local_gbps: 1e6, ll_gbps: 1e6, ll128_gbps: 1e6, ..SimModel::default() };
    let plan = plan(Algorithm::Exchange, Collective::SendRecv, 2, 1);
    for (protocol, alpha, bytes) in
        [(Protocol::Simple, 1000.0, 1.0), (Protocol::Ll, 200.0, 2.0), (Protocol::Ll128, 600.0, 128.0 / 120.0)]
    {
        let trace = simulate_with(&plan, &model, 15 << 16, DType::F32, 16 << 20, Fifo::of(protocol)).unwrap();
        let payload = f64::from(15 << 18);
        close(end(&trace), alpha + payload * bytes / 100.0, 0.001);
        let sends = trace.spans.iter().filter(|s| s.to.is_some());
        let wire: Vec<u64> = sends.map(|s| s.crossing.wire_bytes.unwrap()).collect();
        assert!(!wire.is_empty() && wire.iter().all(|w| *w == (payload * bytes) as u64), "{wire:?}");
    }
}

/// A sender whose receiver is slow waits for credits: as many chunks as the connection has steps for are on their way.
#[test]
fn credits_are_counted_in_steps() {
    let text = "plan t v1\ncollective broadcast root 0\nranks 2\nchannels 1\nchunks 1\nscratch s 1\nrank 0:\n  \
                send input[0] to 1\nrank 1:\n  recv from 0 into s[0]\n  copy s[0] into output[0]\n";
    let plan = crate::plan::text::parse(text).unwrap().plan;
    let model = SimModel { alpha_ns: 0.0, step_ns: 0.0, local_gbps: 1.0, ..SimModel::default() };
    for (chunk_steps, credits) in [(1, 8), (2, 4), (4, 2), (8, 1)] {
        let fifo = Fifo { protocol: Protocol::Simple, chunk_steps, slice_steps: chunk_steps };
        let chunk = u64::from(chunk_steps) * 4096;
        let trace = simulate_with(&plan, &model, 20 * chunk / 4, DType::F32, 4096, fifo).unwrap();
        let waits = |s: &&crate::trace::Span| s.crossing.credit_ns > Some(0);
        let first = trace.spans.iter().find(waits).expect("the receiver takes three times as long");
        assert!(first.to.is_some() && first.tile >= credits, "{chunk_steps}: {first:?}");
        let freed = trace.spans.iter().filter(|s| s.rank == Rank(1) && s.from.is_some());
        let ends: Vec<u64> = freed.map(|s| s.end_ns).collect();
        for send in trace.spans.iter().filter(|s| s.to.is_some() && s.tile >= credits) {
            let freed_at = ends[(send.tile - credits) as usize];
            assert!(send.ready_ns >= freed_at, "{chunk_steps} steps, tile {}", send.tile);
        }
    }
}

#[test]
fn the_bytes_are_those_of_the_proof() {
    for algorithm in Algorithm::ALL {
        for collective in Collective::all(Rank(1)).into_iter().filter(|c| algorithm.supports(*c)) {
            let plan = plan(algorithm, collective, 4, 2);
            let block = 4 * 2 * 4096;
            let traffic = traffic(&plan, block, DType::F16, 4096, Fifo::default());
            let proof = verify(&plan, false).unwrap();
            let edge = |from: usize, to: usize| {
                let found = proof.edges.iter().find(|e| (e.from.index(), e.to.index()) == (from, to));
                found.map_or(0, |e| block * 2 * e.sent.num / e.sent.den)
            };
            let want: Vec<u64> = (0..16).map(|i| edge(i / 4, i % 4)).collect();
            assert_eq!(traffic, want, "{}", plan.name);
            let cut = Fifo { protocol: Protocol::Ll, chunk_steps: 2, slice_steps: 1 };
            if verify_with(&plan, false, cut).is_ok() {
                let sliced = self::traffic(&plan, block, DType::F16, 2048, cut);
                assert_eq!(sliced, want, "{} in slices", plan.name);
            }
        }
    }
}

/// The last tile is shorter than the others, also after it went through scratch.
#[test]
fn scratch_carries_what_was_put_into_it() {
    let text = "plan t v1\ncollective broadcast root 0\nranks 2\nchannels 1\nchunks 1\nscratch s 1\nrank 0:\n  \
                copy input[0] into s[0]\n  send s[0] to 1\n  copy s[0] into output[0]\n  signal to 1\n  wait from 1\n\
                rank 1:\n  recv from 0 into s[0]\n  copy s[0] into output[0]\n  wait from 0\n  \
                copy s[0] of 0 into s[0]\n  signal to 0\n";
    let plan = crate::plan::text::parse(text).unwrap().plan;
    assert!(verify(&plan, false).is_ok());
    let trace = simulate(&plan, &SimModel::default(), 10, DType::F32, 16).unwrap();
    assert_eq!(traffic(&plan, 10, DType::F32, 16, Fifo::default()), [0, 80, 0, 0]);
    let of_last_tile = |s: &&crate::trace::Span| s.tile == 2 && !["signal", "wait"].contains(&s.op.as_str());
    assert!(trace.spans.iter().filter(of_last_tile).all(|s| s.bytes == 8), "{:?}", trace.spans);
}

#[test]
fn spans_are_whole_and_the_same_each_time() {
    let plan = plan(Algorithm::TwoShot, Collective::AllReduce, 8, 4);
    let once = || simulate(&plan, &SimModel::default(), 3 * MIB + 5, DType::Bf16, 128 << 10).unwrap();
    let trace = once();
    assert_eq!(trace, once());
    assert!(trace.spans.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
    assert!(trace.spans.iter().all(|s| s.start_ns <= s.ready_ns && s.ready_ns <= s.end_ns));
    let steps: usize = plan.programs.iter().map(|p| p.steps.len()).sum();
    let layout = Layout::new(3 * MIB + 5, 2, plan.chunks, plan.channels, 128 << 10);
    assert_eq!(trace.spans.len() as u64, steps as u64 * layout.tiles());
    assert!(matches!(&trace.origin, Origin::Simulated { model } if model.contains("alpha 1000 ns")));
}

#[test]
fn messages_of_more_than_2_to_the_32_elements_are_counted_in_full() {
    let plan = plan(Algorithm::Ring, Collective::AllReduce, 4, 1);
    let (block, slot) = ((1u64 << 34) + 16, 1 << 30);
    let trace = simulate(&plan, &SimModel::default(), block, DType::U8, slot).unwrap();
    let traffic = traffic(&plan, block, DType::U8, slot, Fifo::default());
    let sent = 6 * (block / 4);
    let edges = traffic.iter().filter(|bytes| **bytes > 0).copied().collect::<Vec<_>>();
    assert_eq!((edges.len(), edges.iter().sum::<u64>()), (4, 4 * sent), "{edges:?}");
    assert!(edges.iter().all(|bytes| bytes.abs_diff(sent) <= 96), "cut at multiples of 16: {edges:?}");
    let end = trace.spans.iter().map(|span| span.end_ns).max().unwrap();
    // 100 GB/s is 100 bytes a nanosecond; starting is nothing beside it.
    let bound = sent / 100;
    assert!(end >= bound && end < bound * 2, "{end} ns, {bound} at the least");
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let ring = plan(Algorithm::Ring, Collective::AllReduce, 4, 1);
    let run = |plan: &Plan, model: &SimModel, block, slot| {
        simulate(plan, model, block, DType::F32, slot).map(|t| t.spans.len()).map_err(|e| e.to_string())
    };
    let good = SimModel::default();
    assert_eq!(run(&ring, &good, 0, 1024), Ok(0));
    assert!(run(&ring, &good, 1 << 40, 1024).unwrap_err().contains("larger slots"));
    assert!(run(&ring, &good, 1, 8).unwrap_err().contains("slot_bytes"));
    for block in [(1 << 52) + 1, u64::MAX] {
        assert!(run(&ring, &good, block, usize::MAX).unwrap_err().contains("can be counted"));
    }
    // A block that memory could hold, on a link of a megabyte a second.
    let slow = SimModel { link_gbps: 1e-3, injection_gbps: 1e-3, local_gbps: 1e-3, ..good.clone() };
    assert!(run(&ring, &slow, 1 << 42, 1 << 40).unwrap_err().contains("higher bandwidths"));
    assert!(run(&ring, &slow, 1 << 30, 1 << 20).is_ok());
    assert!(
        run(&ring, &SimModel { link_gbps: 0.0, ..good.clone() }, 1, 64).unwrap_err().contains("link_gbps")
    );
    assert!(
        run(&ring, &SimModel { alpha_ns: f64::NAN, ..good.clone() }, 1, 64).unwrap_err().contains("alpha_ns")
    );
    let mut stuck = ring.clone();
    stuck.programs[0].steps.remove(0);
    assert!(run(&stuck, &good, 64, 64).unwrap_err().contains("waits for ever"));
}
