//! The same on the GPU, whichever kernel and protocol carries it out.

use ringlab_engine::fifo::Protocol;

use super::common::gpu;
use super::*;

/// Ways to carry out an all-reduce.
fn ways() -> Vec<(Algorithm, KernelChoice, Protocol)> {
    use KernelChoice::{Fused, Interpreter, Specialised};
    let ring = Protocol::ALL.map(|protocol| (Algorithm::Ring, Interpreter, protocol));
    let others = [
        (Algorithm::Tree, Interpreter, Protocol::Simple),
        (Algorithm::OneShot, Interpreter, Protocol::Simple),
        (Algorithm::OneShot, Specialised, Protocol::Simple),
        (Algorithm::TwoShot, Fused, Protocol::Simple),
    ];
    ring.into_iter().chain(others).collect()
}

/// Two ranks have every pair of values; of three each has one of fewer.
fn inputs(dtype: DType, ranks: u32) -> Vec<Vec<u64>> {
    let values = specials(dtype);
    match ranks {
        2 => combinations(&values, 2),
        _ => {
            let step = values.len().div_ceil(20);
            combinations(&values.into_iter().step_by(step).collect::<Vec<_>>(), ranks)
        }
    }
}

#[test]
fn the_gpu_makes_of_special_values_what_the_cpu_makes() {
    if !gpu("the_gpu_makes_of_special_values_what_the_cpu_makes") {
        return;
    }
    let (mut compared, mut wrong) = (0u64, Vec::new());
    for (dtype, ranks) in FLOATS.into_iter().flat_map(|dtype| [(dtype, 2), (dtype, 3)]) {
        let inputs = inputs(dtype, ranks);
        for (algorithm, kernel, protocol) in ways() {
            for op in RedOp::ALL {
                // Neither kernel knows these reductions.
                let none = matches!(kernel, KernelChoice::Specialised) && op == RedOp::PreMulSum
                    || matches!(kernel, KernelChoice::Fused) && op == RedOp::Avg;
                if none {
                    continue;
                }
                let mut by = factors(dtype);
                if op != RedOp::PreMulSum {
                    by.truncate(1);
                }
                for by in by {
                    let factors = Factors::Bits((0..ranks as usize).map(|rank| by[rank % 2]).collect());
                    let spec = spec(algorithm, Collective::AllReduce, ranks, dtype, op);
                    let cpu =
                        run(Backend::Cpu, SessionSpec { factors: factors.clone(), ..spec.clone() }, &inputs);
                    let fifo = Fifo::of(protocol);
                    let cuda = run(Backend::Cuda, SessionSpec { factors, kernel, fifo, ..spec }, &inputs);
                    for (rank, (cpu, cuda)) in cpu.iter().zip(&cuda).enumerate() {
                        for (i, (&wanted, &got)) in cpu.iter().zip(cuda).enumerate() {
                            compared += 1;
                            if !agree(dtype, op, wanted, got) {
                                let of: Vec<u64> = inputs.iter().map(|input| input[i]).collect();
                                wrong.push(format!(
                                    "{algorithm} {} {protocol} {dtype} {op} {by:x?} rank {rank} of {of:x?}: {got:#x} on the GPU, \
                                     {wanted:#x} on the CPU",
                                    kernel.name()
                                ));
                            }
                        }
                    }
                }
            }
        }
    }
    let shown: Vec<&String> = wrong.iter().step_by(wrong.len().div_ceil(40).max(1)).collect();
    assert!(wrong.is_empty(), "{} of {compared} differ, among them {shown:#?}", wrong.len());
}

#[test]
fn the_gpu_moves_all_bits() {
    if !gpu("the_gpu_moves_all_bits") {
        return;
    }
    for dtype in FLOATS {
        let values = specials(dtype);
        let inputs = vec![values.clone(), values.iter().rev().copied().collect()];
        for collective in
            [Collective::Broadcast { root: Rank(1) }, Collective::AllGather, Collective::SendRecv]
        {
            for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(collective)) {
                for protocol in Protocol::ALL {
                    let spec = spec(algorithm, collective, 2, dtype, RedOp::Min);
                    let cpu = run(Backend::Cpu, spec.clone(), &inputs);
                    let cuda = run(Backend::Cuda, SessionSpec { fifo: Fifo::of(protocol), ..spec }, &inputs);
                    assert!(cpu == cuda, "{algorithm} {collective:?} {protocol} {dtype}");
                }
            }
        }
        let one = spec(Algorithm::Ring, Collective::AllReduce, 1, dtype, RedOp::Sum);
        assert!(run(Backend::Cuda, one, &inputs[..1]) == inputs[..1], "{dtype} of one rank");
    }
}
