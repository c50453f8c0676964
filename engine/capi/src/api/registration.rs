//! Registering buffers: as a hint, or with all ranks.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ringlab_engine::comm::env;

use super::communicator::grouped;
use super::{check, export, put};
use crate::abi::{NcclComm, NcclResult, SUCCESS, WINDOW_SYMMETRIC};
use crate::comms::{Comm, Registered};
use crate::fault::Fault;
use crate::group::{self, Job};

/// Whether [`ncclCommRegister`] keeps the promise of a symmetric window: every rank registers, in the same order, and uses buffers at
/// the same places. NCCL asks for no such thing, so the program's owner has to say so.
fn is_symmetric() -> bool {
    env::var("REGISTER_SYMMETRIC").is_some_and(|value| value == "1")
}

/// Gives out a handle, and registers with all ranks when the group ends.
fn with_all(comm: Arc<Comm>, buff: *mut c_void, bytes: usize, handle: *mut *mut c_void) -> Result<(), Fault> {
    let line = comm.line()?;
    let (number, address) = (comm.next_buffer(), buff.addr());
    // SAFETY: the caller's promise.
    unsafe { put("handle", handle, std::ptr::without_provenance_mut(number)) }?;
    let (to, background) = (comm.clone(), false);
    let run = move || {
        let engine = line.communicator().ok_or_else(|| Fault::usage("this communicator has no device"))?;
        let window = engine.register(address as u64, bytes as u64)?;
        to.keep_buffer(number, Registered { address, bytes, window: Some(window) });
        Ok(())
    };
    group::add_job(Job { comm, run: Box::new(run), slot: None, background });
    Ok(())
}

/// Only writes it down.
fn alone(comm: &Comm, buff: *mut c_void, bytes: usize, handle: *mut *mut c_void) -> Result<(), Fault> {
    let number = comm.next_buffer();
    comm.keep_buffer(number, Registered { address: buff.addr(), bytes, window: None });
    // SAFETY: the caller's promise.
    unsafe { put("handle", handle, std::ptr::without_provenance_mut(number)) }
}

fn forget(comm: NcclComm, handle: *mut c_void) -> Result<NcclResult, Fault> {
    grouped(|| {
        let comm = Comm::find(comm)?;
        let Some(window) = comm.forget_buffer(handle)?.window else { return Ok(()) };
        let line = comm.line()?;
        let run = move || {
            let engine =
                line.communicator().ok_or_else(|| Fault::usage("this communicator has no device"))?;
            Ok(engine.deregister(window)?)
        };
        group::add_job(Job { comm, run: Box::new(run), slot: None, background: false });
        Ok(())
    })
}

export! {
    /// Takes note of a buffer, which changes nothing; or, with `RINGLAB_REGISTER_SYMMETRIC=1`, as [`ncclCommWindowRegister`].
    fn ncclCommRegister, pncclCommRegister(comm: NcclComm, buff: *mut c_void, size: usize, handle: *mut *mut c_void) {
        let comm = Comm::find(comm)?;
        check("buff", buff)?;
        check("handle", handle)?;
        if is_symmetric() {
            return grouped(|| with_all(comm, buff, size, handle));
        }
        alone(&comm, buff, size, handle)?;
        Ok(SUCCESS)
    }
}

export! {
    /// Forgets a buffer; where all ranks have registered it, all of them call this.
    fn ncclCommDeregister, pncclCommDeregister(comm: NcclComm, handle: *mut c_void) {
        forget(comm, handle)
    }
}

export! {
    /// Registers a buffer with all ranks (since 2.27): every rank calls it, in the same order, with as many bytes. With the flag for
    /// symmetric use peers then read it where it is ([`ringlab_engine::comm::Communicator::register`] says what that promises); without
    /// it is a hint that changes nothing.
    fn ncclCommWindowRegister, pncclCommWindowRegister(
        comm: NcclComm, buff: *mut c_void, size: usize, win: *mut *mut c_void, win_flags: c_int,
    ) {
        grouped(|| {
            let comm = Comm::find(comm)?;
            check("buff", buff)?;
            check("win", win)?;
            if win_flags & WINDOW_SYMMETRIC == 0 {
                return alone(&comm, buff, size, win);
            }
            with_all(comm, buff, size, win)
        })
    }
}

export! {
    /// Ends [`ncclCommWindowRegister`]; every rank calls it, in the same order (since 2.27).
    fn ncclCommWindowDeregister, pncclCommWindowDeregister(comm: NcclComm, win: *mut c_void) {
        forget(comm, win)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::INVALID_ARGUMENT;
    use crate::comms::Place;
    use crate::config;

    #[test]
    fn a_hint_is_a_handle_that_ends_once() {
        let comm = Comm::begin(Some(Place { rank: 1, ranks: 2, device: 0 }), config::settings(None).unwrap());
        let buffer = std::ptr::without_provenance_mut(4096);
        let (mut one, mut two, mut three) =
            (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the places for handles are live; the buffer is only written down.
        unsafe {
            assert_eq!(ncclCommRegister(comm.handle(), buffer, 64, &mut one), SUCCESS);
            assert_eq!(ncclCommWindowRegister(comm.handle(), buffer, 64, &mut two, 0), SUCCESS);
            assert_ne!(one, two);
            assert_eq!(ncclCommDeregister(comm.handle(), one), SUCCESS);
            assert_eq!(ncclCommDeregister(comm.handle(), one), INVALID_ARGUMENT);
            assert_eq!(ncclCommRegister(comm.handle(), buffer, 64, &mut three), SUCCESS);
            assert_ne!(one, three, "no handle comes again");
            assert_eq!(ncclCommWindowDeregister(comm.handle(), two), SUCCESS);
            assert_eq!(ncclCommRegister(comm.handle(), std::ptr::null_mut(), 64, &mut one), INVALID_ARGUMENT);
        }
    }
}
