//! A reader of a job's server-sent events that can be dropped and resumed.

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use ringlab_labs::api::{JobView, StreamEvent};

use crate::PATIENCE;
use crate::client::Client;

/// What arrived, in order.
#[derive(Debug, Default)]
pub struct Heard {
    pub events: Vec<StreamEvent>,
    pub states: Vec<JobView>,
    /// `id` of the last event, for resuming.
    pub last_id: Option<String>,
    /// The server ended the stream (after a final state) rather than the connection breaking.
    pub ended: bool,
}

/// Listens until the stream ends, breaks, or `enough` says so; continues after `last_id` of what was heard before.
pub async fn listen(
    client: &Client,
    job: &str,
    heard: &mut Heard,
    enough: impl Fn(&Heard) -> bool,
) -> Result<()> {
    let mut request = client.request("GET", &format!("/api/v1/jobs/{job}/events"))?;
    if let Some(id) = &heard.last_id {
        request = request.header("last-event-id", id);
    }
    let response = request.send().await?;
    if response.status() != 200 {
        bail!("the event stream was answered {}", response.status());
    }
    let mut body = response.bytes_stream();
    let mut buffer = Vec::new();
    loop {
        let chunk =
            tokio::time::timeout(PATIENCE, body.next()).await.context("the event stream went silent")?;
        match chunk {
            None => {
                heard.ended = true;
                return Ok(());
            }
            // The server died: what was heard counts, the rest is asked for again.
            Some(Err(_)) => return Ok(()),
            Some(Ok(bytes)) => buffer.extend_from_slice(&bytes),
        }
        while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = buffer.drain(..end + 2).collect();
            take(&String::from_utf8(block)?, heard)?;
        }
        if enough(heard) {
            return Ok(());
        }
    }
}

fn take(block: &str, heard: &mut Heard) -> Result<()> {
    let (mut kind, mut data, mut id) = (String::new(), String::new(), None);
    for line in block.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => kind = value.to_owned(),
            "data" => data.push_str(value),
            "id" => id = Some(value.to_owned()),
            _ => {}
        }
    }
    match kind.as_str() {
        "event" => {
            heard.events.push(serde_json::from_str(&data).with_context(|| format!("an event: {data}"))?)
        }
        "state" => {
            heard.states.push(serde_json::from_str(&data).with_context(|| format!("a state: {data}"))?)
        }
        _ => {}
    }
    if id.is_some() {
        heard.last_id = id;
    }
    Ok(())
}
