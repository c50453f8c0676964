//! Owners of the driver's objects. With [`super::mapped`], [`super::kernels`], [`super::ipc`] and [`super::foreign`] the only module with
//! `unsafe`; what it hands out cannot outlive what it points into, and addresses stay inside [`super`].

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytemuck::Pod;
use cudarc::driver::{result, sys};

use super::mapped::Mapped;
use crate::exec::ExecError;

/// Names what was tried when the driver refuses.
pub fn failed(context: impl Into<String>) -> impl FnOnce(result::DriverError) -> ExecError {
    let context = context.into();
    move |error| {
        let text = |s: Result<&std::ffi::CStr, _>| s.map(|s| s.to_string_lossy().into_owned()).ok();
        let name = text(error.error_name()).unwrap_or_else(|| format!("{:?}", error.0));
        let message = match text(error.error_string()) {
            Some(says) => format!("{name} ({says})"),
            None => name,
        };
        ExecError::Device { context, message }
    }
}

/// Loads the driver and starts it; every other call here comes after this one.
///
/// # Errors
/// Refused when there is no driver, or no device behind it.
pub fn start() -> Result<(), ExecError> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: opens the library by name and closes it again. cudarc's bindings panic when it is absent.
    if !*PRESENT.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Err(ExecError::Refused(
            "there is no CUDA driver here (libcuda cannot be opened); install NVIDIA's driver or use the CPU back end".into(),
        ));
    }
    result::init().map_err(|error| {
        let why = failed("starting the CUDA driver")(error);
        ExecError::Refused(format!("the CUDA driver does not start: {why}; use the CPU back end"))
    })
}

/// CUDA version the driver supports, as (major, minor).
pub fn cuda_version() -> Result<(i32, i32), ExecError> {
    let mut version = 0;
    // SAFETY: `version` is live.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(failed("asking for the driver's version"))?;
    Ok((version / 1000, version % 1000 / 10))
}

pub fn device_count() -> Result<u32, ExecError> {
    let count = result::device::get_count().map_err(failed("counting devices"))?;
    Ok(count as u32)
}

/// A device by its number, without a context.
#[derive(Debug, Clone, Copy)]
pub struct Ordinal {
    raw: sys::CUdevice,
    pub number: u32,
}

impl Ordinal {
    pub fn get(number: u32) -> Result<Ordinal, ExecError> {
        let raw = result::device::get(number as i32).map_err(failed(format!("opening device {number}")))?;
        Ok(Ordinal { raw, number })
    }

    pub fn name(self) -> Result<String, ExecError> {
        result::device::get_name(self.raw).map_err(failed("asking for a device's name"))
    }

    pub fn memory(self) -> Result<u64, ExecError> {
        // SAFETY: `raw` came from the driver.
        let bytes = unsafe { result::device::total_mem(self.raw) };
        Ok(bytes.map_err(failed("asking for a device's memory"))? as u64)
    }

    pub fn attribute(self, which: sys::CUdevice_attribute) -> Result<i32, ExecError> {
        // SAFETY: `raw` came from the driver.
        unsafe { result::device::get_attribute(self.raw, which) }
            .map_err(failed(format!("asking device {} for {which:?}", self.number)))
    }

    /// The same on every machine and in every process that sees the device.
    pub fn uuid(self) -> Result<[u8; 16], ExecError> {
        let uuid = result::device::get_uuid(self.raw).map_err(failed("asking for a device's identity"))?;
        Ok(uuid.bytes.map(|byte| byte as u8))
    }

    pub fn can_reach(self, peer: Ordinal) -> Result<bool, ExecError> {
        let mut can = 0;
        // SAFETY: `can` is live and both devices came from the driver.
        unsafe { sys::cuDeviceCanAccessPeer(&mut can, self.raw, peer.raw) }
            .result()
            .map_err(failed("asking whether one device can reach another"))?;
        Ok(can != 0)
    }
}

/// A device's primary context, held while anything on it lives.
#[derive(Debug)]
pub struct Device {
    pub ordinal: Ordinal,
    context: sys::CUcontext,
}

// SAFETY: the driver's contexts may be used from any thread; every use binds it to the calling thread first.
unsafe impl Send for Device {}
// SAFETY: as above; the driver locks what it shares.
unsafe impl Sync for Device {}

impl Device {
    /// Opens a device once for the life of the process: making a context takes a fifth of a second.
    pub fn open(number: u32) -> Result<Arc<Device>, ExecError> {
        static OPENED: Mutex<BTreeMap<u32, Arc<Device>>> = Mutex::new(BTreeMap::new());
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = opened.get(&number) {
            return Ok(device.clone());
        }
        let device = Device::retain(number)?;
        opened.insert(number, device.clone());
        Ok(device)
    }

    fn retain(number: u32) -> Result<Arc<Device>, ExecError> {
        let ordinal = Ordinal::get(number)?;
        // SAFETY: `raw` came from the driver; released in `drop`, if ever.
        let context = unsafe { result::primary_ctx::retain(ordinal.raw) }
            .map_err(failed(format!("opening device {number}")))?;
        Ok(Arc::new(Device { ordinal, context }))
    }

    /// Makes this the device of the calling thread.
    pub fn bind(&self) -> Result<(), ExecError> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("changing the current device"))
    }

    /// Waits for everything queued on the device by this process. Bounded, since every kernel of ours ends by its deadline.
    pub fn finish(&self) -> Result<(), ExecError> {
        self.bind()?;
        result::ctx::synchronize().map_err(failed("waiting for a device"))
    }

    /// Free and total bytes.
    pub fn memory(&self) -> Result<(u64, u64), ExecError> {
        self.bind()?;
        let (free, total) = result::mem_get_info().map_err(failed("asking for free memory"))?;
        Ok((free as u64, total as u64))
    }

    /// Lets kernels on this device use the peer's memory.
    pub fn reach(&self, peer: &Device) -> Result<(), ExecError> {
        self.bind()?;
        // SAFETY: both contexts are retained.
        let reached = unsafe { sys::cuCtxEnablePeerAccess(peer.context, 0) };
        match reached {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            other => other.result().map_err(failed(format!(
                "opening device {}'s memory to device {}",
                peer.ordinal.number, self.ordinal.number
            ))),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once in `retain`. A failure leaves nothing to be done.
        let _ = unsafe { result::primary_ctx::release(self.ordinal.raw) };
    }
}

/// An address on a device. Only arithmetic is done with it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Address(pub u64);

impl Address {
    pub const NULL: Address = Address(0);

    pub fn plus(self, bytes: u64) -> Address {
        Address(self.0 + bytes)
    }
}

/// Device memory.
#[derive(Debug)]
pub struct Memory {
    device: Arc<Device>,
    address: Address,
    bytes: u64,
}

impl Memory {
    /// `bytes` of zeros; at least one byte is taken.
    pub fn zeroed(device: &Arc<Device>, bytes: u64) -> Result<Memory, ExecError> {
        device.bind()?;
        // SAFETY: the context is current; what is allocated is set below before anyone reads it.
        let raw = unsafe { result::malloc_sync(bytes.max(1) as usize) }
            .map_err(failed(format!("allocating {bytes} bytes on device {}", device.ordinal.number)))?;
        let memory = Memory { device: device.clone(), address: Address(raw), bytes };
        memory.clear()?;
        Ok(memory)
    }

    pub fn holding<T: Pod>(device: &Arc<Device>, values: &[T]) -> Result<Memory, ExecError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let memory = Memory::zeroed(device, bytes.len() as u64)?;
        memory.write(0, bytes)?;
        Ok(memory)
    }

    pub fn address(&self) -> Address {
        self.address
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn part(&self, offset: u64, bytes: u64) -> u64 {
        let end = offset.checked_add(bytes).expect("a part of memory ends inside the address space");
        assert!(end <= self.bytes, "{offset}..{end} of {} bytes", self.bytes);
        self.address.0 + offset
    }

    /// Sets `bytes` bytes from `offset`; complete when it returns.
    pub fn set(&self, offset: u64, bytes: u64, value: u8) -> Result<(), ExecError> {
        if bytes == 0 {
            return Ok(());
        }
        let at = self.part(offset, bytes);
        self.device.bind()?;
        // SAFETY: `part` checked the range; null is the default stream. Waiting for all streams would be refused, and spoil the recording,
        // while another thread records a graph.
        unsafe {
            result::memset_d8_sync(at, value, bytes as usize)
                .and_then(|()| result::stream::synchronize(std::ptr::null_mut()))
        }
        .map_err(failed("setting device memory"))
    }

    pub fn clear(&self) -> Result<(), ExecError> {
        self.set(0, self.bytes, 0)
    }

    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), ExecError> {
        if from.is_empty() {
            return Ok(());
        }
        let at = self.part(offset, from.len() as u64);
        self.device.bind()?;
        // SAFETY: `part` checked the range.
        unsafe { result::memcpy_htod_sync(at, from) }.map_err(failed("copying to a device"))
    }

    /// Queues a copy of the first `bytes` bytes of host memory to `offset`. Both have to stay as they are until the stream has finished.
    pub fn copy_from(
        &self,
        stream: &Stream,
        offset: u64,
        from: &Mapped<u8>,
        bytes: usize,
    ) -> Result<(), ExecError> {
        assert!(bytes <= from.count, "{bytes} of {}", from.count);
        let at = self.part(offset, bytes as u64);
        self.device.bind()?;
        // SAFETY: both ranges were checked; the caller keeps them until the stream has finished.
        unsafe { sys::cuMemcpyHtoDAsync_v2(at, from.host.cast(), bytes, stream.raw) }
            .result()
            .map_err(failed("copying to a device"))
    }

    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), ExecError> {
        if to.is_empty() {
            return Ok(());
        }
        let at = self.part(offset, to.len() as u64);
        self.device.bind()?;
        // SAFETY: `part` checked the range.
        unsafe { result::memcpy_dtoh_sync(to, at) }.map_err(failed("copying from a device"))
    }

    /// The first `count` values.
    pub fn values<T: Pod>(&self, count: usize) -> Result<Vec<T>, ExecError> {
        let mut values = vec![T::zeroed(); count];
        self.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: allocated in `zeroed`, freed only here. A failure leaves nothing to be done.
            let _ = unsafe { result::free_sync(self.address.0) };
        }
    }
}

/// A queue of one device.
#[derive(Debug)]
pub struct Stream {
    device: Arc<Device>,
    raw: sys::CUstream,
    /// Marks the end of what was queued, for [`Stream::wait_for`].
    event: sys::CUevent,
}

// SAFETY: the driver's streams and events may be used from any thread.
unsafe impl Send for Stream {}

impl Stream {
    pub fn new(device: &Arc<Device>) -> Result<Stream, ExecError> {
        device.bind()?;
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(failed("making a stream"))?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let event = event.map_err(failed("making an event"))?;
        Ok(Stream { device: device.clone(), raw, event })
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Remembers the end of what is queued now.
    pub fn mark(&self) -> Result<(), ExecError> {
        self.device.bind()?;
        // SAFETY: both live as long as `self`.
        unsafe { result::event::record(self.event, self.raw) }.map_err(failed("recording an event"))
    }

    /// What is queued from now on starts after `other`'s last mark.
    pub fn wait_for(&self, other: &Stream) -> Result<(), ExecError> {
        self.device.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the stream lives as long as `self`, the event as long as `other`.
        unsafe { result::stream::wait_event(self.raw, other.event, flags) }
            .map_err(failed("waiting for an event"))
    }

    /// Waits for everything queued. Bounded, since every kernel of ours ends by its deadline.
    pub fn finish(&self) -> Result<(), ExecError> {
        self.device.bind()?;
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.raw) }.map_err(failed("running a kernel"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here. Failures leave nothing to be done.
            unsafe {
                let _ = result::event::destroy(self.event);
                let _ = result::stream::destroy(self.raw);
            }
        }
    }
}

/// Machine code loaded on a device.
#[derive(Debug)]
pub struct Module {
    device: Arc<Device>,
    raw: sys::CUmodule,
}

// SAFETY: the driver's modules may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; nothing of it changes after loading.
unsafe impl Sync for Module {}

impl Module {
    pub fn load(device: &Arc<Device>, cubin: &[u8]) -> Result<Arc<Module>, ExecError> {
        assert!(cubin.starts_with(b"\x7fELF"), "NVRTC and the cache give whole CUBINs");
        device.bind()?;
        // SAFETY: a CUBIN states its own size, and the driver copies what it keeps.
        let raw = unsafe { result::module::load_data(cubin.as_ptr().cast::<c_void>()) }
            .map_err(failed("loading a kernel"))?;
        Ok(Arc::new(Module { device: device.clone(), raw }))
    }

    pub fn function(self: &Arc<Module>, name: &std::ffi::CStr) -> Result<Function, ExecError> {
        self.device.bind()?;
        // SAFETY: the module is loaded as long as `self` lives, and the function keeps it alive.
        let raw = unsafe { result::module::get_function(self.raw, name.to_owned()) }
            .map_err(failed(format!("finding the kernel {name:?}")))?;
        Ok(Function { _module: self.clone(), raw })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: loaded in `load`, unloaded only here. A failure leaves nothing to be done.
            let _ = unsafe { result::module::unload(self.raw) };
        }
    }
}

/// An entry point of a module.
#[derive(Debug)]
pub struct Function {
    _module: Arc<Module>,
    raw: sys::CUfunction,
}

// SAFETY: as `Module`.
unsafe impl Send for Function {}
// SAFETY: as `Module`.
unsafe impl Sync for Function {}

impl Function {
    pub(super) fn raw(&self) -> sys::CUfunction {
        self.raw
    }
}
