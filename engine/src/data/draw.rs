//! How an input element is drawn.
//!
//! ```text
//! key(rank)     = mix(seed + G * (rank + 1))
//! hash(rank, i) = mix(key(rank) + G * (i + 1))
//! turn(i)       = mix(seed + G * (i + 1))                      the same for all ranks
//! place(rank,i) = (rank + ((turn >> 32) * ranks >> 32)) mod ranks            ranks in turn
//! shift(i)      = (turn mod 2^16) * shifts >> 16                             0 .. shifts - 1
//! part(h, n)    = h * n >> 64                                                evenly spread over 0 .. n - 1
//!
//! Any      x = hash >> (64 - bits), signed or not,                           times 2^shift
//! Odd      x = Any with its lowest bit set
//! Share    x = part(hash, most + 1), negative at odd places if signed,       times 2^shift
//!              0 from the `givers`-th place of each sign on
//! Factor   x = 1 + part(hash, most) at place 0, 2 at places 1 to `givers`, else 1; negative if hash is odd
//! ```
//!
//! | reduction | integers of w bits | floats of B bits ([`exact_bits`]) |
//! | --- | --- | --- |
//! | min, max | Any, all w bits | Any, B + 1 bits |
//! | sum, mulsum | Any, all w bits | Share of 2^B |
//! | avg | Share of 2^(w-2), unsigned: of 2^w - 2 | Share of 2^B |
//! | prod | Odd | Factor |
//!
//! Why no order of reduction rounds. Integers wrap: sums and products modulo 2^w do not depend on the order, and averages stay clear
//! of wrapping. A Share gives each sign at most `givers * most <= 2^B`, so the sum of any subset of the contributions is a multiple of
//! `2^shift` no larger than `2^(B + shift)`, and all of these are values of the type. A product is `m * 2^k` with `m <= 2^B` and
//! `k <= givers`. For mulsum the shares of odd ranks, which are doubled, are half as large.
//!
//! What a check can see, as the chance that one element shows that a given rank's contribution was lost or counted twice:
//!
//! | | 2 ranks | 8 ranks | 64 ranks |
//! | --- | --- | --- | --- |
//! | integers, sum: 1 - 2^-w; float, double | > 99 % | > 99 % | > 99 % |
//! | half | > 99 % | > 99 % | 98 % |
//! | bfloat16 | > 99 % | 98 % | 89 % |
//! | int8, avg | 98 % | 94 % | 67 % |
//! | f8e4m3 | 94 % | 80 % | 25 % |
//! | f8e5m2 | 89 % | 67 % | 12 % |
//! | f8e5m2, mulsum | 84 % | 58 % | 7 % |
//! | prod, any float | > 50 % | > 50 % | > 50 % |
//! | min, max: lost only, as they are idempotent | 1/2 | 1/8 | 1/64 |
//!
//! So a fault that touches 256 elements is missed with chance below 2^-26 even in the worst sum. Exchanged elements and errors in a
//! byte show wherever neighbours differ: shifts give narrow types exponents that vary from one element to the next.

use super::{GOLDEN, mix};
use crate::types::{DType, RedOp};

/// Shapes of the formula, by the number the device knows them by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Any = 0,
    Odd = 1,
    Share = 2,
    Factor = 3,
}

/// The constants of the formula for one type, reduction and number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draw {
    pub kind: Kind,
    pub signed: bool,
    pub bits: u32,
    pub most: u64,
    pub givers: u32,
    pub shifts: u32,
}

/// `B`: every integer of magnitude up to `2^B` is a value of the type. For integers one less than the magnitude's bits, to stay clear
/// of overflow.
pub const fn exact_bits(dtype: DType) -> u32 {
    match dtype {
        DType::F8E5m2 => 3,
        DType::F8E4m3 => 4,
        DType::Bf16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        DType::F64 => 53,
        DType::I8 | DType::U8 | DType::I32 | DType::U32 | DType::I64 | DType::U64 => {
            8 * dtype.size() as u32 - 2
        }
    }
}

/// Powers of two an element may be multiplied by, 1 included: as many as keep `2^(B + shift)` below the largest value, and within 62
/// bits.
const fn shifts(dtype: DType) -> u32 {
    match dtype {
        DType::F8E4m3 => 5,
        DType::F8E5m2 => 13,
        DType::F16 => 5,
        DType::Bf16 | DType::F32 => 33,
        DType::F64 => 9,
        _ => 1,
    }
}

/// Factors of 2 in a product, at most: `2^(B + this)` is a value of the type.
const fn doublings(dtype: DType) -> u32 {
    match dtype {
        DType::F8E4m3 | DType::F16 => 4,
        _ => 8,
    }
}

impl Draw {
    pub fn new(dtype: DType, op: RedOp, ranks: u32) -> Draw {
        let (integer, signed) = (dtype.is_integer(), !dtype.is_unsigned());
        let bits = if integer { 8 * dtype.size() as u32 } else { exact_bits(dtype) + 1 };
        let any = Draw { kind: Kind::Any, signed, bits, most: 0, givers: 0, shifts: shifts(dtype) };
        let exact = 1u64 << exact_bits(dtype);
        match op {
            RedOp::Min | RedOp::Max => any,
            RedOp::Sum | RedOp::PreMulSum if integer => any,
            RedOp::Prod if integer => Draw { kind: Kind::Odd, ..any },
            RedOp::Prod => Draw { kind: Kind::Factor, most: exact, givers: doublings(dtype), ..any },
            RedOp::Sum | RedOp::PreMulSum | RedOp::Avg => {
                let (whole, signs) = if signed { (exact, 2) } else { ((u64::MAX >> (64 - bits)) - 1, 1) };
                let group = ranks.div_ceil(signs);
                // A share that is halved has to leave something.
                let least = if op == RedOp::PreMulSum { 2 } else { 1 };
                let most = (whole / u64::from(group)).max(least);
                let givers = u64::from(group).min(whole / most) as u32;
                Draw { kind: Kind::Share, most, givers, ..any }
            }
        }
    }

    /// `halved` for the contributions that the reduction doubles.
    pub fn element(&self, seed: u64, rank: u32, ranks: u32, index: u64, halved: bool) -> i64 {
        let key = mix(seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(rank) + 1)));
        let step = GOLDEN.wrapping_mul(index.wrapping_add(1));
        let hash = mix(key.wrapping_add(step));
        let turn = mix(seed.wrapping_add(step));
        let shift = ((turn & 0xFFFF) * u64::from(self.shifts)) >> 16;
        let part = |values: u64| ((u128::from(hash) * u128::from(values)) >> 64) as i64;
        let place = || {
            let from_start = rank + (((turn >> 32) * u64::from(ranks)) >> 32) as u32;
            if from_start >= ranks { from_start - ranks } else { from_start }
        };
        let any = || match self.signed {
            true => hash as i64 >> (64 - self.bits),
            false => (hash >> (64 - self.bits)) as i64,
        };
        match self.kind {
            Kind::Any => any() << shift,
            Kind::Odd => any() | 1,
            Kind::Share => {
                let place = place();
                let (nth, negative) = if self.signed { (place / 2, place % 2 == 1) } else { (place, false) };
                let most = if halved { self.most / 2 } else { self.most };
                let size = if nth < self.givers { part(most + 1) << shift } else { 0 };
                if negative { -size } else { size }
            }
            Kind::Factor => {
                let size = match place() {
                    0 => 1 + part(self.most),
                    place if place <= self.givers => 2,
                    _ => 1,
                };
                if hash % 2 == 1 { -size } else { size }
            }
        }
    }
}
