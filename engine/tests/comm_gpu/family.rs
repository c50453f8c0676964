//! Ranks as child processes of the test, told what to do a line at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ringlab_engine::comm::UniqueId;

pub const CHILD: &str = "RINGLAB_TEST_CHILD";

struct Member {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

pub struct Family {
    members: Vec<Member>,
    _turn: MutexGuard<'static, ()>,
}

/// Families of one test run take turns: contexts that share a GPU by time would make each other's kernels miss their deadlines.
static TURN: Mutex<()> = Mutex::new(());

impl Family {
    pub fn start(ranks: u32) -> Family {
        let mut family = Family::idle(ranks);
        family.join();
        family
    }

    /// Processes without a communicator.
    pub fn idle(ranks: u32) -> Family {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Family { members: (0..ranks).map(|_| spawn()).collect(), _turn: turn }
    }

    /// All form a new communicator.
    pub fn join(&mut self) {
        let id = UniqueId::create(None).unwrap();
        let hex: String = id.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let ranks = self.members.len();
        for rank in 0..ranks {
            self.tell(rank, &format!("join {rank} {ranks} {hex}"));
        }
        self.hear_all("joined", Duration::from_secs(60));
    }

    pub fn tell(&mut self, rank: usize, line: &str) {
        writeln!(self.members[rank].input, "{line}").unwrap();
    }

    pub fn tell_all(&mut self, line: &str) {
        for rank in 0..self.members.len() {
            self.tell(rank, line);
        }
    }

    /// The next line of a rank that has this in it.
    pub fn hear(&mut self, rank: usize, what: &str, limit: Duration) -> String {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.members[rank].lines.recv_timeout(left) {
                Ok(line) if line.contains(what) => return line,
                Ok(line) => eprintln!("rank {rank}: {line}"),
                Err(RecvTimeoutError::Timeout) => panic!("rank {rank} did not say `{what}` within {limit:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("rank {rank} ended before it said `{what}`"),
            }
        }
    }

    pub fn hear_all(&mut self, what: &str, limit: Duration) {
        for rank in 0..self.members.len() {
            self.hear(rank, what, limit);
        }
    }

    pub fn kill(&mut self, rank: usize) {
        self.members[rank].process.kill().unwrap();
    }

    pub fn replace(&mut self, rank: usize) {
        self.members[rank].process.wait().unwrap();
        self.members[rank] = spawn();
    }

    /// Every rank ends by itself, without an error.
    pub fn ends(mut self, limit: Duration) {
        let until = Instant::now() + limit;
        for (rank, member) in self.members.iter_mut().enumerate() {
            let status = loop {
                if let Some(status) = member.process.try_wait().unwrap() {
                    break status;
                }
                assert!(Instant::now() < until, "rank {rank} did not end within {limit:?}");
                std::thread::sleep(Duration::from_millis(10));
            };
            assert!(status.success(), "rank {rank}: {status}");
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

fn spawn() -> Member {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_rank", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = process.stdin.take().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    Member { process, input, lines }
}
