//! Groups of messages run on paper: no order of calls locks them, and every byte arrives.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::exec::cuda::rank::mailbox::ROLES;
use crate::plan::SLOTS;
use crate::types::Rank;

/// One block of one rank on its way.
struct Runner {
    built: Built,
    tile: u64,
    phase: usize,
}

/// Where a piece came from, and its length.
type Slot = (u64, u64);

/// Runs the groups of all ranks with eight slots a connection. Returns (from address, to address, bytes) of every piece moved.
fn run(shapes: &[Shape], groups: &[Vec<Message>]) -> Result<Vec<(u64, u64, u64)>, String> {
    let mut runners: Vec<Vec<Runner>> = Vec::new();
    for (shape, group) in shapes.iter().zip(groups) {
        let blocks = build(shape, group)?;
        runners.push(blocks.into_iter().map(|built| Runner { built, tile: 0, phase: 0 }).collect());
    }
    let mut slots: std::collections::HashMap<(u32, u32, usize), VecDeque<Slot>> = Default::default();
    let mut moved = Vec::new();
    let mut progress = true;
    while std::mem::take(&mut progress) {
        for (rank, blocks) in runners.iter_mut().enumerate() {
            for (block, runner) in blocks.iter_mut().enumerate() {
                while let Some(done) = step(rank as u32, block, runner, &mut slots, shapes[rank].slot_bytes) {
                    moved.extend(done);
                    progress = true;
                }
            }
        }
    }
    let stuck = runners.iter().flatten().any(|r| r.tile < r.built.tiles);
    if stuck || slots.values().any(|fifo| !fifo.is_empty()) { Err("stuck".into()) } else { Ok(moved) }
}

fn step(
    rank: u32,
    block: usize,
    runner: &mut Runner,
    slots: &mut std::collections::HashMap<(u32, u32, usize), VecDeque<Slot>>,
    slot_bytes: u64,
) -> Option<Vec<(u64, u64, u64)>> {
    if runner.tile >= runner.built.tiles {
        return None;
    }
    let phases = &runner.built.phases.phases;
    if runner.phase == phases.len() {
        (runner.tile, runner.phase) = (runner.tile + 1, 0);
        return Some(vec![]);
    }
    let phase = &phases[runner.phase];
    let operands = &runner.built.operands[runner.phase];
    if phase.tiles.is_some_and(|tiles| runner.tile >= u64::from(tiles)) {
        runner.phase += 1;
        return Some(vec![]);
    }
    let connection = |endpoint: u16, sends: bool| {
        let peer = u32::from(endpoint) / ROLES as u32;
        if sends { (rank, peer, block) } else { (peer, rank, block) }
    };
    let ready = phase.waits.iter().all(|wait| match wait.kind {
        WaitKind::Credit => slots.entry(connection(wait.endpoint, true)).or_default().len() < SLOTS as usize,
        _ => !slots.entry(connection(wait.endpoint, false)).or_default().is_empty(),
    });
    if !ready {
        return None;
    }
    let mut done = Vec::new();
    for (mv, operands) in phase.moves.iter().zip(operands) {
        let offset = runner.tile * slot_bytes;
        let bytes = mv.slice.saturating_sub(offset).min(slot_bytes);
        match (mv.send, mv.recv) {
            (Some(to), _) => {
                let slot = (operands[0].base + offset, bytes);
                slots.entry(connection(to, true)).or_default().push_back(slot);
            }
            (_, Some(from)) => {
                let fifo = slots.entry(connection(from, false)).or_default();
                let (source, sent) = fifo.pop_front().expect("waited for");
                assert_eq!(sent, bytes, "both sides cut alike");
                done.push((source, operands[0].base + offset, bytes));
            }
            _ => done.push((operands[0].base + offset, operands[1].base + offset, bytes)),
        }
    }
    runner.phase += 1;
    Some(done)
}

/// Addresses of messages are far apart, so that a piece's address tells its message.
const APART: u64 = 1 << 32;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_group_ends_and_every_byte_arrives(
        ranks in 1u32..6,
        list in prop::collection::vec((0u32..6, 0u32..6, 0usize..7), 0..40),
        turns in prop::collection::vec(any::<bool>(), 40),
    ) {
        let lens = [0u64, 1, 100, 4096, 70_000, 200_001, 1_000_000];
        let shapes: Vec<Shape> =
            (0..ranks).map(|rank| Shape { rank, ranks, channels: 3, slot_bytes: 4096 }).collect();
        let mut groups = vec![Vec::new(); ranks as usize];
        let mut wanted = Vec::new();
        for (nth, &(from, to, len)) in list.iter().enumerate() {
            let (from, to, bytes) = (from % ranks, to % ranks, lens[len]);
            let (source, target) = ((2 * nth as u64 + 1) * APART, (2 * nth as u64 + 2) * APART);
            let send = Message { way: Way::Send, peer: Rank(to), address: source, bytes };
            let receive = Message { way: Way::Receive, peer: Rank(from), address: target, bytes };
            // A rank calls in any order that keeps those of one pair and direction.
            for (rank, message) in [(from, send), (to, receive)] {
                let group: &mut Vec<Message> = &mut groups[rank as usize];
                let at = if turns[nth] { group.len() } else {
                    group.iter().rposition(|m| (m.way, m.peer) == (message.way, message.peer)).map_or(0, |i| i + 1)
                };
                group.insert(at, message);
            }
            wanted.push((source, target, bytes));
        }
        let moved = run(&shapes, &groups);
        prop_assert!(moved.is_ok(), "{:?}", moved);
        let mut arrived = std::collections::HashMap::new();
        for (source, target, bytes) in moved.unwrap() {
            prop_assert_eq!(source % APART, target % APART);
            *arrived.entry((source / APART, target / APART)).or_insert(0) += bytes;
        }
        for (source, target, bytes) in wanted {
            let got = arrived.remove(&(source / APART, target / APART)).unwrap_or(0);
            prop_assert_eq!(got, bytes);
        }
        prop_assert!(arrived.is_empty());
    }
}

#[test]
fn a_message_to_oneself_needs_its_receive() {
    let shape = Shape { rank: 0, ranks: 1, channels: 1, slot_bytes: 4096 };
    let send = Message { way: Way::Send, peer: Rank(0), address: 64, bytes: 8 };
    let why = build(&shape, &[send]).err().expect("refused");
    assert!(why.contains("sends itself 1 messages and receives 0"), "{why}");
    let short = Message { way: Way::Receive, bytes: 4, ..send };
    assert!(build(&shape, &[send, short]).err().expect("refused").contains("8 bytes, its receive 4"));
}

/// Pieces side by side from the first byte to the last, of a message and of a copy to oneself.
#[test]
fn messages_of_more_than_2_to_the_33_bytes_arrive_in_whole() {
    const BYTES: u64 = (1 << 33) + 5;
    let shapes = [0, 1].map(|rank| Shape { rank, ranks: 2, channels: 3, slot_bytes: 1 << 20 });
    let message = |way, peer, address| Message { way, peer: Rank(peer), address, bytes: BYTES };
    let (source, target) = (1 << 40, 1 << 41);
    let groups = [
        vec![message(Way::Send, 1, source), message(Way::Send, 0, 3 * source)],
        vec![message(Way::Receive, 0, target)],
    ];
    let own = message(Way::Receive, 0, 3 * target);
    let groups = [[groups[0].clone(), vec![own]].concat(), groups[1].clone()];
    let mut moved = run(&shapes, &groups).unwrap();
    moved.retain(|(_, _, bytes)| *bytes > 0);
    moved.sort_unstable();
    for (first, to) in [(source, target), (3 * source, 3 * target)] {
        let mut next = 0;
        for &(from, at, bytes) in moved.iter().filter(|(from, ..)| (first..first + BYTES).contains(from)) {
            assert_eq!((from - first, at - to), (next, next));
            next += bytes;
        }
        assert_eq!(next, BYTES);
    }
}

#[test]
fn messages_and_tiles_beyond_what_can_be_counted_are_refused() {
    let shape = Shape { rank: 0, ranks: 2, channels: 1, slot_bytes: 16 };
    let send = |bytes| [Message { way: Way::Send, peer: Rank(1), address: 64, bytes }];
    for bytes in [1 << 52, i64::MAX as u64, u64::MAX] {
        let why = build(&shape, &send(bytes)).err().expect("refused");
        assert!(why.contains(&bytes.to_string()) && why.contains("does not fit any memory"), "{why}");
    }
    let built = build(&shape, &send(1 << 36)).unwrap();
    let why = image::refuse_tiles(built[0].tiles, shape.slot_bytes).unwrap_err();
    assert!(why.contains("4294967296 tiles of 16 bytes"), "{why}");
}
