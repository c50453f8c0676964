//! A rank's communicator over GPUs: finds its peers, maps their mailboxes, queues operations, notices failures, leaves in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ringlab_kernels::Scope;
use serde::{Deserialize, Serialize};

use super::bootstrap::{Bootstrap, Options};
use super::choice::{Choices, Chosen, Situation, Terms, Wishes};
use super::debug::log;
use super::error::CommError;
use super::faults::Faults;
use super::fingerprint;
use super::id::UniqueId;
use super::operation::{Config, Operation, Scalar};
use super::recorder::FlightRecorder;
use super::watch::{Event, Failure};
use crate::exec::ExecError;
use crate::exec::cuda::ForeignStream;
use crate::exec::cuda::rank::{
    Abort, Call, Card, Factor, Group, Member, Message, Opening, Port, Schedule, Shape, Way,
};
use crate::plan::MAX_RANKS;
use crate::random;
use crate::tuner::Choice;
use crate::types::{Collective, DType, Rank, RedOp};

mod asked;
mod leave;
mod together;
mod windows;
mod work;

use asked::{Asked, refuse_count};
use together::Sorted;
pub use together::{Part, PartError};
use work::Queued;
pub use work::Work;

/// How often a stopped kernel is looked for. With the news travelling over sockets it stays well under a second.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// Calls the flight recorder keeps.
const RECORDED_CALLS: usize = 256;

/// One rank of a communicator. Calls come from one thread at a time or are put in order by a lock; all ranks make the same collective
/// calls in the same order.
///
/// Dropping it leaves the communicator. A process that holds several ranks of one communicator frees their memory when the last of
/// them has left, since the others may still write to it.
#[derive(Debug)]
pub struct Communicator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rank: Rank,
    ranks: u32,
    device: u32,
    config: Config,
    bootstrap: Bootstrap,
    /// `None` once the rank has left.
    port: Mutex<Option<Port>>,
    choices: Mutex<Choices>,
    abort: Abort,
    recorder: Arc<FlightRecorder>,
    /// What this rank does wrong on purpose.
    faults: Faults,
    finalized: AtomicBool,
    /// The same for all ranks of a communicator, different from all others of this process.
    identity: [u8; 16],
    /// Ranks in this process.
    here: usize,
}

/// What every rank tells all others before they connect.
#[derive(Debug, Serialize, Deserialize)]
struct Introduction {
    card: Card,
    identity: [u8; 16],
    terms: Terms,
}

impl Communicator {
    /// Joins as `rank` of `ranks`, on CUDA device `device`; returns when all ranks are connected.
    ///
    /// # Errors
    /// As [`Bootstrap::connect`]; [`CommError::InvalidUsage`] when the device or its memory cannot be used, and the other ranks then
    /// get [`CommError::Remote`].
    pub fn init(
        id: &UniqueId,
        ranks: u32,
        rank: u32,
        device: u32,
        config: Config,
    ) -> Result<Communicator, CommError> {
        config.check()?;
        if ranks > MAX_RANKS {
            return Err(CommError::InvalidArgument(format!(
                "{ranks} ranks: plans are made for at most {MAX_RANKS}; use fewer ranks"
            )));
        }
        let options = Options { deadline: config.setup_deadline, ..Options::default() };
        Communicator::over(Bootstrap::connect_with(id, rank, ranks, options)?, device, config)
    }

    fn over(bootstrap: Bootstrap, device: u32, config: Config) -> Result<Communicator, CommError> {
        let (rank, ranks) = (bootstrap.rank(), bootstrap.ranks());
        let wishes = Wishes::new(&config)?;
        let faults = config.faults.clone().map_or_else(Faults::from_environment, Ok)?.of_rank(rank);
        let channels = config.max_channels;
        let opening =
            Opening::new(device, Shape { rank: rank.0, ranks, channels, slot_bytes: config.slot_bytes })?;
        let identity =
            random::bytes().map_err(|why| CommError::System(format!("cannot name a communicator: {why}")))?;
        let own = Introduction { card: opening.card()?, identity, terms: wishes.terms(&config) };
        let own =
            serde_json::to_vec(&own).map_err(|why| CommError::System(format!("writing a card: {why}")))?;
        let all = bootstrap.allgather(&own, config.setup_deadline)?;
        let read = |(rank, bytes): (usize, &Vec<u8>)| {
            serde_json::from_slice::<Introduction>(bytes).map_err(|why| CommError::Remote {
                rank: Rank(rank as u32),
                why: format!("its card cannot be read ({why}); run the same build in all ranks"),
            })
        };
        let all = all.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let identity = all[0].identity;
        let (cards, terms): (Vec<Card>, Vec<Terms>) =
            all.into_iter().map(|introduction| (introduction.card, introduction.terms)).unzip();
        Terms::compare(&terms)?;
        let here = cards.iter().filter(|card| card.is_of_process_of(&cards[rank.index()])).count();
        let port = opening.connect(&cards, config.deadline)?;
        // Whoever could not connect is known now, not at the first operation.
        let resident = agree(&bootstrap, port.resident_channels(), config.setup_deadline)?;
        let situation = situation(&port, ranks, resident);
        let choices = Choices::new(wishes, &config, &situation, rank)?;
        let abort = port.abort().clone();
        let recorder = Arc::new(FlightRecorder::new(rank, RECORDED_CALLS));
        let (stop, black_box) = (abort.clone(), recorder.clone());
        bootstrap.watch(move |event| {
            if let Event::Failed(failure) = event {
                stop.raise();
                black_box.fail_open(&failure.error.to_string());
                log!(Warn, Init, "rank {rank}: {}; its last calls:\n{black_box}", failure.error);
            }
        });
        let shared = Arc::new(Shared {
            rank,
            ranks,
            device,
            config,
            bootstrap,
            port: Mutex::new(Some(port)),
            choices: Mutex::new(choices),
            abort,
            recorder,
            faults,
            finalized: AtomicBool::new(false),
            identity,
            here,
        });
        watch(&shared)?;
        Ok(Communicator { shared })
    }

    pub fn ranks(&self) -> u32 {
        self.shared.ranks
    }

    pub fn rank(&self) -> u32 {
        self.shared.rank.0
    }

    pub fn device(&self) -> u32 {
        self.shared.device
    }

    /// Queues one group of this rank's operations on a stream of its device: collectives in order, then all sends and receives
    /// together. Returns before they run.
    ///
    /// Buffers have to be what the operations say; nothing looks at them before the device does.
    ///
    /// # Errors
    /// [`CommError::InvalidArgument`] and [`CommError::InvalidUsage`] before anything of the group is queued, as far as this rank can
    /// tell; the failure of the communicator, if it has failed.
    pub fn enqueue(&self, ops: &[Operation], stream: ForeignStream) -> Result<Work, CommError> {
        let shared = &self.shared;
        shared.alive()?;
        let asked = shared.ask(ops)?;
        let queued = self.queue(&asked, stream);
        shared.note_queued(&asked.sequences, queued.as_ref().err());
        Ok(Work::new(shared, asked.sequences, queued?))
    }

    fn queue(&self, asked: &Asked<'_>, stream: ForeignStream) -> Result<Queued, CommError> {
        let shared = &self.shared;
        if shared.config.check_mismatch {
            shared.compare(&asked.all)?;
        }
        let mut port = shared.port();
        let port = port.as_mut().ok_or_else(left)?;
        let Sorted { calls, chosen, messages } = self.sorted(port, &asked.launched, &asked.sequences)?;
        for (sequence, chosen) in chosen {
            shared.recorder.planned(sequence, chosen);
        }
        if calls.is_empty() && messages.is_empty() {
            return Ok(Queued::Nothing);
        }
        let group = Group::prepare(vec![Member { port: &mut *port, calls, messages, stream }])?;
        let captures = group.captures();
        group.queue()?;
        Ok(Queued::behind(port, captures))
    }

    fn prepared(&self, port: &Port, op: &Operation) -> Result<Prepared, CommError> {
        let (rank, ranks) = (self.shared.rank, self.shared.ranks);
        let peer_exists = |peer: Rank| {
            if peer.0 < ranks {
                return Ok(());
            }
            Err(CommError::InvalidArgument(format!("there is no rank {peer}: ranks are 0 to {}", ranks - 1)))
        };
        let message = |way, peer, address: u64, count: u64, size: usize| {
            peer_exists(peer)?;
            if address == 0 && count > 0 {
                return Err(CommError::InvalidArgument(format!(
                    "a message of {count} elements has a null buffer"
                )));
            }
            Ok(Prepared::Message(Message { way, peer, address, bytes: count * size as u64 }))
        };
        refuse_count(op.block())?;
        match *op {
            Operation::Send { to, buffer, count, dtype } => {
                message(Way::Send, to, buffer, count, dtype.size())
            }
            Operation::Recv { from, buffer, count, dtype } => {
                message(Way::Receive, from, buffer, count, dtype.size())
            }
            // One byte of every rank, in place: whoever has the result knows that all have come.
            Operation::Barrier => self.prepared(
                port,
                &Operation::Collective {
                    collective: Collective::AllReduce,
                    send: port.token(),
                    recv: port.token(),
                    block: 1,
                    dtype: op.dtype(),
                    op: RedOp::Max,
                    factor: None,
                },
            ),
            Operation::Collective { block: 0, .. } => Ok(Prepared::Nothing),
            Operation::Collective { collective, send, recv, block, dtype, op, factor } => {
                if let Some(root) = collective.root() {
                    peer_exists(root)?;
                }
                let bytes = block * dtype.size() as u64;
                let in_place = is_in_place(collective, rank, send, recv, bytes);
                let chosen = self.shared.choices().choose(collective, bytes)?;
                let Chosen { algorithm, protocol, channels } = chosen;
                let schedule = Schedule::Standard { algorithm, channels, protocol };
                let (input, output) = (send, recv);
                // With a factor, a sum is a pre-multiplied one.
                let op = if factor.is_some() { RedOp::PreMulSum } else { op };
                let factor = factor.map(|factor| match factor {
                    Scalar::Bits(bits) => Factor::Bits(bits),
                    Scalar::Device(at) => Factor::Device(at),
                });
                let call = Call { collective, schedule, block, dtype, op, factor, input, output, in_place };
                Ok(Prepared::Call(call, chosen))
            }
        }
    }

    /// What the tuner chooses for a collective with blocks of so many elements, among what, and why.
    ///
    /// # Errors
    /// [`CommError::InvalidUsage`] when the overrides leave nothing that can run; [`CommError::InvalidArgument`] for a block that fits no
    /// memory.
    pub fn explain(&self, collective: Collective, block: u64, dtype: DType) -> Result<Choice, CommError> {
        refuse_count(block)?;
        self.shared.choices().explain(collective, block * dtype.size() as u64)
    }

    /// Microseconds that an operation would take by the tuner's profile.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] where there are no figures for it, which says why.
    pub fn predicted_us(&self, op: &Operation) -> Result<f64, CommError> {
        let (collective, block, dtype) = match *op {
            Operation::Collective { block: 0, .. } => return Ok(0.0),
            Operation::Collective { collective, block, dtype, .. } => (collective, block, dtype),
            Operation::Barrier => (Collective::AllReduce, 1, op.dtype()),
            Operation::Send { .. } | Operation::Recv { .. } => {
                return Err(CommError::Unsupported(
                    "the tuner has figures of collectives only; simulate without sends and receives".into(),
                ));
            }
        };
        let choice = self.explain(collective, block, dtype)?;
        choice.winner().cost.as_ref().map(|cost| cost.time_us).ok_or_else(|| {
            let sentence = &choice.sentences()[choice.chosen].en;
            CommError::Unsupported(format!(
                "no time is known for {} of {} bytes: {sentence}",
                choice.collective, choice.bytes
            ))
        })
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(super) fn bootstrap(&self) -> &Bootstrap {
        &self.shared.bootstrap
    }

    /// What the rank does with its port; the error of a communicator that has failed or been left.
    pub(super) fn with_port<T>(
        &self,
        act: impl FnOnce(&mut Port) -> Result<T, ExecError>,
    ) -> Result<T, CommError> {
        self.shared.alive()?;
        let mut port = self.shared.port();
        Ok(act(port.as_mut().ok_or_else(left)?)?)
    }

    /// Divides the communicator; every rank calls it. Ranks of one colour form a new one, ordered by key, then old rank; no colour, none.
    ///
    /// # Errors
    /// As [`Communicator::init`].
    pub fn split(
        &self,
        color: Option<u32>,
        key: i32,
        config: Config,
    ) -> Result<Option<Communicator>, CommError> {
        self.shared.alive()?;
        config.check()?;
        let bootstrap = self.shared.bootstrap.split(color, key, config.setup_deadline)?;
        bootstrap.map(|bootstrap| Communicator::over(bootstrap, self.shared.device, config)).transpose()
    }

    /// Waits until this rank's operations have ended and all ranks have come here. Every rank calls it, from threads of its own.
    ///
    /// # Errors
    /// The failure of the communicator, or the ranks that did not come.
    pub fn finalize(&self) -> Result<(), CommError> {
        if self.shared.finalized.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.shared.farewell()
    }

    /// Ends the communicator for all ranks: kernels stop, and every rank's next call says why.
    pub fn abort(&self, why: &str) {
        self.shared.bootstrap.abort(why);
        self.shared.abort.raise();
    }

    /// The last calls of this rank and how far each came, as JSON ([`FlightRecorder::to_json`]).
    pub fn flight_record(&self) -> String {
        let port = self.shared.port();
        if port.as_ref().is_some_and(|port| port.is_idle().unwrap_or(false)) && !self.shared.abort.is_raised()
        {
            self.shared.recorder.settle();
        }
        self.shared.recorder.to_json()
    }

    /// The first failure of this rank or a peer, if there was one.
    pub fn async_error(&self) -> Option<CommError> {
        self.shared.note_stall();
        self.shared.bootstrap.state().failure().map(|failure| failure.error)
    }
}

enum Prepared {
    Call(Call, Chosen),
    Message(Message),
    Nothing,
}

impl Shared {
    fn port(&self) -> MutexGuard<'_, Option<Port>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choices(&self) -> MutexGuard<'_, Choices> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alive(&self) -> Result<(), CommError> {
        if self.finalized.load(Ordering::Acquire) {
            return Err(left());
        }
        self.healthy()
    }

    /// The communicator's failure, if it has failed.
    fn healthy(&self) -> Result<(), CommError> {
        self.note_stall();
        self.bootstrap.state().failure().map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Every rank calls it with its group.
    fn compare(&self, ops: &[Operation]) -> Result<(), CommError> {
        fingerprint::agree(&self.bootstrap, ops, self.config.deadline)
    }

    /// In the flight record.
    fn note_queued(&self, sequences: &[u64], error: Option<&CommError>) {
        let error = error.map(ToString::to_string);
        for sequence in sequences {
            match &error {
                None => self.recorder.launched(*sequence),
                Some(why) => self.recorder.failed(*sequence, why),
            }
        }
    }

    /// Makes the end of a kernel that was stopped at its deadline known to all ranks.
    fn note_stall(&self) {
        if !self.abort.is_raised() || self.bootstrap.state().has_failed() {
            return;
        }
        let stalls = self.port().as_ref().and_then(Port::stalls).unwrap_or_default();
        let list: Vec<String> = stalls.iter().map(ToString::to_string).collect();
        let why = format!(
            "rank {} waited {} s for its peers and stopped: {}",
            self.rank,
            self.config.deadline.as_secs_f64(),
            if list.is_empty() { "no block left a record".into() } else { list.join("; ") }
        );
        self.bootstrap.abort(&why);
        self.bootstrap.state().fail(Failure { rank: Some(self.rank), error: CommError::Timeout(why) });
    }
}

/// A thread that notices a kernel's stop although the rank makes no calls.
fn watch(shared: &Arc<Shared>) -> Result<(), CommError> {
    let weak: Weak<Shared> = Arc::downgrade(shared);
    let look = move || {
        while let Some(shared) = weak.upgrade() {
            if shared.finalized.load(Ordering::Acquire) || shared.bootstrap.state().has_failed() {
                return;
            }
            shared.note_stall();
            drop(shared);
            std::thread::sleep(WATCH_EVERY);
        }
    };
    std::thread::Builder::new()
        .name(format!("ringlab-watch-{}", shared.rank))
        .spawn(look)
        .map(drop)
        .map_err(|why| CommError::System(format!("cannot start rank {}'s watchdog: {why}", shared.rank)))
}

/// Whether input and output share memory as the collective defines it.
fn is_in_place(collective: Collective, rank: Rank, send: u64, recv: u64, block_bytes: u64) -> bool {
    let (input, output) = collective.in_place_offsets(rank);
    collective.alias().is_some()
        && send.wrapping_sub(u64::from(input) * block_bytes)
            == recv.wrapping_sub(u64::from(output) * block_bytes)
}

/// The fewest channels that run together on any rank's device. Returns when all ranks have told theirs.
fn agree(bootstrap: &Bootstrap, mine: u32, deadline: Duration) -> Result<u32, CommError> {
    let all = bootstrap.allgather(&mine.to_le_bytes(), deadline)?;
    let read = |(rank, bytes): (u32, &Vec<u8>)| {
        <[u8; 4]>::try_from(bytes.as_slice()).map(u32::from_le_bytes).map_err(|_| CommError::Remote {
            rank: Rank(rank),
            why: format!(
                "{} bytes instead of a number of channels; run the same build in all ranks",
                bytes.len()
            ),
        })
    };
    let all = (0..).zip(&all).map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().min().unwrap_or(mine))
}

/// What the tuner has to know of a rank's place.
fn situation(port: &Port, ranks: u32, resident: u32) -> Situation {
    let (_, info, scope) = port.device();
    Situation { ranks, device: info.name.clone(), one_device: scope == Scope::Device, resident }
}

fn left() -> CommError {
    CommError::InvalidUsage("this rank has left the communicator; make a new one".into())
}
