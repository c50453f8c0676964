//! How a block of elements is cut into chunks, channel slices and tiles. One definition for every consumer of a plan.

/// Most elements of a block that back ends and the simulator take. Bytes of a buffer of 64 such blocks, and every sum of cuts of it,
/// are below 2^62; what exceeds it fits no memory.
pub const MOST_ELEMENTS: u64 = u64::MAX / 4096;

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
    /// When `chunks`, `channels` or `elem_size` is 0 or `slot_bytes` is below 16: a plan that was verified has none of these. When the
    /// block has more than [`MOST_ELEMENTS`] elements, which callers refuse in words of their own.
    pub fn new(block: u64, elem_size: usize, chunks: u32, channels: u32, slot_bytes: usize) -> Layout {
        assert!(chunks > 0 && channels > 0 && elem_size > 0 && slot_bytes >= 16);
        assert!(block <= MOST_ELEMENTS, "a block of {block} elements is beyond what can be counted");
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

    /// The cut of a block by the definition, in numbers that cannot overflow.
    fn by_definition(
        block: u64,
        size: u64,
        chunks: u32,
        channels: u32,
        slot: u64,
    ) -> impl Fn(u32, u32, u64) -> Span {
        let unit = u128::from(16 / size);
        let up = |len: u128, parts: u32| len.div_ceil(u128::from(parts)).div_ceil(unit) * unit;
        let chunk = up(block.into(), chunks);
        let (slice, tile) = (up(chunk, channels), u128::from(slot / 16) * unit);
        move |c, channel, t| {
            let chunk_end = ((u128::from(c) + 1) * chunk).min(block.into());
            let slice_start = (u128::from(c) * chunk + u128::from(channel) * slice).min(chunk_end);
            let slice_end = (slice_start + slice).min(chunk_end);
            let start = (slice_start + u128::from(t) * tile).min(slice_end);
            let end = (start + tile).min(slice_end);
            let narrow = |n: u128| u64::try_from(n).unwrap();
            Span { offset: narrow(start), len: narrow(end - start) }
        }
    }

    proptest! {
        #[test]
        fn cuts_of_any_size_are_those_of_the_definition(
            magnitude in 30u32..=52, below in any::<u64>(), size in prop::sample::select(vec![1usize, 2, 4, 8]), chunks in 1u32..=256,
            channels in 1u32..=1024, slot in prop::sample::select(vec![16u64, 100, 1 << 19, 1 << 30, 1 << 40]), picks in any::<[u64; 3]>(),
        ) {
            let block = ((1 << magnitude) - 1 + below % (1 << magnitude)).min(MOST_ELEMENTS);
            let layout = Layout::new(block, size, chunks, channels, slot as usize);
            let span = by_definition(block, size as u64, chunks, channels, slot);
            let whole = Layout::new(block, size, chunks, channels, 1 << 60);
            let tiles = layout.tiles();
            prop_assert!(u128::from(tiles) * u128::from(layout.tile_elems()) >= u128::from(layout.slice));
            for (chunk, channel) in [(0, 0), (chunks - 1, channels - 1), (picks[0] as u32 % chunks, picks[1] as u32 % channels)] {
                let mut last = None;
                for tile in [0, 1, picks[2] % tiles.max(1), tiles - 1, tiles, u64::MAX] {
                    let found = layout.span(chunk, channel, tile);
                    prop_assert_eq!(found, span(chunk, channel, tile), "chunk {} channel {} tile {}", chunk, channel, tile);
                    if tile.checked_add(1) == Some(tiles) {
                        last = Some(found.offset + found.len);
                    }
                }
                // What the last tile leaves is nothing.
                let share = whole.span(chunk, channel, 0);
                prop_assert_eq!(last, Some(share.offset + share.len));
            }
            if chunks * channels < 2000 {
                let all = (0..chunks).flat_map(|chunk| (0..channels).map(move |channel| (chunk, channel)));
                prop_assert_eq!(all.map(|(chunk, channel)| whole.span(chunk, channel, 0).len).sum::<u64>(), block);
            }
        }
    }

    #[test]
    #[should_panic(expected = "beyond what can be counted")]
    fn a_block_that_cannot_be_counted_is_no_layout() {
        Layout::new(MOST_ELEMENTS + 1, 1, 1, 1, 16);
    }

    #[test]
    fn an_even_cut_is_even() {
        let layout = Layout::new(1 << 20, 4, 4, 2, 1 << 19);
        assert_eq!(layout.span(1, 0, 0), Span { offset: 1 << 18, len: 1 << 17 });
        assert_eq!(layout.tiles(), 1);
    }
}
