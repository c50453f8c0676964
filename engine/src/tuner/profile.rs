//! A back end's own figures: alpha and beta of every algorithm, fitted from measurements on the machine they are for.

use serde::{Deserialize, Serialize};

use super::Protocol;
use crate::plan::{Algorithm, MAX_CHANNELS, MAX_RANKS};
use crate::types::{Backend, Collective, Rank};

/// Version of the file's structure. A reader refuses what it does not know.
pub const VERSION: u32 = 1;

/// What a profile holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Ranks are threads of one process.
    Cpu,
    /// All ranks share one GPU, in one launch: no wire is crossed.
    SharedGpu,
    /// All ranks share one GPU, and each launches for itself, as in a communicator.
    SharedGpuRanks,
}

impl Domain {
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Cpu => "cpu",
            Domain::SharedGpu => "shared_gpu",
            Domain::SharedGpuRanks => "shared_gpu_ranks",
        }
    }

    pub const fn backend(self) -> Backend {
        match self {
            Domain::Cpu => Backend::Cpu,
            Domain::SharedGpu | Domain::SharedGpuRanks => Backend::Cuda,
        }
    }

    /// Protocols the back end has.
    pub const fn protocols(self) -> &'static [Protocol] {
        match self {
            Domain::Cpu => &[Protocol::Simple],
            Domain::SharedGpu | Domain::SharedGpuRanks => &Protocol::ALL,
        }
    }

    /// Channels where nothing was measured and nobody says.
    pub const fn default_channels(self) -> u32 {
        match self {
            Domain::Cpu => 1,
            Domain::SharedGpu | Domain::SharedGpuRanks => 16,
        }
    }
}

/// Where the figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Model and number of cores or GPUs.
    pub device: String,
    pub driver: String,
    /// Day of the measurement, as 2026-12-02.
    pub date: String,
    pub command: String,
    pub commit: Option<String>,
    /// Element type and slot size of the measurement, and whatever else a reader should know.
    pub conditions: String,
}

/// `time = alpha_us + bytes / (1000 x gbps)` from `from_bytes` up to the next segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    pub from_bytes: u64,
    /// Microseconds.
    pub alpha_us: f64,
    /// GB/s, 10^9 bytes per second, of a rank's larger buffer; null where more bytes took no longer.
    pub gbps: Option<f64>,
}

impl Segment {
    fn time_us(&self, bytes: f64) -> f64 {
        self.alpha_us + self.gbps.map_or(0.0, |gbps| bytes / (1000.0 * gbps))
    }
}

/// One algorithm on one protocol, for a collective, a number of ranks and a number of channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    /// [`Collective::name`]
    pub collective: String,
    pub ranks: u32,
    pub channels: u32,
    /// By rising `from_bytes`, the first from 0.
    pub segments: Vec<Segment>,
    pub samples: u32,
    /// Of |predicted / measured - 1| over the samples, in per cent.
    pub median_error_pct: f64,
}

/// A price, and the line it lies on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Price {
    pub time_us: f64,
    pub alpha_us: f64,
}

impl Entry {
    /// Microseconds for a larger buffer of `bytes`. Never falls with rising `bytes`: where a segment would start below the end of the
    /// one before, it stays at that end until it is above.
    pub fn time_us(&self, bytes: u64) -> f64 {
        self.price(bytes).time_us
    }

    pub(super) fn price(&self, bytes: u64) -> Price {
        let mut floor: f64 = 0.0;
        for (at, segment) in self.segments.iter().enumerate() {
            match self.segments.get(at + 1) {
                Some(next) if bytes >= next.from_bytes => {
                    floor = floor.max(segment.time_us(next.from_bytes as f64));
                }
                _ => {
                    let time_us = segment.time_us(bytes as f64);
                    return Price {
                        time_us: time_us.max(floor),
                        alpha_us: segment.alpha_us.min(time_us.max(floor)),
                    };
                }
            }
        }
        unreachable!("a profile that was checked has a segment in each entry")
    }

    fn key(&self) -> (Algorithm, Protocol, &str, u32, u32) {
        (self.algorithm, self.protocol, &self.collective, self.ranks, self.channels)
    }

    fn title(&self) -> String {
        let Entry { algorithm, protocol, collective, ranks, channels, .. } = self;
        format!("{algorithm} {protocol} for {collective} on {ranks} ranks and {channels} channels")
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub version: u32,
    pub name: String,
    pub domain: Domain,
    pub origin: Origin,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    #[error(
        "profile version {got}, this program reads {VERSION}; fit it again with this program's `ringlab-perf --tune-report`"
    )]
    Version { got: u32 },
    #[error("profile `{name}` has no entry; fit it again with more sizes")]
    Empty { name: String },
    #[error("profile `{name}`: `{field}` is empty; say what was measured")]
    Origin { name: String, field: &'static str },
    #[error("profile `{name}`: unknown collective `{got}`; known: {known}")]
    Collective { name: String, got: String, known: String },
    #[error("profile `{name}` is of {of}, not of {not}; write to another file")]
    Foreign { name: String, of: String, not: String },
    #[error("profile `{name}`, entry {entry}: {problem}")]
    Entry { name: String, entry: String, problem: String },
}

/// [`Collective::name`] of all.
pub(super) fn collectives() -> Vec<&'static str> {
    Collective::all(Rank(0)).iter().map(|collective| collective.name()).collect()
}

impl Profile {
    /// One that holds nothing.
    pub(super) fn empty(domain: Domain) -> Profile {
        let none = || String::from("none");
        let origin = Origin {
            device: none(),
            driver: none(),
            date: none(),
            command: none(),
            commit: None,
            conditions: String::new(),
        };
        Profile { version: VERSION, name: none(), domain, origin, entries: Vec::new() }
    }

    /// Whether the figures can be used; a profile that was read must pass before anything else is done with it.
    ///
    /// # Errors
    /// The first thing that is wrong, with the entry it is in.
    pub fn check(&self) -> Result<(), ProfileError> {
        let name = || self.name.clone();
        if self.version != VERSION {
            return Err(ProfileError::Version { got: self.version });
        }
        if self.entries.is_empty() {
            return Err(ProfileError::Empty { name: name() });
        }
        let Origin { device, driver, date, command, .. } = &self.origin;
        for (field, value) in [("device", device), ("driver", driver), ("date", date), ("command", command)] {
            if value.trim().is_empty() {
                return Err(ProfileError::Origin { name: name(), field });
            }
        }
        let known = collectives();
        let mut keys = Vec::new();
        for entry in &self.entries {
            if !known.contains(&entry.collective.as_str()) {
                let got = entry.collective.clone();
                return Err(ProfileError::Collective { name: name(), got, known: known.join(", ") });
            }
            let problem = if keys.contains(&entry.key()) {
                Some("it is there twice".into())
            } else {
                problem(entry, self.domain)
            };
            if let Some(problem) = problem {
                return Err(ProfileError::Entry { name: name(), entry: entry.title(), problem });
            }
            keys.push(entry.key());
        }
        Ok(())
    }

    /// These figures, and those of `older` for what was not measured anew.
    ///
    /// # Errors
    /// When the two are of different devices or drivers.
    pub fn merged_into(self, older: Profile) -> Result<Profile, ProfileError> {
        let place = |profile: &Profile| {
            (profile.domain, profile.origin.device.clone(), profile.origin.driver.clone())
        };
        if place(&self) != place(&older) {
            let place = |profile: &Profile| {
                format!("{} on {} ({})", profile.domain.name(), profile.origin.device, profile.origin.driver)
            };
            return Err(ProfileError::Foreign {
                name: older.name.clone(),
                of: place(&older),
                not: place(&self),
            });
        }
        let mut merged = self;
        let kept =
            older.entries.into_iter().filter(|old| merged.entries.iter().all(|new| new.key() != old.key()));
        let kept: Vec<Entry> = kept.collect();
        if !kept.is_empty() {
            merged.entries.extend(kept);
            merged.origin.command = format!("{}; {}", older.origin.command, merged.origin.command);
        }
        Ok(merged)
    }

    /// Rank counts there are figures for, rising.
    pub fn ranks(&self, collective: &str) -> Vec<u32> {
        let mut ranks: Vec<u32> = self
            .entries
            .iter()
            .filter(|entry| entry.collective == collective)
            .map(|entry| entry.ranks)
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}

fn problem(entry: &Entry, domain: Domain) -> Option<String> {
    let Entry { protocol, ranks, channels, segments, .. } = entry;
    if !domain.protocols().contains(protocol) {
        return Some(format!("the {} back end has no protocol {protocol}", domain.name()));
    }
    if !(1..=MAX_RANKS).contains(ranks) || !(1..=MAX_CHANNELS).contains(channels) {
        return Some(format!("ranks go from 1 to {MAX_RANKS} and channels from 1 to {MAX_CHANNELS}"));
    }
    if segments.first().is_none_or(|first| first.from_bytes != 0) {
        return Some("its first segment must start at 0 bytes".into());
    }
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].from_bytes >= pair[1].from_bytes) {
        return Some(format!(
            "segments from {} and {} bytes do not rise",
            pair[0].from_bytes, pair[1].from_bytes
        ));
    }
    segments.iter().find_map(|Segment { from_bytes, alpha_us, gbps }| {
        if !alpha_us.is_finite() || *alpha_us < 0.0 {
            return Some(format!("alpha_us {alpha_us} from {from_bytes} bytes; it must be 0 or more"));
        }
        if gbps.is_some_and(|gbps| !gbps.is_finite() || gbps <= 0.0) {
            return Some(format!("gbps {gbps:?} from {from_bytes} bytes; it must be above 0, or null"));
        }
        (*alpha_us == 0.0 && gbps.is_none())
            .then(|| format!("from {from_bytes} bytes it takes no time at all"))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn entry(algorithm: Algorithm, ranks: u32, alpha_us: f64, gbps: f64) -> Entry {
        Entry {
            algorithm,
            protocol: Protocol::Simple,
            collective: "all_reduce".into(),
            ranks,
            channels: 1,
            segments: vec![Segment { from_bytes: 0, alpha_us, gbps: Some(gbps) }],
            samples: 9,
            median_error_pct: 1.0,
        }
    }

    pub fn profile(entries: Vec<Entry>) -> Profile {
        let origin = Origin {
            device: "test".into(),
            driver: "test".into(),
            date: "2026-12-02".into(),
            command: "none".into(),
            commit: None,
            conditions: String::new(),
        };
        Profile { version: VERSION, name: "test".into(), domain: Domain::Cpu, origin, entries }
    }

    proptest! {
        #[test]
        fn a_price_never_falls_with_rising_bytes(
            lines in prop::collection::vec((0u64..1 << 30, 0.0..1e4f64, prop::option::of(1e-3..1e4f64)), 1..6),
            mut sizes in prop::collection::vec(0u64..1 << 32, 2..20),
        ) {
            let mut segments: Vec<Segment> = lines
                .into_iter()
                .map(|(from_bytes, alpha_us, gbps)| Segment { from_bytes, alpha_us, gbps })
                .collect();
            segments.sort_by_key(|segment| segment.from_bytes);
            segments.dedup_by_key(|segment| segment.from_bytes);
            segments[0].from_bytes = 0;
            sizes.extend(segments.iter().flat_map(|s| [s.from_bytes, s.from_bytes.saturating_sub(1)]));
            sizes.sort_unstable();
            let entry = Entry { segments, ..entry(Algorithm::Ring, 2, 1.0, 1.0) };
            let prices: Vec<f64> = sizes.iter().map(|bytes| entry.time_us(*bytes)).collect();
            prop_assert!(prices.windows(2).all(|pair| pair[0] <= pair[1]), "{prices:?}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let good = || entry(Algorithm::Ring, 2, 1.0, 1.0);
        assert_eq!(profile(vec![good()]).check(), Ok(()));
        let refused = |profile: Profile| profile.check().unwrap_err().to_string();
        let with = |change: fn(&mut Entry)| {
            let mut entry = good();
            change(&mut entry);
            refused(profile(vec![entry]))
        };
        assert!(
            refused(Profile { version: 9, ..profile(vec![good()]) })
                .contains("version 9, this program reads 1")
        );
        assert!(refused(profile(vec![])).contains("no entry"));
        assert!(
            refused(profile(vec![good(), good()]))
                .contains("ring Simple for all_reduce on 2 ranks and 1 channels: it is there twice")
        );
        assert!(
            with(|e| e.collective = "all_for_one".into())
                .contains("unknown collective `all_for_one`; known: all_reduce")
        );
        assert!(with(|e| e.segments[0].alpha_us = -1.0).contains("alpha_us -1"));
        assert!(with(|e| e.segments[0].gbps = Some(0.0)).contains("above 0"));
        assert!(with(|e| e.segments[0].from_bytes = 4).contains("start at 0"));
        assert!(with(|e| e.segments.clear()).contains("start at 0"));
        assert!(with(|e| e.protocol = Protocol::Ll).contains("no protocol LL"));
        assert!(with(|e| e.ranks = 0).contains("ranks go from 1"));
    }

    #[test]
    fn a_merged_profile_has_the_newer_figures_and_the_older_ones_of_the_rest() {
        let older = profile(vec![entry(Algorithm::Ring, 2, 1.0, 1.0), entry(Algorithm::Ring, 4, 2.0, 1.0)]);
        let newer = profile(vec![entry(Algorithm::Ring, 4, 3.0, 1.0), entry(Algorithm::Tree, 4, 4.0, 1.0)]);
        let merged = newer.clone().merged_into(older.clone()).unwrap();
        assert_eq!(merged.check(), Ok(()));
        let alphas: Vec<f64> = merged.entries.iter().map(|entry| entry.segments[0].alpha_us).collect();
        assert_eq!(alphas, [3.0, 4.0, 1.0]);
        assert_eq!(merged.origin.command, "none; none");
        let other = Profile { domain: Domain::SharedGpu, ..older };
        assert!(
            newer.merged_into(other).unwrap_err().to_string().contains("is of shared_gpu on test (test)")
        );
    }

    #[cfg(feature = "native")]
    #[test]
    fn an_unknown_algorithm_in_a_file_is_named() {
        let text = serde_json::to_string(&profile(vec![entry(Algorithm::Ring, 2, 1.0, 1.0)])).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap().entries.len(), 1);
        let text = text.replace("\"ring\"", "\"spiral\"");
        let err = serde_json::from_str::<Profile>(&text).unwrap_err().to_string();
        assert!(err.contains("unknown variant `spiral`, expected") && err.contains("`two_shot`"), "{err}");
    }
}
