//! Forwarding: a copy goes, and the step whose result it copied writes its destinations as well.
//!
//! A copy C from place P to places X may be forwarded to the step D that last wrote P before C, if for every X
//! - no other access to X comes between them: each precedes D, or is preceded by C, whatever the tile;
//! - D does not write X. It may read X: a thread reads all sources of an element before it writes the element, and X is one chunk, so
//!   that no other element of D's lies there.
//!
//! Then X holds from D on what it held from C on, since P did not change between them, and nobody can tell: who reads or overwrites X
//! behind C is still behind D, which precedes C; who did before C, does before D. So there is still no race, and no value changes. All
//! that needs is what precedes what, which stays, as no signal goes here.

use super::Steps;
use super::access::{Access, Accesses, Place, copied, place};
use super::order::{At, Event, Order};
use crate::exec::program::Operand;
use crate::plan::Buffer;

/// Most destinations of one step. Two-shot all-reduce has one a rank.
const MOST_DESTINATIONS: usize = 128;
/// Most crossings one step stands for: the device counts all of a move's in 16 bits.
const MOST_CARRIED: u16 = 1 << 12;
/// Accesses looked at before forwarding stops: it may stop anywhere.
const BUDGET: usize = 1 << 24;

/// Forwards all it can, and drops writes to scratch that this leaves without a reader. Whether there were any.
pub fn forward(
    steps: &mut Steps,
    order: &Order,
    accesses: &mut Accesses,
    canonical: &impl Fn(Operand) -> Operand,
) -> bool {
    let mut forwarding = Forwarding { steps, order, accesses, canonical, left: BUDGET };
    let mut any = false;
    // A copy that could not be forwarded may be once others are.
    while forwarding.pass() {
        any = true;
    }
    any
}

struct Forwarding<'a, F> {
    steps: &'a mut Steps,
    order: &'a Order,
    accesses: &'a mut Accesses,
    canonical: &'a F,
    left: usize,
}

impl<F: Fn(Operand) -> Operand> Forwarding<'_, F> {
    fn pass(&mut self) -> bool {
        let mut any = false;
        let order = self.order;
        for &copy in &order.run {
            if let Some(maker) = self.maker(copy) {
                self.apply(copy, maker);
                self.drop_unread(maker);
                any = true;
            }
        }
        any
    }

    fn place(&self, operand: &Operand) -> Place {
        place(operand, self.canonical)
    }

    /// The step that can take over a copy's destinations.
    fn maker(&mut self, copy: At) -> Option<At> {
        let instr = self.steps[copy.rank][copy.step].as_ref()?;
        let source = self.place(copied(instr)?);
        let targets: Vec<Place> = instr.dsts().map(|dst| self.place(dst)).collect();
        let made = self.accesses.at(source);
        let looked_at = made.len() + targets.iter().map(|&x| self.accesses.at(x).len()).sum::<usize>();
        self.left = self.left.checked_sub(looked_at)?;
        let position = self.order.position(copy);
        // Without a race, the last in any order that can run is the last there is.
        let is_before = |access: &&Access| self.order.position(access.at) < position;
        let maker = made.iter().take_while(is_before).filter(|access| access.writes).last()?.at;
        let made = self.steps[maker.rank][maker.step].as_ref()?;
        let fits = made.dsts().count() + targets.len() <= MOST_DESTINATIONS
            && made.carried + instr.carried < MOST_CARRIED;
        (fits && targets.iter().all(|&target| self.untouched(target, copy, maker))).then_some(maker)
    }

    /// Whether nobody can tell if the copy's or the maker's step writes the place.
    fn untouched(&self, target: Place, copy: At, maker: At) -> bool {
        let order = self.order;
        let in_tile = |at, tile| Event { at, tile };
        let scratch = matches!(target.1, Buffer::Scratch(_));
        self.accesses.at(target).iter().filter(|access| access.at != copy).all(|access| {
            if access.at == maker {
                return !access.writes;
            }
            let behind_copy = order.position(access.at) > order.position(copy);
            let in_order = behind_copy || order.precedes(in_tile(access.at, 0), in_tile(maker, 0));
            // The next tile's D must not come before this tile's accesses either.
            let next_tile = scratch && order.tiles > 1;
            in_order && (!next_tile || order.precedes(in_tile(access.at, 0), in_tile(maker, 1)))
        })
    }

    fn apply(&mut self, copy: At, maker: At) {
        let Some(gone) = self.steps[copy.rank][copy.step].take() else { return };
        for src in &gone.srcs {
            self.accesses.remove(self.place(src), copy);
        }
        for dst in gone.dsts() {
            let target = self.place(dst);
            self.accesses.remove(target, copy);
            self.accesses.add(target, Access { at: maker, reads: false, writes: true }, self.order);
        }
        let crossed = u16::from(gone.srcs.iter().any(|src| src.rank != copy.rank));
        if let Some(made) = &mut self.steps[maker.rank][maker.step] {
            made.also.extend(gone.dsts());
            made.carried += gone.carried + crossed;
        }
    }

    /// Scratch that a step writes beside other places and that nobody reads.
    fn drop_unread(&mut self, at: At) {
        let Some(instr) = &self.steps[at.rank][at.step] else { return };
        let unread = |operand: &Operand| {
            let place = place(operand, self.canonical);
            let read = || self.accesses.at(place).iter().any(|access| access.reads);
            matches!(operand.buffer, Buffer::Scratch(_)) && !read()
        };
        let dead: Vec<Operand> = instr.dsts().filter(|dst| unread(dst)).copied().collect();
        if dead.len() == instr.dsts().count() && instr.to.is_none() {
            return;
        }
        for dst in &dead {
            self.accesses.remove(self.place(dst), at);
        }
        if let Some(instr) = &mut self.steps[at.rank][at.step] {
            let keep = |operand: &Operand| !dead.contains(operand);
            instr.dst = instr.dst.filter(keep);
            instr.also.retain(keep);
        }
    }
}
