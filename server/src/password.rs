//! Passwords: argon2id, computed beside the event loop in a lane of its own, so that a crowd that signs in takes neither the cores
//! from drafts nor the places from other computations.

use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use ringlab_labs::text::Text;
use tokio::time::timeout;

use crate::compute::Lane;
use crate::problem::{ApiResult, Problem};

/// In characters. Ten of anything are beyond guessing at the pace the limits allow; the most keeps a request cheap.
const LENGTH: std::ops::RangeInclusive<usize> = 10..=200;

/// OWASP's second choice for argon2id (19 MiB, two passes, one lane): some 20 ms of one core.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// Whoever waits longer than this for a place is turned away.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Passwords {
    lane: Lane,
    /// What an unknown e-mail's password is compared with: it takes as long as a known one's.
    nobody: String,
}

impl Passwords {
    /// Half of the cores at most hash at a time.
    pub fn new(cores: usize) -> Passwords {
        let nobody = hash(&crate::secret::new_token());
        Passwords { lane: Lane::new((cores / 2).max(1)), nobody }
    }

    pub async fn hash(&self, password: String) -> ApiResult<String> {
        self.run(move || hash(&password)).await
    }

    /// Whether it is the password that was stored; without one, no, after the same time.
    pub async fn matches(&self, password: String, stored: Option<String>) -> ApiResult<bool> {
        let known = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.nobody.clone());
        Ok(self.run(move || matches(&password, &stored)).await? && known)
    }

    async fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
        let place = timeout(WAIT, self.lane.enter()).await.map_err(|_| Problem::overloaded())?;
        place.run(f).await.map_err(Problem::internal)
    }
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).expect("the constants are within argon2's bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// In PHC form, with salt and parameters.
pub fn hash(password: &str) -> String {
    argon2()
        .hash_password(password.as_bytes())
        .expect("the parameters are sound and the operating system gives a salt")
        .to_string()
}

fn matches(password: &str, stored: &str) -> bool {
    // The parameters are those it was stored with.
    PasswordHash::new(stored)
        .is_ok_and(|h| Argon2::default().verify_password(password.as_bytes(), &h).is_ok())
}

/// Why a password cannot be had, if so.
pub fn refuse(password: &str, email: &str) -> Option<Text> {
    let characters = password.chars().count();
    if !LENGTH.contains(&characters) {
        return Some(Text::new(
            format!("密码应有 {} 至 {} 个字符，现有 {characters} 个", LENGTH.start(), LENGTH.end()),
            format!(
                "a password has {} to {} characters, this one has {characters}",
                LENGTH.start(),
                LENGTH.end()
            ),
        ));
    }
    let first = password.chars().next();
    if password.eq_ignore_ascii_case(email) || password.chars().all(|c| Some(c) == first) {
        return Some(Text::new(
            "这个密码太容易猜到。几个不相关的词连起来就很好",
            "this one is guessed first; a few unrelated words in a row are good",
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_matches_its_own_hash_alone() {
        let stored = hash("correct horse");
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(matches("correct horse", &stored));
        assert!(!matches("correct hors", &stored) && !matches("", &stored));
        assert_ne!(stored, hash("correct horse"), "every hash has its own salt");
        assert!(!matches("x", "not a hash"));
    }

    #[test]
    fn a_password_is_long_and_not_the_address() {
        for bad in ["", "short", "123456789", "aaaaaaaaaaaa", "Ada@Example.org", &"x1".repeat(101)] {
            assert!(refuse(bad, "ada@example.org").is_some(), "{bad}");
        }
        for good in ["correct horse", "一二三四五六七八九十", &"ab".repeat(100)] {
            assert!(refuse(good, "ada@example.org").is_none(), "{good}");
        }
    }

    #[tokio::test]
    async fn nobody_has_no_password() {
        let passwords = Passwords::new(1);
        assert!(!passwords.matches("anything".into(), None).await.unwrap());
        let stored = passwords.hash("correct horse".into()).await.unwrap();
        assert!(passwords.matches("correct horse".into(), Some(stored)).await.unwrap());
    }
}
