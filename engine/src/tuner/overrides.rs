//! What the user wants instead of the tuner's own choice, from variables named as NCCL's with `RINGLAB_` in front.

use std::str::FromStr;

use serde::Serialize;

use super::Protocol;
use super::rules::Rules;
use crate::plan::{Algorithm, MAX_CHANNELS};

pub const ALGO: &str = "RINGLAB_ALGO";
pub const PROTO: &str = "RINGLAB_PROTO";
pub const MIN_NCHANNELS: &str = "RINGLAB_MIN_NCHANNELS";
pub const MAX_NCHANNELS: &str = "RINGLAB_MAX_NCHANNELS";
pub const NTHREADS: &str = "RINGLAB_NTHREADS";
pub const TUNER_FILE: &str = "RINGLAB_TUNER_FILE";
/// A profile as `ringlab-perf --tune-report --save-profile` writes it, for communicators.
pub const TUNER_PROFILE: &str = "RINGLAB_TUNER_PROFILE";

/// A list of names with NCCL 2.22's syntax (`parseList` in src/graph/tuning.cc): names between commas, in any case, empty ones skipped;
/// a `^` in front of the whole list turns it into "all but these".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct List {
    pub exclude: bool,
    pub names: Vec<String>,
}

impl List {
    /// Never fails: like NCCL it keeps what it does not know, see [`List::unknown`].
    pub fn parse(text: &str) -> List {
        let (exclude, rest) = match text.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        List { exclude, names: rest.split(',').filter(|name| !name.is_empty()).map(String::from).collect() }
    }

    pub fn allows(&self, name: &str) -> bool {
        self.names.iter().any(|listed| listed.eq_ignore_ascii_case(name)) != self.exclude
    }

    /// The first listed name that is none of `known`. NCCL ignores such names in silence.
    pub fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|name| !known.iter().any(|k| k.eq_ignore_ascii_case(name)))
    }
}

impl std::fmt::Display for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.exclude { "^" } else { "" }, self.names.join(","))
    }
}

/// Everything that overrides a profile. `Default` overrides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overrides {
    pub algorithms: Option<List>,
    pub protocols: Option<List>,
    pub min_channels: Option<u32>,
    pub max_channels: Option<u32>,
    pub threads: Option<u32>,
    pub rules: Rules,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    #[error("{variable}={value}: unknown {what} `{name}`; known: {known}")]
    UnknownName { variable: &'static str, value: String, what: &'static str, name: String, known: String },
    #[error("{variable}={value}: no name in the list leaves nothing to run; unset it or name one of {known}")]
    Empty { variable: &'static str, value: String, known: String },
    #[error("{variable}={value}: not a whole number from {min} to {max}")]
    Number { variable: &'static str, value: String, min: u32, max: u32 },
    #[error("{NTHREADS}={value}: not a multiple of 32 (a warp)")]
    Warp { value: u32 },
    #[error("{MIN_NCHANNELS}={min} is above {MAX_NCHANNELS}={max}")]
    Range { min: u32, max: u32 },
}

impl Overrides {
    /// Reads the variables through `get`, which returns a variable's value when it is set. An empty value counts as unset, as in NCCL.
    /// The file named by [`TUNER_FILE`] is the caller's to read (see [`super::native`]).
    ///
    /// # Errors
    /// On a name or number that means nothing: unlike NCCL, nothing is ignored.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Overrides, OverrideError> {
        let get = |name: &'static str| get(name).filter(|value| !value.is_empty());
        let list = |variable, what, known: &[&str]| {
            let Some(value) = get(variable) else { return Ok(None) };
            let list = List::parse(&value);
            if let Some(name) = list.unknown(known) {
                let name = name.into();
                return Err(OverrideError::UnknownName {
                    variable,
                    value,
                    what,
                    name,
                    known: known.join(", "),
                });
            }
            if !known.iter().any(|name| list.allows(name)) {
                return Err(OverrideError::Empty { variable, value, known: known.join(", ") });
            }
            Ok(Some(list))
        };
        let number = |variable, min: u32, max: u32| {
            let Some(value) = get(variable) else { return Ok(None) };
            match u32::from_str(value.trim()) {
                Ok(n) if (min..=max).contains(&n) => Ok(Some(n)),
                _ => Err(OverrideError::Number { variable, value, min, max }),
            }
        };
        let overrides = Overrides {
            algorithms: list(ALGO, "algorithm", &Algorithm::ALL.map(Algorithm::name))?,
            protocols: list(PROTO, "protocol", &Protocol::ALL.map(Protocol::name))?,
            min_channels: number(MIN_NCHANNELS, 1, MAX_CHANNELS)?,
            max_channels: number(MAX_NCHANNELS, 1, MAX_CHANNELS)?,
            threads: number(NTHREADS, 32, 1024)?,
            rules: Rules::default(),
        };
        if let Some(value) = overrides.threads.filter(|n| !n.is_multiple_of(32)) {
            return Err(OverrideError::Warp { value });
        }
        if let (Some(min), Some(max)) = (overrides.min_channels, overrides.max_channels)
            && min > max
        {
            return Err(OverrideError::Range { min, max });
        }
        Ok(overrides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Overrides, OverrideError> {
        Overrides::from_variables(|name| pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
    }

    /// `parseList`, transcribed: a flag per element, a default, then set or cleared by each token.
    fn parse_list(text: &str, elems: &[&str]) -> Vec<bool> {
        let (default, set, rest) = match text.strip_prefix('^') {
            Some(rest) => (true, false, rest),
            None => (false, true, text),
        };
        let mut list = vec![default; elems.len()];
        for token in rest.split(',').filter(|token| !token.is_empty()) {
            for (flag, elem) in list.iter_mut().zip(elems) {
                if token.eq_ignore_ascii_case(elem) {
                    *flag = set;
                }
            }
        }
        list
    }

    const NAMES: [&str; 6] = ["Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"];

    proptest! {
        #[test]
        fn lists_mean_what_they_mean_in_nccl(text in "\\^?(([tT]ree|RING|nvls|NVLSTree|x|\\^Ring| )?,){0,4}(Ring|,)?") {
            let list = List::parse(&text);
            let ours: Vec<bool> = NAMES.iter().map(|name| list.allows(name)).collect();
            prop_assert_eq!(ours, parse_list(&text, &NAMES));
        }

        #[test]
        fn no_text_makes_the_parser_panic_or_be_ignored(
            algo in "\\PC{0,12}", proto in "\\PC{0,12}", min in "\\PC{0,6}", max in "[0-9]{0,12}", threads in "[0-9 -]{0,6}",
        ) {
            let set = [(ALGO, &algo), (PROTO, &proto), (MIN_NCHANNELS, &min), (MAX_NCHANNELS, &max), (NTHREADS, &threads)];
            let got = Overrides::from_variables(|name| {
                set.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).clone())
            });
            if let Ok(got) = got {
                prop_assert_eq!(got.algorithms.is_some(), !algo.is_empty());
                prop_assert_eq!(got.protocols.is_some(), !proto.is_empty());
                prop_assert_eq!(got.min_channels.is_some(), !min.is_empty());
                prop_assert_eq!(got.max_channels.is_some(), !max.is_empty());
                prop_assert_eq!(got.threads.is_some(), !threads.is_empty());
            }
        }

        #[test]
        fn a_list_printed_and_read_again_is_the_same(exclude: bool, names in prop::collection::vec("[a-z_0-9]{1,8}", 0..5)) {
            let list = List { exclude, names };
            prop_assert_eq!(List::parse(&list.to_string()), list);
        }
    }

    #[test]
    fn one_caret_excludes_the_whole_list() {
        let list = List::parse("^ring,LL");
        assert!(!list.allows("Ring") && !list.allows("ll") && list.allows("Tree"));
    }

    #[test]
    fn what_means_nothing_is_named() {
        let refused = |variable, value| parse(&[(variable, value)]).unwrap_err().to_string();
        assert_eq!(
            refused(PROTO, "LL,LL64"),
            "RINGLAB_PROTO=LL,LL64: unknown protocol `LL64`; known: LL, LL128, Simple"
        );
        assert!(refused(ALGO, "rnig").contains("unknown algorithm `rnig`; known: ring, "));
        assert!(refused(PROTO, "^LL,LL128,Simple").contains("leaves nothing to run"));
        assert!(refused(MAX_NCHANNELS, "0").contains("not a whole number from 1 to 64"));
        assert!(refused(NTHREADS, "100").contains("multiple of 32"));
        assert!(
            parse(&[(MIN_NCHANNELS, "8"), (MAX_NCHANNELS, "4")]).unwrap_err().to_string().contains("above")
        );
    }

    #[test]
    fn nothing_set_overrides_nothing() {
        assert_eq!(parse(&[(ALGO, "")]), Ok(Overrides::default()));
    }
}
