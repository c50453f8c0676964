//! Elision: signals that order nothing go, with their waits.
//!
//! What has to stay in order are conflicting accesses, and of these a write and the accesses up to the next write; the rest follows.
//! - A pair of signal and wait is of use only to accesses x and y of which x precedes the signal and y follows the wait. Pairs of use to
//!   no conflict go all at once: they are on no way from one conflicting access to another. Among them is whatever comes before a
//!   program first touches what others change, and after it last does; the launch orders the rest.
//! - What remains is tried pair by pair: one goes if every conflict is still in order without it, over other pairs.
//!
//! The k-th signal pairs with the k-th wait, and both go, so the others keep their partners. Fewer waits cannot make a deadlock.
//!
//! x and y may be of consecutive tiles where those share scratch ([`Order::tiles`]). Slots of a FIFO need no signals.

use std::collections::HashMap;

use super::Steps;
use super::access::{Accesses, Conflict};
use super::order::{Event, Order};

/// Numbers in clocks that may be computed to try pairs one by one.
const BUDGET: usize = 1 << 26;

/// Whether any went.
pub fn elide(steps: &mut Steps, order: &Order, accesses: &Accesses) -> bool {
    let mut conflicts = Vec::new();
    // A rank's own steps are in order.
    accesses.conflicts(order, |(x, y)| conflicts.extend((x.at.rank != y.at.rank).then_some((x, y))));
    let mut kept = of_use(order, &conflicts);
    one_by_one(order, &conflicts, &mut kept);
    for ((signal, wait), _) in order.pairs.iter().zip(&kept).filter(|(_, kept)| !**kept) {
        steps[signal.rank][signal.step] = None;
        steps[wait.rank][wait.step] = None;
    }
    kept.contains(&false)
}

/// By pair.
fn of_use(order: &Order, conflicts: &[Conflict]) -> Vec<bool> {
    if conflicts.is_empty() {
        return vec![false; order.pairs.len()];
    }
    // By the ranks of x and y: numbers of x, each with the last y that is to follow it or an earlier x.
    let mut lasts: HashMap<(usize, usize), Vec<(u32, u32)>> = HashMap::new();
    for &(x, y) in conflicts {
        lasts.entry((x.at.rank, y.at.rank)).or_default().push((order.number(x), order.number(y)));
    }
    for all in lasts.values_mut() {
        all.sort_unstable();
        let mut last = 0;
        for (_, y) in all.iter_mut() {
            last = last.max(*y);
            *y = last;
        }
    }
    let after = order.after();
    let is_of_use = |&(signal, wait): &_| {
        (0..order.tiles).any(|tile| {
            let before = order.before(Event { at: signal, tile });
            let after = &after[order.row(Event { at: wait, tile })..];
            lasts.iter().any(|(&(from, to), all)| {
                let preceding = all.partition_point(|(x, _)| *x <= before[from]);
                preceding > 0 && all[preceding - 1].1 >= after[to]
            })
        })
    };
    order.pairs.iter().map(is_of_use).collect()
}

/// Gives up at once where there is too much to try.
fn one_by_one(order: &Order, conflicts: &[Conflict], kept: &mut [bool]) {
    let tries = kept.iter().filter(|kept| **kept).count();
    if tries * (order.words() + conflicts.len()) > BUDGET {
        return;
    }
    for nth in 0..kept.len() {
        if std::mem::take(&mut kept[nth]) {
            kept[nth] = !order.ordered_without(|pair| kept[pair], conflicts);
        }
    }
}
