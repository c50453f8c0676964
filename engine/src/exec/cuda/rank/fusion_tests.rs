//! Groups planned without a device.

use proptest::prelude::*;

use super::*;
use crate::types::Rank;

fn asked(block: u64) -> Asked {
    Asked { collective: Collective::AllReduce, block, dtype: DType::F32, op: Some(RedOp::Sum) }
}

fn send(peer: u32, address: u64, bytes: u64) -> Message {
    Message { way: Way::Send, peer: Rank(peer), address, bytes }
}

fn receive(peer: u32, address: u64, bytes: u64) -> Message {
    Message { way: Way::Receive, peer: Rank(peer), address, bytes }
}

/// Ranks 0, 1, …: calls made before, blocks of the group's calls, its messages.
type Ranks = Vec<(u64, Vec<u64>, Vec<Message>)>;

fn tallies(ranks: u32, members: &Ranks) -> Vec<Tally> {
    members.iter().map(|(calls, ..)| Tally { calls: *calls, ..Tally::new(ranks) }).collect()
}

fn sights<'a>(members: &'a Ranks, tallies: &'a [Tally]) -> Vec<Sight<'a>> {
    let sight = |(rank, (_, blocks, messages)): (usize, &'a (u64, Vec<u64>, Vec<Message>))| Sight {
        rank: rank as u32,
        device: 0,
        capture: None,
        tally: &tallies[rank],
        calls: blocks.iter().map(|block| asked(*block)).collect(),
        messages,
    };
    members.iter().enumerate().map(sight).collect()
}

fn plan(ranks: u32, members: &Ranks) -> Result<Vec<Step>, String> {
    let tallies = tallies(ranks, members);
    steps(ranks, &sights(members, &tallies))
}

fn calls(blocks: &[&[u64]]) -> Ranks {
    blocks.iter().map(|blocks| (0, blocks.to_vec(), vec![])).collect()
}

#[test]
fn all_ranks_calls_are_one_launch_each_between_a_join_and_a_fork() {
    let steps = plan(2, &calls(&[&[5, 6], &[5, 6]])).unwrap();
    assert_eq!(steps, [Step::Join, Step::Together(vec![0, 0]), Step::Together(vec![1, 1]), Step::Fork]);
}

#[test]
fn ranks_of_other_devices_or_graphs_leave_every_rank_to_itself() {
    let alone = [Step::Alone { member: 0, call: 0 }, Step::Alone { member: 1, call: 0 }];
    let members = calls(&[&[5], &[5]]);
    let tallies = tallies(2, &members);
    let mut apart = sights(&members, &tallies);
    apart[1].device = 1;
    assert_eq!(steps(2, &apart).unwrap(), alone);
    let mut recorded = sights(&members, &tallies);
    (recorded[0].capture, recorded[1].capture) = (Some(3), Some(4));
    assert_eq!(steps(2, &recorded).unwrap(), alone);
    recorded[1].capture = Some(3);
    assert_eq!(steps(2, &recorded).unwrap().len(), 3, "one graph of both");
    assert_eq!(plan(1, &calls(&[&[5]])).unwrap(), alone[..1], "one rank has nobody to be joined with");
}

#[test]
fn some_ranks_of_a_communicator_are_one_launch_of_their_own_programs() {
    let mut members = calls(&[&[5, 6], &[5, 6]]);
    let beside = [Step::Join, Step::Beside(vec![0, 0]), Step::Beside(vec![1, 1]), Step::Fork];
    assert_eq!(plan(3, &members).unwrap(), beside, "rank 2 is elsewhere");
    members[0].2.push(send(1, 100, 8));
    members[1].2.push(receive(0, 300, 8));
    let messages = [Step::Messages { member: 0 }, Step::Messages { member: 1 }];
    assert_eq!(plan(3, &members).unwrap(), [&beside[..], &messages].concat());
    let many = calls(&[&[5][..]; LOCAL_RANKS + 1]);
    assert!(plan(64, &many).unwrap().iter().all(|step| matches!(step, Step::Alone { .. })));
}

#[test]
fn numbers_decide_what_belongs_together() {
    // Rank 0 has called once before, alone, and does not make the last call yet.
    let members = vec![(1, vec![6], vec![]), (0, vec![5, 6, 7], vec![])];
    let alone = |call| Step::Alone { member: 1, call };
    let together = Step::Together(vec![0, 1]);
    assert_eq!(plan(2, &members).unwrap(), [alone(0), Step::Join, together, Step::Fork, alone(2)]);
}

#[test]
fn calls_that_have_nothing_in_common_are_each_rank_s_own() {
    let members = vec![(2, vec![7], vec![]), (0, vec![5, 6], vec![])];
    let alone = |member, call| Step::Alone { member, call };
    // Rank 1's calls are those that rank 0 has made before.
    assert_eq!(plan(2, &members).unwrap(), [alone(1, 0), alone(1, 1), alone(0, 0)]);
}

#[test]
fn ranks_that_ask_for_different_things_are_told() {
    let why = plan(2, &calls(&[&[5], &[6]])).unwrap_err();
    assert!(why.contains("rank 0 asks for all_reduce of blocks of 5 float with sum, rank 1"), "{why}");
}

#[test]
fn messages_that_meet_in_the_group_are_copies_behind_its_calls() {
    let members = vec![
        (0, vec![5], vec![send(1, 100, 8), send(0, 500, 4), receive(0, 600, 4), send(1, 200, 0)]),
        (0, vec![5], vec![receive(0, 300, 8), receive(0, 400, 0)]),
    ];
    let copies = Step::Copies(vec![Job::copy(100, 300, 8), Job::copy(500, 600, 4)]);
    assert_eq!(plan(2, &members).unwrap(), [Step::Join, Step::Together(vec![0, 0]), copies, Step::Fork]);
}

#[test]
fn a_message_whose_other_end_is_elsewhere_leaves_all_to_their_connections() {
    let one =
        vec![(0, vec![], vec![send(1, 100, 8), send(1, 110, 8)]), (0, vec![], vec![receive(0, 300, 8)])];
    let messages = [Step::Messages { member: 0 }, Step::Messages { member: 1 }];
    assert_eq!(plan(2, &one).unwrap(), messages);
    // As many here, but an earlier send is still to be received.
    let members = vec![(0, vec![], vec![send(1, 100, 8)]), (0, vec![], vec![receive(0, 300, 8)])];
    let mut tallies = tallies(2, &members);
    tallies[0].count(&[send(1, 0, 8)]);
    assert_eq!(steps(2, &sights(&members, &tallies)).unwrap(), messages);
    tallies[1].count(&[receive(0, 0, 8)]);
    assert_eq!(steps(2, &sights(&members, &tallies)).unwrap().len(), 3);
}

#[test]
fn messages_do_not_keep_a_peer_from_the_call_that_a_rank_waits_in() {
    let members = vec![(0, vec![5, 6], vec![send(1, 100, 8)]), (0, vec![5], vec![receive(0, 300, 8)])];
    let steps = plan(2, &members).unwrap();
    assert_eq!(
        steps[3..],
        [Step::Alone { member: 0, call: 1 }, Step::Messages { member: 0 }, Step::Messages { member: 1 }]
    );
}

#[test]
fn a_receive_of_another_length_is_told() {
    let members = vec![(0, vec![], vec![send(1, 100, 8)]), (0, vec![], vec![receive(0, 300, 12)])];
    let why = plan(2, &members).unwrap_err();
    assert!(
        why.contains("message 0 of rank 0 to rank 1") && why.contains("8 bytes, its receive 12"),
        "{why}"
    );
}

proptest! {
    /// Whatever each rank has called before: every call of the group is in the plan once, a rank's in order, and together are only
    /// calls of one number.
    #[test]
    fn every_call_is_planned_once_and_in_order(
        members in prop::collection::vec((0u64..4, 0usize..5), 1..5), missing in 0u32..2,
    ) {
        let members: Ranks = members
            .into_iter()
            .map(|(before, calls)| (before, (before..before + calls as u64).map(|n| 100 + n).collect(), vec![]))
            .collect();
        let mut made: Vec<Vec<usize>> = vec![vec![]; members.len()];
        let mut joined = false;
        for step in plan(members.len() as u32 + missing, &members).unwrap() {
            match step {
                Step::Join => prop_assert!(!std::mem::replace(&mut joined, true)),
                Step::Fork => prop_assert!(std::mem::replace(&mut joined, false)),
                Step::Alone { member, call } => {
                    prop_assert!(!joined);
                    made[member].push(call);
                }
                Step::Together(at) | Step::Beside(at) => {
                    prop_assert!(joined);
                    let numbers: Vec<u64> = at.iter().zip(&members).map(|(&call, m)| m.0 + call as u64).collect();
                    prop_assert!(numbers.iter().all(|number| *number == numbers[0]));
                    at.iter().enumerate().for_each(|(member, &call)| made[member].push(call));
                }
                Step::Copies(_) | Step::Messages { .. } => prop_assert!(false, "nobody sends"),
            }
        }
        prop_assert!(!joined);
        for (made, member) in made.iter().zip(&members) {
            prop_assert!(made.iter().copied().eq(0..member.1.len()), "{made:?}");
        }
    }
}
