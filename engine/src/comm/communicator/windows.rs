//! Registering buffers with all ranks.

use serde::{Deserialize, Serialize};

use super::{Communicator, Port, left};
use crate::comm::choice::Chosen;
use crate::comm::error::CommError;
use crate::exec::ExecError;
use crate::exec::cuda::rank::{Call, Schedule, WindowCard, WindowId, registered_algorithm};
use crate::fifo::Protocol;
use crate::types::Rank;

/// What a rank tells the others: what it has, or why it has not.
#[derive(Debug, Serialize, Deserialize)]
enum Told<T> {
    Done(T),
    Refused(String),
}

impl<T> Told<T> {
    fn of(outcome: Result<T, ExecError>) -> Told<T> {
        match outcome {
            Ok(done) => Told::Done(done),
            Err(why) => Told::Refused(why.to_string()),
        }
    }
}

impl Communicator {
    /// Registers device memory: ranks may then read it where it is, and collectives whose buffers are registered move fewer bytes. Every
    /// rank calls it, in the same order, with as many bytes, from threads or processes of their own (or as jobs of one group in the C
    /// interface). Returns when all ranks have mapped it.
    ///
    /// The promise that comes with it: a rank's buffers of a collective lie in registered memory only if those of all other ranks do,
    /// in that registered together with it and as far from its start; in place the one memory of input and output does. All-reduce,
    /// all-gather, reduce-scatter and all-to-all use it; pre-multiplied sums and other collectives do not.
    ///
    /// The memory has to stay until [`Communicator::deregister`] has returned. A rank that frees it earlier is refused its next
    /// collective there, and the communicator is aborted, as the peers wait for that rank; what peers read of it meanwhile is undefined.
    /// A captured graph that uses it must not run afterwards.
    ///
    /// # Errors
    /// [`CommError::InvalidUsage`] on all ranks when one of them cannot share or map it; nothing is registered then.
    pub fn register(&self, address: u64, bytes: u64) -> Result<WindowId, CommError> {
        self.shared.alive()?;
        let own = self.at_port(|port| port.window_card(address, bytes))?;
        let cards: Vec<WindowCard> = self.exchange(&Told::of(own))?;
        let (told, mapped) = match self.at_port(|port| port.map_window(&cards))? {
            Ok(mapped) => (Told::Done(()), Some(mapped)),
            Err(why) => (Told::Refused(why.to_string()), None),
        };
        let _: Vec<()> = self.exchange(&told)?;
        // A rank that has not mapped it has told so, and nobody comes here.
        let mapped =
            mapped.ok_or_else(|| CommError::System("a window was mapped by all ranks but this".into()))?;
        self.at_port(|port| port.add_window(mapped))
    }

    /// Ends a registration; every rank calls it, in the same order. Waits until no rank's queued operations use it; afterwards it may be
    /// freed.
    ///
    /// # Errors
    /// [`CommError::InvalidArgument`] when it is not registered; the failure of the communicator.
    pub fn deregister(&self, window: WindowId) -> Result<(), CommError> {
        self.shared.alive()?;
        let deadline = self.shared.config.setup_deadline;
        let removed = self.at_port(|port| -> Result<_, ExecError> {
            port.finish()?;
            Ok(port.remove_window(window))
        })??;
        let removed = removed.ok_or_else(|| {
            CommError::InvalidArgument(format!("{window:?} is not registered, or is no longer"))
        })?;
        // Nobody reads it any more, then nobody has mapped it any more.
        self.shared.bootstrap.barrier(deadline)?;
        self.at_port(|_| drop(removed))?;
        self.shared.bootstrap.barrier(deadline)
    }

    fn at_port<T>(&self, act: impl FnOnce(&mut Port) -> T) -> Result<T, CommError> {
        let mut port = self.shared.port();
        Ok(act(port.as_mut().ok_or_else(left)?))
    }

    /// What all ranks have, by rank; the first refusal for all of them.
    fn exchange<T: Serialize + for<'a> Deserialize<'a>>(&self, own: &Told<T>) -> Result<Vec<T>, CommError> {
        let own = serde_json::to_vec(own)
            .map_err(|why| CommError::System(format!("writing what is registered: {why}")))?;
        let all = self.shared.bootstrap.allgather(&own, self.shared.config.setup_deadline)?;
        let read = |(rank, bytes): (u32, &Vec<u8>)| match serde_json::from_slice(bytes) {
            Ok(Told::Done(done)) => Ok(done),
            Ok(Told::Refused(why)) => Err(CommError::InvalidUsage(format!("rank {rank}: {why}"))),
            Err(why) => Err(CommError::Remote {
                rank: Rank(rank),
                why: format!("what it registers cannot be read ({why}); run the same build in all ranks"),
            }),
        };
        (0..).zip(&all).map(read).collect()
    }

    /// Replaces what was chosen where all buffers are registered.
    ///
    /// # Errors
    /// When one was freed since. The peers wait for this rank in a plan that it cannot run, so they are told.
    pub(super) fn use_windows(
        &self,
        port: &Port,
        call: &mut Call,
        chosen: &mut Chosen,
    ) -> Result<(), CommError> {
        let algorithm = registered_algorithm(call, self.shared.ranks).filter(|_| port.is_registered(call));
        let Some(algorithm) = algorithm else { return Ok(()) };
        port.verify_windows(call).inspect_err(|why| self.abort(&why.to_string()))?;
        let channels = chosen.channels;
        let protocol = Protocol::Simple;
        call.schedule = Schedule::Standard { algorithm, channels, protocol };
        *chosen = Chosen { algorithm, protocol, channels };
        Ok(())
    }
}
