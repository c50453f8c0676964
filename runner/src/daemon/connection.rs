//! The WebSocket to the server, as typed messages with deadlines.

use std::time::Duration;

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use ringlab_labs::wire::{FromRunner, FromServer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::config::Config;

const CONNECT: Duration = Duration::from_secs(10);
/// Longest one frame may take to leave: the server or the network no longer takes anything.
const SEND: Duration = Duration::from_secs(10);
/// Largest frame accepted: an assignment with its plans.
const MAX_FRAME: usize = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Trying again cannot help.
    #[error("{0}")]
    Refused(String),
    #[error("{0:#}")]
    Lost(anyhow::Error),
}

#[derive(Debug)]
pub struct Connection {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// What arrived.
#[derive(Debug)]
pub enum Incoming {
    Message(FromServer),
    /// A pong, a ping: the server lives.
    Sign,
}

impl Connection {
    pub async fn open(config: &Config) -> Result<Connection, ConnectError> {
        let lost = |e: anyhow::Error| ConnectError::Lost(e);
        let url = config.server.socket();
        let mut request =
            url.as_str().into_client_request().map_err(|e| ConnectError::Refused(format!("{url}: {e}")))?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", config.token))
            .map_err(|_| ConnectError::Refused("the token cannot stand in an HTTP header".into()))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        let limits =
            WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
        let connecting = connect_async_with_config(request, Some(limits), true);
        match timeout(CONNECT, connecting).await {
            Ok(Ok((socket, _))) => Ok(Connection { socket }),
            Ok(Err(WsError::Http(answer))) if matches!(answer.status().as_u16(), 401 | 403) => {
                Err(ConnectError::Refused(format!(
                    "{} answered {}: the token is not the one the server was started with (its --runner-token)",
                    config.server,
                    answer.status()
                )))
            }
            Ok(Err(e)) => Err(lost(anyhow::anyhow!("connecting to {url}: {e}"))),
            Err(_) => Err(lost(anyhow::anyhow!("{url} did not answer within {} s", CONNECT.as_secs()))),
        }
    }

    pub async fn send(&mut self, message: &FromRunner) -> anyhow::Result<()> {
        let text = serde_json::to_string(message).context("a message that is not JSON")?;
        self.send_raw(Message::text(text)).await
    }

    pub async fn ping(&mut self) -> anyhow::Result<()> {
        self.send_raw(Message::Ping(Default::default())).await
    }

    async fn send_raw(&mut self, message: Message) -> anyhow::Result<()> {
        match timeout(SEND, self.socket.send(message)).await {
            Ok(sent) => sent.map_err(|e| anyhow::anyhow!("sending to the server: {e}")),
            Err(_) => anyhow::bail!("the server took nothing for {} s", SEND.as_secs()),
        }
    }

    /// The next thing the server says. Cancel-safe.
    pub async fn receive(&mut self) -> anyhow::Result<Incoming> {
        match self.socket.next().await {
            None => anyhow::bail!("the server closed the connection"),
            Some(Err(e)) => anyhow::bail!("receiving from the server: {e}"),
            Some(Ok(Message::Text(text))) => Ok(Incoming::Message(
                serde_json::from_str(text.as_str())
                    .context("the server sent a message this runner does not know")?,
            )),
            Some(Ok(Message::Close(Some(frame)))) => {
                anyhow::bail!("the server closed the connection: {} {}", frame.code, frame.reason)
            }
            Some(Ok(Message::Close(None))) => anyhow::bail!("the server closed the connection"),
            Some(Ok(_)) => Ok(Incoming::Sign),
        }
    }

    pub async fn close(mut self) {
        // The server sees the end of the connection either way.
        let _ = timeout(Duration::from_secs(1), self.socket.close(None)).await;
    }
}
