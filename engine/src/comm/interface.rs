//! Which of this machine's addresses others are told. Semantics of the choice: NCCL v2.22.3-1, src/misc/socket.cc, `findInterfaces`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, sendto};

use super::env;
use super::error::CommError;

/// One address of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub name: String,
    pub address: IpAddr,
    /// Index of the interface: the scope of a link-local IPv6 address.
    pub scope: u32,
}

impl Interface {
    /// Any free port of it.
    pub(super) fn socket(&self) -> SocketAddr {
        match self.address {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, 0, 0, self.scope).into(),
            address => SocketAddr::new(address, 0),
        }
    }
}

/// The address to listen at. `asked` as `NCCL_SOCKET_IFNAME` has it: prefixes separated by commas, `^` in front excludes, `=` wants the
/// whole name. Nothing asked, here or by `RINGLAB_SOCKET_IFNAME`, means loopback: all ranks on this machine. (NCCL prefers any other
/// interface; name one to be reached from other machines.)
pub(super) fn choose(asked: Option<&str>) -> Result<SocketAddr, CommError> {
    let pattern = match asked {
        Some(pattern) => Some(("the argument".to_owned(), pattern.to_owned())),
        None => env::lookup("SOCKET_IFNAME"),
    };
    let Some((by, pattern)) = pattern else { return Ok((Ipv4Addr::LOCALHOST, 0).into()) };
    let family = env::var("SOCKET_FAMILY");
    let all = interfaces().map_err(|why| {
        CommError::System(format!("cannot list the network interfaces to find `{pattern}`: {why}"))
    })?;
    let found = pick(&all, &pattern, family.as_deref());
    found.map(Interface::socket).ok_or_else(|| {
        let mut names: Vec<_> = all.iter().map(|i| i.name.as_str()).collect();
        names.dedup();
        CommError::InvalidArgument(format!(
            "no network interface with a usable address fits `{pattern}`, asked for by {by}; there are: {}",
            names.join(", ")
        ))
    })
}

fn pick<'a>(all: &'a [Interface], pattern: &str, family: Option<&str>) -> Option<&'a Interface> {
    let (exclude, rest) = pattern.strip_prefix('^').map_or((false, pattern), |rest| (true, rest));
    let (exact, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
    // NCCL's lists may carry `name:port`; the port means nothing here.
    let names: Vec<_> =
        rest.split(',').map(|n| n.split(':').next().unwrap_or(n)).filter(|n| !n.is_empty()).collect();
    let fits = |name: &str| names.iter().any(|n| if exact { name == *n } else { name.starts_with(n) });
    let family_fits = |ip: &IpAddr| match family {
        Some("AF_INET") => ip.is_ipv4(),
        Some("AF_INET6") => ip.is_ipv6(),
        _ => true,
    };
    all.iter().find(|i| {
        family_fits(&i.address)
            && !(i.address.is_ipv6() && i.address.is_loopback())
            && fits(&i.name) != exclude
    })
}

/// `host:port`, `ipv4:port` or `[ipv6]:port`, as `NCCL_COMM_ID`.
pub(super) fn parse_address(text: &str, by: &str) -> Result<SocketAddr, CommError> {
    let wrong = |why: String| {
        CommError::InvalidArgument(format!(
            "{by} is `{text}`: {why}; write host:port, 10.0.0.1:port or [ipv6]:port"
        ))
    };
    let mut found = text.to_socket_addrs().map_err(|why| wrong(why.to_string()))?;
    let address = found.next().ok_or_else(|| wrong("the name has no address".into()))?;
    if address.port() == 0 { Err(wrong("the port must not be 0".into())) } else { Ok(address) }
}

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// All IPv4 and IPv6 addresses, asked of the kernel through rtnetlink (there is no call for it without libc).
fn interfaces() -> io::Result<Vec<Interface>> {
    // No protocol means 0, which is NETLINK_ROUTE.
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    // nlmsghdr (length, type, flags, sequence, port) and an ifaddrmsg of zeros: all families.
    let mut request = vec![];
    request.extend(24u32.to_ne_bytes());
    request.extend(RTM_GETADDR.to_ne_bytes());
    request.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    request.extend([0; 16]);
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut found = vec![];
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let (got, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..got];
        while let Some((header, _)) = rest.split_first_chunk::<16>() {
            let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
            let kind = u16::from_ne_bytes([header[4], header[5]]);
            let Some(body) = rest.get(16..length) else { return Err(io::ErrorKind::InvalidData.into()) };
            match kind {
                NLMSG_DONE => return Ok(found),
                NLMSG_ERROR => return Err(io::Error::other("the kernel refused to list the addresses")),
                RTM_NEWADDR => {
                    found.extend(interface(body, |index| netdevice::index_to_name(&socket, index).ok()))
                }
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
}

/// Reads an `ifaddrmsg` (family, prefix length, flags, scope: u8 each; index: u32) and its attributes.
fn interface(body: &[u8], name_of: impl Fn(u32) -> Option<String>) -> Option<Interface> {
    let (message, mut rest) = body.split_first_chunk::<8>()?;
    let index = u32::from_ne_bytes([message[4], message[5], message[6], message[7]]);
    let (mut local, mut address) = (None, None);
    while let Some((head, _)) = rest.split_first_chunk::<4>() {
        let length = u16::from_ne_bytes([head[0], head[1]]) as usize;
        let value = rest.get(4..length)?;
        let ip = match *value {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
            _ => <[u8; 16]>::try_from(value).ok().map(|v6| IpAddr::V6(Ipv6Addr::from(v6))),
        };
        match u16::from_ne_bytes([head[2], head[3]]) {
            IFA_LOCAL => local = ip,
            IFA_ADDRESS => address = ip,
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    // On a point-to-point link IFA_ADDRESS is the far end.
    Some(Interface { name: name_of(index)?, address: local.or(address)?, scope: index })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(name: &str, address: &str) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), scope: 1 }
    }

    #[test]
    fn patterns_choose_as_nccl_does() {
        let all = [
            some("lo", "127.0.0.1"),
            some("lo", "::1"),
            some("eth0", "10.0.0.1"),
            some("eth10", "fd00::1"),
            some("ib0", "10.1.0.1"),
        ];
        let name = |pattern, family| pick(&all, pattern, family).map(|i| i.address.to_string());
        assert_eq!(name("eth", None).as_deref(), Some("10.0.0.1"));
        assert_eq!(name("=eth1", None), None);
        assert_eq!(name("ib,eth", None).as_deref(), Some("10.0.0.1"));
        assert_eq!(name("^lo,eth", None).as_deref(), Some("10.1.0.1"));
        assert_eq!(name("^=eth0,lo", None).as_deref(), Some("fd00::1"));
        assert_eq!(name("eth", Some("AF_INET6")).as_deref(), Some("fd00::1"));
        assert_eq!(name("lo", Some("AF_INET6")), None);
    }

    #[test]
    fn the_kernel_lists_loopback() {
        let all = interfaces().unwrap();
        assert!(all.iter().any(|i| i.address == IpAddr::from([127, 0, 0, 1])), "{all:?}");
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused_with_those_that_are() {
        let why = choose(Some("=nosuchif0")).unwrap_err().to_string();
        assert!(why.contains("`=nosuchif0`") && why.contains("lo"), "{why}");
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        assert_eq!(parse_address("127.0.0.1:80", "X").unwrap(), "127.0.0.1:80".parse().unwrap());
        assert_eq!(parse_address("[::1]:80", "X").unwrap(), "[::1]:80".parse().unwrap());
        for wrong in ["127.0.0.1", "127.0.0.1:0", ":", "[::1]"] {
            assert!(parse_address(wrong, "X").unwrap_err().to_string().contains("host:port"));
        }
    }
}
