//! Arithmetic of the element types: plain loops over slices that the compiler turns into vector code.

use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::memory::{Window, divide, fold};
use crate::types::{DType, RedOp};

/// A reduction of two accumulators.
pub trait Combine<A> {
    fn combine(a: A, b: A) -> A;
}

pub struct Sum;
pub struct Prod;
pub struct Min;
pub struct Max;

macro_rules! integer_ops {
    ($($t:ty),*) => { $(
        impl Combine<$t> for Sum { fn combine(a: $t, b: $t) -> $t { a.wrapping_add(b) } }
        impl Combine<$t> for Prod { fn combine(a: $t, b: $t) -> $t { a.wrapping_mul(b) } }
        impl Combine<$t> for Min { fn combine(a: $t, b: $t) -> $t { a.min(b) } }
        impl Combine<$t> for Max { fn combine(a: $t, b: $t) -> $t { a.max(b) } }
    )* };
}
integer_ops!(i32, i64);

impl Combine<f32> for Sum {
    fn combine(a: f32, b: f32) -> f32 {
        a + b
    }
}
impl Combine<f32> for Prod {
    fn combine(a: f32, b: f32) -> f32 {
        a * b
    }
}
// As CUDA's fminf and fmaxf: a number wins over a NaN.
impl Combine<f32> for Min {
    fn combine(a: f32, b: f32) -> f32 {
        a.min(b)
    }
}
impl Combine<f32> for Max {
    fn combine(a: f32, b: f32) -> f32 {
        a.max(b)
    }
}

/// An element type and the type its reductions are computed in.
pub trait Element: Pod + Send + Sync {
    type Acc: Copy + Default;

    /// `acc = src`
    fn load(acc: &mut [Self::Acc], src: &[Self]);
    /// `acc = acc (op) src`
    fn combine<O: Combine<Self::Acc>>(acc: &mut [Self::Acc], src: &[Self]);
    /// `dst = acc`, rounded to nearest even.
    fn store(dst: &mut [Self], acc: &[Self::Acc]);
    /// Divides by the number of ranks: [`crate::data::encode_average`]'s formula.
    fn divide(values: &mut [Self], ranks: u32);
}

macro_rules! own_accumulator {
    ($t:ty, $divide:expr) => {
        impl Element for $t {
            type Acc = $t;

            fn load(acc: &mut [$t], src: &[$t]) {
                acc.copy_from_slice(src);
            }

            fn combine<O: Combine<$t>>(acc: &mut [$t], src: &[$t]) {
                for (a, &s) in acc.iter_mut().zip(src) {
                    *a = O::combine(*a, s);
                }
            }

            fn store(dst: &mut [$t], acc: &[$t]) {
                dst.copy_from_slice(acc);
            }

            fn divide(values: &mut [$t], ranks: u32) {
                for v in values {
                    *v = $divide(*v, ranks);
                }
            }
        }
    };
}
own_accumulator!(f32, |v: f32, ranks: u32| v / ranks as f32);
own_accumulator!(i32, |v: i32, ranks: u32| (i64::from(v) / i64::from(ranks)) as i32);
own_accumulator!(i64, |v: i64, ranks: u32| v / i64::from(ranks));

// The 16-bit floats compute in f32.

/// Values converted at a time.
const PART: usize = 512;

impl Element for f16 {
    type Acc = f32;

    // `half` converts eight values at a time where the processor has F16C: faster than a portable loop by half.
    fn load(acc: &mut [f32], src: &[f16]) {
        src.convert_to_f32_slice(acc);
    }

    fn combine<O: Combine<f32>>(acc: &mut [f32], src: &[f16]) {
        let mut wide = [0f32; PART];
        for (acc, src) in acc.chunks_mut(PART).zip(src.chunks(PART)) {
            let wide = &mut wide[..src.len()];
            src.convert_to_f32_slice(wide);
            f32::combine::<O>(acc, wide);
        }
    }

    fn store(dst: &mut [f16], acc: &[f32]) {
        dst.convert_from_f32_slice(acc);
    }

    fn divide(values: &mut [f16], ranks: u32) {
        let mut wide = [0f32; PART];
        for values in values.chunks_mut(PART) {
            let wide = &mut wide[..values.len()];
            values.convert_to_f32_slice(wide);
            f32::divide(wide, ranks);
            values.convert_from_f32_slice(wide);
        }
    }
}

impl Element for bf16 {
    type Acc = f32;

    fn load(acc: &mut [f32], src: &[bf16]) {
        for (a, &s) in acc.iter_mut().zip(src) {
            *a = widen(s);
        }
    }

    fn combine<O: Combine<f32>>(acc: &mut [f32], src: &[bf16]) {
        for (a, &s) in acc.iter_mut().zip(src) {
            *a = O::combine(*a, widen(s));
        }
    }

    fn store(dst: &mut [bf16], acc: &[f32]) {
        for (d, &a) in dst.iter_mut().zip(acc) {
            *d = narrow(a);
        }
    }

    fn divide(values: &mut [bf16], ranks: u32) {
        for v in values {
            *v = narrow(widen(*v) / ranks as f32);
        }
    }
}

#[inline(always)]
fn widen(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// To nearest, ties to even, as `bf16::from_f32` but without its branches: those keep the loop from becoming vector code, which is
/// three times as fast.
#[inline(always)]
fn narrow(value: f32) -> bf16 {
    let bits = value.to_bits();
    // Half of the lowest kept bit, less one when that bit is even.
    let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16;
    let quiet_nan = (bits >> 16) | 0x40;
    bf16::from_bits(if value.is_nan() { quiet_nan } else { rounded } as u16)
}

/// The two loops a session needs for its type and reduction.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub fold: fn(&mut [Window<'_>], &[Window<'_>]),
    pub divide: fn(Window<'_>, u32),
}

impl Kernels {
    pub fn of(dtype: DType, op: RedOp) -> Kernels {
        fn with<T: Element>(op: RedOp) -> Kernels
        where
            Sum: Combine<T::Acc>,
            Prod: Combine<T::Acc>,
            Min: Combine<T::Acc>,
            Max: Combine<T::Acc>,
        {
            let fold: fn(&mut [Window<'_>], &[Window<'_>]) = match op {
                RedOp::Sum | RedOp::Avg => fold::<T, Sum>,
                RedOp::Prod => fold::<T, Prod>,
                RedOp::Min => fold::<T, Min>,
                RedOp::Max => fold::<T, Max>,
            };
            Kernels { fold, divide: divide::<T> }
        }
        match dtype {
            DType::F32 => with::<f32>(op),
            DType::F16 => with::<f16>(op),
            DType::Bf16 => with::<bf16>(op),
            DType::I32 => with::<i32>(op),
            DType::I64 => with::<i64>(op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    /// The epilogue's loops and the expected values come from one formula.
    #[test]
    fn dividing_agrees_with_the_expected_average() {
        fn check<T: Element>(dtype: DType) {
            for ranks in 1..=64u32 {
                let sums: Vec<i64> = (-128..=128).collect();
                let mut values: Vec<T> = sums
                    .iter()
                    .map(|&sum| {
                        *bytemuck::from_bytes(&data::encode(dtype, sum).to_le_bytes()[..dtype.size()])
                    })
                    .collect();
                T::divide(&mut values, ranks);
                for (&sum, value) in sums.iter().zip(&values) {
                    let expected = data::encode_average(dtype, sum, ranks).to_le_bytes();
                    assert_eq!(
                        bytemuck::bytes_of(value),
                        &expected[..dtype.size()],
                        "{dtype} {sum} / {ranks}"
                    );
                }
            }
        }
        check::<f32>(DType::F32);
        check::<f16>(DType::F16);
        check::<bf16>(DType::Bf16);
        check::<i32>(DType::I32);
        check::<i64>(DType::I64);
    }

    #[test]
    fn sixteen_bit_floats_round_once_after_the_last_operand() {
        // 2048 + 1 is not an f16; rounding after each addition would lose both ones.
        let mut acc = [0f32; 1];
        f16::load(&mut acc, &[f16::from_f32(2048.0)]);
        f16::combine::<Sum>(&mut acc, &[f16::ONE]);
        f16::combine::<Sum>(&mut acc, &[f16::ONE]);
        let mut out = [f16::ZERO];
        f16::store(&mut out, &acc);
        assert_eq!(out[0].to_f32(), 2050.0);
    }

    #[test]
    fn bfloat16_rounds_as_half_does() {
        // Random bits, and the neighbourhood of every bfloat16 and of every tie between two.
        let random = (0..1_000_000u64).map(|i| data::mix(i) as u32);
        let ties = (0..=u16::MAX).map(|b| u32::from(b) << 16).flat_map(|b| [b, b + 0x8000]);
        let near = ties.flat_map(|b| (0..5u32).map(move |d| b.wrapping_add(d).wrapping_sub(2)));
        for value in random.chain(near).map(f32::from_bits) {
            let (ours, theirs) = (narrow(value), bf16::from_f32(value));
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "{value:e}: {ours:?}"
            );
            assert!(widen(ours).to_bits() == ours.to_f32().to_bits() || ours.is_nan());
        }
    }
}
