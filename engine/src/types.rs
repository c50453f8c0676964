//! Units and names shared by every module, so that no bare integer means two things in one signature.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use crate::collective::{Alias, Collective};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into a `Vec`.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

index!(
    /// A participant of a communicator, `0..ranks`.
    Rank
);
index!(
    /// One of the independent lanes a collective is split over; a CUDA block or a CPU thread per rank and channel.
    ChannelId
);

/// Element type: NCCL's, with fp8 as NCCL has it from 2.24 on. In JSON the variant in lower case (`f32`, `f8e4m3`).
///
/// Arithmetic, the same on every back end:
/// - integers wrap around;
/// - `f16`, `bf16` and fp8 compute in f32 and round to nearest even, f32 and f64 in themselves;
/// - fp8 is OCP's E4M3 (no infinities) and E5M2. A result too large for it becomes the largest finite value, as the conversions of
///   NVIDIA's GPUs do; an infinity among E5M2's inputs stays one until the first operation on it;
/// - subnormal numbers are kept, as operands and as results;
/// - what is only moved keeps all its bits, also those of signalling NaNs, and so does the reduction of one rank, but for its average
///   and its factor.
///
/// Back ends differ in one thing: which NaN a sum, product, average or pre-multiplied sum gives. A GPU's has all bits below the sign set
/// (in double it may keep an operand's), a CPU's keeps bits of an operand or is the processor's own. That it is a NaN is the same
/// everywhere, and in fp8 it is 0x7F. Minimum and maximum have one NaN, see [`RedOp`]. `tests/special_values` holds both back ends to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    Bf16,
    F8E4m3,
    F8E5m2,
}

impl DType {
    /// In nccl-tests' order.
    pub const ALL: [DType; 12] = [
        DType::I8,
        DType::U8,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::Bf16,
        DType::F8E4m3,
        DType::F8E5m2,
    ];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 | DType::F8E4m3 | DType::F8E5m2 => 1,
            DType::F16 | DType::Bf16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
        }
    }

    /// nccl-tests' name of the type, as `-d` takes it and the table prints it.
    pub const fn name(self) -> &'static str {
        match self {
            DType::I8 => "int8",
            DType::U8 => "uint8",
            DType::I32 => "int32",
            DType::U32 => "uint32",
            DType::I64 => "int64",
            DType::U64 => "uint64",
            DType::F16 => "half",
            DType::F32 => "float",
            DType::F64 => "double",
            DType::Bf16 => "bfloat16",
            DType::F8E4m3 => "f8e4m3",
            DType::F8E5m2 => "f8e5m2",
        }
    }

    pub const fn is_integer(self) -> bool {
        self.is_unsigned() || matches!(self, DType::I8 | DType::I32 | DType::I64)
    }

    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U32 | DType::U64)
    }
}

/// Reduction.
///
/// `Min` and `Max` of a number and a NaN are the number, of two NaNs the NaN whose bits below the sign are all ones; -0 is below +0.
/// That is what `fminf`, `__hmin` and their kin do, which NCCL's device code calls (src/device/reduce_kernel.h, `FuncMinMax`).
///
/// `Avg` is the sum divided by the number of ranks once, after the last addition; integers truncate towards zero, also the signed.
/// NCCL does that for integers (`FuncSumPostDiv`) but multiplies every float input by 1/n, rounded to the type, before it adds
/// (`hostToDevRedOp` in src/enqueue.cc): two more roundings, the first of them the same for all elements (1/3 in bfloat16 is off by 0.2 %). Dividing
/// the sum has one, and for powers of two both agree where nothing overflows. The price is range: a sum may overflow whose average
/// would not.
///
/// `PreMulSum` multiplies each rank's input by the rank's factor, rounded to the type, before it is added to anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedOp {
    Sum,
    Prod,
    Min,
    Max,
    Avg,
    #[serde(rename = "mulsum")]
    PreMulSum,
}

impl RedOp {
    pub const ALL: [RedOp; 6] =
        [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max, RedOp::Avg, RedOp::PreMulSum];

    /// nccl-tests' name of the reduction.
    pub const fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
            RedOp::Prod => "prod",
            RedOp::Min => "min",
            RedOp::Max => "max",
            RedOp::Avg => "avg",
            RedOp::PreMulSum => "mulsum",
        }
    }
}

/// What [`RedOp::PreMulSum`] multiplies each rank's input by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Factors {
    /// nccl-tests': 1 for even ranks, 2 for odd ones. The inputs of `data` are made for it.
    #[default]
    Parity,
    /// By rank: the bits of a value of the element type, in the low bytes.
    Bits(Vec<u64>),
}

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{got}`; known: {known}")]
pub struct UnknownName {
    pub what: &'static str,
    pub got: String,
    pub known: &'static str,
}

impl FromStr for DType {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        Ok(match s {
            "int8" | "i8" => DType::I8,
            "uint8" | "u8" => DType::U8,
            "int32" | "i32" | "int" => DType::I32,
            "uint32" | "u32" => DType::U32,
            "int64" | "i64" => DType::I64,
            "uint64" | "u64" => DType::U64,
            "half" | "f16" | "float16" => DType::F16,
            "float" | "f32" | "float32" => DType::F32,
            "double" | "f64" | "float64" => DType::F64,
            "bfloat16" | "bf16" => DType::Bf16,
            "f8e4m3" => DType::F8E4m3,
            "f8e5m2" => DType::F8E5m2,
            _ => {
                return Err(UnknownName {
                    what: "data type",
                    got: s.into(),
                    known: "int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2",
                });
            }
        })
    }
}

impl FromStr for RedOp {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        RedOp::ALL.into_iter().find(|op| op.name() == s).ok_or_else(|| UnknownName {
            what: "reduction",
            got: s.into(),
            known: "sum, prod, min, max, avg, mulsum",
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for RedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a plan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    Cpu,
    Cuda,
}

impl Backend {
    pub const ALL: [Backend; 2] = [Backend::Cpu, Backend::Cuda];

    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "cpu",
            Backend::Cuda => "cuda",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = UnknownName;
    fn from_str(s: &str) -> Result<Self, UnknownName> {
        Backend::ALL.into_iter().find(|b| b.name() == s).ok_or_else(|| UnknownName {
            what: "backend",
            got: s.into(),
            known: "cpu, cuda",
        })
    }
}
