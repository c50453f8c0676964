//! The name of a communicator that is about to form: 128 bytes, as large as NCCL's, for a C caller passes it by value.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

use super::error::CommError;
use super::{env, interface, root};
use crate::random;

/// Magic, version, flags, the root's address and a secret; zeros; a checksum. Who knows the id may join: the secret travels in the
/// clear, as NCCL's does, and keeps out strangers and mistakes, not an eavesdropper.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct UniqueId {
    bytes: [u8; UniqueId::BYTES],
}

const MAGIC: [u8; 8] = *b"RLCOMMID";
const VERSION: u8 = 1;
/// The address was given by the environment: rank 0 listens there when it connects, any number of times.
const FIXED: u8 = 1;
const CHECKED: usize = 120;

impl UniqueId {
    pub const BYTES: usize = 128;

    /// Makes an id and starts its root, a thread of this process that relays between the ranks and watches them. It ends when all ranks
    /// have left, or after an hour in which the communicator has not formed. The process must live as long as the communicator.
    ///
    /// With `RINGLAB_COMM_ID=host:port` set, no thread is started: every process makes the same id from it, and rank 0 becomes the root
    /// when it connects (as with `NCCL_COMM_ID`: NCCL v2.22.3-1, src/init.cc, `ncclCommInitRankDev`).
    ///
    /// `interface`: where to listen, as `RINGLAB_SOCKET_IFNAME`, which counts when it is `None`; without either, loopback.
    ///
    /// # Errors
    /// [`CommError::InvalidArgument`] for an interface or address that is not there, [`CommError::System`] when listening fails.
    pub fn create(interface: Option<&str>) -> Result<UniqueId, CommError> {
        if let Some((by, text)) = env::lookup("COMM_ID") {
            let address = interface::parse_address(&text, &by)?;
            return Ok(UniqueId::assemble(address, FIXED, fixed_secret(address)));
        }
        UniqueId::create_at(interface::choose(interface)?)
    }

    /// As [`UniqueId::create`], listening at this address whatever the environment says.
    pub(super) fn create_at(address: SocketAddr) -> Result<UniqueId, CommError> {
        let secret =
            random::bytes().map_err(|why| CommError::System(format!("cannot make a unique id: {why}")))?;
        let listener = root::listen(address)?;
        let at = listener.local_addr().map_err(|why| {
            CommError::System(format!("the root at {address} does not know its own address: {why}"))
        })?;
        let id = UniqueId::assemble(at, 0, secret);
        root::start(listener, &id)?;
        Ok(id)
    }

    fn assemble(address: SocketAddr, flags: u8, secret: [u8; 16]) -> UniqueId {
        let mut bytes = [0; UniqueId::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = VERSION;
        bytes[9] = flags;
        bytes[12..14].copy_from_slice(&address.port().to_le_bytes());
        match address {
            SocketAddr::V4(v4) => {
                bytes[10] = 4;
                bytes[16..20].copy_from_slice(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                bytes[10] = 6;
                bytes[16..32].copy_from_slice(&v6.ip().octets());
                bytes[32..36].copy_from_slice(&v6.scope_id().to_le_bytes());
            }
        }
        bytes[36..52].copy_from_slice(&secret);
        let sum = checksum(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&sum.to_le_bytes());
        UniqueId { bytes }
    }

    pub fn to_bytes(&self) -> [u8; UniqueId::BYTES] {
        self.bytes
    }

    /// # Errors
    /// [`CommError::InvalidArgument`] when the bytes are no id of this library, or a damaged one.
    pub fn from_bytes(bytes: [u8; UniqueId::BYTES]) -> Result<UniqueId, CommError> {
        let wrong =
            |why: &str| Err(CommError::InvalidArgument(format!("this is not a usable unique id: {why}")));
        if bytes.iter().all(|b| *b == 0) {
            return wrong("all 128 bytes are 0; was it ever filled in, and sent to this rank?");
        }
        if bytes[..8] != MAGIC {
            return wrong("it does not begin with this library's mark; did another library make it?");
        }
        if bytes[8] != VERSION {
            return wrong(&format!(
                "it is of version {}, this build knows {VERSION}; run one build in all ranks",
                bytes[8]
            ));
        }
        let stored = u64::from_le_bytes(bytes[CHECKED..].try_into().expect("the last 8 of 128 bytes"));
        if checksum(&bytes[..CHECKED]) != stored {
            return wrong(
                "its checksum does not fit, so bytes were changed on the way; send all 128 as they are",
            );
        }
        if !matches!(bytes[10], 4 | 6) {
            return wrong("it holds neither an IPv4 nor an IPv6 address");
        }
        Ok(UniqueId { bytes })
    }

    /// Where the root listens.
    pub fn root(&self) -> SocketAddr {
        let b = &self.bytes;
        let port = u16::from_le_bytes([b[12], b[13]]);
        if b[10] == 4 {
            return SocketAddr::new(IpAddr::V4(Ipv4Addr::new(b[16], b[17], b[18], b[19])), port);
        }
        let ip: [u8; 16] = b[16..32].try_into().expect("16 bytes");
        let scope = u32::from_le_bytes(b[32..36].try_into().expect("4 bytes"));
        SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into()
    }

    pub(super) fn secret(&self) -> [u8; 16] {
        self.bytes[36..52].try_into().expect("16 bytes")
    }

    /// Rank 0 has to start the root itself.
    pub(super) fn is_fixed(&self) -> bool {
        self.bytes[9] & FIXED != 0
    }
}

/// All processes that read the same address must arrive at the same id.
fn fixed_secret(address: SocketAddr) -> [u8; 16] {
    let sum = checksum(address.to_string().as_bytes()).to_le_bytes();
    std::array::from_fn(|i| sum[i % 8] ^ MAGIC[i % 8])
}

/// FNV-1a, 64 bits: against damage, not against intent.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, b| (sum ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// 256 hexadecimal digits, to hand an id over in text.
impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// Without the secret, which belongs in no log.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueId").field("root", &self.root()).finish_non_exhaustive()
    }
}

impl FromStr for UniqueId {
    type Err = CommError;

    fn from_str(text: &str) -> Result<UniqueId, CommError> {
        let digits = text.trim().as_bytes();
        let wrong = || {
            let got = digits.len();
            CommError::InvalidArgument(format!(
                "a unique id in text has 256 hexadecimal digits; got {got} characters"
            ))
        };
        if digits.len() != 2 * UniqueId::BYTES || !digits.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; UniqueId::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        UniqueId::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(address: &str) -> UniqueId {
        UniqueId::assemble(address.parse().unwrap(), 0, [0xa5; 16])
    }

    #[test]
    fn an_id_keeps_its_address_in_bytes_and_in_text() {
        for address in ["10.1.2.3:4567", "[fd00::1]:80", "[fe80::1%3]:9"] {
            let id = id(address);
            assert_eq!(id.root(), address.parse().unwrap());
            assert_eq!(UniqueId::from_bytes(id.to_bytes()).unwrap(), id);
            assert_eq!(id.to_string().parse::<UniqueId>().unwrap(), id);
        }
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let good = id("10.1.2.3:4567").to_bytes();
        for at in 0..UniqueId::BYTES {
            let mut bytes = good;
            bytes[at] ^= 0x10;
            assert!(UniqueId::from_bytes(bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let why = |bytes| UniqueId::from_bytes(bytes).unwrap_err().to_string();
        assert!(why([0; 128]).contains("all 128 bytes are 0"));
        assert!(why([7; 128]).contains("another library"));
        let mut newer = id("10.1.2.3:4567").to_bytes();
        newer[8] = 9;
        assert!(why(newer).contains("version 9"));
        assert!("ab".parse::<UniqueId>().unwrap_err().to_string().contains("256"));
        assert!("äb".repeat(128).parse::<UniqueId>().is_err());
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        assert!(!format!("{:?}", id("10.1.2.3:4567")).contains("a5"));
    }
}
