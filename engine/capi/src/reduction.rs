//! `ncclRedOp_t`: the built-in reductions, and those a program makes for a communicator.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use ringlab_engine::comm::Scalar;
use ringlab_engine::types::{DType, RedOp};

use crate::abi::NUM_OPS;
use crate::fault::Fault;

/// A pre-multiplied sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub dtype: DType,
    pub factor: Scalar,
}

/// The reductions made for one communicator, by handle.
#[derive(Debug, Default)]
pub struct Reductions {
    made: HashMap<c_int, Made>,
}

/// Handles are never shared between communicators, so that one used with the wrong communicator is noticed.
static NEXT: AtomicI32 = AtomicI32::new(NUM_OPS);

impl Reductions {
    pub fn make(&mut self, made: Made) -> c_int {
        loop {
            // Relaxed: only uniqueness counts. After 2^31 handles it begins anew.
            let handle = NEXT.fetch_add(1, Ordering::Relaxed);
            if handle < NUM_OPS {
                NEXT.store(NUM_OPS, Ordering::Relaxed);
            } else if let std::collections::hash_map::Entry::Vacant(place) = self.made.entry(handle) {
                place.insert(made);
                return handle;
            }
        }
    }

    pub fn destroy(&mut self, handle: c_int) -> Result<(), Fault> {
        if (0..NUM_OPS).contains(&handle) {
            return Err(Fault::argument(format!(
                "the reduction {handle} is built in and cannot be destroyed"
            )));
        }
        self.made.remove(&handle).map(drop).ok_or_else(|| unknown(handle))
    }

    /// What to reduce with.
    pub fn resolve(&self, handle: c_int, dtype: DType) -> Result<(RedOp, Option<Scalar>), Fault> {
        Ok(match handle {
            0 => (RedOp::Sum, None),
            1 => (RedOp::Prod, None),
            2 => (RedOp::Max, None),
            3 => (RedOp::Min, None),
            4 => (RedOp::Avg, None),
            _ => {
                let made = self.made.get(&handle).ok_or_else(|| unknown(handle))?;
                if made.dtype != dtype {
                    return Err(Fault::argument(format!(
                        "the reduction {handle} was made for {}, and this call is on {dtype}; make one for it",
                        made.dtype
                    )));
                }
                (RedOp::Sum, Some(made.factor))
            }
        })
    }
}

fn unknown(handle: c_int) -> Fault {
    Fault::argument(format!(
        "this communicator has no reduction {handle}: it is none of ncclSum to ncclAvg, was made for another communicator, or destroyed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_numbers_are_nccls() {
        let all = Reductions::default();
        let ops: Vec<_> = (0..5).map(|n| all.resolve(n, DType::F32).unwrap().0).collect();
        assert_eq!(ops, [RedOp::Sum, RedOp::Prod, RedOp::Max, RedOp::Min, RedOp::Avg]);
    }

    #[test]
    fn a_made_reduction_lives_until_destroyed_with_its_communicator_and_type() {
        let (mut one, mut other) = (Reductions::default(), Reductions::default());
        let made = Made { dtype: DType::F32, factor: Scalar::Bits(7) };
        let handle = one.make(made);
        let foreign = other.make(made);
        assert_ne!(handle, foreign);
        assert_eq!(one.resolve(handle, DType::F32).unwrap(), (RedOp::Sum, Some(Scalar::Bits(7))));
        assert!(one.resolve(handle, DType::F16).unwrap_err().text.contains("made for float"));
        assert!(one.resolve(foreign, DType::F32).unwrap_err().text.contains("another communicator"));
        one.destroy(handle).unwrap();
        assert!(one.destroy(handle).is_err() && one.resolve(handle, DType::F32).is_err());
        assert!(one.destroy(0).unwrap_err().text.contains("built in"));
        assert!(one.resolve(-1, DType::F32).is_err());
    }
}
