//! Running one side: a process with a deadline, ended together with all that it started.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Between asking a group to end and making it: mpirun uses this time to end its ranks, which are in groups of their own.
const GRACE: Duration = Duration::from_secs(5);

/// How often a running process is looked at. It costs the measured side nothing that could be seen in a median.
const POLL: Duration = Duration::from_millis(10);

/// Most characters of a failed process's output that an error repeats.
const SHOWN: usize = 2000;

/// A command as it is run and recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub env: Vec<(String, String)>,
    pub words: Vec<OsString>,
}

impl Line {
    pub fn new(program: impl Into<OsString>) -> Line {
        Line { env: vec![], words: vec![program.into()] }
    }

    pub fn arg(mut self, word: impl Into<OsString>) -> Line {
        self.words.push(word.into());
        self
    }

    pub fn args<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Line {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// As one would type it.
    pub fn shown(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        let words = self.words.iter().map(|word| word.to_string_lossy().into_owned());
        env.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Runs to the end and returns standard output.
    ///
    /// # Errors
    /// When it cannot start, ends with another code than 0, or takes longer than `deadline`: then its whole group is ended.
    pub fn run(&self, deadline: Duration) -> Result<String, String> {
        let Ended { out, err, status } = self.ended(deadline)?;
        match status {
            None => Err(format!(
                "{} did not end within {} s and was ended with its group; give --deadline, fewer iterations or smaller sizes\n{}",
                self.shown(),
                deadline.as_secs(),
                tail(&err)
            )),
            Some(status) if !status.success() => {
                Err(format!("{} ended with {status}\n{}{}", self.shown(), tail(&out), tail(&err)))
            }
            Some(_) => Ok(out),
        }
    }

    /// Runs to the end, whatever that is.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn ended(&self, deadline: Duration) -> Result<Ended, String> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|err| format!("cannot start {}: {err}", self.shown()))?;
        let out = collect(child.stdout.take());
        let err = collect(child.stderr.take());
        let ended = wait(&mut child, deadline);
        let (out, err) = (text(out), text(err));
        Ok(Ended { out, err, status: ended.map_err(|why| format!("{}: {why}", self.shown()))? })
    }
}

/// Runs all of them at the same time, as [`Line::ended`]; in their order.
pub fn ended_together(lines: &[Line], deadline: Duration) -> Result<Vec<Ended>, String> {
    std::thread::scope(|scope| {
        let running: Vec<_> = lines.iter().map(|line| scope.spawn(move || line.ended(deadline))).collect();
        let ended = running.into_iter().map(|process| process.join().expect("a wait does not panic"));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// What a process left behind.
#[derive(Debug)]
pub struct Ended {
    pub out: String,
    pub err: String,
    /// `None` when it took longer than it was given.
    pub status: Option<ExitStatus>,
}

impl Ended {
    pub fn well(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Why it did not end well: the end of what it said.
    pub fn why(&self) -> String {
        let how = match self.status {
            None => "past its deadline".into(),
            Some(status) => status.to_string(),
        };
        format!("{how}: {}{}", tail(&self.out), tail(&self.err))
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is shown all the same.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(collected: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&collected.join().unwrap_or_default()).into_owned()
}

fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// `None` when the deadline passed.
fn wait(child: &mut Child, deadline: Duration) -> Result<Option<ExitStatus>, String> {
    let ended_within = |child: &mut Child, time: Duration| {
        let until = Instant::now() + time;
        loop {
            match child.try_wait().map_err(|err| format!("cannot wait for it: {err}"))? {
                Some(status) => return Ok::<_, String>(Some(status)),
                None if Instant::now() >= until => return Ok(None),
                None => std::thread::sleep(POLL),
            }
        }
    };
    let ended = ended_within(child, deadline)?;
    let group = Pid::from_child(child);
    if ended.is_none() {
        // The group may be gone between the last look and now; then there is nothing left to end.
        let _ = kill_process_group(group, Signal::TERM);
        ended_within(child, GRACE)?;
    }
    // Also after a normal end: a rank that outlived its launcher would disturb whatever is measured next.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map_err(|err| format!("cannot wait for it: {err}"))?;
    Ok(ended)
}

pub fn read_json(path: &Path) -> Result<serde_json::Value, String> {
    let text =
        std::fs::read_to_string(path).map_err(|err| format!("cannot read {}: {err}", path.display()))?;
    serde_json::from_str(&text).map_err(|err| format!("{} is not JSON: {err}", path.display()))
}

/// Complete or not at all: a file that is there is not measured again.
pub fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), String> {
    let partial = path.with_extension("partial");
    let written = std::fs::write(&partial, format!("{value:#}\n"));
    written
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|err| format!("cannot write {}: {err}", path.display()))
}

/// A folder for this run, removed at its end.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Result<Scratch, String> {
        Scratch::named("run")
    }

    /// Several of one process have different names.
    pub fn named(name: &str) -> Result<Scratch, String> {
        let folder = std::env::temp_dir().join(format!("ringlab-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .map_err(|err| format!("cannot create {}: {err}", folder.display()))?;
        Ok(Scratch(folder))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A temporary folder that stays behind harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Line {
        Line::new("sh").args(["-c", script])
    }

    #[test]
    fn output_is_returned_and_a_failure_repeats_it() {
        assert_eq!(sh("echo 1; echo 2").run(Duration::from_secs(60)).unwrap(), "1\n2\n");
        let failed = sh("echo seen; echo why >&2; exit 4").run(Duration::from_secs(60)).unwrap_err();
        assert!(
            failed.contains("exit status: 4") && failed.contains("seen") && failed.contains("why"),
            "{failed}"
        );
        let missing = Line::new("/nonexistent/program").run(Duration::from_secs(60)).unwrap_err();
        assert!(missing.contains("cannot start /nonexistent/program"), "{missing}");
    }

    /// The pipe closes only when the last process that holds it has ended: were the grandchild alive, this test would wait for it.
    #[test]
    fn past_the_deadline_the_whole_group_ends() {
        let late = sh("sleep 3600 & sleep 3600").run(Duration::from_millis(100)).unwrap_err();
        assert!(late.contains("did not end within"), "{late}");
    }
}
