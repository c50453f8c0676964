//! Compiled images on disk.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

/// What the cache did for one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheOutcome {
    Hit,
    /// Compiled and stored.
    Stored,
    /// An entry was there, but its content was not what had been stored; compiled and stored again.
    Damaged,
    /// Compiled; the cache was not used, for this reason.
    Unused(String),
}

/// A folder of images, or none.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: Result<PathBuf, String>,
}

/// An entry is this line, the SHA-256 of the image, and the image.
const MAGIC: &[u8] = b"ringlab kernel 1\n";

impl Cache {
    /// The user's cache folder (README.md says where); made when the first image is stored.
    pub fn from_env() -> Cache {
        let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let base = folder("RINGLAB_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|d| d.join("ringlab")))
            .or_else(|| folder("HOME").map(|d| d.join(".cache/ringlab")));
        let dir = base
            .map(|d| d.join("kernels"))
            .ok_or_else(|| "none of RINGLAB_CACHE, XDG_CACHE_HOME and HOME is set".into());
        Cache { dir }
    }

    pub fn at(dir: impl Into<PathBuf>) -> Cache {
        Cache { dir: Ok(dir.into()) }
    }

    pub(crate) fn get(&self, key: &str) -> (Option<Vec<u8>>, CacheOutcome) {
        let dir = match &self.dir {
            Ok(dir) => dir,
            Err(why) => return (None, CacheOutcome::Unused(why.clone())),
        };
        match fs::read(dir.join(key)) {
            Ok(entry) => match unwrap_entry(&entry) {
                Some(image) => (Some(image.to_vec()), CacheOutcome::Hit),
                None => (None, CacheOutcome::Damaged),
            },
            Err(e) => (None, CacheOutcome::Unused(e.to_string())),
        }
    }

    pub(crate) fn put(&self, key: &str, image: &[u8]) -> CacheOutcome {
        let dir = match &self.dir {
            Ok(dir) => dir,
            Err(why) => return CacheOutcome::Unused(why.clone()),
        };
        match write_whole(dir, key, image) {
            Ok(()) => CacheOutcome::Stored,
            Err(e) => CacheOutcome::Unused(format!("{} cannot be written: {e}", dir.display())),
        }
    }
}

fn unwrap_entry(entry: &[u8]) -> Option<&[u8]> {
    let (sum, image) = entry.strip_prefix(MAGIC)?.split_at_checked(32)?;
    (Sha256::digest(image).as_slice() == sum).then_some(image)
}

/// Readers see the old entry or the new one, never a part: the file is written under another name and renamed.
fn write_whole(dir: &Path, key: &str, image: &[u8]) -> std::io::Result<()> {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(dir)?;
    let unique = UNIQUE.fetch_add(1, Ordering::Relaxed);
    let partial = dir.join(format!(".{key}.{}.{unique}", std::process::id()));
    let written = (|| {
        let mut file = fs::File::create(&partial)?;
        file.write_all(MAGIC)?;
        file.write_all(&Sha256::digest(image))?;
        file.write_all(image)?;
        file.sync_all()?;
        fs::rename(&partial, dir.join(key))
    })();
    if written.is_err() {
        // The rename did not happen; what is left of the attempt is of no use to anyone.
        let _ = fs::remove_file(&partial);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ringlab-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn what_was_stored_comes_back() {
        let dir = scratch("back");
        let cache = Cache::at(&dir);
        assert!(cache.get("k").0.is_none());
        assert_eq!(cache.put("k", b"image"), CacheOutcome::Stored);
        assert_eq!(cache.get("k"), (Some(b"image".to_vec()), CacheOutcome::Hit));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing half-written is left");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_damaged_entry_is_noticed_and_replaced() {
        let dir = scratch("damaged");
        let cache = Cache::at(&dir);
        cache.put("k", b"image");
        let mut bytes = fs::read(dir.join("k")).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(dir.join("k"), &bytes).unwrap();
        assert_eq!(cache.get("k"), (None, CacheOutcome::Damaged));
        fs::write(dir.join("k"), &bytes[..20]).unwrap();
        assert_eq!(cache.get("k"), (None, CacheOutcome::Damaged));
        cache.put("k", b"image");
        assert_eq!(cache.get("k").1, CacheOutcome::Hit);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_cache_that_cannot_be_written_says_why() {
        let file = scratch("file");
        fs::write(&file, b"").unwrap();
        let CacheOutcome::Unused(why) = Cache::at(file.join("below")).put("k", b"image") else { panic!() };
        assert!(why.contains("cannot be written"), "{why}");
        fs::remove_file(file).unwrap();
    }
}
