//! How the threads of a session wait for each other, and how they are all stopped.
//!
//! A wait spins, then gives up the processor to whoever can run, and then sleeps until it is woken: with more threads than cores, or
//! other programs on the machine, a thread that only yields may come back milliseconds late.
//!
//! # Why no wake-up is lost
//!
//! The waiter stores `parked`, issues a `SeqCst` fence and looks once more for what it waits for; the other side publishes it (a counter
//! of [`super::link`] or of [`Barrier`]), issues a `SeqCst` fence and looks at `parked`. The fences are in one total order, so at least
//! one of the two sees the other's store: either the waiter finds what it waits for, or it is woken. `unpark` before `park` makes the
//! latter return at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A value alone on its cache line and the neighbour that the prefetcher drags along, so that producer and consumer do not fight.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// How long a wait yields before it sleeps: several switches between threads, a few times what sleeping and waking costs.
const YIELD_FOR: Duration = Duration::from_micros(30);

#[derive(Debug)]
pub struct Waiting {
    /// Carries no data: whoever sees it raised only stops. Hence `Relaxed` everywhere but for the fence of a wake-up.
    stop: AtomicBool,
    spins: u32,
    /// By thread.
    seats: Box<[Padded<Seat>]>,
}

#[derive(Debug, Default)]
struct Seat {
    parked: AtomicBool,
    /// Set before `parked` first is.
    thread: OnceLock<Thread>,
}

/// A wait ended without what it waited for: its deadline passed or another thread had stopped the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl Waiting {
    pub fn new(threads: usize) -> Waiting {
        // Spinning helps only while the other side can run at the same time.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let spins = if threads <= cores { 400 } else { 20 };
        let seats = (0..threads).map(|_| Padded::default()).collect();
        Waiting { stop: AtomicBool::new(false), spins, seats }
    }

    /// Ends every wait of the run.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Only while no thread runs a plan.
    pub fn reset(&self) {
        self.stop.store(false, Ordering::Relaxed);
    }

    /// To be called after something was published that `thread` may wait for.
    pub fn wake(&self, thread: usize) {
        fence(Ordering::SeqCst);
        self.seats[thread].0.wake();
    }

    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        self.seats.iter().for_each(|seat| seat.0.wake());
    }

    /// Tries until it gets something. `thread` is the calling thread's number. Past the deadline it stops the whole run.
    pub fn until<T>(
        &self,
        thread: usize,
        deadline: Instant,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Stopped> {
        for _ in 0..self.spins {
            if let Some(got) = attempt() {
                return Ok(got);
            }
            std::hint::spin_loop();
        }
        let sleep_at = Instant::now() + YIELD_FOR;
        while Instant::now() < sleep_at {
            std::thread::yield_now();
            if let Some(got) = attempt() {
                return Ok(got);
            }
        }
        let seat = &self.seats[thread].0;
        seat.thread.get_or_init(std::thread::current);
        loop {
            // `Release`: whoever sees it also sees the handle.
            seat.parked.store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            let got = attempt();
            let now = Instant::now();
            let expired = now >= deadline;
            if got.is_some() || expired || self.stopped() {
                seat.parked.store(false, Ordering::Relaxed);
                if got.is_none() && expired {
                    self.stop();
                }
                return got.ok_or(Stopped);
            }
            std::thread::park_timeout(deadline - now);
        }
    }
}

impl Seat {
    fn wake(&self) {
        // The load first: most often nobody sleeps, and the line stays shared.
        if self.parked.load(Ordering::Relaxed)
            && self.parked.swap(false, Ordering::Acquire)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

/// All threads of a session meet here. Counts arrivals since the run began.
#[derive(Debug, Default)]
pub struct Barrier {
    arrivals: Padded<AtomicU64>,
}

impl Barrier {
    /// Only while no thread runs a plan.
    pub fn reset(&self) {
        self.arrivals.0.store(0, Ordering::Relaxed);
    }

    /// The `round`-th meeting (from 1) of all threads; `thread` is the caller's number. What any of them did before happens before what
    /// any does after: each arrival is a read-modify-write with `Release`, which continues the release sequence of those before it, so
    /// the `Acquire` load of the last one's value synchronises with all.
    pub fn meet(
        &self,
        waiting: &Waiting,
        thread: usize,
        deadline: Instant,
        round: u64,
    ) -> Result<(), Stopped> {
        let all = round * waiting.seats.len() as u64;
        if self.arrivals.0.fetch_add(1, Ordering::AcqRel) + 1 == all {
            waiting.wake_all();
            return Ok(());
        }
        waiting.until(thread, deadline, || (self.arrivals.0.load(Ordering::Acquire) >= all).then_some(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_wait_ends_at_its_deadline_and_stops_the_others() {
        let waiting = Waiting::new(1);
        let started = Instant::now();
        let got = waiting.until(0, started + Duration::from_millis(20), || None::<()>);
        assert_eq!(got, Err(Stopped));
        assert!(waiting.stopped() && started.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn a_sleeper_is_woken_by_what_it_waits_for_and_by_a_stop() {
        for stop in [false, true] {
            let shared = Arc::new((Waiting::new(2), AtomicBool::new(false)));
            let other = shared.clone();
            let far = Instant::now() + Duration::from_secs(60);
            let sleeper = std::thread::spawn(move || {
                let (waiting, flag) = &*other;
                waiting.until(1, far, || flag.load(Ordering::Acquire).then_some(()))
            });
            let (waiting, flag) = &*shared;
            while !waiting.seats[1].0.parked.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            if stop {
                waiting.stop();
            } else {
                flag.store(true, Ordering::Release);
                waiting.wake(1);
            }
            assert_eq!(sleeper.join().unwrap(), if stop { Err(Stopped) } else { Ok(()) });
            assert!(Instant::now() < far);
        }
    }

    /// Two threads hand a counter back and forth: a lost wake-up would hang until the deadline.
    #[test]
    fn no_wake_up_is_lost_in_a_long_ping_pong() {
        let shared = Arc::new((Waiting::new(2), AtomicU64::new(0)));
        let deadline = Instant::now() + Duration::from_secs(60);
        let player = |me: u64| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                let (waiting, turn) = &*shared;
                (0..20_000).try_for_each(|i| {
                    let mine = 2 * i + me;
                    waiting.until(me as usize, deadline, || {
                        (turn.load(Ordering::Acquire) == mine).then_some(())
                    })?;
                    turn.store(mine + 1, Ordering::Release);
                    waiting.wake(1 - me as usize);
                    Ok::<_, Stopped>(())
                })
            })
        };
        let players = [player(0), player(1)];
        for player in players {
            assert_eq!(player.join().unwrap(), Ok(()));
        }
    }
}
