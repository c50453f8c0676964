//! Streams that belong to the caller, and what has to be done around calls made on the caller's thread.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::{Device, Stream, failed};
use crate::exec::ExecError;

/// A stream of the caller: its CUDA handle, null for the default stream. The caller keeps it alive while it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignStream(pub *mut c_void);

// SAFETY: a handle that is only passed to the driver, which takes it from any thread.
unsafe impl Send for ForeignStream {}

/// The engine's own are passed on as well.
impl From<&Stream> for ForeignStream {
    fn from(stream: &Stream) -> ForeignStream {
        ForeignStream(stream.raw().cast())
    }
}

impl ForeignStream {
    pub(super) fn raw(self) -> sys::CUstream {
        self.0.cast()
    }

    /// Whether what is queued goes into a graph instead of running.
    pub fn is_capturing(self) -> Result<bool, ExecError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: `status` is live; the stream is the caller's.
        unsafe { sys::cuStreamIsCapturing(self.raw(), &mut status) }
            .result()
            .map_err(failed("asking whether a stream is being captured"))?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// The number of the recording that what is queued goes into, if it goes into one. Different within a process.
    pub fn capture(self) -> Result<Option<u64>, ExecError> {
        if !self.is_capturing()? {
            return Ok(None);
        }
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let mut number = 0;
        let (graph, nodes) = (std::ptr::null_mut(), std::ptr::null_mut());
        let (edges, count) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: `status` and `number` are live, all else may be null; the stream is the caller's.
        unsafe {
            sys::cuStreamGetCaptureInfo_v3(self.raw(), &mut status, &mut number, graph, nodes, edges, count)
        }
        .result()
        .map_err(failed("asking which graph a stream is recorded into"))?;
        Ok(Some(number))
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    device: Arc<Device>,
    raw: sys::CUevent,
}

// SAFETY: the driver's events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver orders calls about one event.
unsafe impl Sync for Event {}

impl Event {
    pub fn new(device: &Arc<Device>) -> Result<Event, ExecError> {
        device.bind()?;
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(failed("making an event"))?;
        Ok(Event { device: device.clone(), raw })
    }

    /// Remembers the end of what the stream has queued.
    pub fn record(&self, stream: ForeignStream) -> Result<(), ExecError> {
        // SAFETY: the event lives as long as `self`; the stream is the caller's.
        unsafe { result::event::record(self.raw, stream.raw()) }.map_err(failed("recording an event"))
    }

    /// What the stream queues from now on starts after the last record.
    pub fn block(&self, stream: ForeignStream) -> Result<(), ExecError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: as in `record`.
        unsafe { result::stream::wait_event(stream.raw(), self.raw, flags) }
            .map_err(failed("waiting for an event"))
    }

    /// Waits for everything before the last record. Bounded, since every kernel of ours ends by its deadline.
    pub fn finish(&self) -> Result<(), ExecError> {
        // SAFETY: the event lives as long as `self`.
        unsafe { sys::cuEventSynchronize(self.raw) }.result().map_err(failed("running a kernel"))
    }

    /// Whether everything before the last record has ended.
    pub fn has_passed(&self) -> Result<bool, ExecError> {
        // SAFETY: the event lives as long as `self`.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => other.result().map(|()| true).map_err(failed("asking for an event")),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here. A failure leaves nothing to be done.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}

/// Makes a device current and lets this thread prepare memory while another stream is being captured; undone when dropped, since the
/// thread is the caller's.
#[derive(Debug)]
pub struct Visit {
    context: sys::CUcontext,
    mode: sys::CUstreamCaptureMode,
}

impl Visit {
    pub fn begin(device: &Device) -> Result<Visit, ExecError> {
        let mut context = std::ptr::null_mut();
        // SAFETY: `context` is live.
        unsafe { sys::cuCtxGetCurrent(&mut context) }
            .result()
            .map_err(failed("asking for the current device"))?;
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: `mode` is live.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }
            .result()
            .map_err(failed("changing the capture mode"))?;
        let visit = Visit { context, mode };
        device.bind()?;
        Ok(visit)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // SAFETY: both values came from the driver in `begin`, on this thread (`Visit` is not `Send`). Failures leave nothing to be done.
        unsafe {
            let _ = sys::cuThreadExchangeStreamCaptureMode(&mut self.mode);
            let _ = sys::cuCtxSetCurrent(self.context);
        }
    }
}
