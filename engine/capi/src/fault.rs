//! What a call answers when it cannot do what it was asked, and the texts `ncclGetLastError` gives out.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use ringlab_engine::comm::{CommError, debug};

use crate::abi::{
    INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, NcclResult, REMOTE_ERROR, SYSTEM_ERROR,
    UNHANDLED_CUDA_ERROR,
};

/// A result code other than success, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub code: NcclResult,
    pub text: String,
}

impl Fault {
    pub fn argument(text: impl Into<String>) -> Fault {
        Fault { code: INVALID_ARGUMENT, text: text.into() }
    }

    pub fn usage(text: impl Into<String>) -> Fault {
        Fault { code: INVALID_USAGE, text: text.into() }
    }

    pub fn cuda(text: impl Into<String>) -> Fault {
        Fault { code: UNHANDLED_CUDA_ERROR, text: text.into() }
    }

    /// Of something the interface has, or newer versions of it have, and this library does not do.
    pub fn unsupported(what: &str, instead: &str) -> Fault {
        Fault::usage(format!("{what} is not offered by this library; {instead}"))
    }
}

impl From<CommError> for Fault {
    fn from(error: CommError) -> Fault {
        let code = match &error {
            CommError::InvalidArgument(_) => INVALID_ARGUMENT,
            CommError::InvalidUsage(_) | CommError::Unsupported(_) => INVALID_USAGE,
            CommError::System(_) => SYSTEM_ERROR,
            CommError::Device(_) => UNHANDLED_CUDA_ERROR,
            // What the others did or did not do.
            CommError::Remote { .. } | CommError::Aborted(_) | CommError::Timeout(_) => REMOTE_ERROR,
        };
        Fault { code, text: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
    /// What was handed out last: it has to live until this thread asks again.
    static GIVEN: RefCell<CString> = RefCell::new(CString::default());
}

/// The last error of any thread: NCCL has only this one, and a watchdog thread asks for what another thread ran into.
static LAST_OF_ALL: Mutex<String> = Mutex::new(String::new());

/// Remembers an error of the calling thread, under the name of the call.
pub fn remember(call: &str, fault: &Fault) {
    let text = format!("{call}: {}", fault.text);
    debug::log!(Warn, Call, "{text}");
    LAST_OF_ALL.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&text);
    LAST.set(text);
}

/// The communicator's own error where it has one, else the thread's, else that of any thread. Valid until this thread asks again.
pub fn last(of_comm: Option<String>) -> *const c_char {
    let mut text = of_comm.unwrap_or_default();
    if text.is_empty() {
        text = LAST.with_borrow(Clone::clone);
    }
    if text.is_empty() {
        text = LAST_OF_ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
    }
    text.retain(|c| c != '\0');
    let text = CString::new(text).expect("the zeros were taken out");
    GIVEN.with_borrow_mut(|given| {
        *given = text;
        given.as_ptr()
    })
}

/// Runs a call of the interface: turns a fault into its code and remembers the text; a panic stops here instead of unwinding into C.
pub fn guard(call: &str, body: impl FnOnce() -> Result<NcclResult, Fault>) -> NcclResult {
    let fault = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => return code,
        Ok(Err(fault)) => fault,
        Err(panic) => from_panic(panic.as_ref()),
    };
    remember(call, &fault);
    fault.code
}

pub fn from_panic(panic: &(dyn Any + Send)) -> Fault {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Fault { code: INTERNAL_ERROR, text: format!("a bug in this library, please report it: {text}") }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;
    use crate::abi::SUCCESS;

    fn text(of_comm: Option<String>) -> String {
        // SAFETY: a terminated string that lives until this thread asks again.
        unsafe { CStr::from_ptr(last(of_comm)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_fault_is_remembered_with_the_call_and_a_success_forgets_nothing() {
        assert_eq!(guard("ncclX", || Err(Fault::argument("the count is odd"))), INVALID_ARGUMENT);
        assert_eq!(guard("ncclY", || Ok(SUCCESS)), SUCCESS);
        assert_eq!(text(None), "ncclX: the count is odd");
        assert_eq!(text(Some("of the communicator".into())), "of the communicator");
        assert_eq!(text(Some(String::new())), "ncclX: the count is odd");
    }

    #[test]
    fn a_panic_is_an_internal_error_with_its_words() {
        assert_eq!(guard("ncclX", || panic!("slot {} is empty", 3)), INTERNAL_ERROR);
        assert!(text(None).contains("slot 3 is empty"));
    }

    #[test]
    fn another_thread_may_ask_for_the_error_of_this_one() {
        guard("ncclX", || Err(Fault::usage("seen from elsewhere")));
        // Other tests fail calls as well; some error is there in any case.
        std::thread::spawn(|| assert!(!text(None).is_empty())).join().unwrap();
    }
}
