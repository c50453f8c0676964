//! Symbolic contents: which inputs of which ranks a chunk holds, and which steps made it so.

use std::rc::Rc;

use super::refusal::At;

pub type ValueId = u32;

/// `count` contributions of chunk `chunk` of the input of `rank`, of tile `tile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    pub rank: u32,
    pub chunk: u32,
    pub tile: u32,
    pub count: u32,
}

impl Term {
    fn key(&self) -> (u32, u32, u32) {
        (self.rank, self.chunk, self.tile)
    }

    pub fn is(&self, rank: u32, chunk: u32, tile: u32) -> bool {
        self.key() == (rank, chunk, tile)
    }
}

#[derive(Debug, Clone)]
pub struct Value {
    /// Ordered by rank, chunk, tile.
    pub terms: Rc<[Term]>,
    /// Which chunk of a block its elements belong to: the last one may be shorter than the others.
    pub shape: u32,
    /// The step that made it; `None` for an input.
    pub maker: Option<At>,
    pub parents: Rc<[ValueId]>,
}

/// All values of one run: later ones refer to earlier ones.
#[derive(Debug, Default)]
pub struct Values {
    all: Vec<Value>,
    /// Terms merged so far: the cost that may grow faster than the number of steps.
    pub merged: usize,
}

impl Values {
    pub fn get(&self, id: ValueId) -> &Value {
        &self.all[id as usize]
    }

    fn add(&mut self, value: Value) -> ValueId {
        let id = u32::try_from(self.all.len()).expect("the number of operations is bounded far below 2^32");
        self.all.push(value);
        id
    }

    pub fn input(&mut self, rank: u32, chunk: u32, tile: u32, shape: u32) -> ValueId {
        let terms = Rc::new([Term { rank, chunk, tile, count: 1 }]);
        self.add(Value { terms, shape, maker: None, parents: Rc::new([]) })
    }

    /// What a step makes of its operands, which have one shape: their sum, or the one operand itself.
    pub fn made(&mut self, at: At, operands: &[ValueId]) -> ValueId {
        let shape = self.get(operands[0]).shape;
        let mut terms = Rc::clone(&self.get(operands[0]).terms);
        for &operand in &operands[1..] {
            terms = merge(&terms, &self.get(operand).terms);
            self.merged += terms.len();
        }
        self.add(Value { terms, shape, maker: Some(at), parents: operands.into() })
    }

    /// The steps between an input and this value that carried contribution `term`, in order, this value's own last. Where two
    /// operands have it, both are followed.
    pub fn history(&self, id: ValueId, has: impl Fn(&[Term]) -> bool) -> Vec<At> {
        let (mut todo, mut seen, mut steps) = (vec![id], vec![id], Vec::new());
        while let Some(id) = todo.pop() {
            let value = self.get(id);
            let Some(at) = value.maker else { continue };
            steps.push((id, at));
            for &parent in value.parents.iter() {
                if has(&self.get(parent).terms) && !seen.contains(&parent) {
                    seen.push(parent);
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
        while let Some(&parent) = self.get(id).parents.iter().find(|&&p| has(&self.get(p).terms)) {
            id = parent;
        }
        id
    }
}

fn merge(a: &[Term], b: &[Term]) -> Rc<[Term]> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match a[i].key().cmp(&b[j].key()) {
            std::cmp::Ordering::Less => {
                out.push(a[i]);
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                out.push(b[j]);
                j += 1;
            }
            std::cmp::Ordering::Equal => {
                out.push(Term { count: a[i].count.saturating_add(b[j].count), ..a[i] });
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
    out.into()
}
