//! Ranks as threads and as processes, on a GPU. Without one, what needs none: how a group of messages is laid out.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};

use super::*;
use crate::data::{self, Exact};
use crate::exec::cuda::driver::{Memory, Stream};
use crate::exec::cuda::foreign::ForeignStream;

const DEADLINE: Duration = Duration::from_secs(20);

/// Whether there is a GPU; where there has to be one, its absence is a failure.
fn gpu(test: &str) -> bool {
    let Err(why) = driver::start() else { return true };
    assert!(std::env::var_os("RINGLAB_REQUIRE_CUDA").is_none_or(|v| v != "1"), "{why}");
    eprintln!("skipped: {test}: {why}");
    false
}

fn shape(rank: u32, ranks: u32) -> Shape {
    Shape { rank, ranks, channels: 4, slot_bytes: 16 << 10 }
}

/// A rank with its stream.
///
/// Allocating, freeing and clearing wait for kernels of the process, and a kernel may wait for the rank that does so: ranks of one
/// process prepare, run and look at results in step (`meet`).
struct Player<'a> {
    port: Port,
    stream: Stream,
    meet: &'a (dyn Fn() + Sync),
}

impl Player<'_> {
    fn stream(&self) -> ForeignStream {
        (&self.stream).into()
    }

    fn memory(&self, bytes: u64, poison: u8) -> Memory {
        let memory = Memory::zeroed(self.port.device().0, bytes).unwrap();
        memory.set(0, bytes, poison).unwrap();
        memory
    }

    fn run(&mut self, launch: impl FnOnce(&mut Port, ForeignStream)) {
        (self.meet)();
        let stream = self.stream();
        launch(&mut self.port, stream);
        self.stream.finish().unwrap();
        assert_eq!(self.port.stalls(), None);
        (self.meet)();
    }
}

/// A barrier that a rank that failed does not leave closed for ever.
struct Meeting {
    ranks: u64,
    arrived: Mutex<u64>,
    changed: Condvar,
}

impl Meeting {
    fn wait(&self) {
        let mut arrived = self.arrived.lock().unwrap();
        let all = *arrived / self.ranks * self.ranks + self.ranks;
        *arrived += 1;
        self.changed.notify_all();
        let waited =
            self.changed.wait_timeout_while(arrived, 3 * DEADLINE, |arrived| *arrived < all).unwrap();
        assert!(!waited.1.timed_out(), "a rank did not come");
    }
}

/// Runs every rank as a thread.
fn threads(ranks: u32, play: impl Fn(&mut Player, u32) + Sync) {
    let cards = Mutex::new(vec![None; ranks as usize]);
    let barrier = Meeting { ranks: ranks.into(), arrived: Mutex::new(0), changed: Condvar::new() };
    std::thread::scope(|scope| {
        for rank in 0..ranks {
            let (cards, barrier, play) = (&cards, &barrier, &play);
            scope.spawn(move || {
                let opening = Opening::new(0, shape(rank, ranks)).unwrap();
                cards.lock().unwrap()[rank as usize] = Some(opening.card().unwrap());
                barrier.wait();
                let cards: Vec<Card> = cards.lock().unwrap().iter().flatten().cloned().collect();
                let stream = Stream::new(&opening.device).unwrap();
                let port = opening.connect(&cards, DEADLINE).unwrap();
                let meet = || barrier.wait();
                play(&mut Player { port, stream, meet: &meet }, rank);
            });
        }
    });
}

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Ring, Algorithm::Exchange, Algorithm::Tree, Algorithm::HalvingDoubling, Algorithm::Pairwise];

/// Calls every collective at many sizes and compares each element.
fn call_all(player: &mut Player, rank: u32, ranks: u32) {
    let mut seed = 1;
    let all = Collective::all(Rank(ranks - 1)).into_iter().flat_map(|c| ALGORITHMS.map(|a| (c, a)));
    for (collective, algorithm) in all.filter(|(collective, algorithm)| algorithm.supports(*collective)) {
        for (dtype, op) in [(DType::F32, RedOp::Sum), (DType::F16, RedOp::Avg), (DType::I64, RedOp::Max)] {
            for block in [1, 1000, 100_001] {
                for in_place in [false, true] {
                    if in_place && collective.alias().is_none() {
                        continue;
                    }
                    seed += 1;
                    call_one(
                        player,
                        (rank, ranks),
                        (collective, algorithm),
                        (dtype, op),
                        block,
                        in_place,
                        seed,
                    );
                }
            }
        }
    }
}

fn call_one(
    player: &mut Player,
    (rank, ranks): (u32, u32),
    (collective, algorithm): (Collective, Algorithm),
    (dtype, op): (DType, RedOp),
    block: u64,
    in_place: bool,
    seed: u64,
) {
    let exact = Exact::new(seed, dtype, op, ranks).unwrap();
    let size = dtype.size() as u64;
    let inputs = block * u64::from(collective.input_blocks(ranks));
    let outputs = block * u64::from(collective.output_blocks(ranks));
    let input: Vec<u8> = (0..inputs)
        .flat_map(|i| exact.input(Rank(rank), i).to_le_bytes().into_iter().take(size as usize))
        .collect();
    let (before_input, before_output) =
        if in_place { collective.in_place_offsets(Rank(rank)) } else { (0, 0) };
    let (before_input, before_output) =
        (u64::from(before_input) * block * size, u64::from(before_output) * block * size);
    let main = player.memory(inputs.max(outputs) * size, 0xA5);
    let other = (!in_place).then(|| player.memory(outputs * size, 0xA5));
    main.write(before_input, &input).unwrap();
    let output = other.as_ref().unwrap_or(&main);
    let call = Call {
        collective,
        schedule: Schedule::Standard {
            algorithm,
            channels: 1 + (seed % 4) as u32,
            protocol: Protocol::ALL[(seed % 3) as usize],
        },
        block,
        dtype,
        op,
        factor: None,
        input: main.address().0 + before_input,
        output: output.address().0 + before_output,
        in_place,
    };
    player.run(|port, stream| port.collective(&call, stream).unwrap());
    let mut got = vec![0; (outputs * size) as usize];
    output.read(before_output, &mut got).unwrap();
    let checked = if collective.has_output(Rank(rank)) { &got[..] } else { &[] };
    for (i, got) in (0..).zip(checked.chunks_exact(size as usize)) {
        let want = &exact.expected(collective, Rank(rank), i, block).to_le_bytes()[..size as usize];
        let show = |bytes: &[u8]| {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            data::show(dtype, u64::from_le_bytes(all))
        };
        assert_eq!(got, want, "{call:?} rank {rank} element {i}: {} for {}", show(got), show(want));
    }
}

/// Groups of messages of all lengths between all pairs, some to the rank itself.
fn exchange(player: &mut Player, rank: u32, ranks: u32) {
    for group in 0..6u64 {
        let bytes = |from: u32, to: u32, nth: u64| {
            let hash = data::mix(group << 40 | u64::from(from) << 20 | u64::from(to) << 8 | nth);
            [0, 1, 13, 4096, 20_000, 400_003][(hash % 6) as usize]
        };
        let fill = |from: u32, to: u32, nth: u64| {
            let len = bytes(from, to, nth) as usize;
            let salt = data::mix(u64::from(from) << 32 | u64::from(to) << 16 | nth);
            (0..len).map(|i| data::mix(salt + i as u64) as u8).collect::<Vec<u8>>()
        };
        let (mut messages, mut kept, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for peer in 0..ranks {
            for nth in 0..1 + group % 3 {
                let sent = player.memory(bytes(rank, peer, nth).max(1), 0);
                sent.write(0, &fill(rank, peer, nth)).unwrap();
                let way = Way::Send;
                let bytes_sent = bytes(rank, peer, nth);
                messages.push(Message {
                    way,
                    peer: Rank(peer),
                    address: sent.address().0,
                    bytes: bytes_sent,
                });
                let received = player.memory(bytes(peer, rank, nth).max(1), 0xA5);
                messages.push(Message {
                    way: Way::Receive,
                    peer: Rank(peer),
                    address: received.address().0,
                    bytes: bytes(peer, rank, nth),
                });
                kept.push(sent);
                expected.push((received, fill(peer, rank, nth)));
            }
        }
        player.run(|port, stream| port.messages(&messages, stream).unwrap());
        for (memory, want) in &expected {
            let mut got = vec![0; want.len()];
            memory.read(0, &mut got).unwrap();
            assert!(got == *want, "group {group} rank {rank}: {} bytes differ", want.len());
        }
    }
}

#[test]
fn ranks_as_threads_call_collectives() {
    if !gpu("ranks_as_threads_call_collectives") {
        return;
    }
    for ranks in [1, 2, 3, 4, 8] {
        threads(ranks, |player, rank| call_all(player, rank, ranks));
    }
}

#[test]
fn ranks_as_threads_exchange_messages() {
    if !gpu("ranks_as_threads_exchange_messages") {
        return;
    }
    for ranks in [1, 2, 3, 8] {
        threads(ranks, |player, rank| exchange(player, rank, ranks));
    }
}

#[test]
fn a_rank_without_its_peer_stops_at_the_deadline_and_says_what_it_waited_for() {
    if !gpu("a_rank_without_its_peer_stops_at_the_deadline_and_says_what_it_waited_for") {
        return;
    }
    threads(2, |player, rank| {
        player.port.set_deadline(Duration::from_millis(200));
        let memory = player.memory(4096, 0);
        (player.meet)();
        if rank == 0 {
            let message =
                Message { way: Way::Receive, peer: Rank(1), address: memory.address().0, bytes: 4096 };
            let stream = player.stream();
            player.port.messages(&[message], stream).unwrap();
            player.stream.finish().unwrap();
            let stalls = player.port.stalls().expect("stopped");
            assert_eq!((stalls.len(), stalls[0].peer), (1, Rank(1)), "{stalls:?}");
        }
        (player.meet)();
    });
}

const CHILD: &str = "RINGLAB_TEST_RANK";

/// Not a test of its own: a rank of the test below, told so by the environment. Cards travel as lines of standard output and input.
#[test]
fn a_rank_as_a_process() {
    let Ok(spec) = std::env::var(CHILD) else { return };
    let (rank, ranks) = spec.split_once('/').unwrap();
    let (rank, ranks): (u32, u32) = (rank.parse().unwrap(), ranks.parse().unwrap());
    let opening = Opening::new(0, shape(rank, ranks)).unwrap();
    println!("card {}", serde_json::to_string(&opening.card().unwrap()).unwrap());
    let mut lines = std::io::stdin().lines();
    let cards: Vec<Card> = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let stream = Stream::new(&opening.device).unwrap();
    let mut player = Player { port: opening.connect(&cards, DEADLINE).unwrap(), stream, meet: &|| {} };
    call_all(&mut player, rank, ranks);
    exchange(&mut player, rank, ranks);
    println!("done");
    // Until nobody needs this mailbox.
    lines.next().unwrap().unwrap();
}

#[test]
fn ranks_as_processes_call_collectives_and_exchange_messages() {
    if !gpu("ranks_as_processes_call_collectives_and_exchange_messages") {
        return;
    }
    for ranks in [2, 4] {
        let spawn = |rank: u32| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "exec::cuda::rank::tests::a_rank_as_a_process", "--nocapture"])
                .env(CHILD, format!("{rank}/{ranks}"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut children: Vec<_> = (0..ranks).map(spawn).collect();
        let mut outputs: Vec<_> =
            children.iter_mut().map(|c| BufReader::new(c.stdout.take().unwrap()).lines()).collect();
        // The harness prints before the line, on the same one.
        let mut next = |rank: usize, word: &str| {
            let found = outputs[rank].by_ref().map(Result::unwrap).find(|line| line.contains(word));
            let line = found.unwrap_or_else(|| panic!("rank {rank} of {ranks} ended before it said {word}"));
            line.split_once(word).unwrap().1.to_owned()
        };
        let cards: Vec<String> = (0..ranks as usize).map(|rank| next(rank, "card ")).collect();
        for child in &mut children {
            writeln!(child.stdin.as_mut().unwrap(), "[{}]", cards.join(",")).unwrap();
        }
        for rank in 0..ranks as usize {
            next(rank, "done");
        }
        for child in &mut children {
            writeln!(child.stdin.as_mut().unwrap()).unwrap();
        }
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }
}
