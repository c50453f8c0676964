//! Arithmetic of the element types: plain loops over slices that the compiler turns into vector code.

use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::memory::{Window, divide, fold, fold_scaled, scale};
use crate::fp8::{E4m3, E5m2};
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
integer_ops!(i8, u8, i32, u32, i64, u64);

// Minimum and maximum as `RedOp` defines them and PTX's `min` and `max` compute them. Equal values differ in nothing but the sign of a
// zero, which joining their bits settles; written as choices between values, the loops become vector code.
macro_rules! float_ops {
    ($($t:ty, $nan:expr);*) => { $(
        impl Combine<$t> for Sum { fn combine(a: $t, b: $t) -> $t { a + b } }
        impl Combine<$t> for Prod { fn combine(a: $t, b: $t) -> $t { a * b } }
        impl Combine<$t> for Min {
            fn combine(a: $t, b: $t) -> $t {
                let equal = <$t>::from_bits(a.to_bits() | b.to_bits());
                numbers(a, b, if a == b { equal } else if a < b { a } else { b })
            }
        }
        impl Combine<$t> for Max {
            fn combine(a: $t, b: $t) -> $t {
                let equal = <$t>::from_bits(a.to_bits() & b.to_bits());
                numbers(a, b, if a == b { equal } else if a > b { a } else { b })
            }
        }
        impl Numbers for $t {
            fn choose(a: $t, b: $t, chosen: $t) -> $t {
                let one = if a.is_nan() { b } else if b.is_nan() { a } else { chosen };
                if one.is_nan() { <$t>::from_bits($nan) } else { one }
            }
        }
    )* };
}
float_ops!(f32, 0x7FFF_FFFF; f64, 0x7FFF_FFFF_FFFF_FFFF);

trait Numbers: Sized {
    fn choose(a: Self, b: Self, chosen: Self) -> Self;
}

/// `chosen` of two numbers, the number of a number and a NaN, the GPU's NaN of two.
#[inline(always)]
fn numbers<T: Numbers>(a: T, b: T, chosen: T) -> T {
    T::choose(a, b, chosen)
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
    /// `dst = src * factor`, each rounded to the type.
    fn scale(dst: &mut [Self], src: &[Self], factor: Self);
}

macro_rules! own_accumulator {
    ($t:ty, $divide:expr, $multiply:expr) => {
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

            fn scale(dst: &mut [$t], src: &[$t], factor: $t) {
                for (d, &s) in dst.iter_mut().zip(src) {
                    *d = $multiply(s, factor);
                }
            }
        }
    };
}
own_accumulator!(f32, |v, ranks| v / ranks as f32, |v, factor| v * factor);
own_accumulator!(f64, |v, ranks| v / f64::from(ranks), |v, factor| v * factor);
own_accumulator!(i8, |v, ranks| (i64::from(v) / i64::from(ranks)) as i8, i8::wrapping_mul);
own_accumulator!(u8, |v, ranks| (u32::from(v) / ranks) as u8, u8::wrapping_mul);
own_accumulator!(i32, |v, ranks| (i64::from(v) / i64::from(ranks)) as i32, i32::wrapping_mul);
own_accumulator!(u32, |v, ranks| v / ranks, u32::wrapping_mul);
own_accumulator!(i64, |v, ranks| v / i64::from(ranks), i64::wrapping_mul);
own_accumulator!(u64, |v, ranks| v / u64::from(ranks), u64::wrapping_mul);

// The floats of 16 and 8 bits compute in f32.

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

    fn scale(dst: &mut [f16], src: &[f16], factor: f16) {
        let mut wide = [0f32; PART];
        for (dst, src) in dst.chunks_mut(PART).zip(src.chunks(PART)) {
            let wide = &mut wide[..src.len()];
            src.convert_to_f32_slice(wide);
            wide.iter_mut().for_each(|v| *v *= factor.to_f32());
            dst.convert_from_f32_slice(wide);
        }
    }
}

macro_rules! float_accumulator {
    ($t:ty, $widen:expr, $narrow:expr) => {
        impl Element for $t {
            type Acc = f32;

            fn load(acc: &mut [f32], src: &[$t]) {
                for (a, &s) in acc.iter_mut().zip(src) {
                    *a = $widen(s);
                }
            }

            fn combine<O: Combine<f32>>(acc: &mut [f32], src: &[$t]) {
                for (a, &s) in acc.iter_mut().zip(src) {
                    *a = O::combine(*a, $widen(s));
                }
            }

            fn store(dst: &mut [$t], acc: &[f32]) {
                for (d, &a) in dst.iter_mut().zip(acc) {
                    *d = $narrow(a);
                }
            }

            fn divide(values: &mut [$t], ranks: u32) {
                for v in values {
                    *v = $narrow($widen(*v) / ranks as f32);
                }
            }

            fn scale(dst: &mut [$t], src: &[$t], factor: $t) {
                for (d, &s) in dst.iter_mut().zip(src) {
                    *d = $narrow($widen(s) * $widen(factor));
                }
            }
        }
    };
}
float_accumulator!(bf16, widen, narrow);
float_accumulator!(E4m3, E4m3::to_f32, E4m3::from_f32);
float_accumulator!(E5m2, E5m2::to_f32, E5m2::from_f32);

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

/// What [`crate::types::RedOp::PreMulSum`] multiplies a source by: bits of a value of the type. Others stay as they are.
pub type Factor = Option<u64>;

/// The loops a session needs for its type and reduction.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub fold: fn(&mut [Window<'_>], &[Window<'_>]),
    /// The fold of sources multiplied before anything else.
    pub fold_scaled: fn(&mut [Window<'_>], &[Window<'_>], &[Factor]),
    pub divide: fn(Window<'_>, u32),
    pub scale: fn(Window<'_>, u64),
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
                RedOp::Sum | RedOp::Avg | RedOp::PreMulSum => fold::<T, Sum>,
                RedOp::Prod => fold::<T, Prod>,
                RedOp::Min => fold::<T, Min>,
                RedOp::Max => fold::<T, Max>,
            };
            Kernels { fold, fold_scaled: fold_scaled::<T, Sum>, divide: divide::<T>, scale: scale::<T> }
        }
        match dtype {
            DType::I8 => with::<i8>(op),
            DType::U8 => with::<u8>(op),
            DType::I32 => with::<i32>(op),
            DType::U32 => with::<u32>(op),
            DType::I64 => with::<i64>(op),
            DType::U64 => with::<u64>(op),
            DType::F16 => with::<f16>(op),
            DType::F32 => with::<f32>(op),
            DType::F64 => with::<f64>(op),
            DType::Bf16 => with::<bf16>(op),
            DType::F8E4m3 => with::<E4m3>(op),
            DType::F8E5m2 => with::<E5m2>(op),
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
                let sums: Vec<i64> = match (dtype.is_unsigned(), dtype.size()) {
                    (true, size) => (0..=255).map(|sum| sum << (8 * (size - 1))).collect(),
                    (false, 1) if !dtype.is_integer() => (-8..=8).collect(),
                    (false, 1) => (-128..=127).collect(),
                    (false, _) => (-128..=128).collect(),
                };
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
        check::<i8>(DType::I8);
        check::<u8>(DType::U8);
        check::<i32>(DType::I32);
        check::<u32>(DType::U32);
        check::<i64>(DType::I64);
        check::<u64>(DType::U64);
        check::<f16>(DType::F16);
        check::<f32>(DType::F32);
        check::<f64>(DType::F64);
        check::<bf16>(DType::Bf16);
        check::<E4m3>(DType::F8E4m3);
        check::<E5m2>(DType::F8E5m2);
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

    /// As NCCL's device code: `fminf(NaN, 1)` is 1, of two NaNs comes the one NaN, -0 is below +0.
    #[test]
    fn minimum_and_maximum_skip_nans_and_order_zeros() {
        let (odd_nan, nan) = (f32::from_bits(0xFFC0_0001), 0x7FFF_FFFF);
        let min = |a: f32, b: f32| Min::combine(a, b).to_bits();
        let max = |a: f32, b: f32| Max::combine(a, b).to_bits();
        for (a, b) in [(odd_nan, 1.0), (1.0, odd_nan), (1.0, 1.0)] {
            assert_eq!((min(a, b), max(a, b)), (1f32.to_bits(), 1f32.to_bits()));
        }
        assert_eq!((min(odd_nan, odd_nan), max(odd_nan, f32::NAN)), (nan, nan));
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert_eq!((min(a, b), max(a, b)), ((-0f32).to_bits(), 0f32.to_bits()));
        }
        assert_eq!(
            (min(f32::NEG_INFINITY, 3.0), max(-3.0, -4.0)),
            (f32::NEG_INFINITY.to_bits(), (-3f32).to_bits())
        );
        assert_eq!(Min::combine(f64::NAN, 1.0).to_bits(), 1f64.to_bits());
        assert_eq!(Max::combine(f64::NAN, f64::NAN).to_bits(), 0x7FFF_FFFF_FFFF_FFFF);
        // What two NaNs leave is the same NaN in every type.
        fn of_nans<T: Element<Acc = f32>>(nan: T) -> T {
            let mut acc = [0f32];
            T::load(&mut acc, &[nan]);
            T::combine::<Min>(&mut acc, &[nan]);
            let mut out = [nan];
            T::store(&mut out, &acc);
            out[0]
        }
        assert_eq!(of_nans(f16::from_bits(0xFE01)).to_bits(), 0x7FFF);
        assert_eq!(of_nans(bf16::from_bits(0xFFC1)).to_bits(), 0x7FFF);
        assert_eq!((of_nans(E4m3(0xFF)), of_nans(E5m2(0xFD))), (E4m3(0x7F), E5m2(0x7F)));
    }

    #[test]
    fn unsigned_types_compare_and_divide_as_such() {
        assert_eq!((Min::combine(200u8, 100), Max::combine(u64::MAX, 1)), (100, u64::MAX));
        let mut values = [250u8, 5];
        u8::divide(&mut values, 2);
        assert_eq!(values, [125, 2]);
        let mut values = [u64::MAX];
        u64::divide(&mut values, 2);
        assert_eq!(values, [u64::MAX / 2]);
    }

    #[test]
    fn a_factor_multiplies_with_one_rounding() {
        let mut out = [E4m3(0); 2];
        E4m3::scale(&mut out, &[E4m3::from_f32(1.125), E4m3::from_f32(448.0)], E4m3::from_f32(1.125));
        // 1.265625 lies between 1.25 and 1.375; 504 is too large.
        assert_eq!(out.map(E4m3::to_f32), [1.25, 448.0]);
        let mut out = [f16::ZERO];
        f16::scale(&mut out, &[f16::from_f32(2049.0)], f16::from_f32(3.0));
        assert_eq!(out[0].to_f32(), 6144.0);
        let mut out = [0i8];
        i8::scale(&mut out, &[100], 2);
        assert_eq!(out, [-56]);
    }
}
