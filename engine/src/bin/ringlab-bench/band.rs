//! Sizes that are measured with the same number of executions and by one process.

use crate::args::Collective;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Band {
    /// Bytes.
    pub first: u64,
    pub last: u64,
    /// Executions per round.
    pub iters: u32,
    /// Flags for ringlab-perf: which algorithm, how cut.
    pub ours: Vec<String>,
}

impl Band {
    /// Gives a flag of ringlab-perf, named without its dashes, instead of what it had before.
    pub fn set(&mut self, flag: &str, value: &str) {
        let flag = format!("--{flag}");
        match self.ours.iter().position(|word| *word == flag) {
            Some(at) => self.ours[at + 1] = value.into(),
            None => self.ours.extend([flag, value.into()]),
        }
    }

    /// Executions before the timed ones: enough to fault in every page and to wake the cores.
    pub fn warmup(&self) -> u32 {
        (self.iters / 10).clamp(2, 100)
    }

    /// What a table shows without `--band`: executions so that a round takes tenths of a second, and the algorithm that is fastest there.
    pub fn standard(backend: &str, collective: Collective, ranks: u32) -> Vec<Band> {
        let band = |first: u64, last: u64, iters: u32, flags: &str| {
            let ours = flags.split_whitespace().map(Into::into).collect();
            Band { first, last, iters, ours }
        };
        const K: u64 = 1 << 10;
        const M: u64 = 1 << 20;
        const G: u64 = 1 << 30;
        let reduces = matches!(collective, Collective::AllReduce);
        let large = if reduces { "--algo two_shot" } else { "--algo one_shot" };
        if backend == "cuda" {
            return vec![
                band(8, 256 * K, 200, "--algo one_shot"),
                band(512 * K, 32 * M, 50, large),
                band(64 * M, G, 10, large),
            ];
        }
        // One fold of two blocks is worth less than a second wait up to there.
        let small = if ranks == 2 { 4 * K } else { K };
        // Fewer meetings, as long as all tiles stay in the cores' caches.
        let slot = if ranks == 2 { "1M" } else { "512K" };
        vec![
            band(8, small, 2000, "--algo exchange"),
            band(2 * small, 256 * K, 500, large),
            band(512 * K, 8 * M, 50, &format!("{large} --slot {slot}")),
            band(16 * M, 256 * M, 5, large),
        ]
    }
}

/// A number of bytes with an optional K, M or G.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1u64 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}
