//! One browser's view of one job as a stream of server-sent events, from any point on.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::stream::{self, Stream};
use ringlab_labs::wire::Attempt;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::hub::Subscription;
use crate::store::events::Cursor;
use crate::store::jobs::Phase;
use crate::store::{Store, StoreResult};
use crate::view;

/// Events read from the database at a time.
const BATCH: u32 = 256;
/// Without a wake-up call the database is read again this often (another server may have written).
const RECHECK: Duration = Duration::from_secs(15);
/// A queued job's position is looked up at most this often.
const QUEUE_PACE: Duration = Duration::from_secs(1);
/// How long an [`EventSource`] waits before it reconnects.
const RECONNECT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Feed {
    store: Store,
    job: String,
    cursor: Cursor,
    subscription: Subscription,
    shutdown: CancellationToken,
    out: VecDeque<Event>,
    shown: Option<(Phase, Attempt, String)>,
    looked: Instant,
    ended: bool,
}

impl Feed {
    /// `subscription` must be older than any reading of the job's state that the caller has shown.
    pub fn new(
        store: Store,
        job: String,
        cursor: Cursor,
        subscription: Subscription,
        shutdown: CancellationToken,
    ) -> Feed {
        let out = VecDeque::from([Event::default().retry(RECONNECT)]);
        Feed {
            store,
            job,
            cursor,
            subscription,
            shutdown,
            out,
            shown: None,
            looked: Instant::now(),
            ended: false,
        }
    }

    pub fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        stream::unfold(self, |mut feed| async move { feed.next().await.map(|event| (Ok(event), feed)) })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.out.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            match self.look().await {
                Ok(Caught::Up(phase)) if self.out.is_empty() && !self.ended => self.wait(phase).await,
                Ok(_) => {}
                Err(error) => {
                    // The browser reconnects and goes on from the last event it has.
                    tracing::error!(job = self.job, %error, "event stream ends: the database cannot be read");
                    self.ended = true;
                }
            }
        }
    }

    /// Reads what is new. The state is read before the events: nothing is appended after a final state, so once a final state was
    /// read and the events after it are exhausted, the stream is complete.
    async fn look(&mut self) -> StoreResult<Caught> {
        self.subscription.job.mark_unchanged();
        self.subscription.queue.mark_unchanged();
        self.looked = Instant::now();
        let Some(record) = self.store.job(&self.job).await? else {
            self.ended = true;
            return Ok(Caught::Behind);
        };
        let events = self.store.events_after(&self.job, self.cursor, BATCH).await?;
        let caught_up = events.len() < BATCH as usize;
        for event in events {
            self.cursor = Cursor { attempt: event.attempt, seq: event.event.seq };
            let id = format!("{}.{}", self.cursor.attempt, self.cursor.seq);
            let event = Event::default().event("event").id(id).json_data(&event);
            self.out.push_back(event.expect("events have string keys and finite numbers"));
        }
        if !caught_up {
            return Ok(Caught::Behind);
        }
        let phase = record.phase;
        let same = self.shown.as_ref().is_some_and(|(p, a, _)| (*p, *a) == (phase, record.attempt));
        if !same || phase == Phase::Queued {
            let attempt = record.attempt;
            let view = view::job(&self.store, record).await?;
            let text = serde_json::to_string(&view).expect("views have string keys and finite numbers");
            if self.shown.as_ref().is_none_or(|(_, _, shown)| *shown != text) {
                self.out.push_back(Event::default().event("state").data(&text));
                self.shown = Some((phase, attempt, text));
            }
        }
        self.ended = phase.is_final();
        Ok(Caught::Up(phase))
    }

    async fn wait(&mut self, phase: Phase) {
        let Subscription { job, queue, .. } = &mut self.subscription;
        let pace = self.looked + QUEUE_PACE;
        let queue_moved = async {
            match phase {
                Phase::Queued if queue.changed().await.is_ok() => sleep_until(pace).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = job.changed() => {}
            () = queue_moved => {}
            () = sleep(RECHECK) => {}
            () = self.shutdown.cancelled() => self.ended = true,
        }
    }
}

enum Caught {
    Up(Phase),
    Behind,
}
