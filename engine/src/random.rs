//! Random bytes of the operating system: secrets, and names that nobody else has.

/// # Errors
/// What the system said instead.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()) {
        // Linux gives up to 256 bytes whole.
        Ok(length) if length == N => Ok(bytes),
        Ok(length) => Err(format!("the system gave {length} of {N} random bytes")),
        Err(why) => Err(format!("the system gives no random bytes: {why}")),
    }
}
