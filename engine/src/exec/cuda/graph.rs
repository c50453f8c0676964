//! Launches recorded once and run many times: CUDA graphs.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::{Device, Stream, failed};
use crate::exec::ExecError;

/// What was queued on a stream while it was recorded. What that work uses has to live as long as this.
pub struct Graph {
    device: Arc<Device>,
    graph: sys::CUgraph,
    runnable: sys::CUgraphExec,
}

impl Graph {
    /// Records what `queue` puts on the stream; nothing of it runs yet.
    pub fn record(
        stream: &Stream,
        queue: impl FnOnce() -> Result<(), ExecError>,
    ) -> Result<Graph, ExecError> {
        let device = stream.device().clone();
        device.bind()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as the borrow.
        unsafe { result::stream::begin_capture(stream.raw(), mode) }.map_err(failed("recording a graph"))?;
        let queued = queue();
        // SAFETY: as above; a recording that was begun has to be ended, whatever became of it.
        let recorded = unsafe { result::stream::end_capture(stream.raw()) };
        queued?;
        let graph = recorded.map_err(failed("recording a graph"))?;
        // SAFETY: the recording gave a whole graph.
        let runnable = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        match runnable {
            Ok(runnable) => Ok(Graph { device, graph, runnable }),
            Err(error) => {
                // SAFETY: nobody else has the graph. A failure leaves nothing to be done.
                let _ = unsafe { result::graph::destroy(graph) };
                Err(failed("making a graph ready to run")(error))
            }
        }
    }

    /// Queues one run. The stream's device has to be current.
    pub fn queue(&self, stream: &Stream) -> Result<(), ExecError> {
        // SAFETY: both live as long as the borrows.
        unsafe { result::graph::launch(self.runnable, stream.raw()) }.map_err(failed("running a graph"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `record`, destroyed only here. Failures leave nothing to be done.
            unsafe {
                let _ = result::graph::exec_destroy(self.runnable);
                let _ = result::graph::destroy(self.graph);
            }
        }
    }
}
