//! Wake-up calls. A call carries nothing: whoever is woken reads the database. A subscriber marks the call as heard *before* it reads,
//! so a change after the read is a new call and none is lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

#[derive(Debug, Default)]
pub struct Hub {
    jobs: Mutex<HashMap<String, watch::Sender<()>>>,
    queue: watch::Sender<()>,
}

/// Hears of one job, and of the queue as a whole.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    id: String,
    pub job: watch::Receiver<()>,
    /// Positions in the queue may have changed, or who could take the jobs in it.
    pub queue: watch::Receiver<()>,
}

impl Hub {
    pub fn subscribe(self: &Arc<Self>, job: &str) -> Subscription {
        let receiver = self.lock().entry(job.to_owned()).or_default().subscribe();
        Subscription { hub: self.clone(), id: job.to_owned(), job: receiver, queue: self.queue.subscribe() }
    }

    /// The job has changed or has new events.
    pub fn job_changed(&self, job: &str) {
        if let Some(sender) = self.lock().get(job) {
            sender.send_replace(());
        }
    }

    pub fn queue_changed(&self) {
        self.queue.send_replace(());
    }

    /// Open subscriptions.
    pub fn subscribers(&self) -> usize {
        self.queue.receiver_count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        // A panic elsewhere cannot leave the map half changed: every access is one call.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut jobs = self.hub.lock();
        // This subscription's own receiver still counts.
        if jobs.get(&self.id).is_some_and(|s| s.receiver_count() <= 1) {
            jobs.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_between_subscribing_and_waiting_is_heard() {
        let hub = Arc::new(Hub::default());
        let mut sub = hub.subscribe("a");
        sub.job.mark_unchanged();
        hub.job_changed("a");
        sub.job.changed().await.expect("the hub lives");
        assert!(!sub.job.has_changed().expect("the hub lives"));
        hub.job_changed("b");
        assert!(!sub.job.has_changed().expect("the hub lives"));
    }

    #[test]
    fn the_last_subscriber_takes_the_entry_along() {
        let hub = Arc::new(Hub::default());
        let (one, two) = (hub.subscribe("a"), hub.subscribe("a"));
        assert_eq!(hub.subscribers(), 2);
        drop(one);
        assert_eq!(hub.lock().len(), 1);
        drop(two);
        assert_eq!(hub.lock().len(), 0);
    }
}
