//! 8-bit floats: OCP's E4M3 and E5M2, converted as NVIDIA's GPUs convert them (`cvt.rn.satfinite`), bit for bit.
//!
//! To nearest, ties to even; beyond the largest finite value that value; a NaN gives 0x7F. Our own and not the crate `float8`, which
//! rounds by way of f64 with a branch for each case: these loops become vector code, and have one NaN as the hardware has.

use bytemuck::{Pod, Zeroable};

macro_rules! fp8 {
    ($(#[$doc:meta])* $name:ident, mantissa $mantissa:literal, bias $bias:literal, largest $largest:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            const VALUES: [f32; 256] = {
                let mut values = [0.0; 256];
                let mut code = 0;
                while code < 256 {
                    values[code] = value(code as u8, $mantissa, $bias, $largest);
                    code += 1;
                }
                values
            };

            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                static VALUES: [f32; 256] = $name::VALUES;
                VALUES[usize::from(self.0)]
            }

            #[inline(always)]
            pub fn from_f32(value: f32) -> Self {
                Self(round::<$mantissa, $bias, $largest>(value))
            }
        }
    };
}

fp8!(
    /// Four bits of exponent, three of mantissa: to 448 in steps of 1/512 and more. All ones is NaN; there are no infinities.
    E4m3, mantissa 3, bias 7, largest 0x7E
);
fp8!(
    /// The upper byte of an f16: to 57344.
    E5m2, mantissa 2, bias 15, largest 0x7B
);

/// `2^exponent`, of a normal f32.
const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

const fn value(code: u8, mantissa: u32, bias: i32, largest: u8) -> f32 {
    let magnitude = code & 0x7F;
    let exponent = (magnitude >> mantissa) as i32;
    let fraction = (magnitude & ((1 << mantissa) - 1)) as f32 * power(-(mantissa as i32));
    let size = if magnitude == largest + 1 && mantissa == 2 {
        f32::INFINITY
    } else if magnitude > largest {
        return f32::from_bits(0x7FFF_FFFF);
    } else if exponent == 0 {
        fraction * power(1 - bias)
    } else {
        (1.0 + fraction) * power(exponent - bias)
    };
    if code & 0x80 == 0 { size } else { -size }
}

#[inline(always)]
fn round<const MANTISSA: u32, const BIAS: i32, const LARGEST: u8>(value: f32) -> u8 {
    let bits = value.to_bits();
    let size = bits & 0x7FFF_FFFF;
    // Half of the lowest kept bit, less one when that bit is even, carries into the exponent where it has to.
    let dropped = 23 - MANTISSA;
    let half = (1 << (dropped - 1)) - 1 + ((size >> dropped) & 1);
    let normal = (size.wrapping_add(half) >> dropped).wrapping_sub(((127 - BIAS) as u32) << MANTISSA);
    // Below the normal values the unit is fixed: added to a number whose lowest bit is that unit, the sum is rounded to it.
    let unit = power(23 + 1 - BIAS - MANTISSA as i32);
    let small = (f32::from_bits(size) + unit).to_bits().wrapping_sub(unit.to_bits());
    let magnitude = if size < power(1 - BIAS).to_bits() { small } else { normal };
    let magnitude = if magnitude > u32::from(LARGEST) { u32::from(LARGEST) } else { magnitude };
    if value.is_nan() { 0x7F } else { (magnitude | (bits >> 24 & 0x80)) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of a value, in f64 and without the code above.
    fn defined(code: u8, mantissa: i32, bias: i32) -> f64 {
        let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
        let exponent = i32::from((code & 0x7F) >> mantissa);
        let fraction = f64::from(code & ((1 << mantissa) - 1)) / 2f64.powi(mantissa);
        match exponent {
            0 => sign * fraction * 2f64.powi(1 - bias),
            _ => sign * (1.0 + fraction) * 2f64.powi(exponent - bias),
        }
    }

    /// The nearest of the finite values by search, the one with an even code of two that are equally near.
    fn nearest(value: f64, finite: &[(u8, f64)]) -> u8 {
        let size = value.abs().min(finite[finite.len() - 1].1);
        let best = finite.iter().min_by(|a, b| {
            let far = |x: &(u8, f64)| (x.1 - size).abs();
            far(a).total_cmp(&far(b)).then((a.0 & 1).cmp(&(b.0 & 1)))
        });
        best.unwrap().0 | if value.is_sign_negative() { 0x80 } else { 0 }
    }

    fn check(
        largest: u8,
        (mantissa, bias): (i32, i32),
        to_f32: impl Fn(u8) -> f32,
        from_f32: impl Fn(f32) -> u8,
    ) {
        for code in 0..=255u8 {
            let value = to_f32(code);
            if code & 0x7F <= largest {
                assert_eq!(f64::from(value), defined(code, mantissa, bias), "{code:#x}");
                assert_eq!(from_f32(value), code, "{value}");
            } else if value.is_nan() {
                assert_eq!((value.to_bits(), from_f32(value)), (0x7FFF_FFFF, 0x7F), "{code:#x}");
            } else {
                assert_eq!(value, if code < 128 { f32::INFINITY } else { f32::NEG_INFINITY });
                assert_eq!(from_f32(value), largest | (code & 0x80), "infinities become the largest value");
            }
        }
        let finite: Vec<(u8, f64)> =
            (0..=largest).map(|code| (code, defined(code, mantissa, bias))).collect();
        let near = |bits: u32| [bits.wrapping_sub(1), bits, bits + 1];
        let values = finite.iter().map(|&(_, value)| value as f32);
        let ties = finite.windows(2).map(|pair| ((pair[0].1 + pair[1].1) / 2.0) as f32);
        let beyond = [464.0, 480.0, 61440.0, 65536.0, 1e30, f32::MIN_POSITIVE, 1e-40];
        let random = (0..200_000u64).map(|i| f32::from_bits(crate::data::mix(i) as u32));
        let exact = values.chain(ties).chain(beyond).flat_map(|v| near(v.to_bits())).map(f32::from_bits);
        for value in exact.chain(random).filter(|v| v.is_finite()).flat_map(|v| [v, -v]) {
            assert_eq!(from_f32(value), nearest(value.into(), &finite), "{value:e}");
        }
        assert_eq!(from_f32(-f32::NAN), 0x7F);
    }

    #[test]
    fn every_code_and_every_rounding_is_right() {
        check(0x7E, (3, 7), |c| E4m3(c).to_f32(), |v| E4m3::from_f32(v).0);
        check(0x7B, (2, 15), |c| E5m2(c).to_f32(), |v| E5m2::from_f32(v).0);
    }

    #[test]
    fn e5m2_is_the_upper_byte_of_an_f16() {
        for code in 0..=255u8 {
            let half = half::f16::from_bits(u16::from(code) << 8).to_f32();
            assert!(
                half == E5m2(code).to_f32() || half.is_nan() && E5m2(code).to_f32().is_nan(),
                "{code:#x}"
            );
        }
    }
}
