//! Communicators across threads and real processes: forming, refusing, dying, aborting, splitting.

mod faults;
mod hostile;
mod processes;
mod threads;

use std::time::Duration;

use ringlab_engine::comm::{Bootstrap, CommError, UniqueId};

/// Long enough for a busy machine; a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);

/// Runs `body` as every rank of a new communicator, each in a thread, and returns what each gave.
fn in_threads<T: Send>(ranks: u32, body: impl Fn(Bootstrap) -> T + Sync) -> Vec<T> {
    let id = UniqueId::create(None).unwrap();
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = (0..ranks)
            .map(|rank| scope.spawn(move || body(Bootstrap::connect(&id, rank, ranks, LONG).unwrap())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[track_caller]
fn text<T: std::fmt::Debug>(result: Result<T, CommError>) -> String {
    result.unwrap_err().to_string()
}
