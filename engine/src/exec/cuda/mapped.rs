//! Memory that host and devices share.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{result, sys};

use super::driver::{Address, Device, failed};
use crate::exec::ExecError;

/// Host memory that every device can read and write while a kernel runs.
#[derive(Debug)]
pub struct Mapped<T: Pod> {
    device: Arc<Device>,
    pub(super) host: *mut T,
    pub(super) count: usize,
}

// SAFETY: the allocation belongs to this value alone on the host, and all access is volatile.
unsafe impl<T: Pod + Send> Send for Mapped<T> {}

impl<T: Pod> Mapped<T> {
    pub fn zeroed(device: &Arc<Device>, count: usize) -> Result<Mapped<T>, ExecError> {
        device.bind()?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the context is current; zeroed below before anyone reads it.
        let host = unsafe { result::malloc_host(size_of::<T>() * count.max(1), flags) }
            .map_err(failed("allocating host memory for a device"))?;
        let mapped = Mapped { device: device.clone(), host: host.cast(), count };
        mapped.clear();
        Ok(mapped)
    }

    pub fn address(&self) -> Result<Address, ExecError> {
        self.device.bind()?;
        let mut at = 0;
        // SAFETY: `host` came from cuMemHostAlloc with DEVICEMAP; `at` is live.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut at, self.host.cast(), 0) }
            .result()
            .map_err(failed("mapping host memory into a device"))?;
        Ok(Address(at))
    }

    /// Writes one value, for kernels that are running to see.
    pub fn put(&self, index: usize, value: T) {
        assert!(index < self.count, "{index} of {}", self.count);
        // SAFETY: inside the allocation.
        unsafe { self.host.add(index).write_volatile(value) };
    }

    pub fn clear(&self) {
        for i in 0..self.count {
            // SAFETY: `i` is inside the allocation, which is aligned to a page; zero is a value of every `Pod`.
            unsafe { self.host.add(i).write_volatile(T::zeroed()) };
        }
    }

    /// Replaces the first values.
    pub fn fill_from(&self, values: &[T]) {
        assert!(values.len() <= self.count, "{} of {}", values.len(), self.count);
        for (i, value) in values.iter().enumerate() {
            // SAFETY: inside the allocation.
            unsafe { self.host.add(i).write_volatile(*value) };
        }
    }

    /// What a kernel that has ended left there.
    pub fn read(&self) -> Vec<T> {
        // SAFETY: inside the allocation, and every bit pattern is a value of a `Pod`.
        (0..self.count).map(|i| unsafe { self.host.add(i).read_volatile() }).collect()
    }
}

impl<T: Pod> Drop for Mapped<T> {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: allocated in `zeroed`, freed only here. A failure leaves nothing to be done.
            let _ = unsafe { result::free_host(self.host.cast()) };
        }
    }
}
