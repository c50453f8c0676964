use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};

use ringlab_engine::comm::{CommError, Config};
use ringlab_engine::types::{DType, Rank};

use super::*;
use crate::abi::{INVALID_ARGUMENT, INVALID_USAGE};
use crate::comms::Place;
use crate::config;
use crate::engine::Line;

/// Writes down what it is asked for.
#[derive(Debug, Default)]
struct Listener {
    queued: Mutex<Vec<(Vec<u64>, usize)>>,
    refuses: AtomicBool,
}

impl Line for Listener {
    fn ranks(&self) -> u32 {
        4
    }

    fn rank(&self) -> u32 {
        1
    }

    fn device(&self) -> u32 {
        0
    }

    fn enqueue(&self, ops: &[Operation], stream: CudaStream) -> Result<(), CommError> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(CommError::Aborted("rank 2 called abort".into()));
        }
        let counts = ops.iter().map(Operation::block);
        self.queued.lock().unwrap().push((counts.collect(), stream.addr()));
        Ok(())
    }

    /// A microsecond an element.
    fn predicted_us(&self, op: &Operation) -> Result<f64, CommError> {
        match op.block() {
            0 => Err(CommError::Unsupported("nothing is known of 0 elements".into())),
            elements => Ok(elements as f64),
        }
    }

    fn split(&self, _: Option<u32>, _: i32, _: Config) -> Result<Option<Box<dyn Line>>, CommError> {
        Ok(None)
    }

    fn finalize(&self) -> Result<(), CommError> {
        Ok(())
    }

    fn abort(&self, _: &str) {}

    fn async_error(&self) -> Option<CommError> {
        None
    }
}

fn comm() -> (Arc<Comm>, Arc<Listener>) {
    let listener = Arc::new(Listener::default());
    let comm = Comm::begin(Some(Place { rank: 1, ranks: 4, device: 0 }), config::settings(None).unwrap());
    comm.formed(Ok(listener.clone()));
    (comm, listener)
}

fn send(comm: &Arc<Comm>, count: u64, stream: usize) {
    let operation = Operation::Send { to: Rank(0), buffer: 8, count, dtype: DType::F32 };
    start();
    add_operation(comm, operation, std::ptr::without_provenance_mut(stream));
    assert_eq!(end().unwrap(), SUCCESS);
}

fn job(
    comm: &Arc<Comm>,
    slot: Option<*mut NcclComm>,
    run: impl FnOnce() -> Result<(), Fault> + Send + 'static,
) -> Job {
    Job { comm: comm.clone(), run: Box::new(run), slot: slot.map(Slot), background: false }
}

#[test]
fn a_groups_operations_are_queued_once_in_order_for_every_communicator() {
    let ((one, first), (two, second)) = (comm(), comm());
    start();
    send(&one, 1, 7);
    start();
    send(&two, 2, 8);
    send(&one, 3, 7);
    assert_eq!(end().unwrap(), SUCCESS);
    assert!(first.queued.lock().unwrap().is_empty(), "an inner group is carried out with the outer");
    assert_eq!(end().unwrap(), SUCCESS);
    assert_eq!(*first.queued.lock().unwrap(), [(vec![1, 3], 7)]);
    assert_eq!(*second.queued.lock().unwrap(), [(vec![2], 8)]);
    send(&one, 4, 9);
    assert_eq!(first.queued.lock().unwrap().len(), 2);
}

#[test]
fn a_fault_within_a_group_drops_all_of_it_and_is_told_at_its_end() {
    let (one, listener) = comm();
    start();
    send(&one, 1, 7);
    spoil(&Fault::argument("the first"));
    spoil(&Fault::usage("the second"));
    assert_eq!(end().unwrap_err(), Fault::argument("the first"));
    assert!(listener.queued.lock().unwrap().is_empty());
    send(&one, 2, 7);
    assert_eq!(listener.queued.lock().unwrap().len(), 1);
}

#[test]
fn what_the_engine_refuses_is_the_groups_fault_and_the_communicators_error() {
    let (one, listener) = comm();
    listener.refuses.store(true, Ordering::Relaxed);
    start();
    add_operation(
        &one,
        Operation::Recv { from: Rank(2), buffer: 8, count: 1, dtype: DType::F32 },
        std::ptr::null_mut(),
    );
    assert_eq!(end().unwrap_err().code, crate::abi::REMOTE_ERROR);
    assert!(one.last_error().contains("rank 2 called abort"));
}

#[test]
fn jobs_of_a_group_run_at_the_same_time() {
    let all: Vec<_> = (0..4).map(|_| comm().0).collect();
    let meeting = Arc::new(Barrier::new(4));
    start();
    for comm in &all {
        let meeting = meeting.clone();
        add_job(job(comm, None, move || {
            meeting.wait();
            Ok(())
        }));
    }
    assert_eq!(end().unwrap(), SUCCESS);
}

#[test]
fn a_job_that_fails_or_panics_leaves_a_null_handle() {
    let ((one, _), (two, _), (three, _)) = (comm(), comm(), comm());
    let mut handles = [one.handle(), two.handle(), three.handle()];
    let [a, b, c] = &mut handles;
    start();
    add_job(job(&one, Some(a), || Ok(())));
    add_job(job(&two, Some(b), || Err(Fault::argument("no such rank"))));
    add_job(job(&three, Some(c), || panic!("out of order")));
    assert_eq!(end().unwrap_err().code, INVALID_ARGUMENT);
    assert_eq!(handles, [one.handle(), std::ptr::null_mut(), std::ptr::null_mut()]);
    assert!(Comm::find(one.handle()).is_ok() && Comm::find(two.handle()).is_err());
}

#[test]
fn work_in_the_background_is_in_progress_until_it_is_done() {
    let mut settings = config::settings(None).unwrap();
    settings.blocking = false;
    let forming = Comm::begin(None, settings);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let to = forming.clone();
    start();
    add_job(Job {
        comm: forming.clone(),
        run: Box::new(move || {
            wait.recv().unwrap();
            to.formed(Ok(Arc::new(Listener::default())));
            Ok(())
        }),
        slot: None,
        background: true,
    });
    assert_eq!(end().unwrap(), IN_PROGRESS);
    assert_eq!(forming.async_error(), IN_PROGRESS);
    go.send(()).unwrap();
    while forming.async_error() == IN_PROGRESS {
        std::thread::yield_now();
    }
    assert_eq!(forming.async_error(), SUCCESS);
}

#[test]
fn groups_belong_to_their_thread() {
    start();
    std::thread::spawn(|| {
        assert!(!is_open());
        assert_eq!(end().unwrap_err().code, INVALID_USAGE);
    })
    .join()
    .unwrap();
    assert!(is_open());
    assert_eq!(simulate().unwrap(), Some(0.0));
    assert!(!is_open());
}

#[test]
fn a_simulated_group_takes_as_long_as_its_slowest_communicator_and_queues_nothing() {
    let all = [comm(), comm()];
    let add = |which: usize, count| {
        let operation = Operation::Send { to: Rank(0), buffer: 8, count, dtype: DType::F32 };
        add_operation(&all[which].0, operation, std::ptr::null_mut());
    };
    start();
    start();
    add(0, 3);
    add(1, 5);
    assert_eq!(simulate().unwrap(), None, "an inner group's end is no end");
    add(0, 4);
    assert_eq!(simulate().unwrap(), Some(7.0));
    start();
    add(0, 3);
    add(1, 0);
    let fault = simulate().unwrap_err();
    assert_eq!((fault.code, fault.text.as_str()), (INVALID_USAGE, "nothing is known of 0 elements"));
    assert!(all.iter().all(|(_, listener)| listener.queued.lock().unwrap().is_empty()));
    assert_eq!(all[1].0.last_error(), "nothing is known of 0 elements");
}

/// The interface's own functions, as a program calls them.
#[test]
fn a_communicator_that_is_aborted_within_a_group_takes_the_groups_operations_with_it() {
    use crate::api::{ncclAllReduce, ncclCommAbort, ncclGroupEnd, ncclGroupStart};
    let ((ended, ended_line), (other, other_line)) = (comm(), comm());
    let buffer = std::ptr::without_provenance_mut(4096);
    let call = |comm: &Arc<Comm>, count| {
        // SAFETY: the buffer is only written down.
        unsafe { ncclAllReduce(buffer, buffer, count, 7, 0, comm.handle(), std::ptr::null_mut()) }
    };
    // SAFETY: these take no pointers.
    unsafe {
        assert_eq!(ncclGroupStart(), SUCCESS);
        assert_eq!((call(&other, 5), call(&ended, 6)), (SUCCESS, SUCCESS));
        assert_eq!(ncclCommAbort(ended.handle()), SUCCESS);
        assert_eq!(ncclCommAbort(ended.handle()), INVALID_ARGUMENT, "twice");
        assert_eq!(ncclGroupEnd(), INVALID_ARGUMENT);
    }
    assert!(ended.last_error().contains("destroyed or aborted"), "{}", ended.last_error());
    assert!(ended_line.queued.lock().unwrap().is_empty() && other_line.queued.lock().unwrap().is_empty());
    // Nothing of it is left over.
    assert_eq!(call(&other, 7), SUCCESS);
    assert_eq!(other_line.queued.lock().unwrap()[..], [(vec![7], 0)]);
    assert_eq!(call(&ended, 8), INVALID_ARGUMENT);
}

#[test]
fn a_communicator_is_destroyed_once_also_within_a_group() {
    use crate::api::{ncclCommDestroy, ncclGroupEnd, ncclGroupStart};
    let (twice, listener) = comm();
    let only = Arc::downgrade(&listener);
    drop(listener);
    // SAFETY: these take no pointers.
    unsafe {
        assert_eq!((ncclGroupStart(), ncclGroupStart()), (SUCCESS, SUCCESS));
        assert_eq!(ncclCommDestroy(twice.handle()), SUCCESS);
        assert_eq!(ncclCommDestroy(twice.handle()), INVALID_ARGUMENT);
        assert_eq!(ncclGroupEnd(), SUCCESS, "the outermost tells");
        assert_eq!(ncclGroupEnd(), INVALID_ARGUMENT);
        assert_eq!(ncclGroupEnd(), INVALID_USAGE);
        assert_eq!(ncclCommDestroy(twice.handle()), INVALID_ARGUMENT);
    }
    assert!(only.upgrade().is_none(), "the rank has left");
}

#[test]
fn counts_roots_and_peers_that_do_not_exist_are_told_by_name() {
    use crate::api::{ncclAllGather, ncclReduce, ncclSend};
    let (comm, listener) = comm();
    let buffer = std::ptr::without_provenance_mut(4096);
    let told = |code, word: &str| {
        assert_eq!(code, INVALID_ARGUMENT);
        let error = comm.last_error();
        assert!(error.contains(word), "{error}");
    };
    let (handle, stream) = (comm.handle(), std::ptr::null_mut());
    // SAFETY: buffers are only written down.
    unsafe {
        for count in [usize::MAX, 1 << 63, 1 << 62] {
            told(ncclAllGather(buffer, buffer, count, 7, handle, stream), &count.to_string());
            told(ncclSend(buffer, count, 8, 0, handle, stream), &count.to_string());
        }
        for root in [-1, 4, i32::MIN, i32::MAX] {
            told(ncclReduce(buffer, buffer, 1, 7, 0, root, handle, stream), &format!("root {root}"));
            told(ncclSend(buffer, 1, 7, root, handle, stream), &format!("peer {root}"));
        }
        for datatype in [-1, 12, i32::MIN, i32::MAX] {
            told(ncclAllGather(buffer, buffer, 1, datatype, handle, stream), &datatype.to_string());
        }
        told(ncclSend(std::ptr::null(), 1, 7, 0, handle, stream), "null pointer");
        assert_eq!(ncclSend(std::ptr::null(), 0, 7, 0, handle, stream), SUCCESS);
    }
    assert_eq!(listener.queued.lock().unwrap().len(), 1);
}
