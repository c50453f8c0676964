//! The C side's types and numbers, as `nccl.h` of v2.22.3-1 has them, and what they are here.

use std::ffi::{c_char, c_int, c_uint, c_void};

use ringlab_engine::types::DType;

use crate::fault::Fault;

/// `ncclResult_t`: an `int` to callers, so a value outside the known ones is possible and harmless.
pub type NcclResult = c_int;

pub const SUCCESS: NcclResult = 0;
pub const UNHANDLED_CUDA_ERROR: NcclResult = 1;
pub const SYSTEM_ERROR: NcclResult = 2;
pub const INTERNAL_ERROR: NcclResult = 3;
pub const INVALID_ARGUMENT: NcclResult = 4;
pub const INVALID_USAGE: NcclResult = 5;
pub const REMOTE_ERROR: NcclResult = 6;
pub const IN_PROGRESS: NcclResult = 7;

/// `NCCL_VERSION(2, 22, 3)`: the interface this library follows.
pub const NCCL_VERSION_CODE: c_int = 2 * 10_000 + 22 * 100 + 3;

/// `ncclComm_t`: never dereferenced, neither by callers nor here; see [`crate::comms`].
pub type NcclComm = *mut c_void;
/// `cudaStream_t`, which is `CUstream`.
pub type CudaStream = *mut c_void;

/// `ncclUniqueId`, passed by value.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NcclUniqueId {
    pub internal: [c_char; 128],
}

/// `ncclConfig_t` (v21700 layout). Callers built against a newer header pass a longer one; only this much is read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NcclConfig {
    pub size: usize,
    pub magic: c_uint,
    pub version: c_uint,
    pub blocking: c_int,
    pub cga_cluster_size: c_int,
    pub min_ctas: c_int,
    pub max_ctas: c_int,
    pub net_name: *const c_char,
    pub split_share: c_int,
}

/// `ncclSimInfo_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NcclSimInfo {
    pub size: usize,
    pub magic: c_uint,
    pub version: c_uint,
    pub estimated_time: f32,
}

pub const CONFIG_MAGIC: c_uint = 0xcafe_beef;
pub const SIM_INFO_MAGIC: c_uint = 0x7468_5283;
pub const UNDEFINED: c_int = c_int::MIN;
pub const SPLIT_NOCOLOR: c_int = -1;
/// `NCCL_WIN_COLL_SYMMETRIC`.
pub const WINDOW_SYMMETRIC: c_int = 1;
/// Built-in reductions come before this number, made ones from it on.
pub const NUM_OPS: c_int = 5;
pub const SCALAR_DEVICE: c_int = 0;
pub const SCALAR_HOST_IMMEDIATE: c_int = 1;

/// nccl-tests' names of `ncclDataType_t` by number; the last two came with 2.24.
const TYPES: [&str; 12] = [
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3",
    "f8e5m2",
];

/// # Errors
/// Invalid argument for a number that is no type, invalid usage for a type the engine does not move yet.
pub fn dtype(number: c_int) -> Result<DType, Fault> {
    let name = usize::try_from(number).ok().and_then(|at| TYPES.get(at));
    let name = name.ok_or_else(|| {
        Fault::argument(format!(
            "there is no data type {number}; ncclDataType_t goes from 0 to {}",
            TYPES.len() - 1
        ))
    })?;
    name.parse().map_err(|_| {
        let known = DType::ALL.map(DType::name).join(", ");
        Fault::usage(format!(
            "the data type {name} ({number}) is not offered by this library; it has {known}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<NcclUniqueId>(), 128);
        assert_eq!(size_of::<NcclConfig>(), 48);
        assert_eq!(offset_of!(NcclConfig, blocking), 16);
        assert_eq!(offset_of!(NcclConfig, net_name), 32);
        assert_eq!(offset_of!(NcclConfig, split_share), 40);
        assert_eq!(size_of::<NcclSimInfo>(), 24);
    }

    #[test]
    fn types_have_nccls_numbers() {
        assert_eq!(dtype(2).unwrap(), DType::I32);
        assert_eq!(dtype(6).unwrap(), DType::F16);
        assert_eq!(dtype(7).unwrap(), DType::F32);
        assert_eq!(dtype(9).unwrap(), DType::Bf16);
        assert_eq!(dtype(12).unwrap_err().code, INVALID_ARGUMENT);
        assert_eq!(dtype(-1).unwrap_err().code, INVALID_ARGUMENT);
    }
}
