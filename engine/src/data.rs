//! Inputs whose reduction is exact in every order, so that an executor is checked element by element with tolerance 0.
//!
//! nccl-tests has the same idea (`src/verifiable`): a floating-point sum depends on its order only through rounding, so inputs that
//! never round make every correct schedule produce the same bits. Ours are small integers, drawn by a hash that a CUDA kernel computes
//! with the same few instructions (`kernels`, `fill` and `check`).
//!
//! # Formula
//!
//! All arithmetic wraps modulo 2^64; `G = 0x9E3779B97F4A7C15`; `mix` is splitmix64's finaliser ([`mix`]).
//!
//! ```text
//! key(rank)     = mix(seed + G * (rank + 1))
//! hash(rank, i) = mix(key(rank) + G * (i + 1))
//!
//! sum, avg, min, max:  bits = B(dtype) + 1 - (min, max: 0; else ceil(log2(ranks)))
//!                      x    = (hash >> (64 - bits)) - 2^(bits - 1)        in [-2^(bits-1), 2^(bits-1))
//! prod:                turn = mix(seed + G * (i + 1))
//!                      x    = ((turn >> 32) + rank) mod 8 == 0 ? 2 : 1,  negated when the top bit of hash is set
//! ```
//!
//! `B` is the largest power of two below which every integer is a value of the type ([`exact_bits`]): the wider the type, the wider the
//! inputs, so that every byte of an element matters. Since `ranks * 2^(bits-1) <= 2^B`, each partial sum of any subset is exact. A
//! product has at most one factor of 2 per eight ranks, so it is at most 2^8 in size and exact as well.

use crate::types::{Collective, DType, Rank, RedOp};

/// Most ranks the inputs are made for. At 64, a bfloat16 sum still draws from eight different values; beyond it a lost contribution
/// would too often go unseen.
pub const MAX_RANKS: u32 = 64;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014, with Stafford's constants "Mix13").
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `B`: every integer of magnitude up to `2^B` is a value of the type. One less than the width for integers, to stay clear of overflow.
pub const fn exact_bits(dtype: DType) -> u32 {
    match dtype {
        DType::Bf16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        DType::I32 => 30,
        DType::I64 => 62,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "exact inputs exist for 1 to {MAX_RANKS} ranks, not for {ranks}: with more, bfloat16 partial sums would round"
)]
pub struct RanksOutOfRange {
    pub ranks: u32,
}

/// The inputs and expected outputs of one run: a pure function of its four fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    seed: u64,
    dtype: DType,
    op: RedOp,
    ranks: u32,
}

impl Exact {
    /// # Errors
    /// When `ranks` is 0 or above [`MAX_RANKS`].
    pub fn new(seed: u64, dtype: DType, op: RedOp, ranks: u32) -> Result<Exact, RanksOutOfRange> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(RanksOutOfRange { ranks });
        }
        Ok(Exact { seed, dtype, op, ranks })
    }

    /// The hash's state for a rank: constant over its elements.
    fn key(&self, rank: Rank) -> u64 {
        mix(self.seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(rank.0) + 1)))
    }

    /// Random bits an element takes (see the formula); meaningless for prod.
    pub(crate) fn bits(&self) -> u32 {
        let shared = match self.op {
            RedOp::Min | RedOp::Max => 0,
            _ => u32::BITS - (self.ranks - 1).leading_zeros(),
        };
        exact_bits(self.dtype) + 1 - shared
    }

    /// Element `index` of `rank`'s input buffer, as the integer it is in every type.
    pub fn element(&self, rank: Rank, index: u64) -> i64 {
        let hash = mix(self.key(rank).wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1))));
        if self.op == RedOp::Prod {
            let turn = mix(self.seed.wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1))));
            let size = if ((turn >> 32) + u64::from(rank.0)).is_multiple_of(8) { 2 } else { 1 };
            return if hash >> 63 == 1 { -size } else { size };
        }
        let bits = self.bits();
        (hash >> (64 - bits)) as i64 - (1 << (bits - 1))
    }

    /// Element `index` of every rank's input, reduced. For avg this is the sum, before the division.
    pub fn reduced(&self, index: u64) -> i64 {
        let values = (0..self.ranks).map(|rank| self.element(Rank(rank), index));
        match self.op {
            RedOp::Sum | RedOp::Avg => values.sum(),
            RedOp::Prod => values.product(),
            RedOp::Min => values.min().expect("at least one rank"),
            RedOp::Max => values.max().expect("at least one rank"),
        }
    }

    /// Element `index` of `rank`'s output (which it has: [`Collective::has_output`]) after one execution of `collective` on blocks of `block` elements, before avg's division:
    /// see [`Exact::expected`] for the bits.
    pub fn expected_total(&self, collective: Collective, rank: Rank, index: u64, block: u64) -> i64 {
        match collective {
            Collective::AllReduce => self.reduced(index),
            Collective::ReduceScatter => self.reduced(u64::from(rank.0) * block + index),
            Collective::AllGather => self.element(Rank((index / block) as u32), index % block),
            Collective::Broadcast { root } => self.element(root, index),
            Collective::Reduce { .. } => self.reduced(index),
            Collective::AllToAll => {
                self.element(Rank((index / block) as u32), u64::from(rank.0) * block + index % block)
            }
            Collective::Gather { .. } => self.element(Rank((index / block) as u32), index % block),
            Collective::Scatter { root } => self.element(root, u64::from(rank.0) * block + index),
            Collective::SendRecv => self.element(Rank((rank.0 + self.ranks - 1) % self.ranks), index),
        }
    }
}

#[cfg(feature = "native")]
mod native {
    use half::{bf16, f16};

    use super::*;

    /// Bit pattern of a small integer in a type, in the low [`DType::size`] bytes. Exact up to `2^`[`exact_bits`].
    pub fn encode(dtype: DType, value: i64) -> u64 {
        match dtype {
            DType::F32 => u64::from((value as f32).to_bits()),
            DType::F16 => u64::from(f16::from_f32(value as f32).to_bits()),
            DType::Bf16 => u64::from(bf16::from_f32(value as f32).to_bits()),
            DType::I32 => u64::from(value as i32 as u32),
            DType::I64 => value as u64,
        }
    }

    /// Avg's division of a sum by the number of ranks: in f32, rounded once to the type; integers truncate towards zero.
    pub fn encode_average(dtype: DType, sum: i64, ranks: u32) -> u64 {
        let quotient = sum as f32 / ranks as f32;
        match dtype {
            DType::F32 => u64::from(quotient.to_bits()),
            DType::F16 => u64::from(f16::from_f32(quotient).to_bits()),
            DType::Bf16 => u64::from(bf16::from_f32(quotient).to_bits()),
            DType::I32 | DType::I64 => encode(dtype, sum / i64::from(ranks)),
        }
    }

    /// The value of a bit pattern, printed so that reading it back gives the same bits.
    pub fn show(dtype: DType, bits: u64) -> String {
        match dtype {
            DType::F32 => f32::from_bits(bits as u32).to_string(),
            DType::F16 => f16::from_bits(bits as u16).to_string(),
            DType::Bf16 => bf16::from_bits(bits as u16).to_string(),
            DType::I32 => (bits as u32 as i32).to_string(),
            DType::I64 => (bits as i64).to_string(),
        }
    }

    impl Exact {
        /// Bit pattern of an input element.
        pub fn input(&self, rank: Rank, index: u64) -> u64 {
            encode(self.dtype, self.element(rank, index))
        }

        /// Bit pattern that element `index` of `rank`'s output must have after one execution of `collective` on blocks of `block`
        /// elements. Avg divides only where the collective reduces.
        pub fn expected(&self, collective: Collective, rank: Rank, index: u64, block: u64) -> u64 {
            let total = self.expected_total(collective, rank, index, block);
            if self.op == RedOp::Avg && collective.reduces() {
                encode_average(self.dtype, total, self.ranks)
            } else {
                encode(self.dtype, total)
            }
        }
    }
}

#[cfg(feature = "native")]
pub use native::{encode, encode_average, show};

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(seed: u64, dtype: DType, op: RedOp, ranks: u32) -> Exact {
        Exact::new(seed, dtype, op, ranks).unwrap()
    }

    fn every_case() -> impl Iterator<Item = (DType, RedOp, u32)> {
        DType::ALL.into_iter().flat_map(|dtype| {
            RedOp::ALL.into_iter().flat_map(move |op| (1..=MAX_RANKS).map(move |ranks| (dtype, op, ranks)))
        })
    }

    /// The largest magnitude any partial reduction of any subset can have: what exactness in every order rests on.
    #[test]
    fn no_partial_result_leaves_the_exact_range() {
        for (dtype, op, ranks) in every_case() {
            let inputs = exact(7, dtype, op, ranks);
            for index in 0..200 {
                let sizes = (0..ranks).map(|rank| inputs.element(Rank(rank), index).unsigned_abs());
                let most = match op {
                    RedOp::Sum | RedOp::Avg => sizes.map(u128::from).sum::<u128>(),
                    RedOp::Prod => sizes.map(u128::from).product(),
                    RedOp::Min | RedOp::Max => sizes.map(u128::from).max().unwrap(),
                };
                assert!(most <= 1 << exact_bits(dtype), "{dtype} {op} {ranks} ranks: {most}");
            }
        }
    }

    #[test]
    fn ranks_beyond_the_limit_are_refused() {
        assert_eq!(Exact::new(0, DType::F32, RedOp::Sum, 65), Err(RanksOutOfRange { ranks: 65 }));
        assert_eq!(Exact::new(0, DType::F32, RedOp::Sum, 0), Err(RanksOutOfRange { ranks: 0 }));
    }

    /// Fixed values, so that the CUDA mirror can be tested against the same table and a change of formula is seen.
    #[test]
    fn the_formula_gives_these_values() {
        let first = |dtype, op, ranks| [0, 1, 2].map(|i| exact(1, dtype, op, ranks).element(Rank(1), i));
        assert_eq!(mix(GOLDEN), 0xE220_A839_7B1D_CDAF, "splitmix64's first output for seed 0");
        assert_eq!(first(DType::F32, RedOp::Sum, 4), [-277107, -3906315, -3808681]);
        assert_eq!(first(DType::Bf16, RedOp::Sum, 64), [-1, -4, -4]);
        assert_eq!(
            first(DType::I64, RedOp::Max, 4),
            [-304682004080892876, -4295038063054623381, -4187688923376380867]
        );
        assert_eq!(first(DType::F16, RedOp::Prod, 8), [1, 1, 1]);
    }

    #[test]
    fn elements_are_spread_over_ranks_and_indices() {
        let inputs = exact(3, DType::Bf16, RedOp::Sum, 64);
        let mut counts = [0u32; 8];
        for rank in 0..64 {
            for index in 0..100 {
                counts[(inputs.element(Rank(rank), index) + 4) as usize] += 1;
            }
        }
        assert!(counts.iter().all(|&n| (700..900).contains(&n)), "{counts:?}");
        let doubled =
            (0..800).filter(|&i| exact(3, DType::F32, RedOp::Prod, 8).element(Rank(2), i).abs() == 2).count();
        assert!((60..140).contains(&doubled), "{doubled}");
    }

    #[cfg(feature = "native")]
    mod bits {
        use half::{bf16, f16};

        use super::*;

        /// One reduction step in the type itself, as an executor does it, decoded from and encoded to bits.
        fn step(dtype: DType, op: RedOp, a: u64, b: u64) -> u64 {
            fn float(op: RedOp, a: f32, b: f32) -> f32 {
                match op {
                    RedOp::Sum | RedOp::Avg => a + b,
                    RedOp::Prod => a * b,
                    RedOp::Min => a.min(b),
                    RedOp::Max => a.max(b),
                }
            }
            fn int(op: RedOp, a: i64, b: i64) -> i64 {
                match op {
                    RedOp::Sum | RedOp::Avg => a.checked_add(b).unwrap(),
                    RedOp::Prod => a.checked_mul(b).unwrap(),
                    RedOp::Min => a.min(b),
                    RedOp::Max => a.max(b),
                }
            }
            let half = |x: u64| f16::from_bits(x as u16).to_f32();
            let brain = |x: u64| bf16::from_bits(x as u16).to_f32();
            match dtype {
                DType::F32 => float(op, f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits().into(),
                DType::F16 => f16::from_f32(float(op, half(a), half(b))).to_bits().into(),
                DType::Bf16 => bf16::from_f32(float(op, brain(a), brain(b))).to_bits().into(),
                DType::I32 => {
                    i32::try_from(int(op, (a as i32).into(), (b as i32).into())).unwrap() as u32 as u64
                }
                DType::I64 => int(op, a as i64, b as i64) as u64,
            }
        }

        #[test]
        fn folding_in_any_order_gives_the_same_bits() {
            for (dtype, op, ranks) in every_case() {
                let inputs = exact(u64::from(ranks), dtype, op, ranks);
                for index in 0..24 {
                    let total = encode(dtype, inputs.reduced(index));
                    let value = |rank: u32| inputs.input(Rank(rank), index);
                    let forwards = (1..ranks).fold(value(0), |acc, r| step(dtype, op, acc, value(r)));
                    let backwards =
                        (0..ranks - 1).rev().fold(value(ranks - 1), |acc, r| step(dtype, op, acc, value(r)));
                    let mut order: Vec<u32> = (0..ranks).collect();
                    order.sort_by_key(|&r| mix(index * 1000 + u64::from(r)));
                    let shuffled =
                        order[1..].iter().fold(value(order[0]), |acc, &r| step(dtype, op, acc, value(r)));
                    let mut level: Vec<u64> = order.iter().map(|&r| value(r)).collect();
                    while level.len() > 1 {
                        let pair =
                            |p: &[u64]| p.iter().copied().reduce(|a, b| step(dtype, op, a, b)).unwrap();
                        level = level.chunks(2).map(pair).collect();
                    }
                    let got = [forwards, backwards, shuffled, level[0]];
                    assert_eq!(got, [total; 4], "{dtype} {op} {ranks} ranks, element {index}");
                }
            }
        }

        #[test]
        fn avg_divides_the_exact_sum_once() {
            assert_eq!(encode_average(DType::F32, 7, 3), u64::from((7f32 / 3f32).to_bits()));
            assert_eq!(encode_average(DType::Bf16, -7, 3), u64::from(bf16::from_f32(-7f32 / 3f32).to_bits()));
            assert_eq!(encode_average(DType::F16, 7, 3), u64::from(f16::from_f32(7f32 / 3f32).to_bits()));
            assert_eq!(encode_average(DType::I32, -7, 3), u64::from(-2i32 as u32));
            assert_eq!(encode_average(DType::I64, i64::MAX - 1, 1), (i64::MAX - 1) as u64);
        }

        #[test]
        fn each_collective_expects_its_own_elements() {
            let inputs = exact(9, DType::I32, RedOp::Sum, 4);
            let expect = |collective, rank, index| {
                inputs.expected(collective, Rank(rank), index, 10) as u32 as i32 as i64
            };
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
            assert_eq!(show(DType::Bf16, encode(DType::Bf16, -3)), "-3");
            assert_eq!(show(DType::I64, u64::MAX), "-1");
        }
    }
}
