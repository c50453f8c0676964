//! The few driver calls that are not the engine's: which device the calling thread has chosen, memory for a program, and joining the
//! streams of a group. The only module besides [`crate::api`] and [`crate::group`] with `unsafe`.

use std::ffi::c_void;
use std::sync::OnceLock;

use cudarc::driver::{DriverError, result, sys};

use crate::abi::CudaStream;
use crate::fault::Fault;

fn failed(what: &str) -> impl FnOnce(DriverError) -> Fault {
    move |error| {
        let says = error.error_string().map(|s| s.to_string_lossy().into_owned());
        let says = says.unwrap_or_else(|_| format!("{:?}", error.0));
        Fault::cuda(format!("{what}: {says}"))
    }
}

/// # Errors
/// Without a driver or a device.
pub fn start() -> Result<(), Fault> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: opens the library by name and closes it again. cudarc's bindings would panic without it.
    if !*PRESENT.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Err(Fault::cuda(
            "there is no CUDA driver here (libcuda cannot be opened); install NVIDIA's driver",
        ));
    }
    result::init().map_err(failed("starting the CUDA driver"))
}

fn device(ordinal: u32) -> Result<sys::CUdevice, Fault> {
    let number =
        i32::try_from(ordinal).map_err(|_| Fault::argument(format!("there is no device {ordinal}")))?;
    result::device::get(number).map_err(failed("finding a device"))
}

pub fn device_count() -> Result<u32, Fault> {
    start()?;
    let count = result::device::get_count().map_err(failed("counting devices"))?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// The device of the calling thread's current context, as `cudaGetDevice`; 0 when it has chosen none.
pub fn current_device() -> Result<u32, Fault> {
    start()?;
    let mut found = 0;
    // SAFETY: `found` is live.
    match unsafe { sys::cuCtxGetDevice(&mut found) } {
        sys::CUresult::CUDA_ERROR_INVALID_CONTEXT => Ok(0),
        other => {
            other.result().map_err(failed("asking for the current device"))?;
            Ok(u32::try_from(found).unwrap_or(0))
        }
    }
}

/// Makes sure that the calling thread has a device, as the runtime does at its first call.
fn ensure_context() -> Result<(), Fault> {
    start()?;
    let current = result::ctx::get_current().map_err(failed("asking for the current context"))?;
    if current.is_none() {
        let context = primary(0)?;
        // SAFETY: a primary context, retained for good.
        unsafe { result::ctx::set_current(context) }.map_err(failed("choosing device 0"))?;
    }
    Ok(())
}

/// The primary context of a device, which is never given back: programs use it until they end.
fn primary(ordinal: u32) -> Result<sys::CUcontext, Fault> {
    // SAFETY: the device came from the driver.
    unsafe { result::primary_ctx::retain(device(ordinal)?) }.map_err(failed("opening a device"))
}

/// Bytes of which the driver gives an allocation whole pieces, which it shares alone.
const PIECE: usize = 2 << 20;

/// Device memory on the current device; ordinary memory, in pieces of its own that other processes can map through CUDA IPC.
pub fn allocate(bytes: usize) -> Result<*mut c_void, Fault> {
    ensure_context()?;
    if bytes == 0 {
        return Err(Fault::argument("0 bytes of memory were asked for"));
    }
    // SAFETY: the memory is handed to the program, which gives it back through `free`.
    let address = unsafe { result::malloc_sync(bytes.max(PIECE)) }
        .map_err(failed(&format!("allocating {bytes} bytes")))?;
    Ok(std::ptr::without_provenance_mut(address as usize))
}

pub fn free(address: *mut c_void) -> Result<(), Fault> {
    if address.is_null() {
        return Ok(());
    }
    ensure_context()?;
    // SAFETY: the driver refuses what it has not allocated.
    unsafe { result::free_sync(address.addr() as sys::CUdeviceptr) }
        .map_err(failed("freeing memory of ncclMemAlloc"))
}

/// Several streams behaving as one: what is queued on the first after [`Joined::begin`] comes after what all had queued, and what the
/// others queue after [`Joined::end`] comes after that.
pub struct Joined {
    context: sys::CUcontext,
    event: sys::CUevent,
    first: sys::CUstream,
    others: Vec<sys::CUstream>,
}

impl Joined {
    pub fn begin(device: u32, first: CudaStream, others: &[CudaStream]) -> Result<Joined, Fault> {
        let context = primary(device)?;
        let _current = Current::push(context)?;
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let event = result::event::create(flags).map_err(failed("making an event"))?;
        let others = others.iter().map(|stream| stream.cast()).collect();
        let joined = Joined { context, event, first: first.cast(), others };
        for other in &joined.others {
            joined.order(*other, joined.first)?;
        }
        Ok(joined)
    }

    pub fn end(self) -> Result<(), Fault> {
        let _current = Current::push(self.context)?;
        self.others.iter().try_for_each(|other| self.order(self.first, *other))
    }

    /// What `later` queues from now on waits for what `earlier` has queued. The event can be used again at once: a wait refers to the
    /// record before it.
    fn order(&self, earlier: sys::CUstream, later: sys::CUstream) -> Result<(), Fault> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event lives as long as `self`; the streams are the caller's, who keeps them alive during the call.
        unsafe {
            result::event::record(self.event, earlier).map_err(failed("recording an event"))?;
            result::stream::wait_event(later, self.event, flags).map_err(failed("joining streams"))
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // SAFETY: made in `begin` and destroyed only here; the driver keeps it until what waits for it has passed.
        let _ = unsafe { result::event::destroy(self.event) };
    }
}

/// Another context for a moment.
struct Current;

impl Current {
    fn push(context: sys::CUcontext) -> Result<Current, Fault> {
        // SAFETY: a retained primary context.
        unsafe { sys::cuCtxPushCurrent_v2(context) }
            .result()
            .map_err(failed("changing the current device"))?;
        Ok(Current)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut context = std::ptr::null_mut();
        // SAFETY: `context` is live; what is popped was pushed by this thread, for `Current` stays on its stack.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut context) };
    }
}
