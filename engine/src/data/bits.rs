//! Bit patterns of the element types.

use half::{bf16, f16};

use super::Exact;
use crate::fp8::{E4m3, E5m2};
use crate::types::{Collective, DType, Rank, RedOp};

/// Bits of a float in a float type, rounded once. For types of up to 32 bits.
fn encode_float(dtype: DType, value: f32) -> u64 {
    match dtype {
        DType::F16 => f16::from_f32(value).to_bits().into(),
        DType::Bf16 => bf16::from_f32(value).to_bits().into(),
        DType::F8E4m3 => E4m3::from_f32(value).0.into(),
        DType::F8E5m2 => E5m2::from_f32(value).0.into(),
        _ => value.to_bits().into(),
    }
}

/// Bit pattern of an integer in a type, in the low [`DType::size`] bytes; integers keep their low bits. Exact for all that
/// [`super::draw`] makes.
pub fn encode(dtype: DType, value: i64) -> u64 {
    match dtype {
        DType::F64 => (value as f64).to_bits(),
        DType::F32 | DType::F16 | DType::Bf16 | DType::F8E4m3 | DType::F8E5m2 => {
            encode_float(dtype, value as f32)
        }
        DType::I8 | DType::U8 | DType::I32 | DType::U32 | DType::I64 | DType::U64 => {
            value as u64 & (u64::MAX >> (64 - 8 * dtype.size()))
        }
    }
}

/// Avg's division of a sum by the number of ranks. Double in itself; other floats in f32, rounded once to the type; integers truncate
/// towards zero. `sum` is as in [`Exact::element`].
pub fn encode_average(dtype: DType, sum: i64, ranks: u32) -> u64 {
    match dtype {
        DType::F64 => (sum as f64 / f64::from(ranks)).to_bits(),
        DType::F32 | DType::F16 | DType::Bf16 | DType::F8E4m3 | DType::F8E5m2 => {
            encode_float(dtype, sum as f32 / ranks as f32)
        }
        DType::U8 | DType::U32 | DType::U64 => encode(dtype, (sum as u64 / u64::from(ranks)) as i64),
        DType::I8 | DType::I32 | DType::I64 => encode(dtype, sum / i64::from(ranks)),
    }
}

/// The value of a bit pattern, printed so that reading it back gives the same bits.
pub fn show(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::I8 => (bits as i8).to_string(),
        DType::U8 => (bits as u8).to_string(),
        DType::I32 => (bits as i32).to_string(),
        DType::U32 => (bits as u32).to_string(),
        DType::I64 => (bits as i64).to_string(),
        DType::U64 => bits.to_string(),
        DType::F16 => f16::from_bits(bits as u16).to_string(),
        DType::F32 => f32::from_bits(bits as u32).to_string(),
        DType::F64 => f64::from_bits(bits).to_string(),
        DType::Bf16 => bf16::from_bits(bits as u16).to_string(),
        DType::F8E4m3 => E4m3(bits as u8).to_f32().to_string(),
        DType::F8E5m2 => E5m2(bits as u8).to_f32().to_string(),
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
