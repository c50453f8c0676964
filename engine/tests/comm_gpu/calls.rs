//! What a rank's process does with calls of its own: collectives and barriers on its buffers, and the handles they give.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use ringlab_engine::comm::{Communicator, Operation, Work};
use ringlab_engine::exec::cuda::ForeignStream;
use ringlab_engine::types::{Collective, DType, RedOp};

const ELEMENTS: usize = 1000;

const LONG: Duration = Duration::from_secs(60);

/// Buffers and a stream on the rank's device.
struct Own<'a> {
    comm: &'a Communicator,
    stream: Arc<CudaStream>,
    other: Arc<CudaStream>,
    input: CudaSlice<f32>,
    outputs: [CudaSlice<f32>; 2],
}

impl<'a> Own<'a> {
    fn new(comm: &'a Communicator) -> Own<'a> {
        let context = CudaContext::new(comm.device() as usize).unwrap();
        let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let mine: Vec<f32> = (0..ELEMENTS).map(|at| (at as u32 * (comm.rank() + 1)) as f32).collect();
        let input = stream.clone_htod(&mine).unwrap();
        let zeros = || stream.alloc_zeros::<f32>(ELEMENTS).unwrap();
        let outputs = [zeros(), zeros()];
        stream.synchronize().unwrap();
        Own { comm, stream, other, input, outputs }
    }

    /// The sum of all ranks' inputs into one of the outputs.
    fn sum_into(&self, output: usize) -> Result<Work, String> {
        let at = |slice: &CudaSlice<f32>| slice.device_ptr(&self.stream).0;
        let op = Operation::Collective {
            collective: Collective::AllReduce,
            send: at(&self.input),
            recv: at(&self.outputs[output]),
            block: ELEMENTS as u64,
            dtype: DType::F32,
            op: RedOp::Sum,
            factor: None,
        };
        self.comm.enqueue(&[op], self.foreign()).map_err(|why| why.to_string())
    }

    fn foreign(&self) -> ForeignStream {
        ForeignStream(self.stream.cu_stream().cast())
    }

    fn is_right(&self, output: usize, stream: &Arc<CudaStream>) -> bool {
        let ranks = self.comm.ranks();
        let factor = ranks * (ranks + 1) / 2;
        let got = stream.clone_dtoh(&self.outputs[output]).unwrap();
        (0u32..).zip(got).all(|(at, value)| value == (at * factor) as f32)
    }
}

/// So many sums, each waited for; says how many were right, or the first error.
pub fn calls(comm: &Communicator, count: u32) {
    let mut own = Own::new(comm);
    let mut right = 0;
    for _ in 0..count {
        // Nothing is left of the call before.
        own.stream.memset_zeros(&mut own.outputs[0]).unwrap();
        match own.sum_into(0).and_then(|work| work.wait(LONG).map_err(|why| why.to_string())) {
            Ok(()) => right += u32::from(own.is_right(0, &own.stream)),
            Err(why) => {
                println!("\nended: {}", why.replace('\n', " "));
                return;
            }
        }
    }
    println!("\nended: {right} of {count} right");
}

/// Rank 0 lets the others see each handle before it brings its own part.
pub fn works(comm: &Communicator) {
    let own = Own::new(comm);
    let late = comm.rank() == 0;
    let meet = || comm.host_barrier(LONG).unwrap();

    // One that is held says when it ends, not when a later one does.
    let first = own.sum_into(0).unwrap();
    first.wait(LONG).unwrap();
    assert!(first.is_done().unwrap() && own.is_right(0, &own.stream));
    let second = if late {
        meet();
        own.sum_into(1).unwrap()
    } else {
        let second = own.sum_into(1).unwrap();
        let why = second.wait(Duration::from_millis(50)).unwrap_err().to_string();
        assert!(why.contains("call #1 had not ended after 50 ms"), "{why}");
        assert!(first.is_done().unwrap() && !second.is_done().unwrap());
        meet();
        second
    };
    // Another stream that waits for it sees its result, without the host's having waited.
    second.block(ForeignStream(own.other.cu_stream().cast())).unwrap();
    assert!(own.is_right(1, &own.other));
    second.wait(LONG).unwrap();

    // Nobody passes a barrier before all have come.
    meet();
    let barrier = if late {
        meet();
        comm.barrier(own.foreign()).unwrap()
    } else {
        let barrier = comm.barrier(own.foreign()).unwrap();
        assert!(!barrier.is_done().unwrap());
        meet();
        barrier
    };
    barrier.wait(LONG).unwrap();
    let record: serde_json::Value = serde_json::from_str(&comm.flight_record()).unwrap();
    let calls = record["records"].as_array().unwrap();
    let said = |at: usize| (calls[at]["call"].as_str().unwrap(), calls[at]["state"].as_str().unwrap());
    assert_eq!(
        [said(0), said(1), said(2)],
        [("all_reduce", "done"), ("all_reduce", "done"), ("barrier", "done")]
    );
    assert!(calls[0]["algorithm"].is_string() && calls[0]["protocol"].is_string(), "{record}");
    let choice = comm.explain(Collective::AllReduce, ELEMENTS as u64, DType::F32).unwrap();
    assert_eq!(choice.winner().algorithm, calls[0]["algorithm"].as_str().unwrap());
    assert!(comm.enqueue(&[], own.foreign()).unwrap().is_done().unwrap(), "nothing to do is done");
    println!("\nworks");
}
