//! The tuner's edges: the environment and files.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::DeserializeOwned;

use super::overrides::TUNER_FILE;
use super::profile::collectives;
use super::{OverrideError, Overrides, Profile, ProfileError, RuleError, Rules, nccl};

#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    #[error(transparent)]
    Override(#[from] OverrideError),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {path}: {source}", path = path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{path} is no {what}: {source}", path = path.display())]
    Json { path: PathBuf, what: &'static str, source: serde_json::Error },
    #[error("{variable}={value}: not a whole number")]
    Number { variable: &'static str, value: String },
    #[error("{path}: {source}", path = path.display())]
    Profile { path: PathBuf, source: ProfileError },
}

impl Overrides {
    /// The variables of this process and the table that [`TUNER_FILE`] names.
    ///
    /// # Errors
    /// When a variable or a line of the table means nothing, or the file cannot be read.
    pub fn from_env() -> Result<Overrides, NativeError> {
        let mut overrides = Overrides::from_variables(variable)?;
        if let Some(file) = variable(TUNER_FILE) {
            overrides.rules = read_rules(Path::new(&file))?;
        }
        Ok(overrides)
    }
}

/// Reads an override table.
///
/// # Errors
/// When the file cannot be read or a line of it means nothing.
pub fn read_rules(path: &Path) -> Result<Rules, NativeError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| NativeError::Read { path: path.into(), source })?;
    Ok(Rules::parse(&text, &path.display().to_string(), &collectives())?)
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

fn read_json<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<T, NativeError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| NativeError::Read { path: path.into(), source })?;
    serde_json::from_str(&text).map_err(|source| NativeError::Json { path: path.into(), what, source })
}

impl nccl::Settings {
    /// NCCL's own variables, as far as the model knows them: `NCCL_ALGO`, `NCCL_PROTO`, `NCCL_NTHREADS`, `NCCL_LL128_NTHREADS`,
    /// `NCCL_NET_OVERHEAD`, `NCCL_NVLSTREE_MAX_CHUNKSIZE`.
    ///
    /// # Errors
    /// On a number that is none.
    pub fn from_env() -> Result<nccl::Settings, NativeError> {
        fn number<T: FromStr>(name: &'static str) -> Result<Option<T>, NativeError> {
            let Some(value) = variable(name) else { return Ok(None) };
            value.parse().map(Some).map_err(|_| NativeError::Number { variable: name, value })
        }
        Ok(nccl::Settings {
            algo: variable("NCCL_ALGO"),
            proto: variable("NCCL_PROTO"),
            nthreads: number("NCCL_NTHREADS")?,
            ll128_nthreads: number("NCCL_LL128_NTHREADS")?,
            net_overhead_ns: number("NCCL_NET_OVERHEAD")?,
            thread_thresholds: [None; 6],
            nvlstree_max_chunksize: number("NCCL_NVLSTREE_MAX_CHUNKSIZE")?,
        })
    }
}

impl nccl::Comm {
    /// Reads a communicator.
    ///
    /// # Errors
    /// When the file cannot be read or is no communicator; [`nccl::Model::new`] checks its figures.
    pub fn load(path: &Path) -> Result<nccl::Comm, NativeError> {
        read_json(path, "communicator of NCCL's model")
    }
}

impl Profile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// When the file cannot be read, is no profile, or holds figures that cannot be used.
    pub fn load(path: &Path) -> Result<Profile, NativeError> {
        let profile: Profile = read_json(path, "tuner profile")?;
        profile.check().map_err(|source| NativeError::Profile { path: path.into(), source })?;
        Ok(profile)
    }

    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NativeError> {
        let text = serde_json::to_string_pretty(self)
            .expect("a profile has only strings as keys and finite numbers");
        std::fs::write(path, text + "\n").map_err(|source| NativeError::Write { path: path.into(), source })
    }
}
