//! What was chosen, among what, and why, in words.

use serde::Serialize;

use crate::plan::Algorithm;
use crate::text::{Lang, Text};

/// A reason for which a candidate may not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gate {
    /// Stable, for programs.
    pub code: &'static str,
    pub reason: Text,
}

impl Gate {
    pub fn new(code: &'static str, reason: Text) -> Gate {
        Gate { code, reason }
    }

    /// The reason without a full stop, to go on from.
    pub fn clause(&self, lang: Lang) -> &str {
        self.reason.get(lang).trim_end_matches(['.', '。'])
    }
}

/// Predicted cost: `time = latency + bytes / bandwidth`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Microseconds.
    pub time_us: f64,
    pub latency_us: f64,
    /// GB/s, 10^9 bytes per second, of the larger buffer of a rank. 0 where bytes cost nothing.
    pub bandwidth_gbps: f64,
    /// What changed the figures at this size.
    pub notes: Vec<Text>,
}

/// One way to run the operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    pub algorithm: String,
    pub protocol: String,
    /// Where a profile prices them apart.
    pub channels: Option<u32>,
    /// Also of candidates that may not run, where there is one: it shows what a gate costs.
    pub cost: Option<Cost>,
    /// Empty when it may run.
    pub gates: Vec<Gate>,
    /// It runs against its gates, since nothing else can. Only NCCL's model does this.
    pub fallback: bool,
}

impl Candidate {
    pub fn new(algorithm: &str, protocol: &str) -> Candidate {
        Candidate {
            algorithm: algorithm.into(),
            protocol: protocol.into(),
            channels: None,
            cost: None,
            gates: Vec::new(),
            fallback: false,
        }
    }

    pub fn may_run(&self) -> bool {
        self.gates.is_empty()
    }

    /// As `Ring LL` or `ring Simple, 4 channels`.
    pub fn name(&self, lang: Lang) -> String {
        let Candidate { algorithm, protocol, channels, .. } = self;
        match (channels, lang) {
            (None, _) => format!("{algorithm} {protocol}"),
            (Some(n), Lang::Zh) => format!("{algorithm} {protocol}（{n} 个通道）"),
            (Some(1), Lang::En) => format!("{algorithm} {protocol}, 1 channel"),
            (Some(n), Lang::En) => format!("{algorithm} {protocol}, {n} channels"),
        }
    }
}

/// How the winner is launched. `None` where the profile leaves it to the back end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Launched {
    pub channels: u32,
    pub threads: Option<u32>,
    pub chunk_bytes: Option<u64>,
    pub slice_bytes: Option<u64>,
    pub notes: Vec<Text>,
}

/// A decision of the tuner with everything it was made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    pub profile: String,
    /// [`crate::types::Collective::name`].
    pub collective: String,
    pub ranks: u32,
    /// The larger of a rank's two buffers.
    pub bytes: u64,
    pub candidates: Vec<Candidate>,
    /// Index into `candidates`.
    pub chosen: usize,
    pub why: Text,
    pub launched: Launched,
}

impl Choice {
    pub fn winner(&self) -> &Candidate {
        &self.candidates[self.chosen]
    }

    /// The winner, where it is one of the engine's own; `None` for NCCL's.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.winner().algorithm.parse().ok()
    }

    /// All candidates as aligned columns, the winner marked.
    pub fn table(&self, lang: Lang) -> String {
        let head = match lang {
            Lang::Zh => ["", "算法", "协议", "通道", "延迟(us)", "带宽(GB/s)", "时间(us)", "结论"],
            Lang::En => {
                ["", "algorithm", "protocol", "channels", "lat(us)", "bw(GB/s)", "time(us)", "verdict"]
            }
        };
        let rows = self.candidates.iter().enumerate().map(|(at, candidate)| {
            let figure = |value: fn(&Cost) -> f64| {
                candidate.cost.as_ref().map_or("-".into(), |cost| format!("{:.1}", value(cost)))
            };
            [
                if at == self.chosen { "*".into() } else { String::new() },
                candidate.algorithm.clone(),
                candidate.protocol.clone(),
                candidate.channels.map_or("-".into(), |n| n.to_string()),
                figure(|cost| cost.latency_us),
                figure(|cost| cost.bandwidth_gbps),
                figure(|cost| cost.time_us),
                self.verdict(at, lang),
            ]
        });
        align(std::iter::once(head.map(String::from)).chain(rows).collect())
    }

    fn verdict(&self, at: usize, lang: Lang) -> String {
        let candidate = &self.candidates[at];
        if at == self.chosen {
            return Text::new("选中", "chosen").get(lang).into();
        }
        if let Some(gate) = candidate.gates.first() {
            return gate.code.into();
        }
        match (&candidate.cost, &self.winner().cost) {
            (Some(cost), Some(best)) if best.time_us > 0.0 => {
                let more = (cost.time_us / best.time_us - 1.0) * 100.0;
                match lang {
                    Lang::Zh => format!("慢 {more:.0} %"),
                    Lang::En => format!("{more:.0} % slower"),
                }
            }
            _ => "-".into(),
        }
    }

    /// One sentence for each candidate, in the order of [`Choice::candidates`].
    pub fn sentences(&self) -> Vec<Text> {
        (0..self.candidates.len())
            .map(|at| Text::new(self.sentence(at, Lang::Zh), self.sentence(at, Lang::En)))
            .collect()
    }

    fn sentence(&self, at: usize, lang: Lang) -> String {
        let candidate = &self.candidates[at];
        let zh = lang == Lang::Zh;
        let name = candidate.name(lang);
        let price = match &candidate.cost {
            None if zh => "没有估价".into(),
            None => "it has no price".into(),
            Some(cost) => {
                let figures = format!(
                    "{:.1} us = {:.1} us + {} B / {:.1} GB/s",
                    cost.time_us, cost.latency_us, self.bytes, cost.bandwidth_gbps
                );
                let notes: String = cost
                    .notes
                    .iter()
                    .map(|note| if zh { format!("；{}", note.zh) } else { format!("; {}", note.en) })
                    .collect();
                if zh { format!("预测 {figures}{notes}") } else { format!("predicted {figures}{notes}") }
            }
        };
        if at == self.chosen {
            let why = self.why.get(lang);
            return if zh {
                format!("{name} 被选中：{why}；{price}。")
            } else {
                format!("{name} is chosen: {why}; {price}.")
            };
        }
        if candidate.may_run() {
            let best = self.winner().name(lang);
            return if zh {
                format!("{name} 可用但未选中：{price}，不优于 {best}。")
            } else {
                format!("{name} could run but was not chosen: {price}, no better than {best}.")
            };
        }
        let reasons: Vec<&str> = candidate.gates.iter().map(|gate| gate.clause(lang)).collect();
        if zh {
            format!("{name} 不可用：{}；{price}。", reasons.join("；"))
        } else {
            format!("{name} is left out: {}; {price}.", reasons.join("; "))
        }
    }

    /// Heading, table, launch and sentences.
    pub fn explain(&self, lang: Lang) -> String {
        let Choice { profile, collective, ranks, bytes, .. } = self;
        let zh = lang == Lang::Zh;
        let mut text = if zh {
            format!("{collective}，{ranks} 个 rank，{bytes} 字节，模型 {profile}\n")
        } else {
            format!("{collective}, {ranks} ranks, {bytes} bytes, model {profile}\n")
        };
        text += &self.table(lang);
        let Launched { channels, threads, chunk_bytes, slice_bytes, notes } = &self.launched;
        let mut parts = vec![match (zh, *channels) {
            (true, n) => format!("{n} 个通道"),
            (false, 1) => "1 channel".into(),
            (false, n) => format!("{n} channels"),
        }];
        let mut part = |value: Option<u64>, zh_unit: &str, en_unit: &str| {
            parts.extend(value.map(|n| if zh { format!("{zh_unit} {n}") } else { format!("{n} {en_unit}") }));
        };
        part(threads.map(u64::from), "每块线程", "threads a block");
        part(*chunk_bytes, "chunk 字节", "bytes a chunk");
        part(*slice_bytes, "slice 字节", "bytes a slice");
        text += &if zh {
            format!("启动：{}\n", parts.join("，"))
        } else {
            format!("launch: {}\n", parts.join(", "))
        };
        for note in notes {
            text += &format!("  {}\n", note.get(lang));
        }
        for at in 0..self.candidates.len() {
            text += &format!("- {}\n", self.sentence(at, lang));
        }
        text
    }
}

/// Columns a terminal gives a text: CJK and full-width characters take two.
fn width(text: &str) -> usize {
    text.chars().map(|c| if matches!(c as u32, 0x2E80..=0xFFDC) { 2 } else { 1 }).sum()
}

/// Names to the left, figures to the right.
fn align(rows: Vec<[String; 8]>) -> String {
    let widths: Vec<usize> =
        (0..8).map(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| {
                let space = " ".repeat(widths[column] - width(cell));
                if (3..7).contains(&column) { format!("{space}{cell}") } else { format!("{cell}{space}") }
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}
