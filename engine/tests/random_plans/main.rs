//! Plans nobody would write: random data flows, damaged in random ways. What the verifier accepts has to run exactly on the CPU back end,
//! print and parse to itself, and move in a simulation the bytes it moves for real.

mod damage;
mod flow;
#[path = "../optimise/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use ringlab_engine::cost::SimModel;
use ringlab_engine::data::mix;
use ringlab_engine::exec::optimise::fused;
use ringlab_engine::exec::program::{Operand, Program, canonical, compile};
use ringlab_engine::exec::{ExecError, KernelChoice, SessionSpec, cpu};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::text::{parse, print};
use ringlab_engine::plan::{Plan, Step};
use ringlab_engine::sim::simulate_with;
use ringlab_engine::trace::{Crossing, Span, Trace};
use ringlab_engine::types::{ChannelId, DType, Factors, Rank, RedOp};
use ringlab_engine::verify::{verify, verify_with};

/// A stream of numbers that depends on the seed alone, so that a failing seed says everything.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(self.0) % n as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

fn random_plan(dice: &mut Dice) -> Plan {
    let mut plan = flow::undamaged(dice);
    if dice.percent(30) {
        damage::widen(&mut plan, dice.of(&[2, 3]));
        plan.programs.iter_mut().for_each(|program| damage::split(dice, &mut program.steps));
    }
    if dice.percent(60) {
        plan.programs.iter_mut().for_each(|program| damage::join(dice, &mut program.steps));
    }
    for _ in 0..dice.of(&[0, 0, 1, 1, 2, 3]) {
        damage::damage(dice, &mut plan);
    }
    plan
}

/// By rank, channel, tile and step: bytes of payload and on the wire, and the steps of its connections.
fn bytes(trace: &Trace) -> BTreeMap<(Rank, ChannelId, u64, u32), (u64, Crossing)> {
    let timeless = |s: &Span| Crossing { credit_ns: None, ..s.crossing.clone() };
    trace.spans.iter().map(|s| ((s.rank, s.channel, s.tile, s.step), (s.bytes, timeless(s)))).collect()
}

/// Any protocol, and any cut for which the plan's connections are long enough.
fn random_fifo(dice: &mut Dice, plan: &Plan, in_place: bool) -> Fifo {
    let protocol = dice.of(&Protocol::ALL);
    let (chunk_steps, slice_steps) =
        dice.of(&[(1, 1), (1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (8, 1), (8, 8)]);
    let fifo = Fifo { protocol, chunk_steps, slice_steps };
    if verify_with(plan, in_place, fifo).is_ok() { fifo } else { Fifo::of(protocol) }
}

/// Neither what is moved nor whether it ends depends on times.
fn random_model(dice: &mut Dice) -> SimModel {
    SimModel {
        alpha_ns: dice.of(&[0.0, 1000.0]),
        ll_alpha_ns: dice.of(&[0.0, 5000.0]),
        step_ns: dice.of(&[0.0, 100.0]),
        link_gbps: dice.of(&[0.01, 100.0]),
        ..SimModel::default()
    }
}

fn runs_exactly(dice: &mut Dice, plan: &Plan, in_place: bool) -> Result<(), String> {
    let sizes = [0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 100, 129, 257];
    let (dtype, op) = (dice.of(&DType::ALL), dice.of(&RedOp::ALL));
    let (block, slot_bytes) = (dice.of(&sizes), dice.of(&[16, 17, 32, 48, 100, 256]));
    let fifo = random_fifo(dice, plan, in_place);
    let spec = SessionSpec {
        plan: plan.clone(),
        block,
        dtype,
        op,
        factors: Factors::Parity,
        in_place,
        slot_bytes,
        fifo,
        deadline: Duration::from_secs(10),
        devices: vec![],
        trace_spans: 100_000,
        kernel: KernelChoice::Auto,
    };
    let what = |what: &str| {
        format!("{what}: {dtype} {op} block {block} slot {slot_bytes} {fifo} in place {in_place}")
    };
    let fail = |err: ExecError| what(&err.to_string());
    let mut session = cpu::open(spec).map_err(fail)?;
    let seed = dice.0;
    let mut traced = None;
    for round in 0..3 {
        session.fill(seed + round).map_err(fail)?;
        match round {
            0 => traced = Some(session.run_traced().map_err(fail)?.1),
            1 => _ = session.run(1).map_err(fail)?,
            // In place, a repetition works on its own results.
            _ => _ = session.run(if in_place { 1 } else { 4 }).map_err(fail)?,
        }
        let report = session.check(seed + round).map_err(fail)?;
        if report.wrong > 0 {
            return Err(what(&format!("round {round}: {} wrong, {:?}", report.wrong, report.first_wrong)));
        }
    }
    let simulated = simulate_with(plan, &random_model(dice), block, dtype, slot_bytes, fifo)
        .map_err(|err| what(&err.to_string()))?;
    let (real, simulated) = (bytes(&traced.expect("round 0")), bytes(&simulated));
    if real != simulated {
        let first = real.iter().zip(&simulated).find(|(a, b)| a != b);
        return Err(what(&format!("real and simulated bytes differ: {first:?}")));
    }
    Ok(())
}

/// An error says what went wrong with the seed's plan, and which that is.
fn try_seed(seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed);
    let plan = random_plan(&mut dice);
    let shown = |why: String| format!("{why}\nseed {seed}\n{}", print(&plan));
    if plan.check().is_ok() {
        let again = parse(&print(&plan)).map_err(|err| shown(err.to_string()))?.plan;
        if again != plan {
            return Err(shown("printed and parsed, it is another plan".into()));
        }
    }
    for in_place in [false, true] {
        if verify(&plan, in_place).is_ok() {
            runs_exactly(&mut dice, &plan, in_place).map_err(shown)?;
        }
    }
    Ok(())
}

/// `None` if the plan cannot be compiled, else its programs and those for a fused launch, if they are others.
type Fused = Option<(Vec<Program>, Option<Vec<Program>>)>;

fn fuse(plan: &Plan, tiles: u64, places: &dyn Fn(Operand) -> Operand) -> Fused {
    let (plain, _) = compile(plan).ok()?;
    let (optimised, _) = fused(plain.clone(), tiles, places);
    let rewritten = format!("{plain:?}") != format!("{optimised:?}");
    Some((plain, rewritten.then_some(optimised)))
}

fn places(plan: &Plan, in_place: bool) -> impl Fn(Operand) -> Operand {
    let (collective, chunks) = (plan.collective, plan.chunks);
    move |operand| if in_place { canonical(collective, chunks, operand) } else { operand }
}

/// Also plans that compute something else than their collective, as long as it does not depend on timing.
fn fused_alike(seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed);
    let plan = random_plan(&mut dice);
    for in_place in [false, true] {
        if in_place && plan.collective.alias().is_none() {
            continue;
        }
        let places = places(&plan, in_place);
        for tiles in 1..=3 {
            let Some((plain, Some(optimised))) = fuse(&plan, tiles, &places) else { continue };
            machine::same((&plain, &optimised), tiles, &places, 6, &mut |n| dice.below(n)).map_err(
                |why| format!("{why}\nseed {seed}, in place {in_place}, {tiles} tiles\n{}", print(&plan)),
            )?;
        }
    }
    Ok(())
}

/// The test of fused programs says nothing if hardly one is rewritten, or nothing forwarded.
#[test]
fn random_plans_are_rewritten() {
    let (mut rewritten, mut forwarded, mut verified, mut stay) = (0, 0, 0, 0);
    for seed in 0..400 {
        let plan = random_plan(&mut Dice(mix(seed)));
        let in_place = plan.collective.alias().is_some();
        let accepted = verify(&plan, in_place).is_ok();
        match fuse(&plan, 2, &places(&plan, in_place)) {
            Some((_, Some(programs))) => {
                rewritten += 1;
                verified += u32::from(accepted);
                let also = |program: &Program| program.steps.iter().any(|instr| !instr.also.is_empty());
                forwarded += u32::from(programs.iter().any(also));
            }
            Some((_, None)) if !accepted => stay += 1,
            _ => {}
        }
    }
    assert!(
        rewritten > 100 && forwarded > 40 && verified > 60 && stay > 60,
        "{rewritten} {forwarded} {verified} {stay}"
    );
}

/// The test below says nothing if hardly a plan is accepted, or every one.
#[test]
fn random_plans_are_of_both_kinds() {
    let plans: Vec<Plan> = (0..400).map(|seed| random_plan(&mut Dice(mix(seed)))).collect();
    let accepts = |plan: &&Plan| verify(plan, plan.collective.alias().is_some()).is_ok();
    let accepted = plans.iter().filter(accepts).count();
    assert!((100..300).contains(&accepted), "{accepted} of {}", plans.len());
    let direct = |step: &Step| matches!(step, Step::Copy { src, .. } if src.rank.is_some());
    let long = |step: &Step| step.chunk_len() > 1;
    for kind in [direct, long] {
        let with = |plan: &&Plan| plan.programs.iter().flat_map(|p| &p.steps).any(kind);
        let some = plans.iter().filter(with).filter(accepts).count();
        assert!(some > 20, "{some}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn what_is_accepted_runs_exactly(seed: u64) {
        if let Err(why) = try_seed(seed) {
            prop_assert!(false, "{}", why);
        }
    }

    #[test]
    fn fused_programs_leave_what_the_plan_leaves(seed: u64) {
        if let Err(why) = fused_alike(seed) {
            prop_assert!(false, "{}", why);
        }
    }
}
