//! Buffers of more than 2^31 and 2^32 elements. Pages that are never written take no memory, so most of these buffers are not there.

use super::buffers::{Buffers, Len};
use super::*;
use crate::plan::{Algorithm, Buffer, generate};
use crate::types::{Collective, DType, Factors, Rank};

fn spec(collective: Collective, algorithm: Algorithm, channels: u32, block: u64) -> SessionSpec {
    SessionSpec {
        plan: generate(algorithm, collective, 2, channels).unwrap(),
        block,
        dtype: DType::U8,
        op: RedOp::Sum,
        factors: Factors::Parity,
        in_place: true,
        slot_bytes: 1 << 20,
        fifo: Fifo::default(),
        deadline: std::time::Duration::from_secs(120),
        devices: vec![],
        trace_spans: 0,
        kernel: KernelChoice::Auto,
    }
}

/// A byte for an element's place, different for places that differ by a power of two from 2^16 on.
fn mark(place: u64) -> u8 {
    (crate::data::mix(place) >> 56) as u8 | 1
}

/// Tiles are where the layout says, counted from the start of the whole buffer: of both blocks of an all-gather.
#[test]
fn tiles_of_buffers_beyond_32_bits_are_where_they_belong() {
    let block = (1u64 << 32) + 4099;
    let spec = spec(Collective::AllGather, Algorithm::Ring, 3, block);
    let layout = Layout::new(block, 1, spec.plan.chunks, 3, spec.slot_bytes);
    assert_eq!(Buffers::bytes_needed(&spec, &layout), Some(2 * 2 * block));
    // SAFETY: one thread.
    let buffers = unsafe { Buffers::new(&spec, layout) }.unwrap();
    let operand = |rank, buffer, start| program::Operand { rank, buffer, start };
    let mut written = Vec::new();
    for start in [0, 1] {
        for channel in 0..3 {
            let tiles = buffers.layout.tiles();
            for tile in [0, 1, tiles / 2, tiles - 2, tiles - 1] {
                let cell = buffers.tile(operand(1, Buffer::Output, start), 0, channel, tile);
                let span = buffers.layout.span(0, channel, tile);
                assert!(matches!(cell.len, Len::Fixed(len) if len == span.len));
                if span.len > 0 {
                    let from = u64::from(start) * block + span.offset;
                    cell.window.part(0, 1).set(mark(from));
                    written.push(from);
                }
            }
        }
    }
    assert!(written.iter().any(|&from| from > 7 << 30) && written.len() > 20, "{written:?}");
    for from in written {
        let mut byte = [0];
        buffers.output(Rank(1), from, 1).read(&mut byte);
        assert_eq!(byte, [mark(from)], "{from}");
    }
    // In place rank 1's input is the second block.
    let mut byte = [0];
    buffers.input(Rank(1), 0, 1).read(&mut byte);
    assert_eq!(byte, [mark(block)]);
}

/// Bytes compared at a time.
const PART: u64 = 16 << 20;

/// Rank 1's memory is written in whole, rank 0's only where it has marks.
#[test]
fn a_message_of_more_than_2_to_the_31_elements_arrives_element_for_element() {
    let block = (1u64 << 31) + 4099;
    let spec = spec(Collective::Broadcast { root: Rank(0) }, Algorithm::Ring, 2, block);
    // SAFETY: a generated ring accesses its own buffers only.
    let mut session = unsafe { session::<Link<false>>(spec) }.unwrap();
    let places = [0, 1, (1 << 20) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, block - 1];
    for place in places {
        session.shared.buffers.input(Rank(0), place, 1).set(mark(place));
    }
    let timing = session.run(1).unwrap();
    assert_eq!(timing.moved_bytes, [block, 0]);
    let mut got = vec![0; PART as usize];
    let mut expected = got.clone();
    for from in (0..block).step_by(PART as usize) {
        let len = PART.min(block - from);
        let (got, expected) = (&mut got[..len as usize], &mut expected[..len as usize]);
        session.shared.buffers.output(Rank(1), from, len).read(got);
        expected.fill(0);
        for place in places.into_iter().filter(|place| (from..from + len).contains(place)) {
            expected[(place - from) as usize] = mark(place);
        }
        assert!(got == expected, "between {from} and {}", from + len);
    }
}

#[test]
fn slots_and_blocks_beyond_what_can_be_counted_are_refused() {
    let refused = |spec: SessionSpec| match open(spec) {
        Err(ExecError::Refused(why)) => why,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let all_reduce = |block| spec(Collective::AllReduce, Algorithm::Ring, 1, block);
    for block in [(1 << 52) + 1, 1 << 63, u64::MAX] {
        assert!(refused(all_reduce(block)).contains("does not fit any memory"));
    }
    let why = refused(all_reduce((1 << 52) - 1));
    assert!(why.contains("are available; use a smaller size"), "{why}");
    for slot_bytes in [0, 15, (1 << 40) + 1, usize::MAX] {
        for fifo in [Fifo::default(), Fifo { protocol: Protocol::Ll, chunk_steps: 2, slice_steps: 2 }] {
            let why = refused(SessionSpec { slot_bytes, fifo, ..all_reduce(8) });
            assert!(why.contains("a FIFO slot has 16 to") && why.contains(&slot_bytes.to_string()), "{why}");
        }
    }
}
