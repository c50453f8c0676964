//! Which collectives a learner's run measures, and which cell of the second table is wrong: a function of the seed and the backend.

use ringlab_engine::types::{Collective, DType, Rank};

use crate::job::Backend;
use crate::seed::Draw;

/// One line of a table: a collective at one size, as a benchmark would run it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Of the task and of the line in the table: `a`…`d`, `1`…`6`.
    pub label: String,
    pub collective: Collective,
    pub ranks: u32,
    pub dtype: DType,
    /// Elements as the collective's call takes them: the whole vector, or one rank's part for all-gather and reduce-scatter. The
    /// benchmark's `count` column, and the engine's block.
    pub count: u64,
}

impl Row {
    /// The benchmark's `size` column: bytes of the larger of a rank's two buffers (nccl-tests, src/common.cu: the larger of
    /// `sendBytes` and `expectedBytes`).
    pub fn size(&self) -> u64 {
        let Row { collective, ranks, .. } = self;
        u64::from(collective.input_blocks(*ranks).max(collective.output_blocks(*ranks))) * self.part()
    }

    /// Bytes of `count` elements.
    pub fn part(&self) -> u64 {
        self.count * self.dtype.size() as u64
    }

    pub fn factor(&self) -> f64 {
        self.collective.busbw_factor(self.ranks)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Size,
    Time,
    Algbw,
    Busbw,
}

impl Column {
    const ALL: [Column; 4] = [Column::Size, Column::Time, Column::Algbw, Column::Busbw];

    /// As the answer names it.
    pub fn name(self) -> &'static str {
        match self {
            Column::Size => "size",
            Column::Time => "time",
            Column::Algbw => "algbw",
            Column::Busbw => "busbw",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instance {
    /// Four rows, one for each collective: the learner works out both bandwidths.
    pub asked: Vec<Row>,
    /// Six other rows, shown worked out, with one cell changed. Other ranks than in `asked`, so that no factor can be read off here.
    pub printed: Vec<Row>,
    /// Index into `printed`.
    pub broken_row: usize,
    pub broken_column: Column,
}

impl Instance {
    pub fn new(seed: u64, backend: Backend) -> Instance {
        let mut draw = Draw::new(seed, "busbw");
        // Below 3 ranks all-reduce's factor is 1, as broadcast's is: nothing would be told apart.
        let asked_ranks = draw.between(3, 8) as u32;
        let printed_ranks = 3 + (asked_ranks - 3 + draw.between(1, 5) as u32) % 6;
        let mut kinds = [Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast];
        draw.shuffle(&mut kinds);
        // A GPU moves a small message in the time of a launch: give it something to move.
        let unit: u64 = match backend {
            Backend::Cpu => 32 << 10,
            Backend::Cuda => 512 << 10,
        };
        let asked = kinds
            .iter()
            .zip(["a", "b", "c", "d"])
            .map(|(kind, label)| row(&mut draw, label, *kind, asked_ranks, unit, (24, 64)))
            .collect();
        let mut more = [kinds[0], kinds[1], kinds[2], kinds[3], kinds[0], kinds[1]];
        draw.shuffle(&mut more);
        let printed: Vec<Row> = more
            .iter()
            .zip(["1", "2", "3", "4", "5", "6"])
            .map(|(kind, label)| row(&mut draw, label, *kind, printed_ranks, unit, (6, 48)))
            .collect();
        let broken_row = draw.below(printed.len() as u64) as usize;
        let broken_column = draw.pick(&Column::ALL);
        Instance { asked, printed, broken_row, broken_column }
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.asked.iter().chain(&self.printed)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
}

/// `sizes`: least and most units of the size a benchmark's user would ask for.
fn row(draw: &mut Draw, label: &str, kind: Kind, ranks: u32, unit: u64, sizes: (u64, u64)) -> Row {
    let dtype = draw.pick(&[DType::F32, DType::F16, DType::Bf16, DType::I64]);
    let asked_bytes = draw.between(sizes.0, sizes.1) * unit;
    let elements = asked_bytes / dtype.size() as u64;
    let (collective, count) = match kind {
        Kind::AllReduce => (Collective::AllReduce, elements),
        Kind::Broadcast => {
            (Collective::Broadcast { root: Rank(draw.below(u64::from(ranks)) as u32) }, elements)
        }
        Kind::AllGather => (Collective::AllGather, part(elements, ranks, dtype)),
        Kind::ReduceScatter => (Collective::ReduceScatter, part(elements, ranks, dtype)),
    };
    Row { label: label.to_owned(), collective, ranks, dtype, count }
}

/// One rank's part, cut down to 16 bytes as nccl-tests does (src/all_gather.cu, src/reduce_scatter.cu: `base`).
fn part(elements: u64, ranks: u32, dtype: DType) -> u64 {
    let unit = 16 / dtype.size() as u64;
    elements / u64::from(ranks) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_instance_has_every_collective_and_two_counts_of_ranks(seed in any::<u64>(), cuda in any::<bool>()) {
            let backend = if cuda { Backend::Cuda } else { Backend::Cpu };
            let instance = Instance::new(seed, backend);
            let mut names: Vec<&str> = instance.asked.iter().map(|row| row.collective.name()).collect();
            names.sort();
            prop_assert_eq!(names, ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]);
            prop_assert_ne!(instance.asked[0].ranks, instance.printed[0].ranks);
            for row in instance.rows() {
                prop_assert!((3..=8).contains(&row.ranks));
                prop_assert!(row.part() % 16 == 0 && row.size() >= 64 << 10);
            }
        }
    }
}
