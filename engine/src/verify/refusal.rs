//! Why a plan is refused, as data; `words` says it.

use std::fmt;

use crate::plan::text::SourceMap;
use crate::plan::{Location, Malformed, Plan, Range};
use crate::text::Text;
use crate::types::{ChannelId, Collective, Rank};

/// A step of one tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub rank: Rank,
    pub channel: ChannelId,
    pub step: u32,
    pub tile: u32,
}

impl At {
    pub fn location(self) -> Location {
        Location { rank: self.rank, channel: self.channel, step: self.step }
    }
}

/// What a stopped rank needs, and from whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    Data(Rank),
    Slot(Rank),
    Signal(Rank),
}

impl WaitingFor {
    pub fn peer(self) -> Rank {
        match self {
            WaitingFor::Data(rank) | WaitingFor::Slot(rank) | WaitingFor::Signal(rank) => rank,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub at: At,
    pub on: WaitingFor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalKind {
    /// No plan at all.
    Malformed(Text),
    /// Checking it would take too long.
    TooLarge,
    /// In place was asked for, and the collective has no such thing.
    NoInPlace(Collective),
    /// Per tile, the ends of a connection handle different numbers of chunks or, `signal`, of signals.
    Unmatched {
        from: Rank,
        to: Rank,
        sent: u64,
        received: u64,
        signal: bool,
    },
    /// Each waits for the next, the last for the first.
    Deadlock {
        cycle: Vec<Waiting>,
    },
    ReadUnwritten {
        owner: Rank,
        range: Range,
    },
    /// A peer's memory is read while the peer may still write it (`writer`) or has not even started.
    ReadRace {
        owner: Rank,
        range: Range,
        writer: Option<At>,
    },
    /// Own memory is written while a peer may still read it.
    WriteRace {
        range: Range,
        reader: At,
    },
    /// The owner may be done while its buffer is still read.
    LeftEarly {
        owner: Rank,
    },
    /// One step combines or stores data of two different chunks of a block.
    MixedChunks {
        a: u32,
        b: u32,
    },
    NeverWritten {
        owner: Rank,
        range: Range,
    },
    /// Data that does not belong there; `stale`: of an earlier tile.
    Foreign {
        owner: Rank,
        range: Range,
        rank: Rank,
        chunk: u32,
        stale: bool,
    },
    Twice {
        owner: Rank,
        range: Range,
        rank: Rank,
        count: u32,
    },
    /// `passed`: where the missing rank had the data in its hands.
    Missing {
        owner: Rank,
        range: Range,
        rank: Rank,
        passed: Option<At>,
    },
}

/// A refused plan: the counter-example, where it shows, and the steps that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub location: Option<Location>,
    /// The steps whose data is at fault, in order of execution; empty where the location says it all.
    pub slice: Vec<At>,
    pub(super) names: Names,
}

/// What messages need of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Names {
    pub scratch: Vec<String>,
    pub channels: u32,
    pub in_place: bool,
    pub chunk_steps: u8,
}

impl Names {
    pub fn new(plan: &Plan) -> Names {
        let scratch = plan.scratch.iter().map(|s| s.name.clone()).collect();
        Names { scratch, channels: plan.channels, in_place: false, chunk_steps: 1 }
    }
}

impl Refusal {
    pub(super) fn at(at: At, kind: RefusalKind) -> Refusal {
        Refusal { kind, location: Some(at.location()), slice: Vec::new(), names: Names::default() }
    }

    pub(super) fn malformed(malformed: Malformed) -> Refusal {
        let kind = RefusalKind::Malformed(malformed.message);
        Refusal { kind, location: malformed.location, slice: Vec::new(), names: Names::default() }
    }

    pub(super) fn no_in_place(collective: Collective) -> Refusal {
        let kind = RefusalKind::NoInPlace(collective);
        Refusal { kind, location: None, slice: Vec::new(), names: Names::default() }
    }

    pub(super) fn too_large() -> Refusal {
        Refusal { kind: RefusalKind::TooLarge, location: None, slice: Vec::new(), names: Names::default() }
    }

    /// In words, with steps as numbers from 0.
    pub fn message(&self) -> Text {
        self.words(None)
    }

    /// In words, with the lines of the text the plan came from.
    pub fn message_in(&self, lines: &SourceMap) -> Text {
        self.words(Some(lines))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message().en)
    }
}

impl std::error::Error for Refusal {}
