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
//! latter return at once. A fence for each message would cost as much as the message: whoever publishes only looks ([`Waiting::wake_seen`])
//! and makes up for it once it has nothing more to do ([`Waiting::settle`]), which credits bring about after a few messages.

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

/// Looks without a pause between them.
const EAGER: u32 = 64;

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
        let spins = if threads <= cores { 2000 } else { 20 };
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

    /// Wakes `thread` if it is seen asleep: enough for most wake-ups, and without a fence. [`Waiting::settle`] has to follow;
    /// [`Waiting::until`] does it once spinning was in vain.
    pub fn wake_seen(&self, thread: usize) {
        self.seats[thread].0.wake();
    }

    /// Wakes whoever sleeps although what it waits for was published before. To be called before the caller waits itself or ends.
    pub fn settle(&self) {
        self.wake_all();
    }

    pub fn wake_all(&self) {
        fence(Ordering::SeqCst);
        self.seats.iter().for_each(|seat| seat.0.wake());
    }

    /// Tries until it gets something. `thread` is the calling thread's number. Past the deadline it stops the whole run. Both closures
    /// work on `with`; the deadline is asked for only when spinning was in vain.
    pub fn until<S: ?Sized, T>(
        &self,
        thread: usize,
        with: &mut S,
        mut attempt: impl FnMut(&mut S) -> Option<T>,
        deadline: impl FnOnce(&mut S) -> Instant,
    ) -> Result<T, Stopped> {
        for spin in 0..self.spins {
            if let Some(got) = attempt(with) {
                return Ok(got);
            }
            // The first looks come as fast as they can: a message between cores takes less than a pause.
            if spin >= EAGER {
                std::hint::spin_loop();
            }
        }
        self.settle();
        let deadline = deadline(with);
        let sleep_at = Instant::now() + YIELD_FOR;
        while Instant::now() < sleep_at {
            std::thread::yield_now();
            if let Some(got) = attempt(with) {
                return Ok(got);
            }
        }
        let seat = &self.seats[thread].0;
        seat.thread.get_or_init(std::thread::current);
        loop {
            // `Release`: whoever sees it also sees the handle.
            seat.parked.store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            let got = attempt(with);
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

/// Meeting of all programs of a session. Counts arrivals since the run began.
#[derive(Debug)]
pub struct Barrier {
    arrivals: Padded<AtomicU64>,
    parties: u64,
}

impl Barrier {
    pub fn new(parties: usize) -> Barrier {
        Barrier { arrivals: Padded::default(), parties: parties as u64 }
    }

    /// Only while no thread runs a plan.
    pub fn reset(&self) {
        self.arrivals.0.store(0, Ordering::Relaxed);
    }

    /// Comes to the `round`-th meeting (from 1), once for each party; whether it was the last. What any of them did before happens
    /// before what any does after [`Barrier::reached`]: each arrival is a read-modify-write with `Release`, which continues the release
    /// sequence of those before it, so the `Acquire` load of the last one's value synchronises with all.
    pub fn arrive(&self, round: u64) -> bool {
        self.arrivals.0.fetch_add(1, Ordering::AcqRel) + 1 == round * self.parties
    }

    pub fn reached(&self, round: u64) -> bool {
        self.arrivals.0.load(Ordering::Acquire) >= round * self.parties
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
        let got = waiting.until(0, &mut (), |_| None::<()>, |_| started + Duration::from_millis(20));
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
                waiting.until(1, &mut (), |_| flag.load(Ordering::Acquire).then_some(()), |_| far)
            });
            let (waiting, flag) = &*shared;
            while !waiting.seats[1].0.parked.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            if stop {
                waiting.stop();
            } else {
                flag.store(true, Ordering::Release);
                waiting.settle();
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
                    let my_turn = |_: &mut ()| (turn.load(Ordering::Acquire) == mine).then_some(());
                    waiting.until(me as usize, &mut (), my_turn, |_| deadline)?;
                    turn.store(mine + 1, Ordering::Release);
                    waiting.wake_seen(1 - me as usize);
                    waiting.settle();
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
