//! The debug log, by level and subsystem, with NCCL's names and rules (v2.22.3-1, src/debug.cc): `RINGLAB_DEBUG`,
//! `RINGLAB_DEBUG_SUBSYS`, `RINGLAB_DEBUG_FILE`. Off by default; then a call costs one relaxed load and a branch.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::env;

/// Each level shows itself and those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Version = 1,
    Warn = 2,
    Info = 3,
    Abort = 4,
    Trace = 5,
}

/// What a line is about. Warnings are shown whatever the subsystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Subsystem {
    Init = 0x1,
    Coll = 0x2,
    P2p = 0x4,
    Shm = 0x8,
    Net = 0x10,
    Graph = 0x20,
    Tuning = 0x40,
    Env = 0x80,
    Alloc = 0x100,
    Call = 0x200,
    Proxy = 0x400,
    Nvls = 0x800,
    Bootstrap = 0x1000,
    Reg = 0x2000,
    Profile = 0x4000,
}

impl Subsystem {
    pub const ALL: [Subsystem; 15] = [
        Subsystem::Init,
        Subsystem::Coll,
        Subsystem::P2p,
        Subsystem::Shm,
        Subsystem::Net,
        Subsystem::Graph,
        Subsystem::Tuning,
        Subsystem::Env,
        Subsystem::Alloc,
        Subsystem::Call,
        Subsystem::Proxy,
        Subsystem::Nvls,
        Subsystem::Bootstrap,
        Subsystem::Reg,
        Subsystem::Profile,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Subsystem::Init => "INIT",
            Subsystem::Coll => "COLL",
            Subsystem::P2p => "P2P",
            Subsystem::Shm => "SHM",
            Subsystem::Net => "NET",
            Subsystem::Graph => "GRAPH",
            Subsystem::Tuning => "TUNING",
            Subsystem::Env => "ENV",
            Subsystem::Alloc => "ALLOC",
            Subsystem::Call => "CALL",
            Subsystem::Proxy => "PROXY",
            Subsystem::Nvls => "NVLS",
            Subsystem::Bootstrap => "BOOTSTRAP",
            Subsystem::Reg => "REG",
            Subsystem::Profile => "PROFILE",
        }
    }
}

/// Writes one line when the level and the subsystem are shown; the arguments are not evaluated otherwise.
///
/// `log!(Info, Init, "rank {rank} of {ranks}")`
#[macro_export]
macro_rules! ringlab_log {
    ($level:ident, $subsystem:ident, $($text:tt)+) => {
        if $crate::comm::debug::enabled($crate::comm::debug::Level::$level, $crate::comm::debug::Subsystem::$subsystem) {
            $crate::comm::debug::write(
                $crate::comm::debug::Level::$level,
                $crate::comm::debug::Subsystem::$subsystem,
                format_args!($($text)+),
            );
        }
    };
}
pub use crate::ringlab_log as log;

/// Level in the upper, subsystems in the lower half.
const UNREAD: u64 = u64::MAX;
static GATE: AtomicU64 = AtomicU64::new(UNREAD);
static SINK: OnceLock<Sink> = OnceLock::new();

struct Sink {
    file: Option<Mutex<File>>,
    host: String,
    epoch: Instant,
}

/// Whether such a line would be shown. Reads the environment at the first call of the process.
#[inline]
pub fn enabled(level: Level, subsystem: Subsystem) -> bool {
    // Relaxed: the gate carries no other data; the sink behind it has its own synchronisation.
    let gate = match GATE.load(Ordering::Relaxed) {
        UNREAD => read_environment(),
        gate => gate,
    };
    shows(gate, level, subsystem)
}

fn shows(gate: u64, level: Level, subsystem: Subsystem) -> bool {
    level as u64 <= gate >> 32 && (level <= Level::Warn || gate as u32 & subsystem as u32 != 0)
}

#[cold]
fn read_environment() -> u64 {
    let (gate, complaint) = parse(env::var("DEBUG").as_deref(), env::var("DEBUG_SUBSYS").as_deref());
    SINK.get_or_init(|| {
        let host = host_name();
        let path = env::var("DEBUG_FILE").filter(|_| gate >> 32 > Level::Version as u64);
        let file = path.map(|path| expand(&path, &host, std::process::id())).and_then(|path| {
            File::create(&path)
                .map_err(|why| {
                    eprintln!(
                        "RINGLAB WARN the debug file {path} cannot be written ({why}); using standard output"
                    )
                })
                .ok()
        });
        if let Some(complaint) = complaint {
            eprintln!("RINGLAB WARN {complaint}");
        }
        Sink { file: file.map(Mutex::new), host, epoch: Instant::now() }
    });
    GATE.store(gate, Ordering::Relaxed);
    gate
}

/// The gate, and what in the values means nothing.
fn parse(debug: Option<&str>, subsystems: Option<&str>) -> (u64, Option<String>) {
    let mut complaint = None;
    let level = match debug.map(str::to_ascii_uppercase).as_deref() {
        None | Some("NONE") => 0,
        Some("VERSION") => Level::Version as u64,
        Some("WARN") => Level::Warn as u64,
        Some("INFO") => Level::Info as u64,
        Some("ABORT") => Level::Abort as u64,
        Some("TRACE") => Level::Trace as u64,
        Some(other) => {
            complaint = Some(format!("DEBUG is `{other}`; known: VERSION, WARN, INFO, ABORT, TRACE"));
            0
        }
    };
    let mut mask = Subsystem::Init as u32 | Subsystem::Env as u32;
    if let Some(list) = subsystems {
        let (exclude, list) = list.strip_prefix('^').map_or((false, list), |rest| (true, rest));
        mask = if exclude { u32::MAX } else { 0 };
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let known = Subsystem::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(name));
            let bits = match known {
                Some(subsystem) => subsystem as u32,
                None if name.eq_ignore_ascii_case("ALL") => u32::MAX,
                None => {
                    let all = Subsystem::ALL.map(Subsystem::name).join(", ");
                    complaint = Some(format!("DEBUG_SUBSYS names `{name}`; known: {all}, ALL"));
                    0
                }
            };
            mask = if exclude { mask & !bits } else { mask | bits };
        }
    }
    (level << 32 | u64::from(mask), complaint)
}

/// `%h` host, `%p` process id, `%%` a percent sign; anything else stays as it is.
fn expand(path: &str, host: &str, pid: u32) -> String {
    let mut out = String::new();
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some('h')) => out.push_str(host),
            ('%', Some('p')) => out.push_str(&pid.to_string()),
            ('%', Some('%')) => out.push('%'),
            ('%', Some(other)) => out.extend(['%', other]),
            (c, _) => out.push(c),
        }
    }
    out
}

/// Name of this machine up to the first dot.
pub(super) fn host_name() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Writes a line without asking [`enabled`]; use [`log!`].
#[cold]
pub fn write(level: Level, subsystem: Subsystem, text: fmt::Arguments<'_>) {
    let Some(sink) = SINK.get() else { return };
    let (pid, tid) = (std::process::id(), rustix::thread::gettid());
    let mut line = String::new();
    let at = sink.epoch.elapsed().as_secs_f64() * 1e3;
    let head = match level {
        Level::Version => write!(line, "{text}"),
        Level::Warn => write!(line, "{}:{pid}:{tid} RINGLAB WARN {text}", sink.host),
        Level::Trace => {
            write!(line, "{}:{pid}:{tid} {at:.3} RINGLAB TRACE {} {text}", sink.host, subsystem.name())
        }
        _ => write!(line, "{}:{pid}:{tid} RINGLAB INFO {} {text}", sink.host, subsystem.name()),
    };
    head.expect("writing to a string cannot fail unless a Display of the caller does");
    line.push('\n');
    // One write for a line, so that lines of several processes do not mix. A full disk must not stop a collective.
    let _ = match &sink.file {
        Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()),
        None => std::io::stdout().lock().write_all(line.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(debug: &str, subsystems: Option<&str>, level: Level, subsystem: Subsystem) -> bool {
        shows(parse(Some(debug), subsystems).0, level, subsystem)
    }

    #[test]
    fn nothing_is_shown_unless_asked_for() {
        let (gate, complaint) = parse(None, Some("ALL"));
        assert!(complaint.is_none());
        assert!(
            Subsystem::ALL.iter().all(|s| !shows(gate, Level::Version, *s) && !shows(gate, Level::Trace, *s))
        );
    }

    #[test]
    fn info_shows_init_and_env_unless_other_subsystems_are_named() {
        assert!(shown("info", None, Level::Info, Subsystem::Init));
        assert!(!shown("INFO", None, Level::Info, Subsystem::Coll));
        assert!(!shown("INFO", None, Level::Trace, Subsystem::Init));
        assert!(shown("INFO", Some("COLL,p2p"), Level::Info, Subsystem::P2p));
        assert!(!shown("INFO", Some("COLL,P2P"), Level::Info, Subsystem::Init));
        assert!(shown("INFO", Some("^COLL,P2P"), Level::Info, Subsystem::Net));
        assert!(!shown("INFO", Some("^COLL,P2P"), Level::Info, Subsystem::Coll));
        assert!(shown("INFO", Some("COLL"), Level::Warn, Subsystem::Net));
    }

    #[test]
    fn words_that_mean_nothing_are_complained_about() {
        assert!(parse(Some("LOUD"), None).1.unwrap().contains("LOUD"));
        assert!(parse(Some("INFO"), Some("INIT,FOO")).1.unwrap().contains("FOO"));
    }

    #[test]
    fn a_file_name_takes_host_and_process() {
        assert_eq!(expand("/tmp/%h.%p.100%%.%x", "node", 12), "/tmp/node.12.100%.%x");
    }
}
