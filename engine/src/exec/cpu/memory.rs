//! Memory that several threads share by plan: the only unsafe code of the CPU back end.
//!
//! Threads of different ranks read and write the same buffers without locks, as the plan's FIFOs and signals order them. Rust's
//! borrow checker cannot see that order, so it is promised once, by whoever creates a [`Region`], and everything after is safe.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

use super::ops::{Combine, Element, Factor};

/// Buffers start on such a boundary: a cache line, and the widest vector there is.
pub const ALIGN: usize = 64;

/// What memory is allocated in. The allocator takes zeroed pages from the system only for this alignment or less, and clears what is
/// more aligned itself: every page of it, before anyone wants it.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Unit(#[expect(dead_code, reason = "reached through windows only")] [u8; UNIT]);

const UNIT: usize = 16;
const _: () = assert!(size_of::<UnsafeCell<Unit>>() == UNIT && ALIGN.is_multiple_of(UNIT));

/// Elements folded at a time: the accumulators (at most 8 bytes each) stay in the first-level cache.
const BLOCK: usize = 512;

/// One allocation, zeroed. Pages that nobody touches take no memory.
pub struct Region {
    units: Box<[UnsafeCell<Unit>]>,
    /// Bytes before the first boundary of [`ALIGN`].
    before: usize,
    bytes: usize,
}

// SAFETY: `Region::new`'s caller promises that accesses to overlapping bytes from different threads never race.
unsafe impl Sync for Region {}

impl Region {
    /// # Safety
    /// Whenever two threads access overlapping bytes through windows of this region and one of them writes, one access must happen
    /// before the other (C++ memory model). FIFOs give this by their counters, user buffers by a plan that `verify` accepted.
    ///
    /// # Errors
    /// `None` when the allocation fails.
    pub unsafe fn new(bytes: usize) -> Option<Region> {
        // Whole lines, and room to begin on one.
        let count = bytes.div_ceil(ALIGN).checked_add(1)?.checked_mul(ALIGN / UNIT)?;
        let layout = Layout::array::<UnsafeCell<Unit>>(count).ok()?;
        // SAFETY: `count` is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?.as_ptr().cast::<UnsafeCell<Unit>>();
        // SAFETY: a box of this slice has this layout and allocator, and zeroes are `Unit`s.
        let units = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, count)) };
        let before = units.as_ptr().addr().next_multiple_of(ALIGN) - units.as_ptr().addr();
        Some(Region { units, before, bytes })
    }

    /// `bytes` bytes from `offset`.
    ///
    /// # Panics
    /// When they are not inside the region.
    pub fn window(&self, offset: usize, bytes: usize) -> Window<'_> {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "{offset}+{bytes} is outside {} bytes", self.bytes);
        // `UnsafeCell<Unit>` has `Unit`'s layout, so the box is plain bytes.
        let start = UnsafeCell::raw_get(self.units.as_ptr()).cast::<u8>().wrapping_add(self.before + offset);
        Window { start, bytes, region: std::marker::PhantomData }
    }
}

/// A part of a region.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    start: *mut u8,
    bytes: usize,
    region: std::marker::PhantomData<&'a Region>,
}

impl Window<'_> {
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// `bytes` bytes from `from` on.
    pub fn part(self, from: usize, bytes: usize) -> Self {
        assert!(from.checked_add(bytes).is_some_and(|end| end <= self.bytes));
        Self { start: self.start.wrapping_add(from), bytes, ..self }
    }

    pub fn set(self, byte: u8) {
        // SAFETY: the window is inside a live region, and `Region::new`'s promise excludes a concurrent access.
        unsafe { self.start.write_bytes(byte, self.bytes) }
    }

    /// The first 8 bytes as an atomic counter. Only bytes that are never accessed otherwise may be given out so.
    pub fn counter(&self) -> &std::sync::atomic::AtomicU64 {
        let start = self.start.cast::<u64>();
        assert!(self.bytes >= 8 && start.is_aligned());
        // SAFETY: inside a live region and aligned by the assertion, any bits are a `u64`, and `Region::new`'s promise covers plain
        // accesses to these bytes: there are none.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(start) }
    }

    pub fn write(self, from: &[u8]) {
        assert_eq!(from.len(), self.bytes);
        // SAFETY: as in `set`; `from` is a reference that no region hands out, so the two do not overlap.
        unsafe { self.start.copy_from_nonoverlapping(from.as_ptr(), self.bytes) }
    }

    pub fn read(self, to: &mut [u8]) {
        assert_eq!(to.len(), self.bytes);
        // SAFETY: as in `write`.
        unsafe { self.start.copy_to_nonoverlapping(to.as_mut_ptr(), self.bytes) }
    }

    /// The window's bytes into the first of `to`.
    pub fn read_into(self, to: &mut [u8]) {
        self.read(&mut to[..self.bytes]);
    }

    /// The first bytes of `from` into the window.
    pub fn write_from(self, from: &[u8]) {
        self.write(&from[..self.bytes]);
    }

    pub fn copy_to(self, to: Window<'_>) {
        assert_eq!(to.bytes, self.bytes);
        // In place, input onto output: a peer may be reading these bytes, so they are not even rewritten (`Plan`, semantics).
        if std::ptr::eq(self.start, to.start) {
            return;
        }
        // SAFETY: both are inside live regions and `Region::new`'s promise excludes a concurrent access. `copy` allows overlap.
        unsafe { self.start.copy_to(to.start, self.bytes) }
    }

    /// Elements `from..from + len` of the window seen as `T`s.
    ///
    /// # Safety
    /// No `&mut` to these elements lives as long as the result.
    unsafe fn elements<T: Element>(&self, from: usize, len: usize) -> &[T] {
        assert!((from + len) * size_of::<T>() <= self.bytes && self.start.cast::<T>().is_aligned());
        // SAFETY: in bounds and aligned by the assertion, initialised since regions are zeroed, any bit pattern is a `T` (Pod), no
        // concurrent write by `Region::new`'s promise, no `&mut` of this thread by the caller's.
        unsafe { std::slice::from_raw_parts(self.start.cast::<T>().add(from), len) }
    }

    /// # Safety
    /// No other reference to these elements lives as long as the result.
    unsafe fn elements_mut<T: Element>(&mut self, from: usize, len: usize) -> &mut [T] {
        assert!((from + len) * size_of::<T>() <= self.bytes && self.start.cast::<T>().is_aligned());
        // SAFETY: as in `elements`.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast::<T>().add(from), len) }
    }
}

/// `dsts[..] = srcs[0] (op) srcs[1] (op) …` from left to right in the accumulator type, rounded once. A destination may be the very
/// window of a source (in place); windows never overlap in part, since every cut of a block is the same for all buffers.
pub fn fold<T: Element, O: Combine<T::Acc>>(dsts: &mut [Window<'_>], srcs: &[Window<'_>]) {
    // Clearing the accumulators of a whole block would take longer than a small message.
    match srcs[0].bytes / size_of::<T>() {
        elems @ ..=32 => fold_by::<T, O, 32>(dsts, srcs, elems),
        elems => fold_by::<T, O, BLOCK>(dsts, srcs, elems),
    }
}

fn fold_by<T: Element, O: Combine<T::Acc>, const BY: usize>(
    dsts: &mut [Window<'_>],
    srcs: &[Window<'_>],
    elems: usize,
) {
    let mut acc = [T::Acc::default(); BY];
    for from in (0..elems).step_by(BY) {
        let len = BY.min(elems - from);
        let acc = &mut acc[..len];
        // SAFETY: here and below each reference lives for one call, so none of this thread's overlap in time.
        unsafe { T::load(acc, srcs[0].elements(from, len)) };
        for src in &srcs[1..] {
            // SAFETY: see above.
            unsafe { T::combine::<O>(acc, src.elements(from, len)) };
        }
        for dst in &mut *dsts {
            // SAFETY: see above.
            unsafe { T::store(dst.elements_mut(from, len), acc) };
        }
    }
}

/// [`fold`] of sources that are multiplied first, each by its factor and rounded to the type.
pub fn fold_scaled<T: Element, O: Combine<T::Acc>>(
    dsts: &mut [Window<'_>],
    srcs: &[Window<'_>],
    factors: &[Factor],
) {
    let elems = srcs[0].bytes / size_of::<T>();
    let mut acc = [T::Acc::default(); BLOCK];
    let mut scaled = [T::zeroed(); BLOCK];
    for from in (0..elems).step_by(BLOCK) {
        let len = BLOCK.min(elems - from);
        let (acc, scaled) = (&mut acc[..len], &mut scaled[..len]);
        for (nth, (src, factor)) in srcs.iter().zip(factors).enumerate() {
            // SAFETY: here and below each reference lives for one call or less, so none of this thread's overlap in time.
            let mut values = unsafe { src.elements::<T>(from, len) };
            if let Some(bits) = *factor {
                T::scale(scaled, values, value(bits));
                values = scaled;
            }
            match nth {
                0 => T::load(acc, values),
                _ => T::combine::<O>(acc, values),
            }
        }
        for dst in &mut *dsts {
            // SAFETY: see above.
            unsafe { T::store(dst.elements_mut(from, len), acc) };
        }
    }
}

/// Multiplies every element of the window where it is.
pub fn scale<T: Element>(mut window: Window<'_>, factor: u64) {
    let elems = window.bytes / size_of::<T>();
    let mut before = [T::zeroed(); BLOCK];
    for from in (0..elems).step_by(BLOCK) {
        let len = BLOCK.min(elems - from);
        // SAFETY: the one reference of this thread.
        let values = unsafe { window.elements_mut::<T>(from, len) };
        before[..len].copy_from_slice(values);
        T::scale(values, &before[..len], value(factor));
    }
}

fn value<T: Element>(bits: u64) -> T {
    bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<T>()])
}

/// Avg's last step: every element of the window divided by `ranks`.
pub fn divide<T: Element>(mut window: Window<'_>, ranks: u32) {
    // SAFETY: the one reference of this thread.
    T::divide(unsafe { window.elements_mut(0, window.bytes / size_of::<T>()) }, ranks);
}

#[cfg(test)]
mod tests {
    use super::super::ops::Sum;
    use super::*;

    #[test]
    fn a_fold_in_place_reads_before_it_writes() {
        // SAFETY: one thread.
        let region = unsafe { Region::new(4 * 2000) }.unwrap();
        let (a, b) = (region.window(0, 4000), region.window(4000, 4000));
        a.write(bytemuck::cast_slice(&(0..1000i32).collect::<Vec<_>>()));
        b.write(bytemuck::cast_slice(&(0..1000i32).map(|i| i * 1000).collect::<Vec<_>>()));
        fold::<i32, Sum>(&mut [a], &[a, b, a]);
        let mut got = vec![0i32; 1000];
        a.read(bytemuck::cast_slice_mut(&mut got));
        assert_eq!(got, (0..1000).map(|i| 1002 * i).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn a_window_outside_its_region_is_refused() {
        // SAFETY: one thread.
        let region = unsafe { Region::new(100) }.unwrap();
        region.window(64, 37);
    }
}
