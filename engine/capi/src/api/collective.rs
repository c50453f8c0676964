//! Collectives, sends and receives.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError};

use ringlab_engine::comm::Operation;
use ringlab_engine::comm::debug::log;
use ringlab_engine::types::{Collective, Rank};

use super::{export, in_group};
use crate::abi::{self, CudaStream, IN_PROGRESS, NcclComm, NcclResult, SUCCESS};
use crate::comms::Comm;
use crate::fault::Fault;
use crate::group;

/// `ncclSum`, for collectives that reduce nothing.
const NO_REDUCTION: c_int = 0;

struct Call {
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    datatype: c_int,
    op: c_int,
    comm: NcclComm,
    stream: CudaStream,
}

fn rank(comm: &Comm, what: &str, number: c_int) -> Result<Rank, Fault> {
    let ranks = comm.place()?.ranks;
    match u32::try_from(number) {
        Ok(rank) if rank < ranks => Ok(Rank(rank)),
        _ => Err(Fault::argument(format!("{what} {number} does not exist: ranks are 0 to {}", ranks - 1))),
    }
}

/// Queues what `of` makes of the communicator, as part of the open group or as a group of its own.
fn queue(
    comm: NcclComm,
    stream: CudaStream,
    of: impl FnOnce(&Comm) -> Result<Operation, Fault>,
) -> Result<NcclResult, Fault> {
    let mut asked = None;
    group::start();
    let called = in_group((|| {
        let comm: Arc<Comm> = Comm::find(comm)?;
        asked = Some(comm.clone());
        comm.line()?;
        let operation = of(&comm).inspect_err(|fault| comm.note(fault))?;
        log!(
            Info,
            Coll,
            "rank {} of {}: {operation:?} on stream {stream:p}",
            comm.place()?.rank,
            comm.place()?.ranks
        );
        group::add_operation(&comm, operation, stream);
        Ok(())
    })());
    let ended = group::end();
    called.and(ended)?;
    // A communicator that does not block answers with its state, once nothing is left to be collected.
    match asked {
        Some(comm) if !comm.settings.blocking && !group::is_open() && comm.async_error() == IN_PROGRESS => {
            Ok(IN_PROGRESS)
        }
        _ => Ok(SUCCESS),
    }
}

fn collective(call: Call, of: impl FnOnce(&Comm) -> Result<Collective, Fault>) -> Result<NcclResult, Fault> {
    queue(call.comm, call.stream, |comm| {
        let collective = of(comm)?;
        let dtype = abi::dtype(call.datatype)?;
        let (op, factor) =
            comm.reductions.lock().unwrap_or_else(PoisonError::into_inner).resolve(call.op, dtype)?;
        let place = comm.place()?;
        let rank = Rank(place.rank);
        let blocks =
            u64::from(collective.input_blocks(place.ranks).max(collective.output_blocks(place.ranks)));
        let block = call.count as u64;
        if block
            .checked_mul(blocks)
            .and_then(|n| n.checked_mul(dtype.size() as u64))
            .is_none_or(|n| n > i64::MAX as u64)
        {
            return Err(Fault::argument(format!("a count of {block} does not fit the address space")));
        }
        for (name, there, null) in [
            ("sendbuff", collective.has_input(rank), call.send.is_null()),
            ("recvbuff", collective.has_output(rank), call.recv.is_null()),
        ] {
            if there && null && block > 0 {
                return Err(Fault::argument(format!(
                    "the argument `{name}` is a null pointer, with a count of {block}"
                )));
            }
        }
        Ok(Operation::Collective {
            collective,
            send: call.send.addr() as u64,
            recv: call.recv.addr() as u64,
            block,
            dtype,
            op,
            factor,
        })
    })
}

export! {
    /// Every rank gets the reduction of all.
    fn ncclAllReduce, pncclAllReduce(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: c_int, op: c_int, comm: NcclComm,
        stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count, datatype, op, comm, stream };
        collective(call, |_| Ok(Collective::AllReduce))
    }
}

export! {
    /// The root gets the reduction of all.
    fn ncclReduce, pncclReduce(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: c_int, op: c_int, root: c_int,
        comm: NcclComm, stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count, datatype, op, comm, stream };
        collective(call, |comm| Ok(Collective::Reduce { root: rank(comm, "root", root)? }))
    }
}

export! {
    /// Every rank gets what the root has.
    fn ncclBroadcast, pncclBroadcast(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: c_int, root: c_int, comm: NcclComm,
        stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count, datatype, op: NO_REDUCTION, comm, stream };
        collective(call, |comm| Ok(Collective::Broadcast { root: rank(comm, "root", root)? }))
    }
}

export! {
    /// [`ncclBroadcast`] in place.
    fn ncclBcast, pncclBcast(
        buff: *mut c_void, count: usize, datatype: c_int, root: c_int, comm: NcclComm, stream: CudaStream,
    ) {
        let call = Call { send: buff, recv: buff, count, datatype, op: NO_REDUCTION, comm, stream };
        collective(call, |comm| Ok(Collective::Broadcast { root: rank(comm, "root", root)? }))
    }
}

export! {
    /// Every rank gets its block of the reduction.
    fn ncclReduceScatter, pncclReduceScatter(
        sendbuff: *const c_void, recvbuff: *mut c_void, recvcount: usize, datatype: c_int, op: c_int, comm: NcclComm,
        stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count: recvcount, datatype, op, comm, stream };
        collective(call, |_| Ok(Collective::ReduceScatter))
    }
}

export! {
    /// Every rank gets all blocks.
    fn ncclAllGather, pncclAllGather(
        sendbuff: *const c_void, recvbuff: *mut c_void, sendcount: usize, datatype: c_int, comm: NcclComm,
        stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count: sendcount, datatype, op: NO_REDUCTION, comm, stream };
        collective(call, |_| Ok(Collective::AllGather))
    }
}

export! {
    /// Block `q` of rank `r` becomes block `r` of rank `q` (since 2.28).
    fn ncclAlltoAll, pncclAlltoAll(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: c_int, comm: NcclComm, stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count, datatype, op: NO_REDUCTION, comm, stream };
        collective(call, |_| Ok(Collective::AllToAll))
    }
}

export! {
    /// The root gets all blocks (since 2.28).
    fn ncclGather, pncclGather(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: c_int, root: c_int, comm: NcclComm,
        stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count, datatype, op: NO_REDUCTION, comm, stream };
        collective(call, |comm| Ok(Collective::Gather { root: rank(comm, "root", root)? }))
    }
}

export! {
    /// Every rank gets its block of the root's (since 2.28).
    fn ncclScatter, pncclScatter(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: c_int, root: c_int, comm: NcclComm,
        stream: CudaStream,
    ) {
        let call = Call { send: sendbuff, recv: recvbuff, count, datatype, op: NO_REDUCTION, comm, stream };
        collective(call, |comm| Ok(Collective::Scatter { root: rank(comm, "root", root)? }))
    }
}

fn message(
    buffer: *const c_void,
    count: usize,
    datatype: c_int,
) -> Result<(u64, u64, ringlab_engine::types::DType), Fault> {
    let dtype = abi::dtype(datatype)?;
    let count = count as u64;
    if buffer.is_null() && count > 0 {
        return Err(Fault::argument(format!("the buffer is a null pointer, with a count of {count}")));
    }
    if count.checked_mul(dtype.size() as u64).is_none_or(|n| n > i64::MAX as u64) {
        return Err(Fault::argument(format!("a count of {count} does not fit the address space")));
    }
    Ok((buffer.addr() as u64, count, dtype))
}

export! {
    /// Sends to a peer, which receives as many elements of the same type.
    fn ncclSend, pncclSend(
        sendbuff: *const c_void, count: usize, datatype: c_int, peer: c_int, comm: NcclComm, stream: CudaStream,
    ) {
        queue(comm, stream, |comm| {
            let to = rank(comm, "peer", peer)?;
            let (buffer, count, dtype) = message(sendbuff, count, datatype)?;
            Ok(Operation::Send { to, buffer, count, dtype })
        })
    }
}

export! {
    /// Receives from a peer.
    fn ncclRecv, pncclRecv(
        recvbuff: *mut c_void, count: usize, datatype: c_int, peer: c_int, comm: NcclComm, stream: CudaStream,
    ) {
        queue(comm, stream, |comm| {
            let from = rank(comm, "peer", peer)?;
            let (buffer, count, dtype) = message(recvbuff, count, datatype)?;
            Ok(Operation::Recv { from, buffer, count, dtype })
        })
    }
}
