//! Where a worker's events go: numbered JSON lines, within the job's output limit.

use std::io::{self, Write};
use std::time::Instant;

use ringlab_labs::job::{Event, EventBody, Level, TaskResult};

use crate::line::Line;

/// Writes [`Line`]s. Log lines beyond the limit are dropped after one `Truncated`; progress (a few lines per task), task results and the
/// last line always go out, so that a talkative job still ends with its figures.
#[derive(Debug)]
pub struct Sink<W: Write> {
    out: W,
    started: Instant,
    last_seq: u64,
    limit: u64,
    written: u64,
    truncated: bool,
}

impl<W: Write> Sink<W> {
    pub fn new(out: W, limit_bytes: u64) -> Sink<W> {
        Sink { out, started: Instant::now(), last_seq: 0, limit: limit_bytes, written: 0, truncated: false }
    }

    pub fn log(&mut self, level: Level, source: &str, message: impl Into<String>) -> io::Result<()> {
        self.event(EventBody::Log { level, source: source.to_owned(), message: message.into() })
    }

    pub fn progress(&mut self, task: &str, phase: &str, done: u32, total: u32) -> io::Result<()> {
        self.event(EventBody::Progress { task: task.to_owned(), done, total, phase: phase.to_owned() })
    }

    pub fn task_done(&mut self, result: TaskResult) -> io::Result<()> {
        self.event(EventBody::TaskDone { result })
    }

    /// The worker's last line.
    pub fn end(&mut self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_vec(line).expect("a line has string keys only");
        self.write(text)
    }

    fn event(&mut self, body: EventBody) -> io::Result<()> {
        let is_log = matches!(body, EventBody::Log { .. });
        if is_log && self.truncated {
            return Ok(());
        }
        let text = self.numbered(body);
        if is_log && self.written + text.len() as u64 + 1 > self.limit {
            self.truncated = true;
            let notice = self.numbered(EventBody::Truncated { limit_bytes: self.limit });
            self.last_seq += 1;
            return self.write(notice);
        }
        self.last_seq += 1;
        self.write(text)
    }

    fn numbered(&self, body: EventBody) -> Vec<u8> {
        let at_ms = self.started.elapsed().as_millis() as u64;
        let event = Event { seq: self.last_seq + 1, at_ms, body };
        serde_json::to_vec(&Line::Event(event)).expect("an event has string keys only")
    }

    fn write(&mut self, mut text: Vec<u8>) -> io::Result<()> {
        text.push(b'\n');
        self.written += text.len() as u64;
        self.out.write_all(&text)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_logs_stop_after_one_notice_and_numbers_keep_no_gap() {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, 400);
        for i in 0..20 {
            sink.log(Level::Info, "worker", format!("line {i}")).unwrap();
            sink.progress("t", "measure", i, 20).unwrap();
        }
        let events: Vec<Event> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|l| match serde_json::from_str(l).unwrap() {
                Line::Event(event) => event,
                other => panic!("{other:?}"),
            })
            .collect();
        let numbers: Vec<u64> = events.iter().map(|e| e.seq).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
        let logs = events.iter().filter(|e| matches!(e.body, EventBody::Log { .. })).count();
        let notices =
            events.iter().filter(|e| matches!(e.body, EventBody::Truncated { limit_bytes: 400 })).count();
        let progress = events.iter().filter(|e| matches!(e.body, EventBody::Progress { .. })).count();
        assert!((1..5).contains(&logs), "{logs}");
        assert_eq!((notices, progress), (1, 20));
    }
}
