//! Every generated plan verifies; and what the verifier says of a damaged one is held against an interpreter that knows nothing of
//! clocks or symbols.

use proptest::prelude::*;
use ringlab_engine::cost::{ClosedForm, closed_form};
use ringlab_engine::plan::{
    Algorithm, Buffer, MAX_CHANNELS, MAX_RANKS, Place, Plan, Range, SLOTS, Step, generate,
};
use ringlab_engine::types::{Alias, ChannelId, Collective, Rank};
use ringlab_engine::verify::verify;

/// Every collective, those with a root with the first, a middle and the last rank as root.
fn collectives(ranks: u32) -> Vec<Collective> {
    let mut all: Vec<Collective> =
        [0, ranks / 2, ranks - 1].into_iter().flat_map(|root| Collective::all(Rank(root))).collect();
    let mut seen = std::collections::HashSet::new();
    all.retain(|collective| seen.insert(*collective));
    all
}

fn placements(collective: Collective) -> &'static [bool] {
    if collective.alias().is_some() { &[false, true] } else { &[false] }
}

/// In place and out of place, and at the cost that its closed form says.
fn check(algorithm: Algorithm, collective: Collective, ranks: u32, channels: u32) {
    let Ok(plan) = generate(algorithm, collective, ranks, channels) else {
        assert!(!algorithm.supports(collective));
        assert_eq!(closed_form(algorithm, collective, ranks, channels), None);
        return;
    };
    for &in_place in placements(collective) {
        let what = format!("{} of {ranks}, {channels} channels, in place {in_place}", plan.name);
        let proof = verify(&plan, in_place).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
        let counted = ClosedForm { longest_chain: proof.longest_chain, busiest: proof.busiest };
        assert_eq!(closed_form(algorithm, collective, ranks, channels), Some(counted), "{what}");
    }
}

#[test]
fn every_generated_plan_verifies_and_costs_what_its_closed_form_says() {
    for ranks in 1..=16 {
        for channels in 1..=4 {
            for collective in collectives(ranks) {
                for algorithm in Algorithm::ALL {
                    check(algorithm, collective, ranks, channels);
                }
            }
        }
    }
}

/// Around powers of two, and up to the limits.
#[test]
fn larger_plans_verify_too() {
    for ranks in [17, 31, 32, 33, 48, MAX_RANKS] {
        for collective in Collective::all(Rank(ranks * 2 / 3)) {
            for algorithm in Algorithm::ALL {
                check(algorithm, collective, ranks, MAX_CHANNELS - ranks % 2);
            }
        }
    }
}

#[test]
fn what_has_no_place_is_refused_in_words() {
    for collective in [Collective::AllToAll, Collective::SendRecv] {
        let plan = generate(Algorithm::OneShot, collective, 4, 1).unwrap();
        let refusal = verify(&plan, true).unwrap_err().to_string();
        assert!(refusal.contains("has no in-place form"), "{refusal}");
    }
}

#[test]
fn a_buffer_the_collective_does_not_give_is_refused() {
    let root = Rank(1);
    for (collective, buffer) in [
        (Collective::Reduce { root }, Buffer::Output),
        (Collective::Gather { root }, Buffer::Output),
        (Collective::Scatter { root }, Buffer::Input),
        (Collective::Broadcast { root }, Buffer::Input),
    ] {
        let mut plan = generate(Algorithm::OneShot, collective, 3, 1).unwrap();
        let src = Place { rank: None, range: Range { buffer, start: 0, len: 1 } };
        let dst = Range { buffer: Buffer::Output, start: 0, len: 1 };
        plan.programs[2].steps.push(Step::Copy { src, dst });
        let refusal = verify(&plan, false).unwrap_err().to_string();
        assert!(refusal.contains("rank 2 has none"), "{refusal}");
    }
}

/// Contents of a chunk: what every rank's every input chunk adds to it, as exact numbers. Input chunk `k` of rank `r` is worth
/// `7^(r * chunks + k)`, so that no different selection of inputs has the same sum as long as none is taken more than six times.
type Number = u128;
const BASE: Number = 7;

/// Runs one tile with a random order of the ranks, so that a race shows as a wrong result in some order.
struct Interpreter<'a> {
    plan: &'a Plan,
    in_place: bool,
    input: Vec<Vec<Option<Number>>>,
    output: Vec<Vec<Option<Number>>>,
    scratch: Vec<Vec<Vec<Option<Number>>>>,
    data: Vec<std::collections::VecDeque<Option<Number>>>,
    signals: Vec<u32>,
    at: Vec<(usize, u32)>,
}

impl<'a> Interpreter<'a> {
    fn new(plan: &'a Plan, in_place: bool) -> Self {
        let n = plan.ranks as usize;
        let inputs = (plan.collective.input_blocks(plan.ranks) * plan.chunks) as usize;
        let outputs = (plan.collective.output_blocks(plan.ranks) * plan.chunks) as usize;
        let worth = |r: usize, k: usize| Some(BASE.pow((r * inputs + k) as u32));
        Interpreter {
            plan,
            in_place,
            input: (0..n).map(|r| (0..inputs).map(|k| worth(r, k)).collect()).collect(),
            output: vec![vec![None; outputs]; n],
            scratch: vec![plan.scratch.iter().map(|s| vec![None; s.chunks as usize]).collect(); n],
            data: vec![Default::default(); n * n],
            signals: vec![0; n * n],
            at: vec![(0, 0); n],
        }
    }

    fn cell(&mut self, rank: usize, buffer: Buffer, chunk: usize) -> &mut Option<Number> {
        let c = self.plan.chunks as usize;
        let alias = if self.in_place { self.plan.collective.alias() } else { None };
        match (buffer, alias) {
            (Buffer::Scratch(i), _) => &mut self.scratch[rank][usize::from(i)][chunk],
            (Buffer::Input, Some(Alias::InputInOutput)) => {
                // The first look at an alias brings the input to where it really is.
                if self.output[rank][rank * c + chunk].is_none() {
                    self.output[rank][rank * c + chunk] = self.input[rank][chunk];
                }
                &mut self.output[rank][rank * c + chunk]
            }
            (Buffer::Output, Some(Alias::InputInOutput)) if chunk / c == rank => {
                self.cell(rank, Buffer::Input, chunk % c)
            }
            (Buffer::Output, Some(Alias::Same)) => &mut self.input[rank][chunk],
            (Buffer::Output, Some(Alias::OutputInInput)) => &mut self.input[rank][rank * c + chunk],
            (Buffer::Input, _) => &mut self.input[rank][chunk],
            (Buffer::Output, _) => &mut self.output[rank][chunk],
        }
    }

    fn load(&mut self, rank: usize, place: &Place, part: u32) -> Option<Number> {
        let owner = place.rank.map_or(rank, Rank::index);
        *self.cell(owner, place.range.buffer, (place.range.start + part) as usize)
    }

    /// One chunk of one step of a rank, if it can go on.
    fn advance(&mut self, rank: usize) -> bool {
        let n = self.plan.ranks as usize;
        let plan = self.plan;
        let Some(step) = plan.program(Rank(rank as u32), ChannelId(0)).steps.get(self.at[rank].0) else {
            return false;
        };
        let part = self.at[rank].1;
        let (from, to) = (step.from().map(|f| f.index() * n + rank), step.to().map(|t| rank * n + t.index()));
        let own = |range: &Range| Place { rank: None, range: *range };
        let moves = step.chunk_len() > 0;
        if moves && from.is_some_and(|f| self.data[f].is_empty()) {
            return false;
        }
        if moves && to.is_some_and(|t| self.data[t].len() >= SLOTS as usize) {
            return false;
        }
        let (srcs, dst): (Vec<Place>, Option<Range>) = match step {
            Step::Signal { .. } => {
                self.signals[to.unwrap()] += 1;
                (vec![], None)
            }
            Step::Wait { .. } => {
                if self.signals[from.unwrap()] == 0 {
                    return false;
                }
                self.signals[from.unwrap()] -= 1;
                (vec![], None)
            }
            Step::Send { src, .. } | Step::RecvReduceSend { src, .. } => (vec![own(src)], None),
            Step::Recv { dst, .. } | Step::RecvCopySend { dst, .. } => (vec![], Some(*dst)),
            Step::RecvReduceCopy { src, dst, .. } | Step::RecvReduceCopySend { src, dst, .. } => {
                (vec![own(src)], Some(*dst))
            }
            Step::Copy { src, dst } => (vec![*src], Some(*dst)),
            Step::Reduce { srcs, dst } => (srcs.clone(), Some(*dst)),
        };
        if moves {
            let mut sum = Some(0);
            if let Some(f) = from {
                sum = self.data[f].pop_front().unwrap();
            }
            for place in &srcs {
                let value = self.load(rank, place, part);
                sum = sum.and_then(|s| value.and_then(|v| s.checked_add(v)));
            }
            if let Some(dst) = dst {
                *self.cell(rank, dst.buffer, (dst.start + part) as usize) = sum;
            }
            if let Some(t) = to {
                self.data[t].push_back(sum);
            }
        }
        self.at[rank].1 += 1;
        if self.at[rank].1 >= step.chunk_len() {
            self.at[rank] = (self.at[rank].0 + 1, 0);
        }
        true
    }

    /// Whether it ends, with every output right and nothing left over. `order` decides whose turn it is.
    fn comes_out_right(mut self, mut order: u64) -> bool {
        let n = self.plan.ranks as usize;
        loop {
            order = order.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Runs one rank for a while, so that some get far ahead of others.
            let first = (order >> 33) as usize % n;
            let burst = 1 + (order >> 40) as usize % 8;
            let moved = (0..burst).take_while(|_| self.advance(first)).count();
            if moved == 0 && !(0..n).any(|r| self.advance((first + r) % n)) {
                break;
            }
        }
        let plan = self.plan;
        let ended = (0..n).all(|r| self.at[r].0 == plan.program(Rank(r as u32), ChannelId(0)).steps.len());
        let clean = self.data.iter().all(|d| d.is_empty()) && self.signals.iter().all(|s| *s == 0);
        let inputs = self.input[0].len();
        let c = plan.chunks as usize;
        let worth = |r: usize, k: usize| BASE.pow((r * inputs + k) as u32);
        let outputs = (plan.collective.output_blocks(plan.ranks) * plan.chunks) as usize;
        let right = (0..n).filter(|r| plan.collective.has_output(Rank(*r as u32))).all(|r| {
            (0..outputs).all(|k| {
                let want = match plan.collective {
                    Collective::AllReduce => (0..n).map(|q| worth(q, k)).sum(),
                    Collective::AllGather => worth(k / c, k % c),
                    Collective::ReduceScatter => (0..n).map(|q| worth(q, r * c + k)).sum(),
                    Collective::Broadcast { root } => worth(root.index(), k),
                    Collective::Reduce { .. } => (0..n).map(|q| worth(q, k)).sum(),
                    Collective::AllToAll => worth(k / c, r * c + k % c),
                    Collective::Gather { .. } => worth(k / c, k % c),
                    Collective::Scatter { root } => worth(root.index(), r * c + k),
                    Collective::SendRecv => worth((r + n - 1) % n, k),
                };
                *self.cell(r, Buffer::Output, k) == Some(want)
            })
        });
        ended && clean && right
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Drop,
    SwapWithNext,
    Duplicate,
    /// Another peer or another chunk.
    Retarget(u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        Just(Damage::Drop),
        Just(Damage::SwapWithNext),
        Just(Damage::Duplicate),
        any::<u8>().prop_map(Damage::Retarget),
    ]
}

/// The numbers must fit: chunks of inputs over all ranks, base 7, 128 bits.
fn cases() -> impl Strategy<Value = Plan> {
    let algorithms = prop::sample::select(Algorithm::ALL.to_vec());
    (2u32..5, algorithms, any::<prop::sample::Index>()).prop_filter_map(
        "no such plan",
        |(ranks, algorithm, which)| {
            let collectives = collectives(ranks);
            let plan = generate(algorithm, collectives[which.index(collectives.len())], ranks, 1).ok()?;
            let inputs = plan.collective.input_blocks(ranks) * plan.chunks * ranks;
            (inputs <= 16).then_some(plan)
        },
    )
}

fn apply(plan: &mut Plan, at: prop::sample::Index, damage: &Damage) {
    let lens: Vec<usize> = plan.programs.iter().map(|p| p.steps.len()).collect();
    let mut i = at.index(lens.iter().sum::<usize>().max(1));
    let Some(program) = lens.iter().position(|len| {
        let here = i < *len;
        if !here {
            i -= len;
        }
        here
    }) else {
        return;
    };
    let (ranks, rank) = (plan.ranks, plan.programs[program].rank);
    let chunks = |b: Buffer, plan: &Plan| plan.buffer_chunks(b).unwrap();
    let limits = (chunks(Buffer::Input, plan), chunks(Buffer::Output, plan));
    let steps = &mut plan.programs[program].steps;
    match damage {
        Damage::Drop => {
            steps.remove(i);
        }
        Damage::SwapWithNext if i + 1 < steps.len() => steps.swap(i, i + 1),
        Damage::SwapWithNext => {}
        Damage::Duplicate => steps.insert(i, steps[i].clone()),
        Damage::Retarget(by) => {
            let other = |peer: &mut Rank| {
                let shift = 1 + u32::from(*by) % ranks.saturating_sub(1).max(1);
                let next = Rank((peer.0 + shift) % ranks);
                *peer = if next == rank { Rank((next.0 + 1) % ranks) } else { next };
            };
            let chunk = |range: &mut Range| {
                let limit = match range.buffer {
                    Buffer::Input => limits.0,
                    Buffer::Output => limits.1,
                    Buffer::Scratch(_) => 1,
                };
                range.start = (range.start + 1 + u32::from(*by) % 3) % (limit + 1 - range.len);
            };
            match &mut steps[i] {
                Step::Signal { to } => other(to),
                Step::Wait { from } => other(from),
                Step::Send { to, src } if by % 2 == 0 => {
                    other(to);
                    let _ = src;
                }
                Step::Send { src, .. } | Step::RecvReduceSend { src, .. } => chunk(src),
                Step::Recv { from, .. } if by % 2 == 0 => other(from),
                Step::Recv { dst, .. } | Step::RecvCopySend { dst, .. } => chunk(dst),
                Step::RecvReduceCopy { src, .. } if by % 2 == 0 => chunk(src),
                Step::RecvReduceCopySend { src, .. } if by % 2 == 0 => chunk(src),
                Step::RecvReduceCopy { dst, .. } | Step::RecvReduceCopySend { dst, .. } => chunk(dst),
                Step::Copy { src, .. } => chunk(&mut src.range),
                Step::Reduce { srcs, .. } => {
                    let k = usize::from(*by) % srcs.len();
                    chunk(&mut srcs[k].range);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Sound: what the verifier accepts is right in every order tried.
    #[test]
    fn an_accepted_plan_is_right_in_any_order(
        plan in cases(), in_place: bool, hits in prop::collection::vec((any::<prop::sample::Index>(), damage()), 0..3), orders: [u64; 8],
    ) {
        let mut plan = plan;
        for (at, damage) in &hits {
            apply(&mut plan, *at, damage);
        }
        let accepted = verify(&plan, in_place).is_ok();
        if hits.is_empty() {
            prop_assert_eq!(accepted, !in_place || plan.collective.alias().is_some());
        }
        if accepted {
            for order in orders {
                prop_assert!(Interpreter::new(&plan, in_place).comes_out_right(order), "accepted, yet wrong: {:?}", plan);
            }
        }
    }

    /// Not stricter than it must be where nothing is concurrent: a damaged ring, which has no direct reads, that comes out right is
    /// accepted, unless it left something for the next tile.
    #[test]
    fn a_ring_that_is_right_is_accepted(
        ranks in 2u32..5, which: prop::sample::Index, in_place: bool, at: prop::sample::Index, damage in damage(), order: u64,
    ) {
        let on_ring: Vec<_> = collectives(ranks).into_iter().filter(|c| Algorithm::Ring.supports(*c)).collect();
        let mut plan = generate(Algorithm::Ring, on_ring[which.index(on_ring.len())], ranks, 1).unwrap();
        prop_assume!(plan.collective.input_blocks(ranks) * plan.chunks * ranks <= 16);
        apply(&mut plan, at, &damage);
        prop_assume!(plan.check().is_ok());
        if Interpreter::new(&plan, in_place).comes_out_right(order) {
            let verdict = verify(&plan, in_place);
            prop_assert!(verdict.is_ok(), "right, yet refused: {} {:?}", verdict.unwrap_err(), plan);
        }
    }
}
