//! The three pipes of a worker, each with its own small task, so that no side can block the watchdog.

use std::io;
use std::process::Child;

use ringlab_labs::job::JobSpec;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::line::MAX_LINE;

/// Kept of a worker's standard error: its end.
const STDERR_TAIL: usize = 4096;

#[derive(Debug)]
pub enum ReadError {
    TooLong,
    Io(io::Error),
}

#[derive(Debug)]
pub struct Pipes {
    /// Lines without their newline; closed at the end of the output. A slow reader slows the worker down, not the watchdog.
    pub lines: mpsc::Receiver<Result<Vec<u8>, ReadError>>,
    pub closed: bool,
    stderr: JoinHandle<Vec<u8>>,
    tasks: [JoinHandle<()>; 2],
}

impl Pipes {
    /// Takes the child's pipes and starts writing the specification.
    pub fn open(child: &mut Child, spec: &JobSpec) -> io::Result<Pipes> {
        let missing = || io::Error::other("a pipe is missing");
        let mut stdin = ChildStdin::from_std(child.stdin.take().ok_or_else(missing)?)?;
        let stdout = ChildStdout::from_std(child.stdout.take().ok_or_else(missing)?)?;
        let stderr = ChildStderr::from_std(child.stderr.take().ok_or_else(missing)?)?;
        let spec = serde_json::to_vec(spec)?;
        let (sender, lines) = mpsc::channel(64);
        let feeder = tokio::spawn(async move {
            // A worker that dies before it has read everything is seen by its exit, not here.
            let _ = stdin.write_all(&spec).await;
        });
        let reader = tokio::spawn(read_lines(stdout, sender));
        Ok(Pipes { lines, closed: false, stderr: tokio::spawn(read_tail(stderr)), tasks: [feeder, reader] })
    }

    /// The end of the worker's standard error, as text.
    pub async fn last_words(&mut self, until: tokio::time::Instant) -> String {
        match tokio::time::timeout_at(until, &mut self.stderr).await {
            Ok(Ok(tail)) => String::from_utf8_lossy(&tail).trim().to_owned(),
            _ => String::new(),
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.stderr.abort();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read_lines(stdout: impl AsyncRead + Unpin, lines: mpsc::Sender<Result<Vec<u8>, ReadError>>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = (&mut stdout).take(MAX_LINE).read_until(b'\n', &mut line).await;
        let line = match read {
            Ok(0) => return,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                Ok(line)
            }
            Ok(n) if n as u64 >= MAX_LINE => Err(ReadError::TooLong),
            // Cut off by the end of the process: whatever it was, it was not said.
            Ok(_) => return,
            Err(e) => Err(ReadError::Io(e)),
        };
        let last = line.is_err();
        if lines.send(line).await.is_err() || last {
            return;
        }
    }
}

async fn read_tail(mut stderr: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stderr.read(&mut buffer).await {
            Ok(0) | Err(_) => return tail,
            Ok(n) => {
                tail.extend_from_slice(&buffer[..n]);
                let excess = tail.len().saturating_sub(STDERR_TAIL);
                tail.drain(..excess);
            }
        }
    }
}
