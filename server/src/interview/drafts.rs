//! Group commit: one task gathers the saves of some milliseconds into one durable transaction, and answers them after its commit.
//! Two thousand candidates cost as many calls of `fsync` as one does.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::problem::{ApiResult, Problem};
use crate::store::Store;
use crate::store::drafts::{NewDraft, SaveOutcome};

/// How long the first save of a group waits for company.
const GATHER: Duration = Duration::from_millis(5);
/// Saves of one transaction.
const GROUP: usize = 512;
/// Saves that wait; one more is told to come back. At 20,000 characters each this bounds the memory as well.
const WAITING: usize = 4_096;

#[derive(Debug)]
pub struct Drafts(mpsc::Sender<Save>);

#[derive(Debug)]
struct Save {
    draft: NewDraft,
    answer: oneshot::Sender<SaveOutcome>,
}

impl Drafts {
    pub fn new(store: Store) -> Drafts {
        let (send, saves) = mpsc::channel(WAITING);
        // Not among the tasks that end when the server is told to stop: requests in flight still get their answers. It ends with the
        // last sender.
        tokio::spawn(write(store, saves));
        Drafts(send)
    }

    /// Stores a draft; returns once it would outlive a power cut.
    pub async fn save(&self, draft: NewDraft) -> ApiResult<SaveOutcome> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Save { draft, answer }).map_err(|_| Problem::overloaded())?;
        // No answer: the transaction failed, and the log says why. Nothing of it is stored.
        answered.await.map_err(|_| Problem::overloaded())
    }
}

async fn write(store: Store, mut saves: mpsc::Receiver<Save>) {
    let mut group = Vec::with_capacity(GROUP);
    while saves.recv_many(&mut group, 1).await > 0 {
        sleep(GATHER).await;
        while group.len() < GROUP {
            let Ok(save) = saves.try_recv() else { break };
            group.push(save);
        }
        let (drafts, answers): (Vec<NewDraft>, Vec<_>) =
            group.drain(..).map(|save| (save.draft, save.answer)).unzip();
        metrics::histogram!("ringlab_draft_group").record(drafts.len() as f64);
        match store.save_drafts(&drafts).await {
            Ok(outcomes) => {
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    // Whoever asked may have left.
                    let _ = answer.send(outcome);
                }
            }
            Err(error) => tracing::error!(%error, drafts = drafts.len(), "a group of drafts was not stored"),
        }
    }
}
