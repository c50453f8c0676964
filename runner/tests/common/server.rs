//! The server's side of the wire, for the daemon to talk to: a real WebSocket and a real PUT, with the test as the one who decides.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ringlab_labs::job::{Event, HardwareInfo, JobSpec};
use ringlab_labs::wire::{FromRunner, FromServer, LeaseRef};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use super::{Folder, JOB, RUNNER, children};

/// Nothing here may take longer.
pub const DEADLINE: Duration = Duration::from_secs(30);
pub const TOKEN: &str = "token-of-the-test";

pub fn lease(attempt: u32) -> LeaseRef {
    LeaseRef { job: JOB.into(), attempt }
}

pub struct Server {
    pub url: String,
    pub artifacts: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// So many uploads are answered with 503 first.
    pub busy: Arc<AtomicU32>,
    sockets: mpsc::Receiver<WebSocketStream<TcpStream>>,
}

impl Server {
    pub async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, sockets) = mpsc::channel(4);
        let artifacts = Arc::new(Mutex::new(HashMap::new()));
        let busy = Arc::new(AtomicU32::new(0));
        let (store, budget) = (Arc::clone(&artifacts), Arc::clone(&busy));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, store, budget) = (sender.clone(), Arc::clone(&store), Arc::clone(&budget));
                tokio::spawn(async move {
                    let mut start = [0; 3];
                    if stream.peek(&mut start).await.is_ok() && &start == b"PUT" {
                        answer_puts(stream, &store, &budget).await;
                    } else if let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, check_token).await
                    {
                        let _ = sender.send(socket).await;
                    }
                });
            }
        });
        Server { url, artifacts, busy, sockets }
    }

    /// Waits for a runner's connection and its hello, and welcomes it. Returns what the hello resumes, too.
    pub async fn welcome(&mut self) -> (Peer, HardwareInfo, Option<LeaseRef>) {
        let socket = timeout(DEADLINE, self.sockets.recv()).await.expect("a runner connects").unwrap();
        let mut peer = Peer { socket };
        let FromRunner::Hello { hardware, resume, oldest: 1, newest: 1, .. } = peer.receive_any().await
        else {
            panic!("no hello")
        };
        let runner = "r1".into();
        peer.send(FromServer::Welcome { protocol: 1, runner, heartbeat_ms: 200, lease_ms: 5_000 }).await;
        (peer, hardware, resume)
    }

    /// Welcomes an idle runner and gives it a job.
    pub async fn assign(&mut self, spec: JobSpec) -> Peer {
        let (mut peer, hardware, resume) = self.welcome().await;
        assert_eq!(resume, None);
        assert!(!hardware.backends.is_empty() && hardware.cores > 0 && hardware.memory_bytes > 0);
        assert_eq!(peer.receive().await, FromRunner::Lease);
        peer.send(FromServer::Assign { lease: lease(1), spec: Box::new(spec) }).await;
        peer
    }
}

// The type is the library's.
#[allow(clippy::result_large_err)]
fn check_token(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    assert_eq!(request.uri().path(), "/api/v1/runner");
    let authorization = request.headers().get("authorization").map(|v| v.as_bytes().to_vec());
    if authorization.as_deref() == Some(format!("Bearer {TOKEN}").as_bytes()) {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = tokio_tungstenite::tungstenite::http::StatusCode::UNAUTHORIZED;
    Err(refusal)
}

/// Requests of one connection, one after another.
async fn answer_puts(mut stream: TcpStream, store: &Mutex<HashMap<String, Vec<u8>>>, busy: &AtomicU32) {
    let mut bytes = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
        let header = |name: &str| {
            head.lines()
                .filter_map(|l| l.split_once(": "))
                .find(|(k, _)| k.eq_ignore_ascii_case(name))
                .map(|(_, v)| v)
        };
        assert_eq!(header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        let length: usize = header("content-length").expect("a length").parse().unwrap();
        while bytes.len() < head_end + length {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the body is cut off");
        }
        let path = head.split(' ').nth(1).unwrap();
        let hash = path.strip_prefix("/api/v1/runner/artifacts/").expect("the artifact's path").to_owned();
        let body = bytes[head_end..head_end + length].to_vec();
        bytes.drain(..head_end + length);
        let take = |n: u32| n.checked_sub(1);
        let answer = if busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            "503 Service Unavailable"
        } else {
            store.lock().unwrap().insert(hash, body);
            "204 No Content"
        };
        stream.write_all(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await.unwrap();
    }
}

pub struct Peer {
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    pub async fn send(&mut self, message: FromServer) {
        let text = serde_json::to_string(&message).unwrap();
        timeout(DEADLINE, self.socket.send(Message::text(text))).await.expect("the runner reads").unwrap();
    }

    pub async fn receive_any(&mut self) -> FromRunner {
        loop {
            let message = timeout(DEADLINE, self.socket.next()).await.expect("the runner says something");
            if let Message::Text(text) = message.expect("the runner stays connected").unwrap() {
                return serde_json::from_str(text.as_str()).unwrap();
            }
        }
    }

    /// The next message that is not a heartbeat.
    pub async fn receive(&mut self) -> FromRunner {
        loop {
            match self.receive_any().await {
                FromRunner::Heartbeat { lease: held } => assert_eq!(held.job, JOB),
                other => return other,
            }
        }
    }

    pub async fn acknowledge(&mut self, seq: u64) {
        self.send(FromServer::Ack { lease: lease(1), seq }).await;
    }

    /// Acknowledges all events until the job's end, and returns both. Their numbers continue `after`.
    pub async fn finish(&mut self, after: u64) -> (Vec<Event>, FromRunner) {
        let mut all = Vec::new();
        loop {
            match self.receive().await {
                FromRunner::Events { events, .. } => {
                    let first = after + all.len() as u64 + 1;
                    let numbers: Vec<u64> = events.iter().map(|e| e.seq).collect();
                    assert_eq!(numbers, (first..first + events.len() as u64).collect::<Vec<_>>());
                    all.extend(events);
                    self.acknowledge(after + all.len() as u64).await;
                }
                end => return (all, end),
            }
        }
    }

    /// Waits until the runner has sent `n` events, and acknowledges none.
    pub async fn events(&mut self, n: usize) -> Vec<Event> {
        let mut all = Vec::new();
        while all.len() < n {
            let FromRunner::Events { events, .. } = self.receive().await else {
                panic!("only events so far")
            };
            all.extend(events);
        }
        all
    }
}

/// A running daemon, killed at the end of the test.
pub struct Daemon {
    child: Child,
    work: PathBuf,
    _folder: Option<Folder>,
}

impl Daemon {
    pub fn start(server: &Server, options: &[&str]) -> Daemon {
        let folder = Folder::new();
        let mut daemon = Daemon::start_in(folder.path(), server, TOKEN, options);
        daemon._folder = Some(folder);
        daemon
    }

    pub fn start_in(work: &Path, server: &Server, token: &str, options: &[&str]) -> Daemon {
        let child = Command::new(RUNNER)
            .args(["--server", &server.url, "--backends", "cpu", "--work"])
            .arg(work)
            .args(options)
            .env("RINGLAB_RUNNER_TOKEN", token)
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(work.join("log")).unwrap())
            .spawn()
            .unwrap();
        Daemon { child, work: work.to_owned(), _folder: None }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.work.join("log")).unwrap()
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The one worker of the running job.
    pub async fn worker(&self) -> i32 {
        until("a worker runs", || match children(self.pid())[..] {
            [worker] => Some(worker),
            _ => None,
        })
        .await
    }

    pub async fn exit(&mut self) -> ExitStatus {
        until("the daemon ends", || self.child.try_wait().unwrap()).await
    }

    /// Folders of jobs that are still there.
    pub fn job_folders(&self) -> Vec<String> {
        let slot = std::fs::read_dir(self.work.join("slot-0")).unwrap();
        slot.map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("job-"))
            .collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition outside this process, with a deadline.
pub async fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let waited = timeout(DEADLINE, async {
        loop {
            if let Some(value) = condition() {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not within {} s: {what}", DEADLINE.as_secs()))
}
