//! The tuner's edges: the environment and files.

use std::path::{Path, PathBuf};

use super::overrides::TUNER_FILE;
use super::profile::collectives;
use super::{OverrideError, Overrides, Profile, ProfileError, RuleError, Rules};

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
    #[error("{path} is no tuner profile: {source}", path = path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{path}: {source}", path = path.display())]
    Profile { path: PathBuf, source: ProfileError },
}

impl Overrides {
    /// The variables of this process and the table that [`TUNER_FILE`] names.
    ///
    /// # Errors
    /// When a variable or a line of the table means nothing, or the file cannot be read.
    pub fn from_env() -> Result<Overrides, NativeError> {
        let get = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let mut overrides = Overrides::from_variables(get)?;
        if let Some(file) = std::env::var_os(TUNER_FILE).filter(|file| !file.is_empty()) {
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

impl Profile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// When the file cannot be read, is no profile, or holds figures that cannot be used.
    pub fn load(path: &Path) -> Result<Profile, NativeError> {
        let path = || path.to_owned();
        let text =
            std::fs::read_to_string(path()).map_err(|source| NativeError::Read { path: path(), source })?;
        let profile: Profile =
            serde_json::from_str(&text).map_err(|source| NativeError::Json { path: path(), source })?;
        profile.check().map_err(|source| NativeError::Profile { path: path(), source })?;
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
