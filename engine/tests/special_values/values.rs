//! Floats by their bits, by definition: no conversion of the engine or of a crate is used.

use ringlab_engine::data::mix;
use ringlab_engine::types::DType;

pub const FLOATS: [DType; 6] =
    [DType::F16, DType::Bf16, DType::F32, DType::F64, DType::F8E4m3, DType::F8E5m2];

/// Bits of exponent and of mantissa.
const fn fields(dtype: DType) -> (u32, u32) {
    match dtype {
        DType::F16 => (5, 10),
        DType::Bf16 => (8, 7),
        DType::F32 => (8, 23),
        DType::F8E4m3 => (4, 3),
        DType::F8E5m2 => (5, 2),
        _ => (11, 52),
    }
}

/// The bit of the sign.
pub fn sign(dtype: DType) -> u64 {
    1 << (8 * dtype.size() - 1)
}

/// What two NaNs leave of a minimum or maximum, and fp8 of any operation: all ones below the sign.
pub fn the_nan(dtype: DType) -> u64 {
    sign(dtype) - 1
}

/// Largest finite value.
fn largest(dtype: DType) -> u64 {
    let (_, mantissa) = fields(dtype);
    match dtype {
        DType::F8E4m3 => 0x7E,
        _ => the_nan(dtype) - (1 << mantissa),
    }
}

/// E4M3 has none.
pub fn infinity(dtype: DType) -> Option<u64> {
    (dtype != DType::F8E4m3).then(|| largest(dtype) + 1)
}

pub fn is_nan(dtype: DType, bits: u64) -> bool {
    (bits & the_nan(dtype)) > infinity(dtype).unwrap_or(largest(dtype))
}

/// The value, exactly.
pub fn value(dtype: DType, bits: u64) -> f64 {
    if dtype == DType::F64 {
        return f64::from_bits(bits);
    }
    let (exponent_bits, mantissa) = fields(dtype);
    let magnitude = bits & the_nan(dtype);
    let exponent = (magnitude >> mantissa) as i32;
    let fraction = (magnitude & ((1 << mantissa) - 1)) as f64;
    let (scale, bias) = (2f64.powi(mantissa as i32), (1 << (exponent_bits - 1)) - 1);
    let size = if is_nan(dtype, bits) {
        f64::NAN
    } else if Some(magnitude) == infinity(dtype) {
        f64::INFINITY
    } else if exponent == 0 {
        fraction / scale * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction / scale) * 2f64.powi(exponent - bias)
    };
    if bits & sign(dtype) == 0 { size } else { -size }
}

/// To the nearest value of a type of 16 or 8 bits, ties to even; NaNs to [`the_nan`]. By search among all values.
pub fn nearest(dtype: DType, x: f64) -> u64 {
    if x.is_nan() {
        return the_nan(dtype);
    }
    let size = x.abs();
    let (mut low, mut high) = (0, largest(dtype));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if value(dtype, middle) <= size { low = middle } else { high = middle - 1 }
    }
    // `low` is the largest value that is not above.
    let next = if low == largest(dtype) { infinity(dtype) } else { Some(low + 1) };
    let rounded = match next {
        // Where the next value would be if there were no end.
        Some(next) if dtype.size() == 2 || low < largest(dtype) => {
            let above = 2.0 * value(dtype, low) - value(dtype, low.saturating_sub(1));
            let above = if low == largest(dtype) { above } else { value(dtype, next) };
            let half = (value(dtype, low) + above) / 2.0;
            if size > half || (size == half && low % 2 == 1) { next } else { low }
        }
        _ => low,
    };
    rounded | if x.is_sign_negative() { sign(dtype) } else { 0 }
}

/// Zeros, ends of ranges, numbers beside them, NaNs quiet and signalling of both signs, infinities, and others; all codes of fp8.
pub fn specials(dtype: DType) -> Vec<u64> {
    if dtype.size() == 1 {
        return (0..256).collect();
    }
    let (_, mantissa) = fields(dtype);
    let (infinity, quiet) = (largest(dtype) + 1, 1 << (mantissa - 1));
    let smallest_normal = 1u64 << mantissa;
    let one = (the_nan(dtype) >> (mantissa + 1)) << mantissa;
    let mut all = vec![
        0,
        1,
        2,
        smallest_normal - 1,
        smallest_normal,
        smallest_normal + 1,
        2 * smallest_normal,
        one - 1,
        one,
        one + 1,
        one | quiet,
        one + (2 << mantissa),
        largest(dtype) - smallest_normal,
        largest(dtype) - 1,
        largest(dtype),
        infinity,
        infinity + 1,
        infinity + 2,
        infinity | quiet,
        infinity | quiet | 1,
        the_nan(dtype),
    ];
    all.extend((0..12).map(|nth| mix(nth) & the_nan(dtype)));
    let negative: Vec<u64> = all.iter().map(|bits| bits | sign(dtype)).collect();
    all.extend(negative);
    all
}
