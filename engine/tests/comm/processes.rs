//! Ranks as processes. Each is this test binary again, running [`helper`], which reads its part from the environment.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use ringlab_engine::comm::{
    Bootstrap, CommError, Event, Faults, FlightRecorder, Operation, Options, UniqueId, agree,
};
use ringlab_engine::types::Rank;
use rustix::process::{Pid, Signal, kill_process};

use crate::LONG;

struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(part: &str, rank: u32, ranks: u32, env: &[(&str, &str)]) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::helper", "--nocapture"])
            .env("RINGLAB_TEST_PART", part)
            .env("RINGLAB_TEST_RANK", rank.to_string())
            .env("RINGLAB_TEST_RANKS", ranks.to_string())
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Process { child, stdin, stdout }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// What follows `key: ` in its next such line.
    fn hear(&mut self, key: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "the process ended before it said `{key}`"
            );
            // The test harness may have begun the line.
            if let Some(at) = line.find(&format!("@{key}: ")) {
                return line[at + key.len() + 3..].trim_end().to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(key: &str, what: impl std::fmt::Display) {
    println!("@{key}: {what}");
}

fn read_line() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// Does nothing when run as a test.
#[test]
fn helper() {
    let Ok(part) = std::env::var("RINGLAB_TEST_PART") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let (rank, ranks) = (number("RINGLAB_TEST_RANK"), number("RINGLAB_TEST_RANKS"));
    match part.as_str() {
        "survive" => survive(rank, ranks),
        "slow" => slow(rank, ranks),
        "fixed" => fixed(rank, ranks),
        "leave" => leave(rank, ranks),
        "faulty" => faulty(rank, ranks),
        other => panic!("no part {other}"),
    }
}

/// Rank 0 makes the id and says it; the parent hands it to the others.
fn exchange(rank: u32) -> UniqueId {
    if rank == 0 {
        let id = UniqueId::create(None).unwrap();
        say("id", id);
        id
    } else {
        read_line().parse().unwrap()
    }
}

fn hand_over(processes: &mut [Process]) {
    let (first, rest) = processes.split_first_mut().unwrap();
    let id = first.hear("id");
    rest.iter_mut().for_each(|process| process.tell(&id));
}

fn micros() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros()
}

/// Works until something breaks, then builds a new communicator with those that are left.
fn survive(rank: u32, ranks: u32) {
    let id = exchange(rank);
    say("started", rank);
    let work = || -> Result<(), CommError> {
        // Who dies before saying who it is can only be missed.
        let boot = Bootstrap::connect(&id, rank, ranks, Duration::from_secs(20))?;
        loop {
            boot.allgather(&[rank as u8; 100], LONG)?;
            boot.send(Rank((rank + 1) % ranks), 1, &[7; 1000])?;
            boot.recv(Rank((rank + ranks - 1) % ranks), 1, LONG)?;
        }
    };
    let why = work().unwrap_err();
    say("error", format!("{} {why}", micros()));
    let part = read_line();
    let (rank, ranks) = part.split_once(' ').unwrap();
    let (rank, ranks) = (rank.parse().unwrap(), ranks.parse().unwrap());
    let id = exchange(rank);
    let boot = Bootstrap::connect(&id, rank, ranks, LONG).unwrap();
    boot.barrier(LONG).unwrap();
    boot.goodbye().unwrap();
    say("rebuilt", rank);
}

/// xorshift64: random instants and victims, told in the failure message.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_rank_killed_at_any_instant_is_noticed_by_all_who_then_build_anew() {
    const RANKS: u32 = 4;
    let mut seed = micros() as u64 | 1;
    let mut delays = vec![];
    for round in 0..50 {
        let begun = seed;
        let mut all: Vec<_> = (0..RANKS).map(|rank| Process::start("survive", rank, RANKS, &[])).collect();
        hand_over(&mut all);
        all.iter_mut().for_each(|process| drop(process.hear("started")));
        let victim = (random(&mut seed) % u64::from(RANKS)) as usize;
        // Half of the deaths fall into the first moments, when the communicator forms.
        let longest = if round % 2 == 0 { 5_000 } else { 100_000 };
        std::thread::sleep(Duration::from_micros(random(&mut seed) % longest));
        all[victim].signal(Signal::KILL);
        let killed = micros();
        let mut rest: Vec<_> =
            all.into_iter().enumerate().filter(|(at, _)| *at != victim).map(|(_, p)| p).collect();
        for process in &mut rest {
            let said = process.hear("error");
            let (at, why) = said.split_once(' ').unwrap();
            delays.push(at.parse::<u128>().unwrap().saturating_sub(killed));
            let told = why.contains(&format!("rank {victim}"))
                // It died before it could say who it was, or with the root that nobody had reached yet.
                || why.contains("never came") || why.contains("process that made the id") || why.contains("has ended");
            assert!(told, "round {round} seed {begun:#x} victim {victim}: {why}");
        }
        for (at, process) in rest.iter_mut().enumerate() {
            process.tell(&format!("{at} {}", RANKS - 1));
        }
        hand_over(&mut rest);
        rest.iter_mut().for_each(|process| drop(process.hear("rebuilt")));
    }
    delays.sort_unstable();
    println!(
        "{} survivors: error after {} us (median), {} us (longest)",
        delays.len(),
        delays[delays.len() / 2],
        delays[delays.len() - 1]
    );
}

/// Says every event of its bootstrap until told to end.
fn slow(rank: u32, ranks: u32) {
    let id = exchange(rank);
    let options = Options { deadline: LONG, slow_after: Duration::from_millis(400) };
    let boot = Bootstrap::connect_with(&id, rank, ranks, options).unwrap();
    boot.watch(|event| match event {
        Event::Slow { rank, .. } => say("slow", rank),
        Event::Awake { rank } => say("awake", rank),
        Event::Failed(failure) => say("failed", &failure.error),
        Event::Left { .. } => {}
    });
    boot.barrier(LONG).unwrap();
    say("ready", rank);
    read_line();
    boot.barrier(LONG).unwrap();
    say("failure", boot.state().has_failed());
    boot.goodbye().unwrap();
}

#[test]
fn a_stopped_process_is_slow_not_dead_even_the_roots() {
    for victim in [1, 0] {
        let mut all: Vec<_> = (0..3).map(|rank| Process::start("slow", rank, 3, &[])).collect();
        hand_over(&mut all);
        all.iter_mut().for_each(|process| drop(process.hear("ready")));
        all[victim].signal(Signal::STOP);
        // Who hears it: with the root's process stopped, each of the others by itself.
        assert_eq!(all[2].hear("slow"), victim.to_string());
        all[victim].signal(Signal::CONT);
        assert_eq!(all[2].hear("awake"), victim.to_string());
        all.iter_mut().for_each(|process| process.tell("end"));
        all.iter_mut().for_each(|process| assert_eq!(process.hear("failure"), "false"));
    }
}

/// Twice in a row with the address that the environment gives.
fn fixed(rank: u32, ranks: u32) {
    for _ in 0..2 {
        let id = UniqueId::create(None).unwrap();
        let boot = Bootstrap::connect(&id, rank, ranks, LONG).unwrap();
        let all = boot.allgather(&[rank as u8], LONG).unwrap().concat();
        assert_eq!(all, (0..ranks as u8).collect::<Vec<_>>());
        boot.barrier(LONG).unwrap();
        boot.goodbye().unwrap();
    }
    say("done", rank);
}

#[test]
fn an_address_from_the_environment_serves_one_communicator_after_the_other() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let env = [("RINGLAB_COMM_ID", free.as_str())];
    // Rank 0, the root, comes last.
    let mut all: Vec<_> = (0..3).rev().map(|rank| Process::start("fixed", rank, 3, &env)).collect();
    all.iter_mut().for_each(|process| drop(process.hear("done")));
}

/// Rank 0, in whose process the root is, says goodbye and ends at once.
fn leave(rank: u32, ranks: u32) {
    let id = exchange(rank);
    let boot = Bootstrap::connect(&id, rank, ranks, LONG).unwrap();
    boot.barrier(LONG).unwrap();
    if rank == 0 {
        boot.goodbye().unwrap();
        return;
    }
    let until = Instant::now() + LONG;
    while !boot.state().has_left(Rank(0)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    say("ready", rank);
    read_line();
    say("failure", boot.state().has_failed());
    boot.goodbye().unwrap();
}

#[test]
fn the_end_of_the_roots_process_after_its_goodbye_is_no_failure() {
    let mut all: Vec<_> = (0..3).map(|rank| Process::start("leave", rank, 3, &[])).collect();
    hand_over(&mut all);
    let status = all[0].child.wait().unwrap();
    assert!(status.success());
    all[1..].iter_mut().for_each(|process| drop(process.hear("ready")));
    all[1..].iter_mut().for_each(|process| process.tell("end"));
    all[1..].iter_mut().for_each(|process| assert_eq!(process.hear("failure"), "false"));
    // Their own goodbyes find nobody, and that is no error either.
    all[1..].iter_mut().for_each(|process| assert!(process.child.wait().unwrap().success()));
}

/// Calls collectives until the others fail it, and says what it knows then.
fn faulty(rank: u32, ranks: u32) {
    let id = exchange(rank);
    let boot = Bootstrap::connect(&id, rank, ranks, LONG).unwrap();
    let faults: Faults = std::env::var("RINGLAB_FAULT").unwrap().parse().unwrap();
    let (faults, recorder) = (faults.of_rank(Rank(rank)), FlightRecorder::new(Rank(rank), 4));
    let why = (0..).find_map(|number| {
        let effects = faults.effects(number, &Operation::Barrier, ranks).unwrap();
        if effects.kill {
            kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
        }
        let sequence = recorder.enqueued(&effects.operation);
        recorder.launched(sequence);
        agree(&boot, &[effects.operation], LONG).map(|()| recorder.done(sequence)).err()
    });
    recorder.fail_open(&why.unwrap().to_string());
    say("record", recorder.to_json());
}

#[test]
fn a_rank_that_kills_itself_at_its_fifth_call_is_in_the_last_record_of_all_others() {
    let env = [("RINGLAB_FAULT", "kill rank=1 op=5")];
    let mut all: Vec<_> = (0..3).map(|rank| Process::start("faulty", rank, 3, &env)).collect();
    hand_over(&mut all);
    for rank in [0, 2] {
        let record: serde_json::Value = serde_json::from_str(&all[rank].hear("record")).unwrap();
        let last = record["records"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["sequence"], &last["call"], &last["state"]),
            (&5.into(), &"barrier".into(), &"failed".into())
        );
        assert!(last["why"].as_str().unwrap().contains("rank 1"), "{last}");
    }
    assert!(!all[1].child.wait().unwrap().success());
}
