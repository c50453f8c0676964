//! Symbolic contents: which inputs of which ranks a chunk holds, and which steps made it so.

use std::ops::Range;

use super::refusal::At;

pub type ValueId = u32;

/// Most terms that are looked at in one channel: bounds both time and memory.
const MAX_TERMS: usize = 8_000_000;

/// `count` contributions of chunk `chunk` of the input of `rank`, of tile `tile`. Small, as there are millions in a large plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    rank: u8,
    tile: u8,
    chunk: u16,
    pub count: u32,
}

impl Term {
    fn new(rank: u32, chunk: u32, tile: u32) -> Term {
        const SMALL: &str = "at most 64 ranks, 64 * 256 chunks and 3 tiles";
        let byte = |n: u32| u8::try_from(n).expect(SMALL);
        Term { rank: byte(rank), tile: byte(tile), chunk: u16::try_from(chunk).expect(SMALL), count: 1 }
    }

    fn key(&self) -> (u8, u16, u8) {
        (self.rank, self.chunk, self.tile)
    }

    pub fn rank(&self) -> u32 {
        self.rank.into()
    }

    pub fn chunk(&self) -> u32 {
        self.chunk.into()
    }

    pub fn tile(&self) -> u32 {
        self.tile.into()
    }

    pub fn is(&self, rank: u32, chunk: u32, tile: u32) -> bool {
        (self.rank(), self.chunk(), self.tile()) == (rank, chunk, tile)
    }
}

#[derive(Debug)]
struct Value {
    /// In [`Values::terms`], ordered by key; values that are copies share them.
    terms: Range<usize>,
    /// In [`Values::parents`].
    parents: Range<usize>,
    shape: u32,
    maker: Option<At>,
}

/// All values of one run: later ones refer to earlier ones.
#[derive(Debug, Default)]
pub struct Values {
    all: Vec<Value>,
    terms: Vec<Term>,
    parents: Vec<ValueId>,
    looked_at: usize,
}

/// A value of more terms than can be looked at in reasonable time.
#[derive(Debug)]
pub struct TooManyTerms;

impl Values {
    pub fn terms(&self, id: ValueId) -> &[Term] {
        &self.terms[self.all[id as usize].terms.clone()]
    }

    /// Which chunk of a block its elements belong to: the last one may be shorter than the others.
    pub fn shape(&self, id: ValueId) -> u32 {
        self.all[id as usize].shape
    }

    /// The step that made it; `None` for an input.
    pub fn maker(&self, id: ValueId) -> Option<At> {
        self.all[id as usize].maker
    }

    fn parents(&self, id: ValueId) -> &[ValueId] {
        &self.parents[self.all[id as usize].parents.clone()]
    }

    fn add(&mut self, value: Value) -> ValueId {
        let id = u32::try_from(self.all.len()).expect("the number of operations is bounded far below 2^32");
        self.all.push(value);
        id
    }

    pub fn input(&mut self, rank: u32, chunk: u32, tile: u32, shape: u32) -> ValueId {
        let from = self.terms.len();
        self.terms.push(Term::new(rank, chunk, tile));
        self.add(Value { terms: from..from + 1, parents: 0..0, shape, maker: None })
    }

    /// What a step makes of its operands, which have one shape: their sum, or the one operand itself.
    pub fn made(&mut self, at: At, operands: &[ValueId]) -> Result<ValueId, TooManyTerms> {
        let first = &self.all[operands[0] as usize];
        let (mut terms, shape) = (first.terms.clone(), first.shape);
        if operands.len() > 1 {
            self.looked_at += operands.iter().map(|id| self.all[*id as usize].terms.len()).sum::<usize>();
            if self.looked_at > MAX_TERMS {
                return Err(TooManyTerms);
            }
            let mut sum: Vec<Term> = operands.iter().flat_map(|id| self.terms(*id)).copied().collect();
            // The operands are ordered runs, which a stable sort merges.
            sum.sort_by_key(Term::key);
            sum.dedup_by(|next, kept| {
                let same = next.key() == kept.key();
                if same {
                    kept.count = kept.count.saturating_add(next.count);
                }
                same
            });
            terms = self.terms.len()..self.terms.len() + sum.len();
            self.terms.append(&mut sum);
        }
        let parents = self.parents.len()..self.parents.len() + operands.len();
        self.parents.extend_from_slice(operands);
        Ok(self.add(Value { terms, parents, shape, maker: Some(at) }))
    }

    /// The steps between an input and this value that carried contribution `term`, in order, this value's own last. Where two
    /// operands have it, both are followed.
    pub fn history(&self, id: ValueId, has: impl Fn(&[Term]) -> bool) -> Vec<At> {
        let (mut todo, mut steps) = (vec![id], Vec::new());
        let mut seen = vec![false; id as usize + 1];
        while let Some(id) = todo.pop() {
            let Some(at) = self.maker(id) else { continue };
            steps.push((id, at));
            for &parent in self.parents(id) {
                if !std::mem::replace(&mut seen[parent as usize], true) && has(self.terms(parent)) {
                    todo.push(parent);
                }
            }
        }
        // Values are numbered in the order of execution.
        steps.sort_unstable_by_key(|(id, _)| *id);
        steps.into_iter().map(|(_, at)| at).collect()
    }

    /// Walks back from `id` while some operand already has the property; the last value found is where it came into being.
    pub fn origin(&self, id: ValueId, has: impl Fn(&[Term]) -> bool) -> ValueId {
        let mut id = id;
        while let Some(&parent) = self.parents(id).iter().find(|p| has(self.terms(**p))) {
            id = parent;
        }
        id
    }
}

/// How often contribution `of` is in `terms`, which are ordered.
pub fn count(terms: &[Term], of: &Term) -> u32 {
    terms.binary_search_by_key(&of.key(), Term::key).map_or(0, |i| terms[i].count)
}
