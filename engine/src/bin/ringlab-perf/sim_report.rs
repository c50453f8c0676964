//! `--sim-report`: measured timelines held against simulated ones. A model is fitted to every second size; the other sizes are what the
//! errors are reported for, so that none of them was fitted to itself.

use std::collections::{BTreeMap, BTreeSet};

use ringlab_engine::cost::SimModel;
use ringlab_engine::exec::{self, ExecError, Hardware, SessionSpec};
use ringlab_engine::fifo::{Fifo, Protocol};
use ringlab_engine::plan::{Algorithm, Plan, generate};
use ringlab_engine::sim::{Observation, fit, simulate_with};
use ringlab_engine::trace::Trace;
use ringlab_engine::types::{ChannelId, DType, Factors, Rank, RedOp};
use ringlab_engine::verify::verify_with;
use serde_json::{Value, json};

use crate::args::Args;
use crate::bench::{Shape, median};

/// What errors are reported for.
type Key = (Algorithm, Protocol);

/// One algorithm with one protocol at one size.
struct Measured {
    key: Key,
    plan: Plan,
    shape: Shape,
    /// The run of median length.
    trace: Trace,
}

/// Relative errors, as fractions of the measured time.
struct Errors {
    /// Of the whole, by size.
    whole: Vec<f64>,
    /// Of the moment at which a step ends, over all steps of all sizes.
    steps: Vec<f64>,
}

/// Prints the table and returns what `--json` writes.
pub fn run(args: &Args, devices: &[u32]) -> Result<Value, String> {
    let dtype = args.dtype.list(&DType::ALL)[0];
    let op = args.ops()[0];
    let sizes: Vec<u64> = args.sizes().filter(|bytes| *bytes >= dtype.size() as u64).collect();
    if sizes.len() < 4 {
        return Err(format!("--sim-report needs four sizes or more, not {}; widen -b and -e", sizes.len()));
    }
    let mut rows = Vec::new();
    let mut hardware = None;
    for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(args.collective())) {
        let plan = generate(algorithm, args.collective(), args.ranks, args.channels());
        let plan = plan.map_err(|why| why.to_string())?;
        for protocol in protocols(args, &plan) {
            let fifo = args.fifo.with(protocol);
            if let Err(why) = verify_with(&plan, false, fifo) {
                println!("# {algorithm} with {fifo} is left out: {why}");
                continue;
            }
            for &bytes in &sizes {
                let shape = Shape::new(plan.collective, plan.ranks, bytes, dtype);
                let (trace, on) = measure(args, devices, &plan, fifo, shape, dtype, op)
                    .map_err(|why| format!("{algorithm}, {fifo}, {bytes} bytes: {why}"))?;
                hardware = Some(on);
                if trace.duration_ns() > 0 {
                    let key = (algorithm, protocol);
                    rows.push((bytes, Measured { key, plan: plan.clone(), shape, trace }));
                }
            }
        }
    }
    let for_fit = |bytes: u64| sizes.iter().position(|size| *size == bytes).is_some_and(|i| i % 2 == 0);
    let observations: Vec<_> = rows
        .iter()
        .filter(|(bytes, _)| for_fit(*bytes))
        .map(|(_, row)| Observation {
            plan: &row.plan,
            block: row.shape.count,
            dtype,
            slot_bytes: args.slot_bytes(),
            fifo: args.fifo.with(row.key.1),
            measured_ns: row.trace.duration_ns() as f64,
        })
        .collect();
    let start = SimModel { name: "fitted".into(), ..SimModel::default() };
    let model = fit(&observations, &start).map_err(|why| why.to_string())?;
    let mut found: BTreeMap<Key, Errors> = BTreeMap::new();
    for (_, row) in rows.iter().filter(|(bytes, _)| !for_fit(*bytes)) {
        let fifo = args.fifo.with(row.key.1);
        let simulated = simulate_with(&row.plan, &model, row.shape.count, dtype, args.slot_bytes(), fifo);
        let simulated = simulated.map_err(|why| why.to_string())?;
        let errors = found.entry(row.key).or_insert(Errors { whole: Vec::new(), steps: Vec::new() });
        compare(&row.trace, &simulated, errors);
    }
    let hardware = hardware.ok_or("nothing was measured: all sizes are empty")?;
    print(args, &sizes, &model, &hardware, &found);
    Ok(report(args, &sizes, &model, &hardware, &found))
}

/// That of --proto, or all; one where a plan has no data on connections, as all are the same to it.
fn protocols(args: &Args, plan: &Plan) -> Vec<Protocol> {
    let mut steps = plan.programs.iter().flat_map(|program| &program.steps);
    let crosses = steps.any(|step| step.to().is_some() && step.chunk_len() > 0);
    match args.fifo.proto {
        None if crosses => Protocol::ALL.to_vec(),
        asked => vec![asked.unwrap_or_default()],
    }
}

/// The traced execution of median length of `--rounds`, after the warm-up.
fn measure(
    args: &Args,
    devices: &[u32],
    plan: &Plan,
    fifo: Fifo,
    shape: Shape,
    dtype: DType,
    op: RedOp,
) -> Result<(Trace, Hardware), ExecError> {
    let spec = SessionSpec {
        plan: plan.clone(),
        block: shape.count,
        dtype,
        op,
        factors: Factors::Parity,
        in_place: false,
        slot_bytes: args.slot_bytes(),
        fifo,
        deadline: std::time::Duration::from_secs(args.timeout),
        devices: devices.to_vec(),
        trace_spans: 200_000,
        kernel: args.kernel,
    };
    let mut session = exec::open(args.backend, spec)?;
    session.fill(1)?;
    session.run(args.warmup.max(1))?;
    let traces = (0..args.rounds).map(|_| session.run_traced().map(|(_, trace)| trace));
    let mut traces: Vec<Trace> = traces.collect::<Result<_, _>>()?;
    traces.sort_by_key(Trace::duration_ns);
    Ok((traces.swap_remove(traces.len() / 2), session.describe()))
}

fn compare(measured: &Trace, simulated: &Trace, errors: &mut Errors) {
    let length = measured.duration_ns() as f64;
    let relative = |a: u64, b: u64| (a as f64 - b as f64).abs() / length;
    errors.whole.push(relative(simulated.duration_ns(), measured.duration_ns()));
    let ends = |trace: &Trace| -> BTreeMap<(Rank, ChannelId, u64, u32), u64> {
        trace.spans.iter().map(|s| ((s.rank, s.channel, s.tile, s.step), s.end_ns)).collect()
    };
    let simulated = ends(simulated);
    let pairs = ends(measured).into_iter().filter_map(|(key, end)| Some((end, *simulated.get(&key)?)));
    errors.steps.extend(pairs.map(|(measured, simulated)| relative(measured, simulated)));
}

fn percent(errors: &[f64]) -> f64 {
    if errors.is_empty() { f64::NAN } else { 100.0 * median(errors) }
}

fn print(args: &Args, sizes: &[u64], model: &SimModel, hardware: &Hardware, found: &BTreeMap<Key, Errors>) {
    let protocols: BTreeSet<Protocol> = found.keys().map(|(_, protocol)| *protocol).collect();
    println!(
        "# ringlab-perf {}: {} measured on {} and simulated; ranks {} channels {} slot {} chunkSteps {} sliceSteps {} rounds {}\n\
         # measured: the traced execution of median length; simulated: {}\n\
         # fitted to every second of {} sizes, {} to {} bytes, over all rows; the errors are those at the other sizes\n\
         #\n# {:<18}{:<8}{:>6}{:>22}{:>22}{:>26}",
        env!("CARGO_PKG_VERSION"),
        args.collective().name(),
        hardware.device,
        args.ranks,
        args.channels(),
        args.slot_bytes(),
        args.fifo.chunk_steps,
        args.fifo.slice_steps,
        args.rounds,
        model.describe(protocols),
        sizes.len(),
        sizes[0],
        sizes[sizes.len() - 1],
        "algorithm",
        "proto",
        "sizes",
        "time, median error",
        "time, largest error",
        "ends of steps, median",
    );
    for ((algorithm, protocol), errors) in found {
        let largest = 100.0 * errors.whole.iter().copied().fold(0.0, f64::max);
        println!(
            "  {:<18}{:<8}{:>6}{:>20.1} %{largest:>20.1} %{:>24.1} %",
            algorithm.name(),
            protocol.name(),
            errors.whole.len(),
            percent(&errors.whole),
            percent(&errors.steps),
        );
    }
}

fn report(
    args: &Args,
    sizes: &[u64],
    model: &SimModel,
    hardware: &Hardware,
    found: &BTreeMap<Key, Errors>,
) -> Value {
    let rows = found.iter().map(|((algorithm, protocol), errors)| {
        json!({
            "algorithm": algorithm.name(),
            "protocol": protocol.name(),
            "sizes": errors.whole.len(),
            "time_median_error": median(&errors.whole),
            "time_errors": errors.whole,
            "step_ends_median_error": (!errors.steps.is_empty()).then(|| median(&errors.steps)),
        })
    });
    json!({
        "version": 2,
        "program": "ringlab-perf --sim-report",
        "command": std::env::args().collect::<Vec<_>>(),
        "hardware": { "backend": hardware.backend, "device": hardware.device, "driver": hardware.driver },
        "collective": args.collective().name(),
        "ranks": args.ranks,
        "channels": args.channels(),
        "slot_bytes": args.slot_bytes(),
        "chunk_steps": args.fifo.chunk_steps,
        "slice_steps": args.fifo.slice_steps,
        "rounds": args.rounds,
        "sizes": sizes,
        "fitted_to": "sizes at even places",
        "model": model,
        "rows": rows.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_engine::types::Collective;

    #[test]
    fn a_trace_has_no_error_against_itself_and_half_against_one_twice_as_long() {
        let plan = generate(Algorithm::Ring, Collective::AllReduce, 4, 1).unwrap();
        let model = SimModel::default();
        let trace = simulate_with(&plan, &model, 4096, DType::F32, 4096, Fifo::default()).unwrap();
        let mut double = trace.clone();
        double.spans.iter_mut().for_each(|span| span.end_ns *= 2);
        let mut errors = Errors { whole: vec![], steps: vec![] };
        compare(&trace, &trace, &mut errors);
        compare(&double, &trace, &mut errors);
        assert_eq!(errors.whole, [0.0, 0.5]);
        assert_eq!(errors.steps.len(), 2 * trace.spans.len());
        assert_eq!(errors.steps[0], 0.0);
    }
}
