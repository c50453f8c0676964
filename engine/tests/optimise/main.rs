//! Programs optimised for a fused launch: they leave what the plan leaves, however blocks take turns, and each rewrite is refused where
//! it would not.

mod elision;
mod forwarding;
mod generated;
mod left_alone;
mod machine;

use ringlab_engine::exec::optimise::{Freedom, fused};
use ringlab_engine::exec::program::{Action, Operand, Program, canonical, compile};
use ringlab_engine::plan::Plan;
use ringlab_engine::plan::text::parse;

fn plan(settings: &str, text: &str) -> Plan {
    let text = format!("plan written v1\ncollective all_reduce\n{settings}\n{text}");
    parse(&text).unwrap_or_else(|err| panic!("{err}")).plan
}

fn place(plan: &Plan, in_place: bool) -> impl Fn(Operand) -> Operand {
    let (collective, chunks) = (plan.collective, plan.chunks);
    move |operand| if in_place { canonical(collective, chunks, operand) } else { operand }
}

fn optimised(plan: &Plan, tiles: u64, in_place: bool) -> (Vec<Program>, Freedom) {
    let (programs, _) = compile(plan).unwrap();
    fused(programs, tiles, place(plan, in_place))
}

/// What is left, step by step: data steps by name and number of destinations, signals and waits by peer.
fn shown(program: &Program) -> String {
    let step = |instr: &ringlab_engine::exec::program::Instr| match instr.action {
        Action::Signal => format!(">{}", instr.to.unwrap().rank),
        Action::Wait => format!("<{}", instr.from.unwrap().rank),
        _ => format!("{}:{}", instr.name, instr.dsts().count()),
    };
    program.steps.iter().map(step).collect::<Vec<_>>().join(" ")
}

/// All programs, and that they leave what the plan leaves.
fn left(plan: &Plan, tiles: u64, in_place: bool) -> Vec<String> {
    let (programs, _) = compile(plan).unwrap();
    let (optimised, _) = optimised(plan, tiles, in_place);
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = ringlab_engine::data::mix(state);
        (state % n as u64) as usize
    };
    machine::same((&programs, &optimised), tiles, &place(plan, in_place), 200, &mut below).unwrap();
    optimised.iter().map(shown).collect()
}
