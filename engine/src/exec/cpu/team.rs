//! Threads that live as long as a session and run one job after another together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A fixed number of threads that wait, without using the processor, for jobs of type `J`.
pub struct Team<J> {
    gate: Arc<Gate<J>>,
    handles: Vec<JoinHandle<()>>,
}

/// A thread panicked while it worked on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    pub thread: usize,
    pub message: String,
}

struct Gate<J> {
    state: Mutex<State<J>>,
    start: Condvar,
    done: Condvar,
}

struct State<J> {
    /// Counts jobs, so that a thread takes each once.
    generation: u64,
    /// `None` asks the threads to end.
    job: Option<Arc<J>>,
    running: usize,
    panicked: Option<Panicked>,
}

impl<J> Gate<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        // Nothing panics while it holds the lock; if it did, the counts would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Send + Sync + 'static> Team<J> {
    /// Starts one thread per name. Each runs `work(thread, job)` for every job; `on_panic` runs on a thread whose work panicked, and
    /// has to make the others stop waiting for it.
    pub fn spawn(
        names: impl ExactSizeIterator<Item = String>,
        work: impl Fn(usize, &J) + Send + Sync + 'static,
        on_panic: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Team<J>> {
        let state = State { generation: 0, job: None, running: 0, panicked: None };
        let gate = Arc::new(Gate { state: Mutex::new(state), start: Condvar::new(), done: Condvar::new() });
        let work = Arc::new((work, on_panic));
        let mut team = Team { gate, handles: Vec::with_capacity(names.len()) };
        for (thread, name) in names.enumerate() {
            let (gate, work) = (team.gate.clone(), work.clone());
            let body = move || serve(&gate, thread, &work.0, &work.1);
            // On failure, dropping the team ends the threads that did start.
            team.handles.push(std::thread::Builder::new().name(name).spawn(body)?);
        }
        Ok(team)
    }

    /// Runs a job on all threads and returns when the last has finished. The job bounds its own time: every wait in it has a deadline,
    /// and a thread cannot be stopped from outside in any case.
    pub fn run(&mut self, job: J) -> Result<(), Panicked> {
        let mut state = self.gate.lock();
        state.generation += 1;
        state.job = Some(Arc::new(job));
        state.running = self.handles.len();
        self.gate.start.notify_all();
        while state.running > 0 {
            state = self.gate.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.panicked.take().map_or(Ok(()), Err)
    }
}

impl<J> Drop for Team<J> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.generation += 1;
        state.job = None;
        drop(state);
        self.gate.start.notify_all();
        for handle in self.handles.drain(..) {
            // `serve` catches every panic of the work; a thread that ended otherwise has nothing left to clean up.
            let _ = handle.join();
        }
    }
}

fn serve<J>(gate: &Gate<J>, thread: usize, work: &impl Fn(usize, &J), on_panic: &impl Fn()) {
    let mut seen = 0;
    loop {
        let job = {
            let mut state = gate.lock();
            while state.generation == seen {
                state = gate.start.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            seen = state.generation;
            match &state.job {
                Some(job) => job.clone(),
                None => return,
            }
        };
        // Unwind safety: after a panic the session resets whatever the job may have left half done.
        let result = catch_unwind(AssertUnwindSafe(|| work(thread, &job)));
        if result.is_err() {
            on_panic();
        }
        let mut state = gate.lock();
        if let Err(payload) = result {
            let message = payload
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
                .unwrap_or_else(|| "a panic without a message".into());
            state.panicked.get_or_insert(Panicked { thread, message });
        }
        state.running -= 1;
        if state.running == 0 {
            gate.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_thread_runs_every_job_once() {
        let total = Arc::new(AtomicUsize::new(0));
        let counted = total.clone();
        let names = (0..7).map(|i| format!("test {i}"));
        let mut team = Team::spawn(
            names,
            move |thread, job: &usize| _ = counted.fetch_add(thread * job, Ordering::Relaxed),
            || (),
        )
        .unwrap();
        for job in [1, 10, 100] {
            team.run(job).unwrap();
        }
        assert_eq!(total.load(Ordering::Relaxed), 21 * 111);
    }

    #[test]
    fn a_panic_is_an_error_and_releases_the_others() {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, raised) = (stop.clone(), stop.clone());
        let work = move |thread, job: &bool| {
            if *job {
                assert!(thread != 1, "thread 1 is broken");
                while !seen.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
        };
        let names = (0..3).map(|i| format!("test {i}"));
        let mut team = Team::spawn(names, work, move || raised.store(true, Ordering::Relaxed)).unwrap();
        let expected = Panicked { thread: 1, message: "thread 1 is broken".into() };
        assert_eq!(team.run(true), Err(expected));
        assert_eq!(team.run(false), Ok(()), "the team works on");
    }
}
