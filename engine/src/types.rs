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

/// Element type. Wire names are nccl-tests' (`float`, `half`, `bfloat16`, `int32`, `int64`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    F32,
    F16,
    Bf16,
    I32,
    I64,
}

impl DType {
    pub const ALL: [DType; 5] = [DType::F32, DType::F16, DType::Bf16, DType::I32, DType::I64];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::F16 | DType::Bf16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::I64 => 8,
        }
    }

    /// nccl-tests' name of the type, as `-d` takes it and the table prints it.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "float",
            DType::F16 => "half",
            DType::Bf16 => "bfloat16",
            DType::I32 => "int32",
            DType::I64 => "int64",
        }
    }
}

/// Reduction. `Avg` is the sum divided by the number of ranks once, after the last addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedOp {
    Sum,
    Prod,
    Min,
    Max,
    Avg,
}

impl RedOp {
    pub const ALL: [RedOp; 5] = [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max, RedOp::Avg];

    pub const fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
            RedOp::Prod => "prod",
            RedOp::Min => "min",
            RedOp::Max => "max",
            RedOp::Avg => "avg",
        }
    }
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
            "float" | "f32" | "float32" => DType::F32,
            "half" | "f16" | "float16" => DType::F16,
            "bfloat16" | "bf16" => DType::Bf16,
            "int32" | "i32" | "int" => DType::I32,
            "int64" | "i64" => DType::I64,
            _ => {
                return Err(UnknownName {
                    what: "data type",
                    got: s.into(),
                    known: "float, half, bfloat16, int32, int64",
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
            known: "sum, prod, min, max, avg",
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
