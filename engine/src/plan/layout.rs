//! How a block of elements is cut into chunks, channel slices and tiles. One definition for every consumer of a plan.

/// Cut of one block. All figures in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    block: u64,
    /// Every chunk but the last non-empty one.
    chunk: u64,
    /// Every channel's slice of a full chunk but the last one.
    slice: u64,
    tile: u64,
    chunks: u32,
    channels: u32,
}

/// Elements of one tile inside its block: `offset..offset + len`. `len` may be 0: the step still runs and its FIFO slot is still used,
/// so that all ranks keep the same count of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    pub len: u64,
}

impl Layout {
    /// Cuts `block` elements of `elem_size` bytes into `chunks` and `channels`, with tiles of at most `slot_bytes`.
    /// Cuts fall on 16-byte multiples from the block's start, so that vector loads stay aligned when the block is.
    ///
    /// # Panics
    /// When `chunks`, `channels` or `elem_size` is 0 or `slot_bytes` is below 16: a plan that was verified has none of these.
    pub fn new(block: u64, elem_size: usize, chunks: u32, channels: u32, slot_bytes: usize) -> Layout {
        assert!(chunks > 0 && channels > 0 && elem_size > 0 && slot_bytes >= 16);
        let unit = 16 / elem_size as u64;
        let cut = |len: u64, parts: u32| len.div_ceil(u64::from(parts)).next_multiple_of(unit);
        let chunk = cut(block, chunks);
        Layout {
            block,
            chunk,
            slice: cut(chunk, channels),
            tile: (slot_bytes / 16) as u64 * unit,
            chunks,
            channels,
        }
    }

    pub fn block(&self) -> u64 {
        self.block
    }

    /// Times each channel's program runs: the same for all ranks, channels and chunks. 0 only for an empty block.
    pub fn tiles(&self) -> u64 {
        self.slice.div_ceil(self.tile)
    }

    /// Most elements a tile can have.
    pub fn tile_elems(&self) -> u64 {
        self.tile.min(self.slice)
    }

    /// Elements of tile `tile` of a channel's share of a chunk that has `share` elements.
    pub fn of_share(&self, share: u64, tile: u64) -> u64 {
        share.saturating_sub(tile.saturating_mul(self.tile)).min(self.tile)
    }

    /// Elements of chunk `chunk` (`0..chunks`, within its block), channel `channel`, tile `tile`.
    pub fn span(&self, chunk: u32, channel: u32, tile: u64) -> Span {
        debug_assert!(chunk < self.chunks && channel < self.channels);
        let end_of = |start: u64, len: u64, limit: u64| (start + len).min(limit);
        let chunk_start = (u64::from(chunk) * self.chunk).min(self.block);
        let chunk_end = end_of(chunk_start, self.chunk, self.block);
        let slice_start = (chunk_start + u64::from(channel) * self.slice).min(chunk_end);
        let slice_end = end_of(slice_start, self.slice, chunk_end);
        let start = slice_start.saturating_add(tile.saturating_mul(self.tile)).min(slice_end);
        Span { offset: start, len: end_of(start, self.tile, slice_end) - start }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_cover_a_block_exactly_once(
            block in 0u64..5000, size in prop::sample::select(vec![2usize, 4, 8]), chunks in 1u32..9, channels in 1u32..5,
            slot in 1usize..40,
        ) {
            let layout = Layout::new(block, size, chunks, channels, slot * 16);
            let whole = Layout::new(block, size, chunks, channels, 1 << 60);
            let mut seen = vec![0u8; block as usize];
            for chunk in 0..chunks {
                for channel in 0..channels {
                    for tile in 0..layout.tiles() {
                        let span = layout.span(chunk, channel, tile);
                        prop_assert!(span.len <= layout.tile_elems());
                        let share = whole.span(chunk, channel, 0).len;
                        prop_assert_eq!(layout.of_share(share, tile), span.len);
                        for i in span.offset..span.offset + span.len {
                            seen[i as usize] += 1;
                        }
                    }
                }
            }
            prop_assert!(seen.iter().all(|&n| n == 1));
        }
    }

    #[test]
    fn an_even_cut_is_even() {
        let layout = Layout::new(1 << 20, 4, 4, 2, 1 << 19);
        assert_eq!(layout.span(1, 0, 0), Span { offset: 1 << 18, len: 1 << 17 });
        assert_eq!(layout.tiles(), 1);
    }
}
