//! NaNs, infinities, subnormal numbers, zeros of both signs and values that overflow, in every float type: what reductions make of them is
//! what `types` says, on the CPU by definition and on the GPU as on the CPU.
//!
//! The GPU's test says `skipped` without one; with RINGLAB_REQUIRE_CUDA=1 it fails instead.

#[cfg(feature = "cuda")]
#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "cuda")]
mod gpu;
mod values;

use std::time::Duration;

use ringlab_engine::exec::{self, Backend, KernelChoice, SessionSpec};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::{Algorithm, generate};
use ringlab_engine::types::{Collective, DType, Factors, Rank, RedOp};

use values::{FLOATS, infinity, is_nan, nearest, sign, specials, the_nan, value};

fn spec(algorithm: Algorithm, collective: Collective, ranks: u32, dtype: DType, op: RedOp) -> SessionSpec {
    SessionSpec {
        plan: generate(algorithm, collective, ranks, 2).unwrap(),
        block: 0,
        dtype,
        op,
        factors: Factors::Parity,
        in_place: false,
        slot_bytes: 4096,
        fifo: Fifo::default(),
        deadline: Duration::from_secs(60),
        devices: vec![0],
        trace_spans: 0,
        kernel: KernelChoice::Auto,
    }
}

/// Every rank's output as bits, of these inputs.
fn run(backend: Backend, spec: SessionSpec, inputs: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let (size, ranks) = (spec.dtype.size(), spec.plan.ranks);
    let block = inputs[0].len() as u64 / u64::from(spec.plan.collective.input_blocks(ranks));
    let mut session = exec::open(backend, SessionSpec { block, ..spec }).unwrap();
    session.fill(0).unwrap();
    for (rank, input) in (0..).zip(inputs) {
        let bytes: Vec<u8> = input.iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
        session.write_input(Rank(rank), &bytes).unwrap();
    }
    session.run(1).unwrap();
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let output = |rank| session.output(Rank(rank)).unwrap().chunks(size).map(bits).collect();
    (0..ranks).map(output).collect()
}

/// All ways to give each rank one of these values, an element each.
fn combinations(values: &[u64], ranks: u32) -> Vec<Vec<u64>> {
    let count = values.len().pow(ranks);
    let of = |rank: u32| (0..count).map(|i| values[i / values.len().pow(rank) % values.len()]).collect();
    (0..ranks).map(of).collect()
}

/// Whether a result is what is wanted. Which NaN arithmetic gives is the processor's to say, but in fp8, which has one.
fn agree(dtype: DType, op: RedOp, wanted: u64, got: u64) -> bool {
    let any_nan = dtype.size() > 1 && !matches!(op, RedOp::Min | RedOp::Max);
    wanted == got || any_nan && is_nan(dtype, wanted) && is_nan(dtype, got)
}

/// In f32 and in f64.
type Operation = (fn(f32, f32) -> f32, fn(f64, f64) -> f64);

/// Arithmetic in f32, or in f64 for f64, of exact values; the result rounded to the type.
fn arithmetic(dtype: DType, a: u64, b: u64, of: Operation) -> u64 {
    let (a, b) = (value(dtype, a), value(dtype, b));
    match dtype {
        DType::F64 => of.1(a, b).to_bits(),
        DType::F32 => of.0(a as f32, b as f32).to_bits().into(),
        _ => nearest(dtype, of.0(a as f32, b as f32).into()),
    }
}

const ADD: Operation = (|a, b| a + b, |a, b| a + b);
const MULTIPLY: Operation = (|a, b| a * b, |a, b| a * b);

/// A number wins over a NaN, and -0 is below +0.
fn least(dtype: DType, a: u64, b: u64, max: bool) -> u64 {
    // In the order of values; of a negative one the larger magnitude is the smaller.
    let place = |bits: u64| {
        let magnitude = (bits & the_nan(dtype)) as i64;
        if bits & sign(dtype) == 0 { magnitude } else { -1 - magnitude }
    };
    let chosen = match (is_nan(dtype, a), is_nan(dtype, b)) {
        (true, true) => return the_nan(dtype),
        (true, false) => b,
        (false, true) => a,
        _ if (place(a) > place(b)) == max => a,
        _ => b,
    };
    // fp8 has no infinity behind an operation.
    if dtype.size() == 1 { nearest(dtype, value(dtype, chosen)) } else { chosen }
}

/// What two ranks' elements make.
fn reduced(dtype: DType, op: RedOp, [a, b]: [u64; 2], factors: [u64; 2]) -> u64 {
    match op {
        RedOp::Sum => arithmetic(dtype, a, b, ADD),
        RedOp::Prod => arithmetic(dtype, a, b, MULTIPLY),
        RedOp::Min => least(dtype, a, b, false),
        RedOp::Max => least(dtype, a, b, true),
        RedOp::Avg => {
            let sum = arithmetic(dtype, a, b, ADD);
            match dtype {
                DType::F64 => (value(dtype, sum) / 2.0).to_bits(),
                DType::F32 => ((value(dtype, sum) as f32) / 2.0).to_bits().into(),
                _ => nearest(dtype, value(dtype, sum) / 2.0),
            }
        }
        RedOp::PreMulSum => {
            let [a, b] = [(a, factors[0]), (b, factors[1])].map(|(x, by)| arithmetic(dtype, x, by, MULTIPLY));
            arithmetic(dtype, a, b, ADD)
        }
    }
}

/// Factors of either rank: numbers, zeros, subnormal ones, infinities where there are some, and NaNs.
fn factors(dtype: DType) -> Vec<[u64; 2]> {
    let (one, most) = (nearest_one(dtype), infinity(dtype).unwrap_or(0x7E));
    vec![[one, one | sign(dtype)], [1, one + 1], [sign(dtype), most], [the_nan(dtype), one]]
}

fn nearest_one(dtype: DType) -> u64 {
    (0..=the_nan(dtype).min(0xFFFF)).find(|bits| value(dtype, *bits) == 1.0).unwrap_or(match dtype {
        DType::F32 => 1f32.to_bits().into(),
        _ => 1f64.to_bits(),
    })
}

#[test]
fn reductions_of_special_values_are_those_of_the_definition() {
    for dtype in FLOATS {
        let inputs = combinations(&specials(dtype), 2);
        for algorithm in [Algorithm::Ring, Algorithm::OneShot] {
            for op in RedOp::ALL {
                let choices = if op == RedOp::PreMulSum { factors(dtype) } else { vec![[0, 0]] };
                for by in choices {
                    for in_place in [false, true] {
                        let spec = spec(algorithm, Collective::AllReduce, 2, dtype, op);
                        let factors = Factors::Bits(by.to_vec());
                        let outputs = run(Backend::Cpu, SessionSpec { factors, in_place, ..spec }, &inputs);
                        for (i, (&a, &b)) in inputs[0].iter().zip(&inputs[1]).enumerate() {
                            let wanted = reduced(dtype, op, [a, b], by);
                            for output in &outputs {
                                let got = output[i];
                                assert!(
                                    agree(dtype, op, wanted, got),
                                    "{algorithm} {dtype} {op} {by:x?} of {a:#x} and {b:#x}: {got:#x}, not {wanted:#x}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is only moved keeps all bits, whatever reduction is named: also the reduction of one rank.
#[test]
fn what_is_moved_keeps_its_bits() {
    for dtype in FLOATS {
        let values = specials(dtype);
        let inputs = vec![[values.clone(), values.clone()].concat(), [values.clone(), values].concat()];
        let len = inputs[0].len();
        for (collective, wanted) in [
            (Collective::Broadcast { root: Rank(1) }, inputs[1].clone()),
            (Collective::AllGather, [&inputs[0][..], &inputs[1]].concat()),
            (Collective::AllToAll, [&inputs[0][..len / 2], &inputs[1][..len / 2]].concat()),
        ] {
            for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(collective)) {
                for op in [RedOp::Min, RedOp::Avg] {
                    let outputs = run(Backend::Cpu, spec(algorithm, collective, 2, dtype, op), &inputs);
                    assert!(outputs[0] == wanted, "{algorithm} {collective:?} {dtype}");
                }
            }
        }
        for op in [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max] {
            let one = spec(Algorithm::Ring, Collective::AllReduce, 1, dtype, op);
            assert!(run(Backend::Cpu, one, &inputs[..1]) == inputs[..1], "{dtype} {op} of one rank");
        }
    }
}

/// The definition itself, where it is known by heart.
#[test]
fn the_definition_knows_some_values() {
    assert_eq!([0x3C00, 0x0001, 0xFBFF].map(|b| value(DType::F16, b)), [1.0, 2f64.powi(-24), -65504.0]);
    assert_eq!([0x7E, 0x7B].map(|b| [DType::F8E4m3, DType::F8E5m2].map(|d| value(d, b))[0]), [448.0, 352.0]);
    assert_eq!(value(DType::F8E5m2, 0x7B), 57344.0);
    assert_eq!(nearest(DType::F16, 65519.0), 0x7BFF);
    assert_eq!(nearest(DType::F16, -65520.0), 0xFC00);
    assert_eq!(nearest(DType::F16, 2f64.powi(-25)), 0, "a tie goes to the even one");
    assert_eq!(nearest(DType::F16, 2f64.powi(-24) * 1.5), 2);
    assert_eq!([1e9, -1e9, f64::NAN].map(|x| nearest(DType::F8E4m3, x)), [0x7E, 0xFE, 0x7F]);
    assert_eq!([1e9, f64::NEG_INFINITY].map(|x| nearest(DType::F8E5m2, x)), [0x7B, 0xFB]);
    let nans = |dtype| specials(dtype).into_iter().filter(|bits| is_nan(dtype, *bits)).count();
    assert_eq!([DType::F8E4m3, DType::F8E5m2].map(nans), [2, 6]);
    assert!([DType::F16, DType::Bf16, DType::F32, DType::F64].into_iter().all(|dtype| nans(dtype) >= 10));
}
