//! What every plan must satisfy before anything else looks at it: numbers within limits, ranges within buffers, peers that exist.

use super::text::RESERVED;
use super::{Buffer, MAX_CHANNELS, MAX_RANKS, Place, Plan, Range, Step, VERSION};
use crate::text::Text;
use crate::types::{ChannelId, Rank};

/// Most chunks per block, and per scratch buffer.
pub const MAX_CHUNKS: u32 = 256;
/// Most scratch buffers.
pub const MAX_SCRATCH: usize = 16;

/// A step of a plan: index `step` of the program of `rank` on `channel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Location {
    pub rank: Rank,
    pub channel: ChannelId,
    pub step: u32,
}

/// A plan that means nothing, with the step at fault where it is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", message.en)]
pub struct Malformed {
    pub location: Option<Location>,
    pub message: Text,
}

impl Plan {
    /// Chunks of a buffer, on every rank and channel.
    pub fn buffer_chunks(&self, buffer: Buffer) -> Option<u32> {
        match buffer {
            Buffer::Input => Some(self.collective.input_blocks(self.ranks) * self.chunks),
            Buffer::Output => Some(self.collective.output_blocks(self.ranks) * self.chunks),
            Buffer::Scratch(i) => self.scratch.get(usize::from(i)).map(|s| s.chunks),
        }
    }

    /// As the plan language writes it: `input[3]`, `sum[0..2]`.
    pub fn range_text(&self, range: Range) -> String {
        let name = self.buffer_name(range.buffer);
        match range.len {
            1 => format!("{name}[{}]", range.start),
            len => format!("{name}[{}..{}]", range.start, u64::from(range.start) + u64::from(len)),
        }
    }

    pub(super) fn buffer_name(&self, buffer: Buffer) -> String {
        match buffer {
            Buffer::Input => "input".into(),
            Buffer::Output => "output".into(),
            Buffer::Scratch(i) => match self.scratch.get(usize::from(i)) {
                Some(scratch) => scratch.name.clone(),
                None => format!("scratch#{i}"),
            },
        }
    }

    /// Checks everything but the order of steps, which is [`crate::verify`]'s.
    pub fn check(&self) -> Result<(), Malformed> {
        self.check_header().map_err(|message| Malformed { location: None, message })?;
        let wanted = (0..self.ranks).flat_map(|r| (0..self.channels).map(move |c| (Rank(r), ChannelId(c))));
        if !wanted.eq(self.programs.iter().map(|p| (p.rank, p.channel))) {
            let (ranks, channels, got) = (self.ranks, self.channels, self.programs.len());
            let message = Text::new(
                format!(
                    "{ranks} 个 rank、{channels} 个 channel 需要各有一个程序并按 rank、channel 排序；现在有 {got} 个程序，或次序不对。"
                ),
                format!(
                    "{ranks} ranks and {channels} channels need one program each, ordered by rank, then channel; \
                     there are {got}, or they are out of order."
                ),
            );
            return Err(Malformed { location: None, message });
        }
        for program in &self.programs {
            for (step, i) in program.steps.iter().zip(0u32..) {
                self.check_step(program.rank, step).map_err(|message| Malformed {
                    location: Some(Location { rank: program.rank, channel: program.channel, step: i }),
                    message,
                })?;
            }
        }
        Ok(())
    }

    /// Checks the numbers that stand above the programs.
    pub(super) fn check_header(&self) -> Result<(), Text> {
        if self.version != VERSION {
            return Err(Text::new(
                format!("计划的版本是 {}，这里只认识版本 {VERSION}。", self.version),
                format!("the plan has version {}; only version {VERSION} is known here.", self.version),
            ));
        }
        check_name(&self.name, &[])?;
        within("ranks", self.ranks, MAX_RANKS)?;
        within("channels", self.channels, MAX_CHANNELS)?;
        within("chunks", self.chunks, MAX_CHUNKS)?;
        if let Some(root) = self.collective.root() {
            self.check_rank(root)?;
        }
        if self.scratch.len() > MAX_SCRATCH {
            return Err(Text::new(
                format!("scratch 缓冲区有 {} 个，最多 {MAX_SCRATCH} 个。", self.scratch.len()),
                format!("{} scratch buffers; at most {MAX_SCRATCH} are allowed.", self.scratch.len()),
            ));
        }
        for (i, scratch) in self.scratch.iter().enumerate() {
            check_name(&scratch.name, &RESERVED)?;
            within(&format!("scratch {}", scratch.name), scratch.chunks, MAX_CHUNKS)?;
            if self.scratch[..i].iter().any(|other| other.name == scratch.name) {
                return Err(Text::new(
                    format!("有两个 scratch 缓冲区都叫 `{}`，请改掉其中一个名字。", scratch.name),
                    format!("two scratch buffers are called `{}`; rename one.", scratch.name),
                ));
            }
        }
        Ok(())
    }

    fn check_rank(&self, rank: Rank) -> Result<(), Text> {
        if rank.0 < self.ranks {
            return Ok(());
        }
        let last = self.ranks - 1;
        Err(Text::new(
            format!("没有 rank {rank}：共 {} 个 rank，编号 0 到 {last}。环绕请写 `% n`。", self.ranks),
            format!("there is no rank {rank}: ranks go from 0 to {last}. To wrap round, write `% n`.",),
        ))
    }

    fn check_range(&self, range: Range) -> Result<(), Text> {
        let Some(chunks) = self.buffer_chunks(range.buffer) else {
            let name = self.buffer_name(range.buffer);
            return Err(Text::new(
                format!("没有缓冲区 {name}：计划只声明了 {} 个 scratch。", self.scratch.len()),
                format!(
                    "there is no buffer {name}: the plan declares {} scratch buffers.",
                    self.scratch.len()
                ),
            ));
        };
        if range.len == 0 {
            let text = self.range_text(range);
            return Err(Text::new(
                format!("区间 {text} 是空的；`a..b` 含 a 不含 b，b 要大于 a。"),
                format!("the range {text} is empty; `a..b` includes a but not b, so b must be larger."),
            ));
        }
        if u64::from(range.start) + u64::from(range.len) > u64::from(chunks) {
            let (text, name) = (self.range_text(range), self.buffer_name(range.buffer));
            return Err(Text::new(
                format!("{text} 越界：{name} 有 {chunks} 个 chunk，编号 0 到 {}。", chunks - 1),
                format!("{text} is out of bounds: {name} has chunks 0 to {}.", chunks - 1),
            ));
        }
        Ok(())
    }

    /// Refuses a buffer that the collective does not give the rank: its caller may have passed none.
    fn check_given(&self, rank: Rank, range: Range) -> Result<(), Text> {
        let given = match range.buffer {
            Buffer::Input => self.collective.has_input(rank),
            Buffer::Output => self.collective.has_output(rank),
            Buffer::Scratch(_) => true,
        };
        if given {
            return Ok(());
        }
        let (kind, name) = (self.collective.name(), self.buffer_name(range.buffer));
        Err(Text::new(
            format!("{kind} 里只有 root 有 {name}，rank {rank} 没有；中间结果请放到 scratch。"),
            format!(
                "only the root of a {kind} has an {name}, rank {rank} has none; keep what is on its way in scratch."
            ),
        ))
    }

    /// Checks one step of a rank's program.
    pub(super) fn check_step(&self, rank: Rank, step: &Step) -> Result<(), Text> {
        for peer in [step.from(), step.to()].into_iter().flatten() {
            self.check_rank(peer)?;
            if peer == rank {
                return Err(Text::new(
                    format!("rank {rank} 的 {} 以自己为对端；同一 rank 内搬数据用 copy。", step.name()),
                    format!(
                        "rank {rank} names itself as the peer of {}; use copy to move data inside a rank.",
                        step.name()
                    ),
                ));
            }
        }
        let (places, dst) = operands(step);
        for place in &places {
            self.check_range(place.range)?;
            self.check_given(place.rank.unwrap_or(rank), place.range)?;
            let Some(peer) = place.rank else { continue };
            self.check_rank(peer)?;
            if peer == rank {
                return Err(Text::new(
                    format!("rank {rank} 把自己写成了远端；读自己的缓冲区不写 `of`。"),
                    format!("rank {rank} names itself as a remote place; its own buffers need no `of`."),
                ));
            }
        }
        if let Some(dst) = dst {
            self.check_range(dst)?;
            self.check_given(rank, dst)?;
            if dst.buffer == Buffer::Input {
                return Err(Text::new(
                    format!(
                        "{} 要写 {}，但 input 只读；请写到 output 或 scratch。",
                        step.name(),
                        self.range_text(dst)
                    ),
                    format!(
                        "{} would write {}, but the input is read-only; write to output or scratch.",
                        step.name(),
                        self.range_text(dst)
                    ),
                ));
            }
        }
        let ranges: Vec<Range> = places.iter().map(|p| p.range).chain(dst).collect();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].len != pair[1].len) {
            let (a, b) = (self.range_text(pair[0]), self.range_text(pair[1]));
            return Err(Text::new(
                format!("{a} 有 {} 个 chunk，{b} 有 {} 个；一步里的区间要一样长。", pair[0].len, pair[1].len),
                format!(
                    "{a} has {} chunks but {b} has {}; all ranges of a step have the same length.",
                    pair[0].len, pair[1].len
                ),
            ));
        }
        if matches!(step, Step::Reduce { srcs, .. } if srcs.len() < 2) {
            return Err(Text::new(
                "reduce 至少要两个来源；只有一个时用 copy。",
                "reduce needs two sources or more; use copy for one.",
            ));
        }
        Ok(())
    }
}

/// What a step reads, in order, and what it writes.
pub(crate) fn operands(step: &Step) -> (Vec<Place>, Option<Range>) {
    let own = |range: &Range| vec![Place { rank: None, range: *range }];
    match step {
        Step::Send { src, .. } | Step::RecvReduceSend { src, .. } => (own(src), None),
        Step::Recv { dst, .. } | Step::RecvCopySend { dst, .. } => (Vec::new(), Some(*dst)),
        Step::RecvReduceCopy { src, dst, .. } | Step::RecvReduceCopySend { src, dst, .. } => {
            (own(src), Some(*dst))
        }
        Step::Copy { src, dst } => (vec![*src], Some(*dst)),
        Step::Reduce { srcs, dst } => (srcs.clone(), Some(*dst)),
        Step::Signal { .. } | Step::Wait { .. } => (Vec::new(), None),
    }
}

/// A name can be written in the plan language.
fn check_name(name: &str, reserved: &[&str]) -> Result<(), Text> {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if first && rest && name.len() <= 64 && !reserved.contains(&name) {
        return Ok(());
    }
    let name = name.escape_debug();
    Err(Text::new(
        format!("`{name}` 不能作名字：用字母、数字和下划线，以字母开头，最长 64，且不是保留字。"),
        format!(
            "`{name}` is no name: use letters, digits and underscores, a letter first, at most 64, and no word \
             of the language."
        ),
    ))
}

fn within(what: &str, got: u32, most: u32) -> Result<(), Text> {
    if (1..=most).contains(&got) {
        return Ok(());
    }
    Err(Text::new(
        format!("{what} 是 {got}，请取 1 到 {most}。"),
        format!("{what} is {got}; choose 1 to {most}."),
    ))
}
