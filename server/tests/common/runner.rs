//! A runner that says exactly what the test wants.

use futures_util::{SinkExt as _, StreamExt as _};
use ringlab_labs::job::{Backend, Event, JobResult, JobSpec};
use ringlab_labs::wire::{Failure, FailureKind, FromRunner, FromServer, LeaseRef, PROTOCOL};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::{SOON, Server, TOKEN, hardware};

pub struct Runner {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Runner {
    pub async fn dial(server: &Server, token: &str) -> Result<Runner, tungstenite::Error> {
        let mut request = server.socket_url().into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        connect_async(request).await.map(|(socket, _)| Runner { socket })
    }

    /// Connected and welcomed.
    pub async fn connect(server: &Server, name: &str, resume: Option<LeaseRef>) -> Runner {
        let mut runner = Runner::dial(server, TOKEN).await.unwrap();
        runner.say(&hello(name, PROTOCOL, resume)).await;
        assert!(matches!(runner.hear().await, FromServer::Welcome { protocol: 1, .. }));
        runner
    }

    pub async fn say(&mut self, message: &FromRunner) {
        self.socket.send(Message::text(serde_json::to_string(message).unwrap())).await.unwrap();
    }

    /// The next message; `None`: the connection ended.
    pub async fn next(&mut self) -> Option<FromServer> {
        loop {
            match timeout(SOON, self.socket.next()).await.expect("the server says something") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(text.as_str()).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    pub async fn hear(&mut self) -> FromServer {
        self.next().await.expect("the connection lives")
    }

    /// Asks for work and waits for it.
    pub async fn take(&mut self) -> (LeaseRef, JobSpec) {
        self.say(&FromRunner::Lease).await;
        self.assigned().await
    }

    pub async fn assigned(&mut self) -> (LeaseRef, JobSpec) {
        match self.hear().await {
            FromServer::Assign { lease, spec } => (lease, *spec),
            other => panic!("{other:?} instead of a job"),
        }
    }

    /// Sends events and returns the acknowledged number.
    pub async fn send_events(&mut self, lease: &LeaseRef, events: Vec<Event>) -> u64 {
        self.say(&FromRunner::Events { lease: lease.clone(), events }).await;
        match self.hear().await {
            FromServer::Ack { lease: of, seq } if of == *lease => seq,
            other => panic!("{other:?} instead of an acknowledgement"),
        }
    }

    pub async fn finish(&mut self, lease: &LeaseRef, result: JobResult) -> bool {
        self.say(&FromRunner::Result { lease: lease.clone(), result: Box::new(result) }).await;
        self.settled(lease).await
    }

    pub async fn fail(&mut self, lease: &LeaseRef, kind: FailureKind, message: &str) -> bool {
        let failure = Failure { kind, message: message.into() };
        self.say(&FromRunner::Failed { lease: lease.clone(), failure }).await;
        self.settled(lease).await
    }

    pub async fn settled(&mut self, lease: &LeaseRef) -> bool {
        match self.hear().await {
            FromServer::Settled { lease: of, accepted } if of == *lease => accepted,
            other => panic!("{other:?} instead of a settlement"),
        }
    }
}

pub fn hello(name: &str, (oldest, newest): (u32, u32), resume: Option<LeaseRef>) -> FromRunner {
    FromRunner::Hello {
        oldest,
        newest,
        name: name.into(),
        version: "test".into(),
        hardware: hardware(&[Backend::Cpu]),
        resume,
    }
}
