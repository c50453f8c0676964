use super::*;
use crate::cost::estimate;
use crate::plan::{Algorithm, generate};
use crate::types::{Collective, Rank};
use crate::verify::verify;

const MIB: u64 = 1 << 20;

fn plan(algorithm: Algorithm, collective: Collective, ranks: u32, channels: u32) -> Plan {
    generate(algorithm, collective, ranks, channels).unwrap()
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
    let model = SimModel { local_gbps: 1e6, ..SimModel::default() };
    for collective in Collective::all(Rank(1)) {
        for algorithm in Algorithm::ALL {
            for (ranks, block) in [(2, 256), (4, 256), (4, 2 * MIB), (5, 2 * MIB), (8, 256), (8, 2 * MIB)] {
                let Some(want) = estimate(algorithm, collective, ranks, block * 4, &model) else { continue };
                let plan = plan(algorithm, collective, ranks, 1);
                let trace = simulate(&plan, &model, block, DType::F32, 64 << 20).unwrap();
                let got = end(&trace);
                assert!(
                    (got / want - 1.0).abs() < 0.25,
                    "{} of {ranks}, {block}: {got} against {want}",
                    plan.name
                );
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
fn the_bytes_are_those_of_the_proof() {
    for algorithm in Algorithm::ALL {
        for collective in Collective::all(Rank(1)).into_iter().filter(|c| algorithm.supports(*c)) {
            let plan = plan(algorithm, collective, 4, 2);
            let block = 4 * 2 * 4096;
            let (_, traffic) = run(&plan, &SimModel::default(), block, DType::F16, 4096).unwrap();
            let proof = verify(&plan, false).unwrap();
            let edge = |from: usize, to: usize| {
                let found = proof.edges.iter().find(|e| (e.from.index(), e.to.index()) == (from, to));
                found.map_or(0, |e| block * 2 * e.sent.num / e.sent.den)
            };
            let want: Vec<u64> = (0..16).map(|i| edge(i / 4, i % 4)).collect();
            assert_eq!(traffic, want, "{}", plan.name);
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
    let (trace, traffic) = run(&plan, &SimModel::default(), 10, DType::F32, 16).unwrap();
    assert_eq!(traffic, [0, 80, 0, 0]);
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
    let (trace, traffic) = run(&plan, &SimModel::default(), block, DType::U8, slot).unwrap();
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
