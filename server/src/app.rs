//! What every handler shares.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use ringlab_labs::catalogue::LabView;
use ringlab_labs::job::{Fields, JobResult, Marks};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::blobs::Blobs;
use crate::compute::Lane;
use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::interview::Interview;
use crate::judge::Judge;
use crate::limits::Limiter;
use crate::password::Passwords;
use crate::problem::{ApiResult, Problem};
use crate::site::Site;
use crate::store::Store;
use crate::store::jobs::JobRecord;
use crate::stream::hub::Hub;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct App(pub Arc<Parts>);

#[derive(Debug)]
pub struct Parts {
    pub config: Config,
    pub store: Store,
    pub blobs: Blobs,
    pub hub: Arc<Hub>,
    pub dispatcher: Arc<Dispatcher>,
    pub site: Site,
    pub interview: Interview,
    pub limiter: Limiter,
    pub metrics: PrometheusHandle,
    /// Cancelled when the server is told to stop: streams and sockets end, requests in flight finish.
    pub shutdown: CancellationToken,
    /// Sockets and background tasks: waited for at the end.
    pub tasks: TaskTracker,
    /// What visitors ask to be computed.
    pub compute: Lane,
    /// Marks, apart from it: a crowd at the verifier must not cost a finished run its marks.
    pub marking: Lane,
    pub passwords: Passwords,
    /// Off unless configured.
    pub judge: Option<Judge>,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// A computation that waits longer than this for a core is turned away.
const COMPUTE_WAIT: Duration = Duration::from_secs(10);

impl App {
    pub fn lab(&self, id: &str) -> Option<&LabView> {
        self.site.catalogue.get(id)
    }

    /// Runs a pure computation beside the event loop.
    pub async fn compute<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
        let done = timeout(COMPUTE_WAIT, self.compute.enter())
            .await
            .map_err(|_| Problem::overloaded())?
            .run(f)
            .await;
        done.map_err(Problem::internal)
    }

    /// The marks a result earns, by the lab as it stands now. `None` when the lab is gone or its checker broke (the log says which):
    /// the result is kept, and marks can be computed from it later.
    pub async fn marks(&self, job: &JobRecord, result: JobResult, answers: Option<Fields>) -> Option<Marks> {
        let Some(lab) = self.lab(&job.lab).cloned() else {
            tracing::warn!(job = job.id, lab = job.lab, "no marks: the lab is not in the catalogue any more");
            return None;
        };
        if lab.version != job.lab_version {
            tracing::info!(
                job = job.id,
                given = job.lab_version,
                now = lab.version,
                "marked by a newer version of the lab"
            );
        }
        let (submission, seed) = (job.submission.clone(), job.seed);
        let mark = move || ringlab_labs::mark(&lab, &submission, seed, &result, answers.as_ref());
        let marks = self.marking.enter().await.run(mark).await;
        marks.inspect_err(|error| tracing::error!(job = job.id, %error, "no marks: the checker broke")).ok()
    }
}
