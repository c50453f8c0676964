//! Who touches which memory on one channel.

use std::collections::HashMap;

use super::Steps;
use super::order::{At, Event, Order};
use crate::exec::program::{Action, Instr, Operand};
use crate::plan::Buffer;

/// One chunk of a rank's memory, under one name.
pub type Place = (usize, Buffer, u32);

#[derive(Debug, Clone, Copy)]
pub struct Access {
    pub at: At,
    pub reads: bool,
    pub writes: bool,
}

#[derive(Debug)]
pub struct Accesses {
    /// In [`Order::run`].
    by_place: HashMap<Place, Vec<Access>>,
}

/// One access that has to come before another.
pub type Conflict = (Event, Event);

impl Accesses {
    pub fn of(steps: &Steps, order: &Order, canonical: &impl Fn(Operand) -> Operand) -> Accesses {
        let mut accesses = Accesses { by_place: HashMap::new() };
        for &at in &order.run {
            let Some(instr) = &steps[at.rank][at.step] else { continue };
            if onto_itself(instr, canonical) {
                continue;
            }
            for src in &instr.srcs {
                accesses.add(place(src, canonical), Access { at, reads: true, writes: false }, order);
            }
            for dst in instr.dsts() {
                accesses.add(place(dst, canonical), Access { at, reads: false, writes: true }, order);
            }
        }
        accesses
    }

    pub fn at(&self, place: Place) -> &[Access] {
        self.by_place.get(&place).map_or(&[], Vec::as_slice)
    }

    /// One access for all of a step to a place.
    pub fn add(&mut self, place: Place, access: Access, order: &Order) {
        let all = self.by_place.entry(place).or_default();
        let position = order.position(access.at);
        let behind = all.partition_point(|other| order.position(other.at) < position);
        match all.get_mut(behind) {
            Some(same) if same.at == access.at => {
                same.reads |= access.reads;
                same.writes |= access.writes;
            }
            _ => all.insert(behind, access),
        }
    }

    /// Forgets all of a step's accesses to a place.
    pub fn remove(&mut self, place: Place, at: At) {
        self.by_place.entry(place).or_default().retain(|access| access.at != at);
    }

    /// Whether of two conflicting accesses neither precedes the other.
    pub fn races(&self, order: &Order) -> bool {
        let mut races = false;
        self.conflicts(order, |(x, y)| races |= !order.precedes(x, y));
        races
    }

    /// Calls `each` with every write and the accesses to its place from there up to and with the next write. If these are ordered, so
    /// are all that conflict.
    pub fn conflicts(&self, order: &Order, mut each: impl FnMut(Conflict)) {
        for (place, all) in &self.by_place {
            // Of input and output, other tiles are other memory.
            let tiles = if matches!(place.1, Buffer::Scratch(_)) { order.tiles } else { 1 };
            let mut written: Option<Event> = None;
            let mut read: Vec<Event> = Vec::new();
            for tile in 0..tiles {
                for access in all {
                    let now = Event { at: access.at, tile };
                    if let Some(written) = written {
                        each((written, now));
                    }
                    if access.writes {
                        read.drain(..).for_each(|read| each((read, now)));
                        written = Some(now);
                    } else {
                        read.push(now);
                    }
                }
            }
        }
    }
}

pub fn place(operand: &Operand, canonical: &impl Fn(Operand) -> Operand) -> Place {
    let Operand { rank, buffer, start } = canonical(*operand);
    (rank, buffer, start)
}

/// What a copy reads: a step that does nothing but that.
pub fn copied(instr: &Instr) -> Option<&Operand> {
    match (instr.action, instr.from, instr.to, instr.srcs.as_slice()) {
        (Action::Move, None, None, [src]) => Some(src),
        _ => None,
    }
}

/// Such a copy touches nothing (`plan::Plan`).
fn onto_itself(instr: &Instr, canonical: &impl Fn(Operand) -> Operand) -> bool {
    let same = |src: &Operand| instr.dsts().all(|dst| place(dst, canonical) == place(src, canonical));
    copied(instr).is_some_and(same)
}

/// Whether there were any.
pub fn drop_onto_themselves(steps: &mut Steps, canonical: &impl Fn(Operand) -> Operand) -> bool {
    let mut any = false;
    for step in steps.iter_mut().flatten() {
        if step.as_ref().is_some_and(|instr| onto_itself(instr, canonical)) {
            *step = None;
            any = true;
        }
    }
    any
}
