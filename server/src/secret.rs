//! Bearer secrets: random tokens that are handed out once and kept as a hash.

use std::fmt;
use std::fmt::Write as _;

use rand::TryRngCore as _;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a token. A token of 256 random bits needs no salt and no slow hash.
#[derive(Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    pub fn of(token: &str) -> TokenHash {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares without an early exit: the time taken says nothing about where two hashes differ.
    pub fn matches(&self, stored: &[u8]) -> bool {
        stored.len() == self.0.len()
            && std::hint::black_box(self.0.iter().zip(stored).fold(0, |diff, (a, b)| diff | (a ^ b))) == 0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// 256 random bits from the operating system, in hex.
pub fn new_token() -> String {
    let mut bytes = [0u8; 32];
    rand::rngs::OsRng
        .try_fill_bytes(&mut bytes)
        .expect("the operating system gives random bytes once it has booted");
    hex(&bytes)
}

/// For one response's content security policy: 128 random bits, in hex.
pub fn nonce() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut s, b| {
        write!(s, "{b:02x}").expect("writing to a String cannot fail");
        s
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_its_own_hash_alone() {
        let (a, b) = (new_token(), new_token());
        assert_eq!(a.len(), 64);
        assert!(TokenHash::of(&a).matches(&TokenHash::of(&a).0));
        assert!(!TokenHash::of(&a).matches(&TokenHash::of(&b).0));
        assert!(!TokenHash::of(&a).matches(&TokenHash::of(&a).0[..31]));
    }
}
