use super::*;

fn exact(seed: u64, dtype: DType, op: RedOp, ranks: u32) -> Exact {
    Exact::new(seed, dtype, op, ranks).unwrap()
}

fn every_case() -> impl Iterator<Item = (DType, RedOp, u32)> {
    DType::ALL.into_iter().flat_map(|dtype| {
        RedOp::ALL.into_iter().flat_map(move |op| (1..=MAX_RANKS).map(move |ranks| (dtype, op, ranks)))
    })
}

#[test]
fn ranks_beyond_the_limit_are_refused() {
    assert_eq!(Exact::new(0, DType::F32, RedOp::Sum, 65), Err(RanksOutOfRange { ranks: 65 }));
    assert_eq!(Exact::new(0, DType::F32, RedOp::Sum, 0), Err(RanksOutOfRange { ranks: 0 }));
}

/// Fixed values, so that a change of formula is seen; the CUDA mirror is held to the formula by the GPU's tests.
#[test]
fn the_formula_gives_these_values() {
    let first = |dtype, op, ranks| [0, 1, 2].map(|i| exact(1, dtype, op, ranks).element(Rank(1), i));
    assert_eq!(mix(GOLDEN), 0xE220_A839_7B1D_CDAF, "splitmix64's first output for seed 0");
    assert_eq!(
        first(DType::I64, RedOp::Max, 4),
        [8614008028692990056, 633295910745529047, 847994190102014074]
    );
    assert_eq!(first(DType::F32, RedOp::Sum, 4), [-8022419456, -309225834151936, 789755904]);
    assert_eq!(first(DType::F8E4m3, RedOp::PreMulSum, 8), [-2, 0, 0]);
    assert_eq!(first(DType::U8, RedOp::Prod, 4), [119, 9, 11]);
    assert_eq!(first(DType::F16, RedOp::Prod, 8), [1, -1, 95]);
}

/// What a rank adds: a fault that loses or doubles it changes the result unless this is the neutral element.
fn neutral(inputs: &Exact, rank: Rank, index: u64) -> bool {
    let value = inputs.element(rank, index);
    match inputs.op {
        RedOp::Prod => value == 1,
        _ => value == 0,
    }
}

/// The table of `draw`, each figure within what 40,000 draws of all ranks tell.
#[test]
fn a_lost_contribution_is_seen_as_often_as_the_table_says() {
    let table: [(DType, RedOp, [f64; 3]); 9] = [
        (DType::I8, RedOp::Sum, [0.99, 0.99, 0.99]),
        (DType::F32, RedOp::Sum, [0.99, 0.99, 0.99]),
        (DType::F16, RedOp::Sum, [0.99, 0.99, 0.98]),
        (DType::Bf16, RedOp::Sum, [0.99, 0.98, 0.89]),
        (DType::I8, RedOp::Avg, [0.98, 0.94, 0.67]),
        (DType::F8E4m3, RedOp::Sum, [0.94, 0.80, 0.25]),
        (DType::F8E5m2, RedOp::Sum, [0.89, 0.67, 0.125]),
        (DType::F8E5m2, RedOp::PreMulSum, [0.84, 0.58, 0.073]),
        (DType::F8E5m2, RedOp::Prod, [0.5, 0.5, 0.5]),
    ];
    for (dtype, op, chances) in table {
        for (ranks, chance) in [2, 8, 64].into_iter().zip(chances) {
            let inputs = exact(4, dtype, op, ranks);
            let per_rank = 40_000 / u64::from(ranks);
            let seen = (0..ranks).map(Rank).flat_map(|r| (0..per_rank).map(move |i| (r, i)));
            let seen = seen.filter(|&(rank, index)| !neutral(&inputs, rank, index)).count() as f64;
            let share = seen / (per_rank * u64::from(ranks)) as f64;
            assert!(share > chance - 0.01, "{dtype} {op} {ranks} ranks: {share}");
            let bounded_above = chance < 0.99 && op != RedOp::Prod;
            assert!(!bounded_above || share < chance + 0.01, "{dtype} {op} {ranks} ranks: {share}");
        }
    }
}

/// No rank is left out, whatever its number.
#[test]
fn every_rank_contributes_something_to_every_reduction() {
    for (dtype, op, ranks) in every_case() {
        let inputs = exact(5, dtype, op, ranks);
        for rank in (0..ranks).map(Rank) {
            let adds = (0..400).filter(|&i| !neutral(&inputs, rank, i)).count();
            assert!(adds >= 8, "{dtype} {op} {ranks} ranks: rank {rank} adds to {adds} of 400 elements");
        }
    }
}

#[test]
fn neighbours_of_inputs_and_results_differ() {
    for (dtype, op, ranks) in every_case() {
        let inputs = exact(6, dtype, op, ranks);
        let same = |values: &dyn Fn(u64) -> i64| (0..400).filter(|&i| values(i) == values(i + 1)).count();
        // The worst: with 64 ranks an element of f8e5m2 is mostly 0, its sum often.
        assert!(same(&|i| inputs.reduced(i)) < 250, "{dtype} {op} {ranks} ranks: results");
        assert!(same(&|i| inputs.element(Rank(ranks - 1), i)) < 390, "{dtype} {op} {ranks} ranks: inputs");
    }
    // Where nothing is reduced, inputs need not stay small.
    for dtype in DType::ALL {
        let inputs = Exact::of(6, dtype, RedOp::Sum, 64, Collective::AllGather).unwrap();
        let same = (0..400).filter(|&i| inputs.element(Rank(9), i) == inputs.element(Rank(9), i + 1)).count();
        assert!(same < 30, "{dtype}: {same}");
    }
}

#[test]
fn unsigned_inputs_reach_the_upper_half() {
    for dtype in [DType::U8, DType::U32, DType::U64] {
        for op in [RedOp::Sum, RedOp::Min, RedOp::Max] {
            let top = 1 << (8 * dtype.size() - 1);
            let high = (0..1000).filter(|&i| exact(1, dtype, op, 4).element(Rank(2), i) & top != 0).count();
            assert!((400..600).contains(&high), "{dtype} {op}: {high}");
        }
        let averages = exact(1, dtype, RedOp::Avg, 2);
        let top = 1 << (8 * dtype.size() - 1);
        assert!(
            (0..1000).any(|i| averages.reduced(i) & top != 0),
            "{dtype}: a sum that a signed division breaks"
        );
    }
}

#[cfg(feature = "native")]
mod native {
    use half::{bf16, f16};

    use super::*;
    use crate::fp8::{E4m3, E5m2};

    /// One reduction step in the type itself, decoded from and encoded to bits, without the executor's code. Panics where an integer
    /// average wraps on its way.
    fn step(dtype: DType, op: RedOp, a: u64, b: u64) -> u64 {
        fn float(op: RedOp, a: f64, b: f64) -> f64 {
            match op {
                RedOp::Sum | RedOp::PreMulSum | RedOp::Avg => a + b,
                RedOp::Prod => a * b,
                RedOp::Min => a.min(b),
                RedOp::Max => a.max(b),
            }
        }
        // One rounding for what f64 holds exactly: all products and sums of two values of these types here.
        let narrow = |decode: &dyn Fn(u64) -> f32, encode: &dyn Fn(f32) -> u64| {
            encode(float(op, decode(a).into(), decode(b).into()) as f32)
        };
        match dtype {
            DType::F64 => float(op, f64::from_bits(a), f64::from_bits(b)).to_bits(),
            DType::F32 => narrow(&|x| f32::from_bits(x as u32), &|x| x.to_bits().into()),
            DType::F16 => {
                narrow(&|x| f16::from_bits(x as u16).into(), &|x| f16::from_f32(x).to_bits().into())
            }
            DType::Bf16 => {
                narrow(&|x| bf16::from_bits(x as u16).into(), &|x| bf16::from_f32(x).to_bits().into())
            }
            DType::F8E4m3 => narrow(&|x| E4m3(x as u8).to_f32(), &|x| E4m3::from_f32(x).0.into()),
            DType::F8E5m2 => narrow(&|x| E5m2(x as u8).to_f32(), &|x| E5m2::from_f32(x).0.into()),
            integer => {
                let (low, high) = match integer.is_unsigned() {
                    true => (0, (1i128 << (8 * integer.size())) - 1),
                    false => (-(1i128 << (8 * integer.size() - 1)), (1i128 << (8 * integer.size() - 1)) - 1),
                };
                let value = |bits: u64| show(integer, bits).parse::<i128>().unwrap();
                let (a, b) = (value(a), value(b));
                let result = match op {
                    RedOp::Sum | RedOp::PreMulSum | RedOp::Avg => a + b,
                    // Two uint64 have more bits than i128; only the low ones are kept.
                    RedOp::Prod => a.wrapping_mul(b),
                    RedOp::Min => a.min(b),
                    RedOp::Max => a.max(b),
                };
                assert!(op != RedOp::Avg || (low..=high).contains(&result), "{integer}: {a} + {b} wraps");
                encode(integer, result as i64)
            }
        }
    }

    /// The proof by trial of what `draw` argues: any order and grouping, with the rounding of every step, gives the same bits.
    #[test]
    fn folding_in_any_order_and_grouping_gives_the_same_bits() {
        for (dtype, op, ranks) in every_case() {
            let inputs = exact(u64::from(ranks), dtype, op, ranks);
            for index in 0..12 {
                let total = encode(dtype, inputs.reduced(index));
                let value = |rank: u32| {
                    let factor = if op == RedOp::PreMulSum { parity_factor(Rank(rank)) } else { 1 };
                    let exact = inputs.element(Rank(rank), index).wrapping_mul(factor);
                    let bits = encode(dtype, exact);
                    assert!(
                        dtype.is_integer() || encode_decodes(dtype, bits, exact),
                        "{dtype} {exact} is no value"
                    );
                    bits
                };
                let mut values: Vec<u64> = (0..ranks).map(value).collect();
                for order in 0..6u64 {
                    let dice = |i: usize| mix(index * 1000 + order * 64 + i as u64);
                    let got = match order {
                        0 => values.iter().copied().reduce(|a, b| step(dtype, op, a, b)).unwrap(),
                        1 => values.iter().rev().copied().reduce(|a, b| step(dtype, op, a, b)).unwrap(),
                        _ => {
                            // Two random parts at a time: a random tree over a random order.
                            let mut parts = values.clone();
                            while parts.len() > 1 {
                                let a = parts.swap_remove(dice(parts.len()) as usize % parts.len());
                                let at = (dice(parts.len()) >> 32) as usize % parts.len();
                                parts[at] = step(dtype, op, a, parts[at]);
                            }
                            parts[0]
                        }
                    };
                    assert_eq!(got, total, "{dtype} {op} {ranks} ranks, element {index}, order {order}");
                }
                values.clear();
            }
        }
    }

    /// The extreme subsets: all positive contributions, and all negative ones.
    #[test]
    fn the_sums_of_either_sign_are_values_of_the_type() {
        for (dtype, op, ranks) in every_case().filter(|&(dtype, op, _)| {
            !dtype.is_integer() && matches!(op, RedOp::Sum | RedOp::PreMulSum | RedOp::Avg)
        }) {
            let inputs = exact(8, dtype, op, ranks);
            for index in 0..100 {
                let factor = |rank| if op == RedOp::PreMulSum { parity_factor(Rank(rank)) } else { 1 };
                let values = (0..ranks).map(|rank| inputs.element(Rank(rank), index) * factor(rank));
                let (up, down): (Vec<i64>, Vec<i64>) = values.partition(|&v| v > 0);
                for sum in [up.iter().sum(), down.iter().sum()] {
                    let bits = encode(dtype, sum);
                    assert!(encode_decodes(dtype, bits, sum), "{dtype} {op} {ranks} ranks: {sum}");
                }
            }
        }
    }

    fn encode_decodes(dtype: DType, bits: u64, value: i64) -> bool {
        let text = show(dtype, bits);
        let decoded = match dtype {
            DType::F64 => text.parse::<f64>().unwrap(),
            _ => text.parse::<f32>().unwrap().into(),
        };
        decoded as i128 == i128::from(value)
    }

    #[test]
    fn avg_divides_the_exact_sum_once() {
        assert_eq!(encode_average(DType::F32, 7, 3), u64::from((7f32 / 3f32).to_bits()));
        assert_eq!(encode_average(DType::F64, 7, 3), (7f64 / 3f64).to_bits());
        assert_eq!(encode_average(DType::Bf16, -7, 3), u64::from(bf16::from_f32(-7f32 / 3f32).to_bits()));
        assert_eq!(encode_average(DType::F16, 7, 3), u64::from(f16::from_f32(7f32 / 3f32).to_bits()));
        assert_eq!(show(DType::F8E4m3, encode_average(DType::F8E4m3, 7, 3)), "2.25");
        assert_eq!(encode_average(DType::I32, -7, 3), u64::from(-2i32 as u32));
        assert_eq!(encode_average(DType::I8, -7, 3), u64::from(-2i8 as u8));
        assert_eq!(encode_average(DType::U8, 250, 3), 83);
        assert_eq!(encode_average(DType::U64, -1, 3), u64::MAX / 3);
        assert_eq!(encode_average(DType::I64, i64::MAX - 1, 1), (i64::MAX - 1) as u64);
    }

    #[test]
    fn indices_beyond_32_bits_count_in_full() {
        let block = (1u64 << 33) + 5;
        for (dtype, op) in [(DType::U8, RedOp::Sum), (DType::F32, RedOp::Sum), (DType::F16, RedOp::Max)] {
            for collective in Collective::all(Rank(1)) {
                let inputs = Exact::of(3, dtype, op, 4, collective).unwrap();
                let last = u64::from(collective.output_blocks(4)) * block;
                // Elements 2^31 or 2^32 apart are as different as neighbours.
                for (from, apart) in [(7, 1 << 31), (7, 1 << 32), (last - (1 << 32) - 900, 1 << 32)] {
                    let at = |index| inputs.expected(collective, Rank(2), index, block);
                    let differ = (from..from + 64).filter(|&i| at(i) != at(i + apart)).count();
                    assert!(differ > 32, "{collective:?} {dtype}: {differ} of 64 differ {apart} apart");
                }
            }
        }
        // The second block of an all-gather's output is rank 1's input, to the last element.
        let inputs = exact(3, DType::U8, RedOp::Max, 4);
        let gathered = |index| inputs.expected_total(Collective::AllGather, Rank(0), index, block);
        for index in [0, 1 << 32, block - 1] {
            assert_eq!(gathered(block + index), inputs.element(Rank(1), index));
        }
    }

    #[test]
    fn each_collective_expects_its_own_elements() {
        let inputs = exact(9, DType::I64, RedOp::Sum, 4);
        let expect = |collective, rank, index| inputs.expected(collective, Rank(rank), index, 10) as i64;
        assert_eq!(expect(Collective::AllReduce, 2, 5), inputs.reduced(5));
        assert_eq!(expect(Collective::ReduceScatter, 2, 5), inputs.reduced(25));
        assert_eq!(expect(Collective::AllGather, 0, 35), inputs.element(Rank(3), 5));
        let root = Rank(1);
        assert_eq!(expect(Collective::Broadcast { root }, 3, 5), inputs.element(root, 5));
        assert_eq!(expect(Collective::Reduce { root }, 1, 5), inputs.reduced(5));
        assert_eq!(expect(Collective::AllToAll, 2, 35), inputs.element(Rank(3), 25));
        assert_eq!(expect(Collective::Gather { root }, 1, 35), inputs.element(Rank(3), 5));
        assert_eq!(expect(Collective::Scatter { root }, 3, 5), inputs.element(root, 35));
        assert_eq!(expect(Collective::SendRecv, 0, 5), inputs.element(Rank(3), 5));
    }

    #[test]
    fn printed_values_are_exact() {
        assert_eq!(show(DType::F32, u64::from((1f32 / 3f32).to_bits())), "0.33333334");
        assert_eq!(show(DType::F64, (1f64 / 3f64).to_bits()), "0.3333333333333333");
        assert_eq!(show(DType::Bf16, encode(DType::Bf16, -3)), "-3");
        assert_eq!(
            (show(DType::I64, u64::MAX), show(DType::U64, u64::MAX)),
            ("-1".into(), u64::MAX.to_string())
        );
        assert_eq!((show(DType::I8, 0xFF), show(DType::U8, 0xFF)), ("-1".into(), "255".into()));
        assert_eq!((show(DType::F8E4m3, 0x7E), show(DType::F8E5m2, 0x7B)), ("448".into(), "57344".into()));
        assert_eq!((show(DType::F8E4m3, 0xFF), show(DType::F8E5m2, 0xFC)), ("NaN".into(), "-inf".into()));
    }
}
