//! The artifact store: files by SHA-256. A file appears under its final name complete, checked and on disk, or not at all.

use std::path::{Path, PathBuf};

use futures_util::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tokio::fs;
use tokio::io::AsyncWriteExt as _;
use uuid::Uuid;

use crate::secret::hex;

#[derive(Debug, Clone)]
pub struct Blobs {
    root: PathBuf,
    max_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("`{0}` is not a SHA-256 in lower-case hex (64 digits)")]
    BadName(String),
    #[error("the body has the SHA-256 {got}, not {expected}: send the same bytes that were hashed")]
    Mismatch { expected: String, got: String },
    #[error("the artifact is larger than the {limit} bytes this server stores")]
    TooLarge { limit: u64 },
    #[error("the body broke off: {0}")]
    Body(String),
    #[error("artifact store: {0}")]
    Io(#[from] std::io::Error),
}

impl Blobs {
    pub async fn open(root: PathBuf, max_bytes: u64) -> std::io::Result<Blobs> {
        let blobs = Blobs { root, max_bytes };
        fs::create_dir_all(blobs.tmp()).await?;
        Ok(blobs)
    }

    /// Clears what an earlier server had not finished. For the one server of a folder alone: another's uploads would be lost.
    pub async fn clear_unfinished(&self) -> std::io::Result<()> {
        fs::remove_dir_all(self.tmp()).await?;
        fs::create_dir_all(self.tmp()).await
    }

    fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    fn path(&self, sha256: &str) -> Result<PathBuf, BlobError> {
        if is_sha256(sha256) {
            Ok(self.root.join(&sha256[..2]).join(sha256))
        } else {
            Err(BlobError::BadName(sha256.to_owned()))
        }
    }

    /// Stores a body whose hash must be `sha256`. Storing it again changes nothing.
    pub async fn put<S, B, E>(&self, sha256: &str, body: S) -> Result<u64, BlobError>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: AsRef<[u8]>,
        E: std::fmt::Display,
    {
        let path = self.path(sha256)?;
        let tmp = TmpFile(self.tmp().join(Uuid::now_v7().to_string()));
        let bytes = self.write_checked(&tmp.0, sha256, body).await?;
        let folder = path.parent().expect("path() puts a folder before the name");
        if fs::try_exists(&path).await? {
            return Ok(bytes);
        }
        fs::create_dir_all(folder).await?;
        fs::rename(&tmp.0, &path).await?;
        sync_folder(folder).await?;
        sync_folder(&self.root).await?;
        Ok(bytes)
    }

    async fn write_checked<S, B, E>(&self, tmp: &Path, sha256: &str, mut body: S) -> Result<u64, BlobError>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: AsRef<[u8]>,
        E: std::fmt::Display,
    {
        let mut file = fs::File::create_new(tmp).await?;
        let (mut hash, mut bytes) = (Sha256::new(), 0u64);
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|e| BlobError::Body(e.to_string()))?;
            let chunk = chunk.as_ref();
            bytes += chunk.len() as u64;
            if bytes > self.max_bytes {
                return Err(BlobError::TooLarge { limit: self.max_bytes });
            }
            hash.update(chunk);
            file.write_all(chunk).await?;
        }
        let got = hex(&hash.finalize());
        if got != sha256 {
            return Err(BlobError::Mismatch { expected: sha256.to_owned(), got });
        }
        file.flush().await?;
        file.sync_all().await?;
        Ok(bytes)
    }

    /// Length of a stored file.
    pub async fn len(&self, sha256: &str) -> Result<Option<u64>, BlobError> {
        match fs::metadata(self.path(sha256)?).await {
            Ok(meta) => Ok(Some(meta.len())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub async fn open_file(&self, sha256: &str) -> Result<fs::File, BlobError> {
        Ok(fs::File::open(self.path(sha256)?).await?)
    }

    pub async fn read(&self, sha256: &str) -> Result<Vec<u8>, BlobError> {
        Ok(fs::read(self.path(sha256)?).await?)
    }
}

pub fn is_sha256(s: &str) -> bool {
    s.len() == 64 && s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A rename is on disk once the folder is.
async fn sync_folder(folder: &Path) -> std::io::Result<()> {
    fs::File::open(folder).await?.sync_all().await
}

/// Removes the file unless it was renamed away, also when the request is dropped in between.
struct TmpFile(PathBuf);

impl Drop for TmpFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    fn folder() -> PathBuf {
        std::env::temp_dir().join(format!("ringlab-blobs-{}", Uuid::now_v7()))
    }

    fn body(
        parts: &[&'static str],
    ) -> impl Stream<Item = Result<&'static str, &'static str>> + Unpin + use<> {
        stream::iter(parts.iter().map(|p| Ok(*p)).collect::<Vec<_>>())
    }

    #[tokio::test]
    async fn only_bytes_with_the_named_hash_are_kept() {
        let root = folder();
        let blobs = Blobs::open(root.clone(), 8).await.unwrap();
        let hash = hex(&Sha256::digest(b"abcdef"));
        assert!(matches!(blobs.put(&hash, body(&["abc"])).await, Err(BlobError::Mismatch { .. })));
        assert_eq!(blobs.len(&hash).await.unwrap(), None);
        assert_eq!(blobs.put(&hash, body(&["abc", "def"])).await.unwrap(), 6);
        assert_eq!(blobs.put(&hash, body(&["abcdef"])).await.unwrap(), 6);
        assert_eq!(blobs.read(&hash).await.unwrap(), b"abcdef");
        assert!(matches!(
            blobs.put(&hash, body(&["abcdef", "ghi"])).await,
            Err(BlobError::TooLarge { limit: 8 })
        ));
        assert!(matches!(blobs.put("../../x", body(&[])).await, Err(BlobError::BadName(_))));
        let left = std::fs::read_dir(root.join("tmp")).unwrap().count();
        assert_eq!(left, 0, "no unfinished file stays");
        std::fs::remove_dir_all(root).unwrap();
    }
}
