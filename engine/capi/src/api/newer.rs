//! Functions of newer versions that programs built against newer headers link, so that those programs load: PyTorch 2.11 and nccl-tests
//! 2.19 do. What is not offered says so when it is called.

use std::ffi::{c_int, c_void};

use super::export;
use crate::abi::{NcclComm, NcclConfig};
use crate::comms::Comm;
use crate::fault::Fault;

export! {
    /// Not offered (since 2.27).
    fn ncclCommShrink, pncclCommShrink(
        comm: NcclComm, _exclude_list: *mut c_int, _exclude_count: c_int, _newcomm: *mut NcclComm,
        _config: *mut NcclConfig, _shrink_flags: c_int,
    ) {
        Comm::find(comm)?;
        Err(Fault::unsupported("ncclCommShrink", "make a new communicator with the ranks that are left"))
    }
}

export! {
    /// Not offered (since 2.28).
    fn ncclDevCommCreate, pncclDevCommCreate(comm: NcclComm, _reqs: *const c_void, _out_dev_comm: *mut c_void) {
        Comm::find(comm)?;
        Err(Fault::unsupported("ncclDevCommCreate", "the device-side interface does not exist here; use host calls"))
    }
}

export! {
    /// Not offered (since 2.28).
    fn ncclDevCommDestroy, pncclDevCommDestroy(comm: NcclComm, _dev_comm: *const c_void) {
        Comm::find(comm)?;
        Err(Fault::unsupported("ncclDevCommDestroy", "there are no device communicators"))
    }
}

export! {
    /// Not offered (since 2.29).
    fn ncclCommQueryProperties, pncclCommQueryProperties(comm: NcclComm, _props: *mut c_void) {
        Comm::find(comm)?;
        Err(Fault::unsupported("ncclCommQueryProperties", "ask ncclCommCount, ncclCommUserRank and ncclCommCuDevice"))
    }
}
