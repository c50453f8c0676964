//! Computation beside the event loop, so many at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, spawn_blocking};

/// Computations that share a number of places.
#[derive(Debug)]
pub struct Lane(Arc<Semaphore>);

/// A place in a lane, taken.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Lane {
    pub fn new(places: usize) -> Lane {
        Lane(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a place; first come, first served.
    pub async fn enter(&self) -> Place {
        let permit = self.0.clone().acquire_owned().await.expect("the semaphore is never closed");
        Place { _permit: permit }
    }
}

impl Place {
    /// The computation keeps the place to its own end: it goes on when whoever asked has left, and must still be counted.
    ///
    /// # Errors
    /// It panicked.
    pub async fn run<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let run = move || {
            let _place = self;
            f()
        };
        spawn_blocking(run).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_computation_nobody_waits_for_any_more_keeps_its_place_until_it_ends() {
        let lane = Lane::new(1);
        let (go_on, held) = mpsc::channel::<()>();
        let work = lane.enter().await.run(move || held.recv());
        assert!(
            timeout(Duration::from_millis(50), work).await.is_err(),
            "it goes on, and its future is dropped"
        );
        assert!(timeout(Duration::from_millis(50), lane.enter()).await.is_err(), "its place is taken");
        go_on.send(()).unwrap();
        let next = timeout(Duration::from_secs(20), lane.enter()).await.expect("its place is free again");
        assert!(next.run(|| panic!("on purpose")).await.is_err());
        assert_eq!(lane.enter().await.run(|| 7).await.unwrap(), 7, "a panic gives the place back");
    }
}
