//! Files of a result on their way to the server's store, by their SHA-256.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::StatusCode;
use ringlab_labs::job::Artifact;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::backoff::Backoff;
use crate::config::Config;
use crate::line::{MAX_ARTIFACT, Produced, is_plain_name};

const TRIES: u32 = 6;
const CONNECT: Duration = Duration::from_secs(10);
const REQUEST: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Uploader {
    http: reqwest::Client,
    config: Config,
}

impl Uploader {
    pub fn new(config: &Config) -> anyhow::Result<Uploader> {
        let http = reqwest::Client::builder().connect_timeout(CONNECT).timeout(REQUEST).build()?;
        Ok(Uploader { http, config: config.clone() })
    }

    /// Reads a worker's file, stores it at the server, and says what it is.
    pub async fn upload(&self, folder: &Path, produced: &Produced) -> anyhow::Result<Artifact> {
        if !is_plain_name(&produced.name) {
            bail!("`{}` is not a name for an artifact", produced.name);
        }
        let path = folder.join(&produced.name);
        let (content, sha256) = tokio::task::spawn_blocking(move || read_and_hash(&path))
            .await
            .context("hashing was interrupted")?
            .with_context(|| format!("reading the artifact {}", produced.name))?;
        let artifact = Artifact {
            name: produced.name.clone(),
            media_type: produced.media_type.clone(),
            bytes: content.len() as u64,
            sha256,
        };
        self.put(&artifact, content)
            .await
            .with_context(|| format!("storing the artifact {}", artifact.name))?;
        Ok(artifact)
    }

    async fn put(&self, artifact: &Artifact, content: Vec<u8>) -> anyhow::Result<()> {
        let mut backoff = Backoff::default();
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.put_once(artifact, content.clone()).await {
                Ok(status) if status.is_success() => return Ok(()),
                Ok(status) if is_final(status) => bail!("the server answered {status}"),
                Ok(status) => anyhow::anyhow!("the server answered {status}"),
                Err(e) => e.into(),
            };
            if tries == TRIES {
                return Err(error.context(format!("given up after {TRIES} tries")));
            }
            let wait = backoff.next_wait();
            tracing::warn!(name = %artifact.name, ?wait, "upload failed, trying again: {error:#}");
            tokio::time::sleep(wait).await;
        }
    }

    async fn put_once(&self, artifact: &Artifact, content: Vec<u8>) -> reqwest::Result<StatusCode> {
        let request = self.http.put(self.config.server.artifact(&artifact.sha256));
        let request = request.bearer_auth(&self.config.token).header("content-type", &artifact.media_type);
        Ok(request.body(content).send().await?.status())
    }
}

/// Whether trying again cannot help.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error()
        && status != StatusCode::REQUEST_TIMEOUT
        && status != StatusCode::TOO_MANY_REQUESTS
}

fn read_and_hash(path: &Path) -> anyhow::Result<(Vec<u8>, String)> {
    // The worker owns its folder: a link in it must not make the daemon read another file for it, nor a FIFO make it wait.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        bail!("not a regular file");
    }
    let mut content = Vec::new();
    file.take(MAX_ARTIFACT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_ARTIFACT {
        bail!("larger than {MAX_ARTIFACT} bytes");
    }
    let digest = Sha256::digest(&content);
    Ok((content, digest.iter().map(|byte| format!("{byte:02x}")).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_not_followed_and_a_file_has_the_known_hash() {
        let folder = std::env::temp_dir().join(format!("ringlab-upload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("abc"), "abc").unwrap();
        std::os::unix::fs::symlink(folder.join("abc"), folder.join("link")).unwrap();
        let (content, sha256) = read_and_hash(&folder.join("abc")).unwrap();
        // FIPS 180-2, appendix B.1.
        assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(content, b"abc");
        assert!(read_and_hash(&folder.join("link")).is_err());
        assert!(read_and_hash(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
