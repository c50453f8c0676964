//! An `EventSource` that keeps what it hears.

use futures_util::{Stream, StreamExt as _};
use reqwest::Method;
use ringlab_labs::api::{JobView, StreamEvent};
use tokio::time::timeout;

use super::{Browser, SOON};

type Bytes = std::pin::Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>;

pub struct Events {
    bytes: Bytes,
    buffer: String,
}

#[derive(Debug)]
pub enum Heard {
    Event { id: String, event: Box<StreamEvent> },
    State(Box<JobView>),
    End,
}

impl Events {
    pub async fn open(browser: &Browser, job: &str, query: &str, last: Option<&str>) -> Events {
        let mut request = browser.request(Method::GET, &format!("/api/v1/jobs/{job}/events{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let bytes = response
            .bytes_stream()
            .take_while(|b| std::future::ready(b.is_ok()))
            .map(|b| b.unwrap().to_vec());
        Events { bytes: Box::pin(bytes), buffer: String::new() }
    }

    pub async fn next(&mut self) -> Heard {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                let field = |name: &str| block.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
                match field("event:") {
                    Some("event") => {
                        let event = serde_json::from_str(field("data:").unwrap()).unwrap();
                        return Heard::Event { id: field("id:").unwrap().to_owned(), event };
                    }
                    Some("state") => {
                        return Heard::State(serde_json::from_str(field("data:").unwrap()).unwrap());
                    }
                    _ => {}
                }
            }
            match timeout(SOON, self.bytes.next()).await.expect("the stream goes on or ends") {
                Some(bytes) => self.buffer.push_str(std::str::from_utf8(&bytes).unwrap()),
                None => return Heard::End,
            }
        }
    }

    /// The ids of the next `n` events; states in between are skipped.
    pub async fn ids(&mut self, n: usize) -> Vec<String> {
        let mut ids = Vec::new();
        while ids.len() < n {
            match self.next().await {
                Heard::Event { id, .. } => ids.push(id),
                Heard::State(_) => {}
                Heard::End => panic!("ended after {ids:?}"),
            }
        }
        ids
    }

    /// Everything to the end: ids of events, and the last state.
    pub async fn rest(&mut self) -> (Vec<String>, Option<Box<JobView>>) {
        let (mut ids, mut state) = (Vec::new(), None);
        loop {
            match self.next().await {
                Heard::Event { id, .. } => ids.push(id),
                Heard::State(view) => state = Some(view),
                Heard::End => return (ids, state),
            }
        }
    }
}
