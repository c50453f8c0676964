//! From a configuration to a running server, and to its end.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ringlab_labs::text::Lang;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Parts};
use crate::blobs::Blobs;
use crate::clock::UnixMs;
use crate::compute::Lane;
use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::interview::Interview;
use crate::judge::Judge;
use crate::limits::Limiter;
use crate::password::Passwords;
use crate::secret::TokenHash;
use crate::site::Site;
use crate::store::Store;
use crate::stream::hub::Hub;
use crate::{interview, listen, observe, routes};

/// How often what nobody needs any more is forgotten, and how old it must be.
const TIDY: Duration = Duration::from_secs(3600);
const IDLE_GUEST: Duration = Duration::from_secs(30 * 24 * 3600);
const OLD_CONNECTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longer than browsers keep a cookie.
const OLD_SESSION: Duration = Duration::from_secs(401 * 24 * 3600);
/// A shorter runner token can be guessed.
const TOKEN_MIN: usize = 16;
/// Those who came back after a restart are served first.
const SEARCH_AFTER: Duration = Duration::from_secs(5);

/// Takes the address before anything else: while the course and the bank are read, whoever connects waits in the queue instead of
/// being refused, which is what a browser with an unsaved draft meets when the server was restarted.
pub async fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    let listen = config.listen;
    TcpListener::bind(listen)
        .await
        .with_context(|| format!("listening on {listen}: choose another address with --listen"))
}

/// Opens everything, or says what is wrong with it.
pub async fn open(config: Config, shutdown: CancellationToken) -> anyhow::Result<App> {
    let data = &config.data;
    tokio::fs::create_dir_all(data)
        .await
        .with_context(|| format!("making the data folder {}", data.display()))?;
    if config.command.is_none() {
        // Before the course and the bank are read: a second server is refused at once.
        hold(data)?;
    }
    let (root, pkg) = (config.root.clone(), config.pkg.clone());
    let site = tokio::task::spawn_blocking(move || Site::load(&root, pkg.as_deref()));
    let file = data.join("ringlab.db");
    let store = Store::open(&file).await.with_context(|| format!("opening {}", file.display()))?;
    let site = site.await??;
    let blobs = Blobs::open(data.join("artifacts"), config.max_artifact_bytes)
        .await
        .with_context(|| format!("opening the artifact store in {}", data.display()))?;
    tracing::info!(
        labs = site.catalogue.iter().count(),
        chapters = site.library.chapters(Lang::Zh).count(),
        "opened {}",
        file.display()
    );
    let hub = Arc::new(Hub::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let dispatcher = Arc::new(Dispatcher::new(store.clone(), hub.clone(), config.lease()));
    Ok(App(Arc::new(Parts {
        metrics: observe::install_metrics()?,
        limiter: Limiter::default(),
        tasks: TaskTracker::new(),
        compute: Lane::new(cores),
        marking: Lane::new(cores),
        passwords: Passwords::new(cores),
        interview: Interview::new(store.clone()),
        judge: Judge::from_config(&config)?,
        config,
        store,
        blobs,
        hub,
        dispatcher,
        site,
        shutdown,
    })))
}

/// Builds the search index before somebody waits for it, once those who came back after a restart have been served. Not in a debug build,
/// which takes many seconds of a core for it: there the first search pays.
async fn prepare_search(app: App) {
    if cfg!(debug_assertions) {
        return;
    }
    tokio::select! {
        () = tokio::time::sleep(SEARCH_AFTER) => {}
        () = app.shutdown.cancelled() => return,
    }
    let shared = app.clone();
    let started = std::time::Instant::now();
    let built = app.compute.enter().await.run(move || shared.site.search().map(|_| ())).await;
    match built.map_err(anyhow::Error::from).and_then(|built| Ok(built?)) {
        Ok(()) => tracing::info!(ms = started.elapsed().as_millis(), "the search index is ready"),
        Err(error) => tracing::error!(%error, "no search index"),
    }
}

/// Holds the data folder for this process alone, however it ends: a second server would take this one's runners for gone.
fn hold(data: &Path) -> anyhow::Result<File> {
    let path = data.join("server.lock");
    let lock = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => bail!(
            "another ringlab-server serves the data folder {}: stop it, or give this one its own with --data",
            data.display()
        ),
        Err(TryLockError::Error(e)) => Err(e).with_context(|| format!("locking {}", path.display())),
    }
}

/// Takes over what an earlier server left.
async fn take_over(app: &App) -> anyhow::Result<()> {
    app.blobs.clear_unfinished().await.context("clearing unfinished uploads")?;
    let now = UnixMs::now();
    match &app.config.runner_token {
        Some(token) => {
            if token.len() < TOKEN_MIN {
                tracing::warn!("the runner token has fewer than {TOKEN_MIN} characters and can be guessed");
            }
            app.store.set_start_token(&TokenHash::of(token), now).await?;
        }
        None if !app.store.has_runner_token().await? => {
            tracing::warn!("no runner can connect: start the server with --runner-token");
        }
        None => {}
    }
    app.store.disconnect_all_runners(now).await?;
    // While the server was away nobody could send a heartbeat: whoever still works gets the time to come back.
    let running = app.store.refresh_leases(now.plus(app.config.lease())).await?;
    tracing::info!(running, "leases renewed");
    Ok(())
}

/// Serves until `app.shutdown` is cancelled. Then: no new connections; event streams and runners' sockets end; requests in flight
/// finish, for at most the configured time. `ready` hears the address.
pub async fn run(app: App, listener: TcpListener, ready: impl FnOnce(SocketAddr)) -> anyhow::Result<()> {
    let _lock = hold(&app.config.data)?;
    let address = listener.local_addr()?;
    take_over(&app).await?;
    app.tasks.spawn(app.dispatcher.clone().run(app.shutdown.clone()));
    app.tasks.spawn(app.dispatcher.clone().sweep(app.shutdown.clone()));
    app.tasks.spawn(tidy(app.clone()));
    app.tasks.spawn(prepare_search(app.clone()));
    interview::start(&app);
    listen::raise_open_files();
    let router = routes::router(app.clone());
    let server = tokio::spawn(listen::serve(listener, router, app.config.idle(), app.shutdown.clone()));
    ready(address);
    app.shutdown.cancelled().await;
    tracing::info!("stopping");
    app.tasks.close();
    let deadline = Duration::from_millis(app.config.shutdown_ms);
    let finished = timeout(deadline, async {
        let served = server.await;
        app.tasks.wait().await;
        served
    })
    .await;
    match finished {
        Ok(served) => served.context("the server task ended")?,
        Err(_) => {
            tracing::warn!("requests were still in flight after {} ms; leaving them", deadline.as_millis())
        }
    }
    app.store.close().await;
    tracing::info!("stopped");
    Ok(())
}

async fn tidy(app: App) {
    let mut tick = interval(TIDY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = app.shutdown.cancelled() => return,
        }
        app.metrics.run_upkeep();
        let now = UnixMs::now();
        let guests = app.store.forget_idle_guests(now.minus(IDLE_GUEST)).await;
        let connections = app.store.forget_old_connections(now.minus(OLD_CONNECTION)).await;
        let sessions = app.store.forget_old_sessions(now.minus(OLD_SESSION)).await;
        match (guests, connections, sessions) {
            (Ok(guests), Ok(connections), Ok(sessions)) => {
                tracing::info!(guests, connections, sessions, "forgot what nobody needs")
            }
            (guests, connections, sessions) => {
                tracing::error!(?guests, ?connections, ?sessions, "tidying failed; trying again in an hour")
            }
        }
    }
}
