//! Reads `ncclConfig_t` and the environment into the engine's [`Config`].

use std::ffi::{CStr, c_int};
use std::mem::offset_of;
use std::time::Duration;

use ringlab_engine::comm::{Config, debug, env};

use crate::abi::{CONFIG_MAGIC, NcclConfig, UNDEFINED};
use crate::fault::Fault;

/// Ranks of an unmodified program may come minutes apart.
const SETUP_DEADLINE: Duration = Duration::from_secs(600);

/// How a communicator of this library behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Calls wait for what they start; else they answer "in progress" where NCCL's do.
    pub blocking: bool,
    pub config: Config,
}

/// Copies as much of the caller's structure as both sides know.
///
/// # Safety
/// `config` is null, or points to a `size_t` that says how many bytes can be read from there.
pub unsafe fn read(config: *const NcclConfig) -> Result<Option<NcclConfig>, Fault> {
    if config.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, so it begins with its size. It need not be aligned.
    let size = unsafe { config.cast::<usize>().read_unaligned() };
    // As little as the first version of the structure had: size, magic, version, blocking.
    if !(20..=4096).contains(&size) {
        return Err(Fault::argument(format!(
            "ncclConfig_t says it has {size} bytes; initialise it with NCCL_CONFIG_INITIALIZER"
        )));
    }
    let mut copy = undefined();
    let length = size.min(size_of::<NcclConfig>());
    // SAFETY: the caller's structure has `size` bytes, ours as many as its type; `length` is the smaller, and they are different objects.
    unsafe { std::ptr::copy_nonoverlapping(config.cast::<u8>(), (&raw mut copy).cast::<u8>(), length) };
    // In a longer structure the first newer member lies where this one is padded.
    let known = if size > length { offset_of!(NcclConfig, split_share) + size_of::<c_int>() } else { size };
    // SAFETY: the caller promises `size` readable bytes, of which `known` are before these.
    let newer = unsafe { std::slice::from_raw_parts(config.cast::<u8>().add(known), size - known) };
    if has_members_set(newer) {
        debug::log!(
            Info,
            Init,
            "ncclConfig_t has {size} bytes and sets members that came after NCCL 2.22.3: they change nothing here"
        );
    }
    Ok(Some(copy))
}

/// Whether members of a newer header hold something: NCCL_CONFIG_INITIALIZER leaves numbers undefined and pointers null.
fn has_members_set(newer: &[u8]) -> bool {
    let words = newer.chunks_exact(4).map(|word| c_int::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    words.into_iter().any(|word| word != UNDEFINED && word != 0)
}

fn undefined() -> NcclConfig {
    NcclConfig {
        size: 0,
        magic: 0,
        version: 0,
        blocking: UNDEFINED,
        cga_cluster_size: UNDEFINED,
        min_ctas: UNDEFINED,
        max_ctas: UNDEFINED,
        net_name: std::ptr::null(),
        split_share: UNDEFINED,
    }
}

/// Checks what was read; what is undefined, or no structure at all, means the default. The environment has the last word, as in
/// NCCL v2.22.3-1 (src/init.cc, `envConfigOverride`).
pub fn settings(given: Option<NcclConfig>) -> Result<Settings, Fault> {
    let mut given = given.unwrap_or(NcclConfig { magic: CONFIG_MAGIC, version: 22_203, ..undefined() });
    if given.magic != CONFIG_MAGIC {
        return Err(Fault::argument(format!(
            "ncclConfig_t has the mark {:#x} instead of {CONFIG_MAGIC:#x}; initialise it with NCCL_CONFIG_INITIALIZER",
            given.magic
        )));
    }
    // Members that came later than the caller's header hold whatever lay there.
    if given.version < 21_400 {
        given.blocking = UNDEFINED;
    }
    if given.version < 21_700 {
        given = NcclConfig {
            size: given.size,
            magic: given.magic,
            version: given.version,
            blocking: given.blocking,
            ..undefined()
        };
    }
    let flag = |name: &str, value: c_int| match value {
        UNDEFINED => Ok(None),
        0 => Ok(Some(false)),
        1 => Ok(Some(true)),
        other => {
            Err(Fault::argument(format!("ncclConfig_t.{name} is {other}; it may be 0, 1 or left undefined")))
        }
    };
    let positive = |name: &str, value: c_int| match u32::try_from(value) {
        _ if value == UNDEFINED => Ok(None),
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => Err(Fault::argument(format!(
            "ncclConfig_t.{name} is {value}; it must be positive or left undefined"
        ))),
    };
    if given.cga_cluster_size != UNDEFINED && !(0..=8).contains(&given.cga_cluster_size) {
        return Err(Fault::argument(format!(
            "ncclConfig_t.cgaClusterSize is {}; it may be 0 to 8",
            given.cga_cluster_size
        )));
    }
    if given.cga_cluster_size > 0 {
        debug::log!(
            Info,
            Init,
            "cgaClusterSize {} changes nothing: blocks here form no clusters",
            given.cga_cluster_size
        );
    }
    if flag("splitShare", given.split_share)? == Some(true) {
        debug::log!(Info, Init, "splitShare changes nothing: communicators here share no connections");
    }
    if !given.net_name.is_null() {
        // SAFETY: the caller's structure promises a terminated string where it is not null.
        let name = unsafe { CStr::from_ptr(given.net_name) }.to_string_lossy();
        debug::log!(Info, Net, "netName `{name}` is not used: all ranks are on one machine");
    }
    let blocking =
        number("COMM_BLOCKING")?.map(|n| n != 0).or(flag("blocking", given.blocking)?).unwrap_or(true);
    let min = number("MIN_CTAS")?.or(number("MIN_NCHANNELS")?).or(positive("minCTAs", given.min_ctas)?);
    let max = number("MAX_CTAS")?.or(number("MAX_NCHANNELS")?).or(positive("maxCTAs", given.max_ctas)?);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        return Err(Fault::argument(format!("at least {min} channels and at most {max} exclude each other")));
    }
    let default = Config::default();
    // One bound given alone moves the other's default out of its way.
    let max_channels = max.unwrap_or(default.max_channels.max(min.unwrap_or(0)));
    let min_channels = min.unwrap_or(default.min_channels.min(max_channels));
    let seconds =
        |name, default| Ok::<_, Fault>(number(name)?.map_or(default, |s| Duration::from_secs(s.into())));
    let config = Config {
        setup_deadline: seconds("SETUP_TIMEOUT", SETUP_DEADLINE)?,
        deadline: seconds("OP_TIMEOUT", default.deadline)?,
        min_channels,
        max_channels,
        check_mismatch: number("CHECK_MISMATCH")?.map_or(default.check_mismatch, |n| n != 0),
        ..default
    };
    Ok(Settings { blocking, config })
}

fn number(name: &str) -> Result<Option<u32>, Fault> {
    let Some((full, value)) = env::lookup(name) else { return Ok(None) };
    let parsed = value.trim().parse().map_err(|_| {
        Fault::argument(format!("the environment variable {full} is `{value}`; it must be a whole number"))
    });
    parsed.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> NcclConfig {
        NcclConfig { size: 48, magic: CONFIG_MAGIC, version: 22_203, ..undefined() }
    }

    fn refused(config: NcclConfig) -> String {
        settings(Some(config)).unwrap_err().text
    }

    #[test]
    fn undefined_members_mean_the_defaults() {
        let settings = settings(Some(given())).unwrap();
        assert!(settings.blocking);
        assert_eq!(settings.config.max_channels, Config::default().max_channels);
        assert_eq!(settings, super::settings(None).unwrap());
    }

    #[test]
    fn what_is_given_counts() {
        let settings =
            settings(Some(NcclConfig { blocking: 0, min_ctas: 2, max_ctas: 4, ..given() })).unwrap();
        assert!(!settings.blocking);
        assert_eq!((settings.config.min_channels, settings.config.max_channels), (2, 4));
    }

    #[test]
    fn one_bound_alone_moves_the_other() {
        let only = |config| settings(Some(config)).unwrap().config;
        let high = Config::default().max_channels + 5;
        assert_eq!(only(NcclConfig { min_ctas: high as c_int, ..given() }).max_channels, high);
        assert_eq!(only(NcclConfig { max_ctas: 1, ..given() }).max_channels, 1);
    }

    #[test]
    fn values_that_mean_nothing_are_refused_by_name() {
        assert!(refused(NcclConfig { magic: 7, ..given() }).contains("NCCL_CONFIG_INITIALIZER"));
        assert!(refused(NcclConfig { blocking: 2, ..given() }).contains("blocking is 2"));
        assert!(refused(NcclConfig { min_ctas: 0, ..given() }).contains("minCTAs is 0"));
        assert!(refused(NcclConfig { min_ctas: 4, max_ctas: 2, ..given() }).contains("exclude"));
        assert!(refused(NcclConfig { split_share: 9, ..given() }).contains("splitShare"));
        assert!(refused(NcclConfig { cga_cluster_size: -2, ..given() }).contains("cgaClusterSize"));
    }

    #[test]
    fn newer_members_are_noticed_when_they_are_set() {
        let members = |words: [c_int; 4]| has_members_set(&words.map(c_int::to_ne_bytes).concat());
        assert!(!members([UNDEFINED, 0, 0, UNDEFINED]) && !has_members_set(&[]));
        assert!(members([UNDEFINED, 0, 0, 2]));
    }

    #[test]
    fn an_older_callers_structure_is_read_only_as_far_as_it_goes() {
        let old = NcclConfig { size: 24, version: 21_500, min_ctas: -3, ..given() };
        // SAFETY: points to a whole structure, which says less.
        let copy = unsafe { read(&old) }.unwrap().unwrap();
        assert_eq!(copy.min_ctas, UNDEFINED);
        assert!(settings(Some(copy)).is_ok());
        let wrong = NcclConfig { size: 3, ..given() };
        // SAFETY: as above.
        assert!(unsafe { read(&wrong) }.unwrap_err().text.contains("3 bytes"));
        // SAFETY: null is allowed.
        assert!(unsafe { read(std::ptr::null()) }.unwrap().is_none());
    }
}
