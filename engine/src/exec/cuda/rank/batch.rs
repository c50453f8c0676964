//! Which collectives of a group are worth one launch together, and may be: it has no order between them. No device is asked.

use super::Call;
use super::local::Job;
use crate::types::RedOp;

/// Short collectives that are cheaper as one launch of the interpreter than as launches of the direct kernel: that takes about two
/// microseconds each, the interpreter about five.
pub const LEAST: usize = 3;

/// Most of one launch, so that looking for overlaps stays cheap.
const MOST_JOBS: usize = 512;

/// Bytes of a rank's larger buffer up to which launching is most of what a collective costs.
const SHORT_BYTES: u64 = 64 << 10;

/// Whether two calls can be programs of one kernel: of one type, and with one reduction if they reduce. Averages and factors belong to
/// a whole launch.
pub fn alike(first: &Call, other: &Call) -> bool {
    let kind = |call: &Call| (call.dtype, call.collective.reduces().then_some(call.op));
    let apart = matches!(kind(first).1, Some(RedOp::Avg | RedOp::PreMulSum));
    !apart && kind(first) == kind(other)
}

/// Whether a call is short.
pub fn is_short(call: &Call, ranks: u32) -> bool {
    let blocks = call.collective.input_blocks(ranks).max(call.collective.output_blocks(ranks));
    call.block.saturating_mul(u64::from(blocks) * call.dtype.size() as u64) <= SHORT_BYTES
}

/// Whether no call writes what another reads or writes. `false` also where there is too much to look at.
pub fn are_independent(calls: &[Vec<Job>]) -> bool {
    if calls.iter().map(Vec::len).sum::<usize>() > MOST_JOBS {
        return false;
    }
    let written = |job: &Job| job.targets.iter().map(|at| (*at, job.bytes)).collect::<Vec<_>>();
    let touched = |job: &Job| {
        let read = job.sources.iter().map(|source| (source.address, job.bytes));
        read.chain(written(job)).collect::<Vec<_>>()
    };
    let all: Vec<(Vec<_>, Vec<_>)> = calls
        .iter()
        .map(|jobs| (jobs.iter().flat_map(written).collect(), jobs.iter().flat_map(touched).collect()))
        .collect();
    let meet = |(a, m): &(u64, u64), (b, n): &(u64, u64)| *a < b + n && *b < a + m;
    let clash = |written: &[(u64, u64)], touched: &[(u64, u64)]| {
        written.iter().any(|w| touched.iter().any(|t| meet(w, t)))
    };
    (0..all.len()).all(|i| (0..all.len()).all(|j| i == j || !clash(&all[i].0, &all[j].1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::cuda::rank::Schedule;
    use crate::fifo::Protocol;
    use crate::plan::Algorithm;
    use crate::types::{Collective, DType};

    fn call(collective: Collective, dtype: DType, op: RedOp) -> Call {
        let (algorithm, channels, protocol) = (Algorithm::Ring, 1, Protocol::Simple);
        let schedule = Schedule::Standard { algorithm, channels, protocol };
        Call {
            collective,
            schedule,
            block: 100,
            dtype,
            op,
            factor: None,
            input: 0,
            output: 0,
            in_place: false,
        }
    }

    #[test]
    fn calls_of_one_type_and_reduction_are_alike() {
        use Collective::{AllGather, AllReduce, AllToAll, ReduceScatter};
        let sum = call(AllReduce, DType::F32, RedOp::Sum);
        assert!(alike(&sum, &call(ReduceScatter, DType::F32, RedOp::Sum)));
        assert!(!alike(&sum, &call(AllReduce, DType::F32, RedOp::Max)));
        assert!(!alike(&sum, &call(AllReduce, DType::F16, RedOp::Sum)));
        assert!(!alike(&sum, &call(AllGather, DType::F32, RedOp::Sum)));
        let moved = call(AllGather, DType::F32, RedOp::Sum);
        assert!(alike(&moved, &call(AllToAll, DType::F32, RedOp::Avg)), "nothing is averaged");
        let average = call(AllReduce, DType::F32, RedOp::Avg);
        assert!(!alike(&average, &average));
    }

    #[test]
    fn the_larger_buffer_decides_what_is_short() {
        let gather = Call { block: 4096, ..call(Collective::AllGather, DType::F32, RedOp::Sum) };
        assert!(is_short(&gather, 4) && !is_short(&gather, 5));
    }

    #[test]
    fn calls_on_buffers_of_their_own_are_independent() {
        let copy = |from, to, bytes| vec![Job::copy(from, to, bytes)];
        assert!(are_independent(&[copy(0, 100, 50), copy(0, 150, 50), copy(50, 200, 50)]), "both read alike");
        assert!(!are_independent(&[copy(0, 100, 50), copy(149, 300, 50)]), "the second reads a result");
        assert!(!are_independent(&[copy(0, 100, 50), copy(200, 50, 51)]), "both write");
        assert!(
            !are_independent(&[copy(0, 100, 50), copy(200, 0, 1)]),
            "the second writes what the first reads"
        );
        let in_place = vec![Job::copy(0, 0, 50)];
        assert!(are_independent(&[in_place, copy(50, 100, 50)]));
        let many: Vec<Vec<Job>> =
            (0..MOST_JOBS as u64 + 1).map(|n| copy(n << 20, n << 20 | 512, 4)).collect();
        assert!(are_independent(&many[1..]) && !are_independent(&many));
    }
}
