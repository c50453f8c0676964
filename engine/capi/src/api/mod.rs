//! The exported functions. Each exists twice, as `ncclX` and as `pncclX`, so that a profiler may put itself in front of the first.

mod collective;
mod communicator;
mod library;
mod newer;
mod registration;

pub use collective::*;
pub use communicator::*;
pub use library::*;
pub use newer::*;
pub use registration::*;

/// Defines a function and its twin. The body gives a result code or a fault; within a group a fault spoils the group.
macro_rules! export {
    ($(#[$doc:meta])* fn $name:ident, $twin:ident ($($arg:ident: $kind:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers are null or valid for what they are used for, as NCCL's interface says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $crate::abi::NcclResult {
            ringlab_engine::comm::env::accept_nccl_names();
            $crate::fault::guard(stringify!($name), move || -> Result<$crate::abi::NcclResult, $crate::fault::Fault> { $body })
        }

        #[doc = concat!("[`", stringify!($name), "`] under its other name.")]
        ///
        /// # Safety
        /// The same.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $twin($($arg: $kind),*) -> $crate::abi::NcclResult {
            // SAFETY: the caller promises the same.
            unsafe { $name($($arg),*) }
        }
    };
}
use export;

use crate::fault::Fault;

/// Writes an answer through a pointer of the caller's.
///
/// # Safety
/// `to` is null or valid for writing.
unsafe fn put<T>(what: &str, to: *mut T, value: T) -> Result<(), Fault> {
    check(what, to)?;
    // SAFETY: not null, and the caller promises the rest.
    unsafe { to.write(value) };
    Ok(())
}

fn check<T>(what: &str, pointer: *const T) -> Result<(), Fault> {
    if pointer.is_null() {
        return Err(Fault::argument(format!("the argument `{what}` is a null pointer")));
    }
    Ok(())
}

/// Marks the group as spoiled by a fault of a call that belongs to it.
fn in_group<T>(outcome: Result<T, Fault>) -> Result<T, Fault> {
    outcome.inspect_err(crate::group::spoil)
}
