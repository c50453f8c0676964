//! Inputs whose results are exact in any order of reduction, and what to expect of them. A pure function of seed, rank and index, so any
//! rank can fill and check any slice, on the device as well. The formula is in [`draw`]; its device mirror is kernels/cuda/exact.cuh.
//!
//! The idea is nccl-tests' (verifiable/verifiable.cu): where arithmetic never rounds, every order gives the same bits and a check needs
//! no tolerance. The formula is simpler: counter-based hashes by splitmix64's finaliser ([`mix`]).

mod draw;

use self::draw::Draw;
pub use self::draw::exact_bits;
use crate::types::{Collective, DType, Rank, RedOp};

/// Most ranks the inputs are made for. Beyond it too few ranks of a sum in fp8 could add anything, and a lost one would go unseen too
/// often ([`draw`] has the figures).
pub const MAX_RANKS: u32 = 64;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014, with Stafford's constants "Mix13").
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("exact inputs are made for 1 to {MAX_RANKS} ranks, not for {ranks}")]
pub struct RanksOutOfRange {
    pub ranks: u32,
}

/// nccl-tests' factor of [`RedOp::PreMulSum`], [`crate::types::Factors::Parity`].
pub const fn parity_factor(rank: Rank) -> i64 {
    1 + (rank.0 % 2) as i64
}

/// The inputs and expected outputs of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    seed: u64,
    dtype: DType,
    op: RedOp,
    ranks: u32,
    draw: Draw,
}

impl Exact {
    /// # Errors
    /// When `ranks` is 0 or above [`MAX_RANKS`].
    pub fn new(seed: u64, dtype: DType, op: RedOp, ranks: u32) -> Result<Exact, RanksOutOfRange> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(RanksOutOfRange { ranks });
        }
        Ok(Exact { seed, dtype, op, ranks, draw: Draw::new(dtype, op, ranks) })
    }

    /// As [`Exact::new`] for one collective: where nothing is reduced no sum has to stay exact, and the inputs are as varied as those of
    /// a maximum.
    ///
    /// # Errors
    /// As [`Exact::new`].
    pub fn of(
        seed: u64,
        dtype: DType,
        op: RedOp,
        ranks: u32,
        collective: Collective,
    ) -> Result<Exact, RanksOutOfRange> {
        Exact::new(seed, dtype, if collective.reduces() { op } else { RedOp::Max }, ranks)
    }

    /// How elements are drawn and reduced, for the device.
    #[cfg(feature = "cuda")]
    pub(crate) fn recipe(&self) -> (Draw, RedOp) {
        (self.draw, self.op)
    }

    /// Element `index` of `rank`'s input buffer: the integer it is in every type. A `uint64` above the largest `i64` is given as the
    /// `i64` of the same bits.
    pub fn element(&self, rank: Rank, index: u64) -> i64 {
        let halved = self.op == RedOp::PreMulSum && parity_factor(rank) == 2;
        self.draw.element(self.seed, rank.0, self.ranks, index, halved)
    }

    /// Element `index` of every rank's input, reduced; integers wrap. For avg this is the sum, before the division.
    pub fn reduced(&self, index: u64) -> i64 {
        let values = (0..self.ranks).map(|rank| self.element(Rank(rank), index));
        // Unsigned values are ordered as such; with the sign bit turned round, signed comparison does that.
        let turned = if self.dtype.is_unsigned() { i64::MIN } else { 0 };
        match self.op {
            RedOp::Sum | RedOp::Avg => values.fold(0, i64::wrapping_add),
            RedOp::PreMulSum => (0..self.ranks)
                .zip(values)
                .map(|(rank, value)| value.wrapping_mul(parity_factor(Rank(rank))))
                .fold(0, i64::wrapping_add),
            RedOp::Prod => values.fold(1, i64::wrapping_mul),
            RedOp::Min => values.min_by_key(|value| value ^ turned).expect("at least one rank"),
            RedOp::Max => values.max_by_key(|value| value ^ turned).expect("at least one rank"),
        }
    }

    /// Element `index` of `rank`'s output (which it has: [`Collective::has_output`]) after one execution of `collective` on blocks of
    /// `block` elements, before avg's division: see [`Exact::expected`] for the bits.
    pub fn expected_total(&self, collective: Collective, rank: Rank, index: u64, block: u64) -> i64 {
        match collective {
            Collective::AllReduce => self.reduced(index),
            Collective::ReduceScatter => self.reduced(u64::from(rank.0) * block + index),
            Collective::AllGather => self.element(Rank((index / block) as u32), index % block),
            Collective::Broadcast { root } => self.element(root, index),
            Collective::Reduce { .. } => self.reduced(index),
            Collective::AllToAll => {
                self.element(Rank((index / block) as u32), u64::from(rank.0) * block + index % block)
            }
            Collective::Gather { .. } => self.element(Rank((index / block) as u32), index % block),
            Collective::Scatter { root } => self.element(root, u64::from(rank.0) * block + index),
            Collective::SendRecv => self.element(Rank((rank.0 + self.ranks - 1) % self.ranks), index),
        }
    }
}

#[cfg(feature = "native")]
mod bits;
#[cfg(feature = "native")]
pub use self::bits::{encode, encode_average, show};

#[cfg(test)]
mod tests;
