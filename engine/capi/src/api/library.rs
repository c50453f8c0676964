//! Functions that need no communicator.

use std::ffi::{CStr, c_char, c_int, c_void};

use ringlab_engine::comm::UniqueId;

use super::{check, export, put};
use crate::abi::{
    NCCL_VERSION_CODE, NcclComm, NcclResult, NcclSimInfo, NcclUniqueId, SIM_INFO_MAGIC, SUCCESS,
};
use crate::comms::Comm;
use crate::fault::{self, Fault};
use crate::{cuda, group};

export! {
    /// Stores the version code of the interface in `*version`.
    fn ncclGetVersion, pncclGetVersion(version: *mut c_int) {
        // SAFETY: the caller's promise.
        unsafe { put("version", version, NCCL_VERSION_CODE) }?;
        Ok(SUCCESS)
    }
}

export! {
    /// Makes an id and starts its root in this process ([`UniqueId::create`]).
    fn ncclGetUniqueId, pncclGetUniqueId(unique_id: *mut NcclUniqueId) {
        check("unique_id", unique_id)?;
        let id = UniqueId::create(None)?.to_bytes();
        // SAFETY: the caller's promise.
        unsafe { put("unique_id", unique_id, NcclUniqueId { internal: id.map(|byte| byte as c_char) }) }?;
        Ok(SUCCESS)
    }
}

export! {
    /// Device memory that operations can use without a copy.
    fn ncclMemAlloc, pncclMemAlloc(ptr: *mut *mut c_void, size: usize) {
        check("ptr", ptr)?;
        let memory = cuda::allocate(size)?;
        // SAFETY: the caller's promise.
        unsafe { put("ptr", ptr, memory) }?;
        Ok(SUCCESS)
    }
}

export! {
    /// Gives memory of [`ncclMemAlloc`] back; null is nothing.
    fn ncclMemFree, pncclMemFree(ptr: *mut c_void) {
        cuda::free(ptr)?;
        Ok(SUCCESS)
    }
}

export! {
    /// Begins a group, or one within it.
    fn ncclGroupStart, pncclGroupStart() {
        group::start();
        Ok(SUCCESS)
    }
}

export! {
    /// Ends a group; the outermost is carried out.
    fn ncclGroupEnd, pncclGroupEnd() {
        group::end()
    }
}

export! {
    /// Ends a group without carrying it out, and stores the microseconds that its collectives would take by the tuner's profile in
    /// `estimatedTime`. Where the profile has no figures, and for sends and receives, that is an error.
    fn ncclGroupSimulateEnd, pncclGroupSimulateEnd(sim_info: *mut NcclSimInfo) {
        let time = group::simulate();
        check("simInfo", sim_info)?;
        // SAFETY: not null; the caller promises a structure of this kind, which begins with its size and mark.
        let (size, magic) = unsafe { ((&raw const (*sim_info).size).read_unaligned(), (&raw const (*sim_info).magic).read_unaligned()) };
        if magic != SIM_INFO_MAGIC || size < std::mem::offset_of!(NcclSimInfo, estimated_time) + size_of::<f32>() {
            return Err(Fault::argument(
                "ncclSimInfo_t was not initialised with NCCL_SIM_INFO_INITIALIZER; the group was dropped",
            ));
        }
        if let Some(time) = time? {
            // SAFETY: as above; the structure is long enough for it.
            unsafe { (&raw mut (*sim_info).estimated_time).write_unaligned(time as f32) };
        }
        Ok(SUCCESS)
    }
}

/// What a result means. The string is static and never null.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(result: NcclResult) -> *const c_char {
    let text: &CStr = match result {
        0 => c"no error",
        1 => c"a CUDA call failed; ncclGetLastError says which",
        2 => c"a call to the operating system failed; ncclGetLastError says which",
        3 => c"internal error of the library; ncclGetLastError says which",
        4 => c"invalid argument; ncclGetLastError says which",
        5 => c"invalid use of the interface; ncclGetLastError says which",
        6 => c"another process failed, or the connection to it was lost; ncclGetLastError says which",
        7 => c"the operation is still in progress",
        _ => c"unknown result code",
    };
    text.as_ptr()
}

/// [`ncclGetErrorString`] under its other name.
#[unsafe(no_mangle)]
pub extern "C" fn pncclGetErrorString(result: NcclResult) -> *const c_char {
    ncclGetErrorString(result)
}

/// The last error of this communicator, else of the calling thread, else of any thread, or an empty string. Never null; valid until the
/// thread asks again. `comm` may be null or stale.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(comm: NcclComm) -> *const c_char {
    fault::last(Comm::find(comm).ok().map(|comm| comm.last_error()))
}

/// [`ncclGetLastError`] under its other name.
#[unsafe(no_mangle)]
pub extern "C" fn pncclGetLastError(comm: NcclComm) -> *const c_char {
    ncclGetLastError(comm)
}
