//! Copies and folds between buffers that one device sees, as programs that wait for nobody: a group's messages between ranks of this
//! process, and the reductions that the direct kernel does not know.

use super::programs::Laid;
use crate::exec::cuda::image::{self, Image, Placed};
use crate::exec::cuda::phases::{Move, Part, Phase, Phases};
use crate::exec::program::Operand;
use crate::plan::Buffer;

/// Bytes of a job that are worth a further block.
const PART_BYTES: u64 = 16 << 10;

/// Bytes of a job's part that a block works on at a time; small enough that what it folded is still in the cache when it is copied.
const TILE_BYTES: u64 = 256 << 10;

/// Bytes of a block's program that jobs are cut for; below what a port's programs may have.
const PROGRAM_BYTES: u64 = 32 << 10;

/// Something to be read from every source, folded in this order, and written to every target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Job {
    pub sources: Vec<Source>,
    /// Addresses. One may be a source's; else they overlap nothing of this list.
    pub targets: Vec<u64>,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    pub address: u64,
    /// The rank whose factor it is multiplied by.
    pub factor: Option<u32>,
}

impl Job {
    pub fn copy(from: u64, to: u64, bytes: u64) -> Job {
        Job { sources: vec![Source { address: from, factor: None }], targets: vec![to], bytes }
    }

    /// Whether what is read is written as it is.
    fn is_copy(&self) -> bool {
        self.sources.len() == 1 && self.sources[0].factor.is_none()
    }

    /// Bytes of program that a part of it takes: moves of 24 bytes, operands of 16.
    fn program_bytes(&self) -> u64 {
        let (sources, targets) = (self.sources.len() as u64, self.targets.len() as u64);
        24 + 16 * (sources + 1) + targets.saturating_sub(1) * (24 + 2 * 16)
    }
}

/// Whether the jobs' programs fit so many blocks.
pub fn fits(jobs: &[Job], blocks: u32) -> bool {
    jobs.iter().map(Job::program_bytes).sum::<u64>() <= u64::from(blocks) * PROGRAM_BYTES
}

/// The programs, for at most `most` blocks.
pub fn lay(jobs: &[Job], element: u64, most: u32) -> Laid {
    let blocks = cut(jobs, most);
    let mut image = Image::default();
    for block in &blocks {
        let (phases, operands): (Vec<_>, Vec<_>) = [&block.first, &block.then]
            .into_iter()
            .filter(|all| !all.is_empty())
            .map(|all| phase(all))
            .unzip();
        image.add(Placed {
            phases: &Phases { phases, endpoints: vec![] },
            endpoints: vec![],
            operands,
            spans: vec![],
            elem_size: 1,
        });
    }
    let longest = blocks.iter().flat_map(|block| &block.first).map(|part| part.bytes).max().unwrap_or(0);
    debug_assert!(jobs.iter().all(|job| job.bytes.is_multiple_of(element)), "{element}: {jobs:?}");
    Laid {
        image,
        blocks: blocks.len() as u32,
        tiles: longest.div_ceil(TILE_BYTES),
        tile_bytes: TILE_BYTES,
        longest_tile: longest.min(TILE_BYTES),
        fences: false,
    }
}

/// What one block does, tile by tile: the first parts, then those that copy what these have written.
#[derive(Debug, Default, Clone)]
struct Block {
    first: Vec<Piece>,
    then: Vec<Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    sources: Vec<Source>,
    target: u64,
    bytes: u64,
}

fn cut(jobs: &[Job], most: u32) -> Vec<Block> {
    let pieces = |job: &Job| job.bytes.div_ceil(PART_BYTES);
    let all: u64 = jobs.iter().map(pieces).sum();
    let count = all.clamp(1, most.max(1).into());
    let weight = jobs.iter().map(Job::program_bytes).sum::<u64>().max(1);
    let cap = (count * PROGRAM_BYTES / weight).clamp(1, count);
    let mut blocks = vec![Block::default(); count as usize];
    let mut next = 0;
    for job in jobs.iter().filter(|job| job.bytes > 0) {
        let parts = pieces(job).clamp(1, cap);
        let part = job.bytes.div_ceil(parts).next_multiple_of(16);
        for offset in (0..job.bytes).step_by(part as usize) {
            blocks[next].add(job, offset, part.min(job.bytes - offset));
            next = (next + 1) % blocks.len();
        }
    }
    blocks
}

impl Block {
    fn add(&mut self, job: &Job, offset: u64, bytes: u64) {
        let at = |source: &Source| Source { address: source.address + offset, ..*source };
        let sources: Vec<Source> = job.sources.iter().map(at).collect();
        // What is copied onto itself stays.
        let targets =
            job.targets.iter().filter(|target| !(job.is_copy() && **target == job.sources[0].address));
        for (nth, target) in targets.map(|target| target + offset).enumerate() {
            if nth == 0 || job.is_copy() {
                self.first.push(Piece { sources: sources.clone(), target, bytes });
            } else {
                let from = Source { address: job.targets[0] + offset, factor: None };
                self.then.push(Piece { sources: vec![from], target, bytes });
            }
        }
    }
}

type Operands = Vec<Vec<image::Operand>>;

fn phase(pieces: &[Piece]) -> (Phase, Operands) {
    // Only how many there are matters from here on; where they are is in the operands.
    let named = Operand { rank: 0, buffer: Buffer::Input, start: 0 };
    let mut phase = Phase::default();
    let mut operands = Vec::with_capacity(pieces.len());
    for (move_index, Piece { sources, target, bytes }) in pieces.iter().enumerate() {
        phase.moves.push(Move {
            recv: None,
            send: None,
            srcs: vec![named; sources.len()],
            dsts: vec![named],
            slice: *bytes,
            crossings: 0,
        });
        phase.parts.push((move_index as u32, Part::Direct { move_index }));
        let at = |address, advances| image::Operand { base: address, advances, buffer: image::ABSOLUTE };
        let source = |source: &Source| at(source.address, source.factor.map_or(1, |rank| 2 + rank));
        operands.push(sources.iter().map(source).chain([at(*target, 1)]).collect());
    }
    (phase, operands)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Runs the blocks one after the other on bytes by address; a fold is a list of what was read. Cells are 16 bytes.
    fn run(blocks: &[Block]) -> HashMap<u64, Vec<(u64, Option<u32>)>> {
        let mut memory: HashMap<u64, Vec<(u64, Option<u32>)>> = HashMap::new();
        for block in blocks {
            for piece in block.first.iter().chain(&block.then) {
                for at in (0..piece.bytes).step_by(16) {
                    let read = |source: &Source| {
                        let address = source.address + at;
                        memory.get(&address).cloned().unwrap_or_else(|| vec![(address, source.factor)])
                    };
                    let value = piece.sources.iter().flat_map(read).collect();
                    let before = memory.insert(piece.target + at, value);
                    assert!(before.is_none(), "{} is written twice", piece.target + at);
                }
            }
        }
        memory
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_target_gets_all_sources_in_order_once(
            sizes in prop::collection::vec(0u64..4000, 1..8), sources in 1u64..5, targets in 1u64..5, most in 1u32..9,
        ) {
            // The first target of every job is its second source, as in place.
            let place = |job: usize, nth: u64| ((job as u64) << 40) + (nth << 32) + 64;
            let jobs: Vec<Job> = sizes.iter().enumerate().map(|(job, cells)| Job {
                sources: (0..sources)
                    .map(|nth| Source { address: place(job, nth), factor: (sources > 1).then_some(nth as u32) })
                    .collect(),
                targets: (0..targets).map(|nth| place(job, nth + 1)).collect(),
                bytes: cells * 16,
            }).collect();
            let blocks = cut(&jobs, most);
            prop_assert!(blocks.len() <= most as usize);
            let memory = run(&blocks);
            let mut cells = 0;
            for job in &jobs {
                for (nth, at) in (0..job.targets.len()).flat_map(|nth| (0..job.bytes).step_by(16).map(move |at| (nth, at))) {
                    let want: Vec<_> = job.sources.iter().map(|source| (source.address + at, source.factor)).collect();
                    prop_assert_eq!(&memory[&(job.targets[nth] + at)], &want);
                    cells += 1;
                }
            }
            prop_assert_eq!(memory.len(), cells);
        }
    }

    #[test]
    fn a_copy_onto_itself_is_none() {
        assert!(cut(&[Job::copy(64, 64, 100)], 4).iter().all(|block| block.first.is_empty()));
    }

    #[test]
    fn long_jobs_are_spread_and_many_are_not_cut_further() {
        let blocks = cut(&[Job::copy(0, 1 << 40, 1 << 30)], 132);
        assert!(blocks.len() == 132 && blocks.iter().all(|block| block.first.len() == 1));
        let many: Vec<Job> = (0..64 * 64).map(|n| Job::copy(n << 32, n << 32 | 1 << 31, 2 << 20)).collect();
        assert!(fits(&many, 132));
        let most = cut(&many, 132).iter().map(|block| block.first.len()).max().unwrap();
        assert!(most as u64 * many[0].program_bytes() <= PROGRAM_BYTES + many[0].program_bytes(), "{most}");
    }

    #[test]
    fn programs_have_the_size_that_jobs_are_cut_for() {
        let source = |n: u64| Source { address: n << 32, factor: Some(n as u32) };
        let job = Job {
            sources: (0..8).map(source).collect(),
            targets: vec![1 << 50, 1 << 51, 1 << 52],
            bytes: 64,
        };
        let one = lay(std::slice::from_ref(&job), 4, 1).image.program_bytes();
        let five = lay(&vec![job.clone(); 5], 4, 1).image.program_bytes();
        assert!(u64::from(five - one).abs_diff(4 * job.program_bytes()) < 16, "{one} {five}");
    }
}
