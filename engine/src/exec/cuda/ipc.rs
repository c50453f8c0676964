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
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: `handle` is live and the address is that of an allocation.
    unsafe { sys::cuIpcGetMemHandle(&mut handle, memory.address().0) }
        .result()
        .map_err(failed("sharing device memory with other processes (CUDA IPC)"))?;
    Ok(handle.reserved.map(|byte| byte as u8))
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
