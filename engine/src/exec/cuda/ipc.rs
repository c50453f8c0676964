//! Device memory of other processes. Like [`super::driver`], this module owns what the driver hands out.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;

use super::driver::{Address, Device, Memory, failed};
use crate::exec::ExecError;

/// Names an allocation to other processes of this machine; means nothing elsewhere.
pub type Handle = [u8; 64];

/// A handle of a whole allocation. The driver cuts small allocations out of larger pieces and shares the piece, so only memory of at
/// least [`OWN_PIECE`] bytes is shared alone.
///
/// # Errors
/// When the driver does not share memory here (as in containers without it).
pub fn export(memory: &Memory) -> Result<Handle, ExecError> {
    memory.device().bind()?;
    export_at(memory.address().0)
}

/// As [`export`], of the allocation that starts there. Its device has to be current.
pub fn export_at(start: u64) -> Result<Handle, ExecError> {
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: `handle` is live; the driver refuses an address that is none of its allocations.
    unsafe { sys::cuIpcGetMemHandle(&mut handle, start) }
        .result()
        .map_err(failed("sharing device memory with other processes (CUDA IPC)"))?;
    Ok(handle.reserved.map(|byte| byte as u8))
}

/// An allocation of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    pub start: u64,
    pub bytes: u64,
    /// Different for every allocation of the process, whatever its address.
    pub id: u64,
}

/// The allocation that an address lies in. Its device has to be current.
///
/// # Errors
/// When it lies in none.
pub fn allocation(address: u64) -> Result<Allocation, ExecError> {
    let (mut start, mut bytes, mut id) = (0, 0, 0u64);
    // SAFETY: both results are live; the driver refuses what it has not allocated.
    unsafe { sys::cuMemGetAddressRange_v2(&mut start, &mut bytes, address) }
        .result()
        .map_err(failed(format!("finding the allocation of {address:#x}")))?;
    let which = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID;
    // SAFETY: the attribute is a number of 64 bits, and `id` is live.
    unsafe { sys::cuPointerGetAttribute((&raw mut id).cast(), which, address) }
        .result()
        .map_err(failed(format!("asking for the allocation of {address:#x}")))?;
    Ok(Allocation { start, bytes: bytes as u64, id })
}

/// Bytes from which the driver gives an allocation a piece of its own.
pub const OWN_PIECE: u64 = 2 << 20;

/// Another process's allocation, mapped here.
#[derive(Debug)]
pub struct Opened {
    device: Arc<Device>,
    address: Address,
}

/// By device and handle.
type AllOpened = HashMap<(u32, Handle), Weak<Opened>>;

/// Mapping one handle twice in one process fails, and ranks of one process have the same peers.
static OPENED: Mutex<Option<AllOpened>> = Mutex::new(None);

impl Opened {
    /// # Errors
    /// When the owner has gone or its memory cannot be mapped.
    pub fn open(device: &Arc<Device>, handle: &Handle) -> Result<Arc<Opened>, ExecError> {
        let mut all = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        all.retain(|_, opened| opened.strong_count() > 0);
        let key = (device.ordinal.number, *handle);
        if let Some(opened) = all.get(&key).and_then(Weak::upgrade) {
            return Ok(opened);
        }
        device.bind()?;
        let raw = sys::CUipcMemHandle { reserved: handle.map(|byte| byte as c_char) };
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        // SAFETY: `address` is live; a handle that names nothing is refused by the driver.
        unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, raw, flags) }
            .result()
            .map_err(failed("mapping another process's device memory (CUDA IPC)"))?;
        let opened = Arc::new(Opened { device: device.clone(), address: Address(address) });
        all.insert(key, Arc::downgrade(&opened));
        Ok(opened)
    }

    pub fn address(&self) -> Address {
        self.address
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: mapped in `open`, unmapped only here. A failure leaves nothing to be done.
            let _ = unsafe { sys::cuIpcCloseMemHandle(self.address.0) };
        }
    }
}
