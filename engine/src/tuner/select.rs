//! Choosing by a profile: every algorithm priced, what the user ruled out gated, the cheapest of the rest taken.

use std::collections::BTreeMap;

use super::choice::{Candidate, Choice, Cost, Gate, Launched};
use super::overrides::{ALGO, MAX_NCHANNELS, MIN_NCHANNELS, NTHREADS, Overrides, PROTO};
use super::profile::{Entry, Profile, ProfileError};
use super::rules::Rule;
use super::{Domain, Protocol};
use crate::plan::{self, Algorithm, MAX_CHANNELS};
use crate::text::{Lang, Text};
use crate::types::{Collective, Rank};

/// Named in a choice in place of a profile.
pub const RULE_OF_THUMB: &str = "rule of thumb";

/// One operation to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    pub collective: Collective,
    /// Of the larger buffer of a rank.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(
        "{NTHREADS}={threads}: the {} back end fixes the threads of a block itself; unset the variable", domain.name()
    )]
    Threads { threads: u32, domain: Domain },
    #[error(
        "nothing is left to run {collective} of {bytes} bytes on {ranks} ranks: {}; change or unset what rules it out",
        reasons.join("; ")
    )]
    NothingLeft { collective: String, ranks: u32, bytes: u64, reasons: Vec<String> },
    #[error(
        "profile `{profile}` has no figures for {collective} on {ranks} ranks (it has {known}), and {left} are left to choose from; \
         measure them with `ringlab-perf --tune-report --collective {collective} -g {ranks}`, or name one in {ALGO}"
    )]
    NoFigures { profile: String, collective: String, ranks: u32, known: String, left: String },
}

/// A profile with the user's overrides, ready to be asked for one number of ranks: what a communicator keeps.
#[derive(Debug, Clone)]
pub struct Tuner {
    profile: Profile,
    overrides: Overrides,
    ranks: u32,
    /// What cannot run here, by algorithm and collective: asked once, so that a choice costs no planning.
    refusals: BTreeMap<(Algorithm, &'static str), Gate>,
    /// Fewest and most channels there can be, whatever is asked for.
    limits: (u32, u32),
    /// Why the profile is empty, where it is.
    unmeasured: Option<Text>,
}

/// What to take where nothing was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOfThumb {
    /// The first of these that may run.
    pub order: Vec<Algorithm>,
    pub channels: u32,
    pub why: Text,
}

impl Tuner {
    /// # Errors
    /// When the profile cannot be used or an override asks for what the back end does not have.
    pub fn new(profile: Profile, overrides: Overrides, ranks: u32) -> Result<Tuner, SelectError> {
        profile.check()?;
        Tuner::of(profile, overrides, ranks, None)
    }

    /// A tuner without a profile, for [`Tuner::choose_or`]; `why` there is none.
    ///
    /// # Errors
    /// When an override asks for what the back end does not have.
    pub fn unmeasured(
        domain: Domain,
        overrides: Overrides,
        ranks: u32,
        why: Text,
    ) -> Result<Tuner, SelectError> {
        Tuner::of(Profile::empty(domain), overrides, ranks, Some(why))
    }

    fn of(
        profile: Profile,
        overrides: Overrides,
        ranks: u32,
        unmeasured: Option<Text>,
    ) -> Result<Tuner, SelectError> {
        if let Some(threads) = overrides.threads {
            return Err(SelectError::Threads { threads, domain: profile.domain });
        }
        let mut refusals = BTreeMap::new();
        for collective in Collective::all(Rank(0)) {
            for algorithm in Algorithm::ALL {
                if let Err(why) = plan::generate(algorithm, collective, ranks, 1) {
                    refusals.insert((algorithm, collective.name()), Gate::new("no_plan", why.text()));
                }
            }
        }
        let limits = (1, MAX_CHANNELS);
        Ok(Tuner { profile, overrides, ranks, refusals, limits, unmeasured })
    }

    /// Rules out an algorithm that has a plan but cannot run where this tuner chooses for.
    pub fn exclude(&mut self, algorithm: Algorithm, collective: Collective, gate: Gate) {
        self.refusals.entry((algorithm, collective.name())).or_insert(gate);
    }

    /// Bounds that stand above profile and overrides: what a device can hold at once.
    ///
    /// # Panics
    /// When there are none in between.
    pub fn limit_channels(&mut self, fewest: u32, most: u32) {
        assert!((1..=most).contains(&fewest) && most <= MAX_CHANNELS, "{fewest} to {most} channels");
        self.limits = (fewest, most);
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What to run, and everything it was weighed against.
    ///
    /// # Errors
    /// When the overrides leave nothing that can run, or leave several of which none has a price.
    pub fn choose(&self, query: Query) -> Result<Choice, SelectError> {
        self.decide(query, None)
    }

    /// As [`Tuner::choose`], but where what may run has no price the rule decides, and the choice says so.
    ///
    /// # Errors
    /// When the overrides leave nothing that can run.
    pub fn choose_or(&self, query: Query, rule: &RuleOfThumb) -> Result<Choice, SelectError> {
        self.decide(query, Some(rule))
    }

    fn decide(&self, query: Query, thumb: Option<&RuleOfThumb>) -> Result<Choice, SelectError> {
        let collective = query.collective.name();
        let unmeasured = thumb.map_or(self.profile.domain.default_channels(), |thumb| thumb.channels);
        let rule = self.overrides.rules.find(collective, self.ranks, query.bytes);
        let mut candidates = Vec::new();
        for algorithm in Algorithm::ALL {
            for protocol in self.profile.domain.protocols() {
                for (channels, measured) in self.channels(algorithm, *protocol, collective, rule, unmeasured)
                {
                    let mut candidate = Candidate::new(algorithm.name(), protocol.name());
                    candidate.channels = Some(channels);
                    candidate.gates = self.gates(algorithm, *protocol, collective, rule);
                    candidate.cost = measured.and_then(|measured| {
                        let mut cost = self.price(algorithm, *protocol, collective, measured, query.bytes)?;
                        if measured != channels {
                            cost.notes.push(Text::new(
                                format!("按 {measured} 个通道的测量估计"),
                                format!("priced as measured with {measured} channels"),
                            ));
                        }
                        Some(cost)
                    });
                    candidates.push(candidate);
                }
            }
        }
        let (chosen, by_thumb) = match (self.pick(&candidates, query, thumb.is_some()), thumb) {
            (Err(SelectError::NoFigures { known, .. }), Some(thumb)) => {
                let chosen = follow(thumb, &candidates).expect("several may run");
                let mut why = self.why_thumb(thumb, query, &known);
                if let Some(more) = unmeasured_protocols(&candidates, chosen) {
                    (why.zh, why.en) = (why.zh + &more.zh, why.en + &more.en);
                }
                (chosen, Some(why))
            }
            (picked, _) => (picked?, None),
        };
        let mut why = self.why(&candidates, chosen, rule);
        let profile = match (&by_thumb, &self.unmeasured) {
            (None, None) => format!("{} ({})", self.profile.name, self.profile.origin.device),
            _ => RULE_OF_THUMB.into(),
        };
        if let Some(thumb) = by_thumb {
            why = thumb;
        }
        Ok(Choice {
            profile,
            collective: collective.into(),
            ranks: self.ranks,
            bytes: query.bytes,
            why,
            launched: Launched {
                channels: candidates[chosen].channels.unwrap_or(self.profile.domain.default_channels()),
                threads: None,
                chunk_bytes: None,
                slice_bytes: None,
                notes: Vec::new(),
            },
            candidates,
            chosen,
        })
    }

    fn pick(&self, candidates: &[Candidate], query: Query, has_rule: bool) -> Result<usize, SelectError> {
        let collective = query.collective.name();
        let left: Vec<usize> = (0..candidates.len()).filter(|&at| candidates[at].may_run()).collect();
        let priced =
            left.iter().filter_map(|&at| candidates[at].cost.as_ref().map(|cost| (at, cost.time_us)));
        if let Some((at, _)) = priced.min_by(|a, b| a.1.total_cmp(&b.1)) {
            return Ok(at);
        }
        match left[..] {
            [] => Err(SelectError::NothingLeft {
                collective: collective.into(),
                ranks: self.ranks,
                bytes: query.bytes,
                reasons: reasons(candidates),
            }),
            // The only one left needs no price, and with one rank all are the same copy.
            [only] => Ok(only),
            [first, ..] if self.ranks == 1 && !has_rule => Ok(first),
            _ => {
                let known: Vec<String> =
                    self.profile.ranks(collective).iter().map(|ranks| format!("{ranks} ranks")).collect();
                let mut names: Vec<&str> = left.iter().map(|&at| candidates[at].algorithm.as_str()).collect();
                names.dedup();
                Err(SelectError::NoFigures {
                    profile: self.profile.name.clone(),
                    collective: collective.into(),
                    ranks: self.ranks,
                    known: if known.is_empty() { "none".into() } else { known.join(", ") },
                    left: names.join(", "),
                })
            }
        }
    }

    /// Numbers of channels to consider, each with the measured number it is priced by.
    fn channels(
        &self,
        algorithm: Algorithm,
        protocol: Protocol,
        collective: &str,
        rule: Option<&Rule>,
        unmeasured: u32,
    ) -> Vec<(u32, Option<u32>)> {
        let mut measured: Vec<u32> =
            self.entries(algorithm, protocol, collective).map(|entry| entry.channels).collect();
        measured.sort_unstable();
        measured.dedup();
        let low = self.overrides.min_channels.unwrap_or(1);
        let high = self.overrides.max_channels.unwrap_or(MAX_CHANNELS);
        let (low, high) = rule.and_then(|rule| rule.channels).map_or((low, high), |n| (n, n));
        let (fewest, most) = self.limits;
        let (low, high) = (low.clamp(fewest, most), high.clamp(fewest, most));
        let within: Vec<_> =
            measured.iter().filter(|n| (low..=high).contains(*n)).map(|n| (*n, Some(*n))).collect();
        if !within.is_empty() {
            return within;
        }
        let nearest = measured.iter().copied().min_by_key(|n| n.abs_diff((*n).clamp(low, high)));
        let channels = nearest.unwrap_or(unmeasured).clamp(low, high);
        vec![(channels, nearest)]
    }

    fn entries<'a>(
        &'a self,
        algorithm: Algorithm,
        protocol: Protocol,
        collective: &'a str,
    ) -> impl Iterator<Item = &'a Entry> {
        self.profile.entries.iter().filter(move |entry| {
            entry.algorithm == algorithm && entry.protocol == protocol && entry.collective == collective
        })
    }

    /// By the entry for this number of ranks, or in between the two nearest. Beyond what was measured there is no price.
    fn price(
        &self,
        algorithm: Algorithm,
        protocol: Protocol,
        collective: &str,
        channels: u32,
        bytes: u64,
    ) -> Option<Cost> {
        let of = |entry: &&Entry| entry.channels == channels;
        let below = self
            .entries(algorithm, protocol, collective)
            .filter(of)
            .filter(|entry| entry.ranks <= self.ranks)
            .max_by_key(|entry| entry.ranks)?;
        let above = self
            .entries(algorithm, protocol, collective)
            .filter(of)
            .filter(|entry| entry.ranks >= self.ranks)
            .min_by_key(|entry| entry.ranks)?;
        let (low, high) = (below.price(bytes), above.price(bytes));
        let share = match above.ranks - below.ranks {
            0 => 0.0,
            gap => f64::from(self.ranks - below.ranks) / f64::from(gap),
        };
        let between = |a: f64, b: f64| a + (b - a) * share;
        let time_us = between(low.time_us, high.time_us);
        let latency_us = between(low.alpha_us, high.alpha_us);
        let moving = time_us - latency_us;
        let mut notes = Vec::new();
        if share > 0.0 {
            notes.push(Text::new(
                format!("在 {} 与 {} 个 rank 的测量之间插值", below.ranks, above.ranks),
                format!("interpolated between {} and {} ranks", below.ranks, above.ranks),
            ));
        }
        let bandwidth_gbps = if moving > 0.0 { bytes as f64 / 1000.0 / moving } else { 0.0 };
        Some(Cost { time_us, latency_us, bandwidth_gbps, notes })
    }

    fn gates(
        &self,
        algorithm: Algorithm,
        protocol: Protocol,
        collective: &'static str,
        rule: Option<&Rule>,
    ) -> Vec<Gate> {
        let mut gates = Vec::new();
        gates.extend(self.refusals.get(&(algorithm, collective)).cloned());
        let lists = [
            (ALGO, &self.overrides.algorithms, algorithm.name()),
            (PROTO, &self.overrides.protocols, protocol.name()),
        ];
        for (variable, list, name) in lists {
            if let Some(list) = list.as_ref().filter(|list| !list.allows(name)) {
                gates.push(Gate::new(
                    "environment",
                    Text::new(
                        format!("{variable}={list} 排除了 {name}"),
                        format!("{variable}={list} leaves {name} out"),
                    ),
                ));
            }
        }
        if let Some(rule) = rule {
            let origin = format!("{}:{}", self.overrides.rules.source, rule.line);
            let other = [
                rule.algorithm.filter(|wanted| *wanted != algorithm).map(Algorithm::name),
                rule.protocol.filter(|wanted| *wanted != protocol).map(Protocol::name),
            ];
            for wanted in other.into_iter().flatten() {
                gates.push(Gate::new(
                    "rule",
                    Text::new(format!("{origin} 指定了 {wanted}"), format!("{origin} asks for {wanted}")),
                ));
            }
            let (low, high) = (self.overrides.min_channels, self.overrides.max_channels);
            if let Some(n) = rule
                .channels
                .filter(|n| low.is_some_and(|low| *n < low) || high.is_some_and(|high| *n > high))
            {
                gates.push(Gate::new(
                    "rule",
                    Text::new(
                        format!("{origin} 指定 {n} 个通道，与 {MIN_NCHANNELS}、{MAX_NCHANNELS} 冲突"),
                        format!("{origin} asks for {n} channels, against {MIN_NCHANNELS} or {MAX_NCHANNELS}"),
                    ),
                ));
            }
        }
        gates
    }

    fn why_thumb(&self, thumb: &RuleOfThumb, query: Query, known: &str) -> Text {
        let none = self.unmeasured.clone().unwrap_or_else(|| {
            let (name, collective, ranks) = (&self.profile.name, query.collective.name(), self.ranks);
            Text::new(
                format!("测量档案“{name}”没有 {ranks} 个 rank 的 {collective}（它有：{known}）"),
                format!(
                    "the profile `{name}` has no figures for {collective} on {ranks} ranks (it has {known})"
                ),
            )
        });
        Text::new(
            format!("{}，因此按经验规则选择：{}", none.zh, thumb.why.zh),
            format!("{}, so a rule of thumb decides: {}", none.en, thumb.why.en),
        )
    }

    fn why(&self, candidates: &[Candidate], chosen: usize, rule: Option<&Rule>) -> Text {
        let mut forced = Vec::new();
        let lists = [(ALGO, &self.overrides.algorithms), (PROTO, &self.overrides.protocols)];
        forced.extend(
            lists.iter().filter_map(|(name, list)| list.as_ref().map(|list| format!("{name}={list}"))),
        );
        let bounds =
            [(MIN_NCHANNELS, self.overrides.min_channels), (MAX_NCHANNELS, self.overrides.max_channels)];
        forced.extend(bounds.iter().filter_map(|(name, n)| n.map(|n| format!("{name}={n}"))));
        forced.extend(rule.map(|rule| format!("{}:{}", self.overrides.rules.source, rule.line)));
        let left = candidates.iter().filter(|candidate| candidate.may_run()).count();
        let mut why = if left == 1 {
            Text::new("只有它可以运行", "nothing else may run")
        } else if candidates[chosen].cost.is_none() {
            Text::new(
                "只有一个 rank，各算法都只是一次复制",
                "there is one rank, and every algorithm is the same copy",
            )
        } else {
            Text::new("在可以运行的里面预测时间最短", "of what may run its predicted time is the least")
        };
        if !forced.is_empty() {
            why.zh += &format!("（受 {} 约束）", forced.join("、"));
            why.en += &format!(" (under {})", forced.join(", "));
        }
        why
    }
}

/// In the rule's order what may run, whole slots before lines.
fn follow(thumb: &RuleOfThumb, candidates: &[Candidate]) -> Option<usize> {
    let place = |candidate: &Candidate| {
        let named = thumb.order.iter().position(|algorithm| algorithm.name() == candidate.algorithm);
        (named.unwrap_or(thumb.order.len()), candidate.protocol != Protocol::Simple.name())
    };
    let left = candidates.iter().enumerate().filter(|(_, candidate)| candidate.may_run());
    left.min_by_key(|(_, candidate)| place(candidate)).map(|(at, _)| at)
}

/// What the rule of thumb leaves aside: protocols that cost a rank's blocks less waiting and more bytes, so that only figures can tell up to
/// which size they pay.
fn unmeasured_protocols(candidates: &[Candidate], chosen: usize) -> Option<Text> {
    let taken = &candidates[chosen];
    let mut others: Vec<&str> = candidates
        .iter()
        .filter(|other| other.may_run() && other.algorithm == taken.algorithm)
        .map(|other| other.protocol.as_str())
        .filter(|protocol| *protocol != taken.protocol)
        .collect();
    others.dedup();
    let (first, simple) = (*others.first()?, &taken.protocol);
    Some(Text::new(
        format!(
            "；{} 是为短消息设计的，这里没有测量过，所以用 {simple}（{PROTO}={first} 可以指定）",
            others.join("、")
        ),
        format!(
            "; {}, made for short messages, was not measured here, so it takes {simple} ({PROTO}={first} asks for the other)",
            others.join(" or ")
        ),
    ))
}

/// Each reason once: what was ruled out by a variable, and what cannot run whatever is set.
fn reasons(candidates: &[Candidate]) -> Vec<String> {
    let mut reasons = Vec::new();
    for candidate in candidates {
        for gate in &candidate.gates {
            let reason = gate.clause(Lang::En);
            let reason = match gate.code {
                "no_plan" | "port" => format!("{}: {reason}", candidate.algorithm),
                _ => reason.to_owned(),
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    reasons
}

#[cfg(test)]
mod tests;
