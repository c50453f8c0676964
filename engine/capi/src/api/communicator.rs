//! Making, asking and ending communicators.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Once, PoisonError};

use ringlab_engine::comm::debug::log;
use ringlab_engine::comm::{Scalar, UniqueId};
use ringlab_engine::plan::MAX_RANKS;

use super::{check, export, in_group, put};
use crate::abi::{
    self, NcclComm, NcclConfig, NcclResult, NcclUniqueId, SCALAR_DEVICE, SCALAR_HOST_IMMEDIATE,
    SPLIT_NOCOLOR, SUCCESS,
};
use crate::comms::{Comm, Place};
use crate::config::{self, Settings};
use crate::cuda;
use crate::engine::{self, Line};
use crate::fault::Fault;
use crate::group::{self, Job, Slot};
use crate::reduction::Made;

/// Runs `call` as part of the open group, or as a group of its own.
pub(super) fn grouped(call: impl FnOnce() -> Result<(), Fault>) -> Result<NcclResult, Fault> {
    group::start();
    // The inner end only closes what was opened here; with a fault it tells it, unless a group around it is to do so.
    let called = in_group(call());
    let ended = group::end();
    called.and(ended)
}

fn id(given: &NcclUniqueId) -> Result<UniqueId, Fault> {
    Ok(UniqueId::from_bytes(given.internal.map(|c| c as u8))?)
}

fn ranks(nranks: c_int, rank: c_int) -> Result<(u32, u32), Fault> {
    match (u32::try_from(nranks), u32::try_from(rank)) {
        (Ok(ranks), Ok(rank)) if rank < ranks && ranks <= MAX_RANKS => Ok((ranks, rank)),
        (Ok(ranks), Ok(rank)) if rank < ranks => Err(Fault::argument(format!(
            "{ranks} ranks: a communicator of this library has at most {MAX_RANKS}"
        ))),
        _ => Err(Fault::argument(format!(
            "rank {rank} of {nranks}: ranks are counted from 0 to one less than their number"
        ))),
    }
}

/// Says once in the log which library this is, as NCCL does at the first communicator.
fn introduce() {
    static SAID: Once = Once::new();
    SAID.call_once(|| log!(Version, Init, "Ringlab {} as NCCL 2.22.3", env!("CARGO_PKG_VERSION")));
}

/// What forming in the background or in a group ends with.
fn forming(comm: &Arc<Comm>, form: impl FnOnce() -> Result<Arc<dyn Line>, Fault> + Send + 'static) -> Job {
    let to = comm.clone();
    let run = move || {
        let outcome = form();
        let told = outcome.as_ref().map(drop).map_err(Clone::clone);
        to.formed(outcome);
        told
    };
    Job { comm: comm.clone(), run: Box::new(run), slot: None, background: !comm.settings.blocking }
}

/// # Safety
/// `newcomm` is null or valid until the group ends.
unsafe fn init(
    newcomm: *mut NcclComm,
    nranks: c_int,
    given: &NcclUniqueId,
    rank: c_int,
    device: Option<u32>,
    settings: Settings,
) -> Result<NcclResult, Fault> {
    introduce();
    grouped(|| {
        check("comm", newcomm)?;
        let slot = Slot(newcomm);
        slot.set(std::ptr::null_mut());
        let (ranks, rank) = ranks(nranks, rank)?;
        let id = id(given)?;
        let device = device.map_or_else(cuda::current_device, Ok)?;
        let config = settings.config.clone();
        let comm = Comm::begin(Some(Place { rank, ranks, device }), settings);
        slot.set(comm.handle());
        let job = forming(&comm, move || Ok(engine::init(&id, ranks, rank, device, config)?.into()));
        group::add_job(Job { slot: Some(slot), ..job });
        Ok(())
    })
}

export! {
    /// Joins the communicator of an id; returns when all ranks have, or at once within a group.
    fn ncclCommInitRank, pncclCommInitRank(comm: *mut NcclComm, nranks: c_int, comm_id: NcclUniqueId, rank: c_int) {
        // SAFETY: the caller's promise.
        unsafe { init(comm, nranks, &comm_id, rank, None, config::settings(None)?) }
    }
}

export! {
    /// As [`ncclCommInitRank`]; `config` may be null.
    fn ncclCommInitRankConfig, pncclCommInitRankConfig(
        comm: *mut NcclComm, nranks: c_int, comm_id: NcclUniqueId, rank: c_int, config: *mut NcclConfig,
    ) {
        // SAFETY: the caller's promise.
        let settings = in_group(unsafe { config::read(config) }.and_then(config::settings))?;
        // SAFETY: the caller's promise.
        unsafe { init(comm, nranks, &comm_id, rank, None, settings) }
    }
}

export! {
    /// As [`ncclCommInitRankConfig`] with several roots (since 2.23). The first id serves all ranks here.
    fn ncclCommInitRankScalable, pncclCommInitRankScalable(
        newcomm: *mut NcclComm, nranks: c_int, myrank: c_int, id_count: c_int, comm_ids: *mut NcclUniqueId, config: *mut NcclConfig,
    ) {
        in_group(check("comm_ids", comm_ids))?;
        if id_count < 1 {
            return in_group(Err(Fault::argument(format!("{id_count} ids; at least one is needed"))));
        }
        // SAFETY: not null, and the caller promises at least one.
        let first = unsafe { comm_ids.read_unaligned() };
        // SAFETY: the caller's promise.
        let settings = in_group(unsafe { config::read(config) }.and_then(config::settings))?;
        // SAFETY: the caller's promise.
        unsafe { init(newcomm, nranks, &first, myrank, None, settings) }
    }
}

export! {
    /// All ranks of a communicator in this process, on the devices of the list, or the first ones.
    fn ncclCommInitAll, pncclCommInitAll(comm: *mut NcclComm, ndev: c_int, devlist: *const c_int) {
        check("comm", comm)?;
        let count = u32::try_from(ndev).ok().filter(|n| *n > 0);
        let count = count.ok_or_else(|| Fault::argument(format!("{ndev} devices; at least one is needed")))?;
        if count > MAX_RANKS {
            return Err(Fault::argument(format!(
                "{count} devices, a rank each: a communicator of this library has at most {MAX_RANKS} ranks"
            )));
        }
        let there = cuda::device_count()?;
        let devices: Vec<u32> = (0..count)
            .map(|at| {
                if devlist.is_null() {
                    return Ok(at);
                }
                // SAFETY: not null, and the caller promises `ndev` of them.
                let device = unsafe { devlist.add(at as usize).read() };
                u32::try_from(device).map_err(|_| Fault::argument(format!("there is no device {device}")))
            })
            .collect::<Result<_, _>>()?;
        if let Some(missing) = devices.iter().find(|device| **device >= there) {
            return Err(Fault::cuda(format!("there is no device {missing}; there are {there}")));
        }
        let made = UniqueId::create(None)?.to_bytes();
        let given = NcclUniqueId { internal: made.map(|byte| byte as c_char) };
        let settings = config::settings(None)?;
        group::start();
        for (rank, device) in (0..).zip(devices) {
            // SAFETY: the caller promises room for `ndev` handles. A fault spoils the group and is told at its end.
            let _ = unsafe { init(comm.add(rank as usize), ndev, &given, rank, Some(device), settings.clone()) };
        }
        group::end()
    }
}

export! {
    /// Divides a communicator; every rank calls it.
    fn ncclCommSplit, pncclCommSplit(
        comm: NcclComm, color: c_int, key: c_int, newcomm: *mut NcclComm, config: *mut NcclConfig,
    ) {
        grouped(|| {
            let parent = Comm::find(comm)?;
            check("newcomm", newcomm)?;
            let line = parent.line()?;
            // SAFETY: the caller's promise.
            let given = unsafe { config::read(config) }?;
            let settings = if given.is_some() { config::settings(given)? } else { parent.settings.clone() };
            let slot = Slot(newcomm);
            slot.set(std::ptr::null_mut());
            let config = settings.config.clone();
            if color == SPLIT_NOCOLOR {
                let run = move || line.split(None, key, config).map(drop).map_err(Fault::from);
                let background = !parent.settings.blocking;
                group::add_job(Job { comm: parent, run: Box::new(run), slot: None, background });
                return Ok(());
            }
            let new = Comm::begin(None, settings);
            slot.set(new.handle());
            let job = forming(&new, move || {
                // Any other number is a colour, negative ones too.
                let formed = line.split(Some(color.cast_unsigned()), key, config)?;
                formed.map(Arc::from).ok_or_else(|| Fault::usage("the split gave this rank no communicator"))
            });
            group::add_job(Job { slot: Some(slot), ..job });
            Ok(())
        })
    }
}

export! {
    /// Waits until this rank's operations have ended and all ranks have come here. Null is nothing.
    fn ncclCommFinalize, pncclCommFinalize(comm: NcclComm) {
        if comm.is_null() {
            return Ok(SUCCESS);
        }
        grouped(|| {
            let comm = Comm::find(comm)?;
            let line = comm.leaving()?;
            let to = comm.clone();
            let run = move || {
                let outcome = line.finalize().map_err(Fault::from);
                to.left(outcome.clone());
                outcome
            };
            let background = !comm.settings.blocking;
            group::add_job(Job { comm, run: Box::new(run), slot: None, background });
            Ok(())
        })
    }
}

export! {
    /// Leaves a communicator and frees what it holds; the handle is stale afterwards. Null is nothing.
    fn ncclCommDestroy, pncclCommDestroy(comm: NcclComm) {
        if comm.is_null() {
            return Ok(SUCCESS);
        }
        grouped(|| {
            let comm = Comm::find(comm)?;
            if comm.is_forming() {
                return Err(Fault::usage("the communicator is still forming; abort it, or wait until it has"));
            }
            comm.remove()?;
            // Ranks of one process leave together: each in its own time when they are destroyed one after the other.
            let line = comm.take();
            let run = move || {
                drop(line);
                Ok(())
            };
            group::add_job(Job { comm, run: Box::new(run), slot: None, background: false });
            Ok(())
        })
    }
}

export! {
    /// Ends a communicator for all ranks, stops its operations, and frees what it holds. Null is nothing.
    fn ncclCommAbort, pncclCommAbort(comm: NcclComm) {
        if comm.is_null() {
            return Ok(SUCCESS);
        }
        let comm = Comm::find(comm)?;
        comm.remove()?;
        if let Some(line) = comm.take() {
            line.abort("ncclCommAbort was called");
        }
        Ok(SUCCESS)
    }
}

export! {
    /// The communicator's first failure, `ncclInProgress` while it forms or is finalised in the background.
    fn ncclCommGetAsyncError, pncclCommGetAsyncError(comm: NcclComm, async_error: *mut NcclResult) {
        let comm = Comm::find(comm)?;
        // SAFETY: the caller's promise.
        unsafe { put("async_error", async_error, comm.async_error()) }?;
        Ok(SUCCESS)
    }
}

/// # Safety
/// `to` is null or valid for writing.
unsafe fn tell(
    comm: NcclComm,
    what: &str,
    to: *mut c_int,
    of: fn(Place) -> u32,
) -> Result<NcclResult, Fault> {
    let value = of(Comm::find(comm)?.place()?);
    let value =
        c_int::try_from(value).map_err(|_| Fault::argument(format!("{value} does not fit an int")))?;
    // SAFETY: the caller's promise.
    unsafe { put(what, to, value) }?;
    Ok(SUCCESS)
}

export! {
    /// Number of ranks.
    fn ncclCommCount, pncclCommCount(comm: NcclComm, count: *mut c_int) {
        // SAFETY: the caller's promise.
        unsafe { tell(comm, "count", count, |place| place.ranks) }
    }
}

export! {
    /// The rank's device.
    fn ncclCommCuDevice, pncclCommCuDevice(comm: NcclComm, device: *mut c_int) {
        // SAFETY: the caller's promise.
        unsafe { tell(comm, "device", device, |place| place.device) }
    }
}

export! {
    /// The rank's number.
    fn ncclCommUserRank, pncclCommUserRank(comm: NcclComm, rank: *mut c_int) {
        // SAFETY: the caller's promise.
        unsafe { tell(comm, "rank", rank, |place| place.rank) }
    }
}

export! {
    /// Makes a sum whose inputs are multiplied by a factor first.
    fn ncclRedOpCreatePreMulSum, pncclRedOpCreatePreMulSum(
        op: *mut c_int, scalar: *mut c_void, datatype: c_int, residence: c_int, comm: NcclComm,
    ) {
        let comm = Comm::find(comm)?;
        check("op", op)?;
        check("scalar", scalar)?;
        let dtype = abi::dtype(datatype)?;
        let factor = match residence {
            SCALAR_DEVICE => Scalar::Device(scalar.addr() as u64),
            SCALAR_HOST_IMMEDIATE => {
                let mut bytes = [0u8; 8];
                // SAFETY: not null; the caller promises one element, which has at most 8 bytes.
                unsafe { std::ptr::copy_nonoverlapping(scalar.cast::<u8>(), bytes.as_mut_ptr(), dtype.size()) };
                Scalar::Bits(u64::from_le_bytes(bytes))
            }
            other => return Err(Fault::argument(format!("there is no residence {other}; 0 is the device, 1 the host"))),
        };
        let made = comm.reductions.lock().unwrap_or_else(PoisonError::into_inner).make(Made { dtype, factor });
        // SAFETY: the caller's promise.
        unsafe { put("op", op, made) }?;
        Ok(SUCCESS)
    }
}

export! {
    /// Forgets a reduction; calls that were given it keep it.
    fn ncclRedOpDestroy, pncclRedOpDestroy(op: c_int, comm: NcclComm) {
        Comm::find(comm)?.reductions.lock().unwrap_or_else(PoisonError::into_inner).destroy(op)?;
        Ok(SUCCESS)
    }
}
