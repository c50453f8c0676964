//! Working directories: one slot per daemon, one folder per job, removed afterwards, also those of a daemon that was killed.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ringlab_labs::wire::LeaseRef;

/// Daemons that may share one `--work` folder.
const SLOTS: usize = 64;

/// A locked part of the work folder; the lock ends with the process, however it ends.
#[derive(Debug)]
pub struct Slot {
    path: PathBuf,
    _lock: File,
}

impl Slot {
    /// Takes a free slot of `work` and removes what a killed daemon left there.
    pub fn take(work: &Path) -> anyhow::Result<Slot> {
        make_private(work)?;
        for number in 0..SLOTS {
            let path = work.join(format!("slot-{number}"));
            make_private(&path)?;
            let lock = File::create(path.join("lock"))
                .with_context(|| format!("creating a lock in {}", path.display()))?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => continue,
                Err(fs::TryLockError::Error(e)) => {
                    return Err(e).with_context(|| format!("locking {}", path.display()));
                }
            }
            let slot = Slot { path, _lock: lock };
            slot.sweep()?;
            return Ok(slot);
        }
        bail!("{SLOTS} runners use {} already; give this one its own with --work", work.display())
    }

    fn sweep(&self) -> anyhow::Result<()> {
        let context = || format!("cleaning {}", self.path.display());
        for entry in fs::read_dir(&self.path).with_context(context)? {
            let entry = entry.with_context(context)?;
            if entry.file_name().to_string_lossy().starts_with("job-") {
                tracing::info!(folder = %entry.path().display(), "removing what an earlier runner left");
                fs::remove_dir_all(entry.path()).with_context(context)?;
            }
        }
        Ok(())
    }

    /// A fresh folder for an attempt.
    pub fn job(&self, lease: &LeaseRef) -> anyhow::Result<JobFolder> {
        let path = self.path.join(format!("job-{}-{}", lease.job, lease.attempt));
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        make_private(&path)?;
        Ok(JobFolder { path })
    }
}

/// Removed when dropped.
#[derive(Debug)]
pub struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.path) {
            tracing::warn!(folder = %self.path.display(), "a job's folder could not be removed: {e}");
        }
    }
}

/// Creates a folder that only this user may enter; one that exists must be this user's own.
fn make_private(path: &Path) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("creating {}", path.display()))?;
    let meta = fs::symlink_metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    if !meta.is_dir() || meta.uid() != rustix::process::getuid().as_raw() {
        bail!("{} is not a folder of this user; give another with --work", path.display());
    }
    Ok(())
}
