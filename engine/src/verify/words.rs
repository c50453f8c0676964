//! A refusal in the learner's words: what happens at which step, and what to do.

use super::refusal::{At, Names, Refusal, RefusalKind, Waiting, WaitingFor};
use crate::plan::text::SourceMap;
use crate::plan::{Buffer, Location, Range, SLOTS};
use crate::text::Text;
use crate::types::Rank;

/// Why a write to the output is a write to the input.
const ALIAS: (&str, &str) =
    ("（in-place 时 input 和 output 是同一块内存）", " (in place, input and output are one memory)");

impl Names {
    fn range(&self, range: Range) -> String {
        let name = match range.buffer {
            Buffer::Input => "input",
            Buffer::Output => "output",
            Buffer::Scratch(i) => self.scratch.get(usize::from(i)).map_or("scratch", String::as_str),
        };
        format!("{name}[{}]", range.start)
    }
}

impl Refusal {
    pub(super) fn words(&self, lines: Option<&SourceMap>) -> Text {
        let say = Say { names: &self.names, lines };
        let here = || say.location(self.location);
        let cell = |owner: &Rank, range: &Range| {
            let range = self.names.range(*range);
            (format!("rank {owner} 的 {range}"), format!("rank {owner}'s {range}"))
        };
        let (zh, en) = match &self.kind {
            RefusalKind::Malformed(text) => match self.location {
                None => (text.zh.clone(), text.en.clone()),
                Some(_) => (format!("{}：{}", here().0, text.zh), format!("{}: {}", here().1, text.en)),
            },
            RefusalKind::TooLarge => (
                "这个计划太大，检查要花的时间超过上限；请减少 rank、chunk、channel 或步骤。".into(),
                "the plan is too large to be checked in reasonable time; use fewer ranks, chunks, channels or steps."
                    .into(),
            ),
            RefusalKind::NoInPlace(collective) => {
                let text = collective.no_in_place();
                (text.zh, text.en)
            }
            RefusalKind::Unmatched { from, to, sent, received, signal } => {
                unmatched(*from, *to, *sent, *received, *signal, here())
            }
            RefusalKind::Deadlock { cycle } => say.deadlock(cycle),
            RefusalKind::ReadUnwritten { owner, range } => {
                let ((zh, en), (at_zh, at_en)) = (cell(owner, range), here());
                (format!("{at_zh} 读了{zh}，但那里还没有写过数据。"), format!("{at_en} reads {en} before anything was written there."))
            }
            RefusalKind::ReadRace { owner, range, writer } => {
                let ((zh, en), (at_zh, at_en)) = (cell(owner, range), here());
                let (why_zh, why_en) = match writer {
                    None => (
                        format!("却不知道 rank {owner} 是否已经开始"),
                        format!("without knowing that rank {owner} has started"),
                    ),
                    Some(writer) => {
                        let (zh, en) = say.at(*writer);
                        (format!("而{zh}可能还在写它"), format!("while {en} may still be writing it"))
                    }
                };
                let reader = self.location.map_or(Rank(0), |at| at.rank);
                // In place the input was there before it was overwritten: then the writer has to wait, not the reader.
                if writer.is_some() && self.names.in_place && range.buffer == Buffer::Input {
                    (
                        format!(
                            "{at_zh} 直接读{zh}，{why_zh}{}；请让 rank {reader} 读完后 signal，rank {owner} 写之前 wait。",
                            ALIAS.0
                        ),
                        format!(
                            "{at_en} reads {en} directly {why_en}{}; let rank {reader} signal after reading, and rank \
                             {owner} wait for it before writing.",
                            ALIAS.1
                        ),
                    )
                } else {
                    (
                        format!("{at_zh} 直接读{zh}，{why_zh}；请让 rank {owner} 先 signal，读之前 wait。"),
                        format!(
                            "{at_en} reads {en} directly {why_en}; let rank {owner} signal first, and wait for it before \
                             reading."
                        ),
                    )
                }
            }
            RefusalKind::WriteRace { range, reader } => {
                let ((at_zh, at_en), (reader_zh, reader_en)) = (here(), say.at(*reader));
                let (range, peer) = (self.names.range(*range), reader.rank);
let (alias_zh, alias_en) = if self.names.in_place { ALIAS } else { ("", "") };
                (
                    format!("{at_zh} 改写 {range}，而{reader_zh}可能还在读它{alias_zh}；请让 rank {peer} 读完后 signal，写之前 wait。"),
                    format!(
                        "{at_en} overwrites {range} while {reader_en} may still be reading it{alias_en}; let rank {peer} \
                         signal after reading, and wait for it before writing."
                    ),
                )
            }
            RefusalKind::LeftEarly { owner } => {
                let (at_zh, at_en) = here();
                let reader = self.location.map_or(Rank(0), |at| at.rank);
                (
                    format!("rank {owner} 结束时，{at_zh} 可能还在读它的缓冲区；请让 rank {reader} 读完后 signal，rank {owner} 最后 wait。"),
                    format!(
                        "rank {owner} may finish while {at_en} is still reading its buffer; let rank {reader} signal after \
                         reading, and rank {owner} wait for it at the end."
                    ),
                )
            }
            RefusalKind::MixedChunks { a, b } => {
                let (at_zh, at_en) = here();
                (
                    format!("{at_zh} 把块内 chunk {a} 的数据和 chunk {b} 放在一起；一步里的数据要属于同一个 chunk。"),
                    format!("{at_en} puts data of chunk {a} together with chunk {b} of a block; a step works on one chunk."),
                )
            }
            RefusalKind::NeverWritten { owner, range } => {
                let (zh, en) = cell(owner, range);
                (format!("{zh} 从未写过。"), format!("{en} is never written."))
            }
            RefusalKind::Foreign { owner, range, rank, chunk, stale } => {
                let ((zh, en), (at_zh, at_en)) = (cell(owner, range), here());
                let (old_zh, old_en) = if *stale { ("上一个 tile 的 ", " of an earlier tile") } else { ("", "") };
                (
                    format!("{zh} 里有{old_zh} rank {rank} 的 input[{chunk}]，它不属于这里；最后写它的是{at_zh}。"),
                    format!("{en} holds rank {rank}'s input[{chunk}]{old_en}, which does not belong there; {at_en} wrote it last."),
                )
            }
            RefusalKind::Twice { owner, range, rank, count } => {
                let ((zh, en), (at_zh, at_en)) = (cell(owner, range), here());
                let times = if *count == 2 { "twice".to_string() } else { format!("{count} times") };
                (
                    format!("{zh} 里 rank {rank} 的那一份出现了 {count} 次：{at_zh} 又加了一遍。"),
                    format!("{en} has rank {rank}'s contribution {times}: {at_en} adds it again."),
                )
            }
            RefusalKind::Missing { owner, range, rank, passed } => {
                let ((zh, en), (at_zh, at_en)) = (cell(owner, range), here());
                match passed {
                    Some(_) => (
                        format!("{zh} 缺 rank {rank} 的那一份：数据经过{at_zh}时没有加上。"),
                        format!("{en} lacks rank {rank}'s contribution: the data passed {at_en} without it."),
                    ),
                    None => (
                        format!("{zh} 缺 rank {rank} 的那一份：数据从未经过 rank {rank}，最后由{at_zh}写下。"),
                        format!(
                            "{en} lacks rank {rank}'s contribution: the data never came by rank {rank}, and {at_en} wrote it \
                             last."
                        ),
                    ),
                }
            }
        };
        Text::new(spaced(&zh), en)
    }
}

/// The parts of a Chinese sentence are put together here: a space between Chinese and Latin, none after a full-width bracket.
fn spaced(zh: &str) -> String {
    let chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let mut out = String::with_capacity(zh.len() + 16);
    let mut last = ' ';
    for c in zh.chars() {
        if last == '）' && c == ' ' {
            continue;
        }
        if chinese(last) && c.is_ascii_alphanumeric() || last.is_ascii_alphanumeric() && chinese(c) {
            out.push(' ');
        }
        out.push(c);
        last = c;
    }
    out
}

fn unmatched(
    from: Rank,
    to: Rank,
    sent: u64,
    received: u64,
    signal: bool,
    (at_zh, at_en): (String, String),
) -> (String, String) {
    let (out_zh, in_zh, out_en, in_en) = match signal {
        true => ("signal", "wait", "signals", "waits for it"),
        false => ("发送", "接收", "sends", "receives from it"),
    };
    let (partner_zh, partner_en) = match (sent > received, signal) {
        (true, true) => ("没有对应的 wait", "has no wait"),
        (true, false) => ("没有对应的接收", "has no receive"),
        (false, true) => ("没有对应的 signal", "has no signal"),
        (false, false) => ("没有对应的发送", "has no send"),
    };
    (
        format!(
            "每个 tile 里 rank {from} 向 rank {to} {out_zh} {sent} 次，而 rank {to} {in_zh} {received} 次：{at_zh} {partner_zh}。"
        ),
        format!(
            "per tile, rank {from} {out_en} {sent} times to rank {to}, which {in_en} {received} times: {at_en} \
             {partner_en}."
        ),
    )
}

struct Say<'a> {
    names: &'a Names,
    lines: Option<&'a SourceMap>,
}

impl Say<'_> {
    fn at(&self, at: At) -> (String, String) {
        let (zh, en) = self.location(Some(at.location()));
        match at.tile {
            0 => (zh, en),
            tile => (format!("{zh}（tile {tile}）"), format!("{en} (tile {tile})")),
        }
    }

    fn location(&self, at: Option<Location>) -> (String, String) {
        let Some(at) = at else { return ("计划".into(), "the plan".into()) };
        let Location { rank, channel, step } = at;
        let channel = match self.names.channels {
            0 | 1 => String::new(),
            _ => format!(" channel {channel}"),
        };
        match self.lines.and_then(|lines| lines.line(at)) {
            Some(line) => (
                format!("rank {rank}{channel} 的步骤 {step}（第 {line} 行）"),
                format!("step {step} of rank {rank}{channel} (line {line})"),
            ),
            None => (
                format!("rank {rank}{channel} 的步骤 {step}"),
                format!("step {step} of rank {rank}{channel}"),
            ),
        }
    }

    fn deadlock(&self, cycle: &[Waiting]) -> (String, String) {
        const SHOWN: usize = 4;
        let steps = u32::from(self.names.chunk_steps.max(1));
        let (mut zh, mut en) = (Vec::new(), Vec::new());
        for waiting in cycle.iter().take(SHOWN) {
            let (at_zh, at_en) = self.at(waiting.at);
            let (on_zh, on_en) = match waiting.on {
                WaitingFor::Data(rank) => (format!("rank {rank} 的数据"), format!("data from rank {rank}")),
                WaitingFor::Signal(rank) => {
                    (format!("rank {rank} 的 signal"), format!("a signal of rank {rank}"))
                }
                WaitingFor::Slot(rank) if steps == 1 => (
                    format!("rank {rank} 腾出槽位（{SLOTS} 个都满了）"),
                    format!("rank {rank} to free one of the {SLOTS} slots"),
                ),
                WaitingFor::Slot(rank) => (
                    format!("rank {rank} 腾出一个 chunk 的 {steps} 步（{SLOTS} 步都满了）"),
                    format!("rank {rank} to free the {steps} steps of a chunk, of {SLOTS}"),
                ),
            };
            zh.push(format!("{at_zh}等 {on_zh}"));
            en.push(format!("{at_en} waits for {on_en}"));
        }
        let (more_zh, more_en) = match cycle.len().saturating_sub(SHOWN) {
            0 => (String::new(), String::new()),
            more => (format!("，另有 {more} 个 rank"), format!(", and {more} more ranks")),
        };
        let slot = |waiting: &Waiting| matches!(waiting.on, WaitingFor::Slot(_));
        let (hint_zh, hint_en) = match steps > 1 && cycle.iter().any(slot) {
            false => (String::new(), String::new()),
            true => (
                format!(
                    "一个 chunk 占 {steps} 步时，一条连接只放得下 {} 个 chunk；占 1 步时放得下 {SLOTS} 个。",
                    SLOTS / steps
                ),
                format!(
                    " With chunks of {steps} steps a connection holds {} at a time, with chunks of 1 step {SLOTS}.",
                    SLOTS / steps
                ),
            ),
        };
        (
            format!("死锁：{}{more_zh}；它们首尾相接，谁也动不了。{hint_zh}", zh.join("，")),
            format!(
                "deadlock: {}{more_en}; they wait in a circle and none can go on.{hint_en}",
                en.join(", ")
            ),
        )
    }
}
