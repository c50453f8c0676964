//! A model of a machine from what was measured on it.

use super::{SimError, run};
use crate::cost::SimModel;
use crate::fifo::{Fifo, Protocol};
use crate::plan::Plan;
use crate::types::DType;

/// How long one execution of a plan took.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub plan: &'a Plan,
    /// Elements.
    pub block: u64,
    pub dtype: DType,
    pub slot_bytes: usize,
    pub fifo: Fifo,
    /// From the first span's start to the last one's end.
    pub measured_ns: f64,
}

/// The model with the least mean error, `|ln(simulated / measured)|`, that a descent along one figure at a time finds from `start`: the
/// steps are factors of 4 at first and 1.05 in the end. Link and injection are one figure here. What no observation depends on stays as
/// it was.
///
/// # Errors
/// As [`super::simulate`], and [`SimError::Model`] where a measured time is not positive or there is none.
pub fn fit(observations: &[Observation<'_>], start: &SimModel) -> Result<SimModel, SimError> {
    if observations.is_empty() {
        return Err(SimError::Model { what: "number of observations", got: 0.0 });
    }
    if let Some(bad) = observations.iter().find(|o| !(o.measured_ns.is_finite() && o.measured_ns > 0.0)) {
        return Err(SimError::Model { what: "measured_ns", got: bad.measured_ns });
    }
    let mut best = start.clone();
    let mut errors = observations.iter().map(|one| error(one, &best)).collect::<Result<Vec<f64>, _>>()?;
    for factor in [4.0, 2.0, 1.3, 1.1, 1.05] {
        // Each round improves something or is the last with this factor.
        for _ in 0..12 {
            let before: f64 = errors.iter().sum();
            for (of, figure) in FIGURES {
                for by in [factor, 1.0 / factor] {
                    let mut tried = best.clone();
                    figure(&mut tried, by);
                    let rates = [tried.link_gbps, tried.local_gbps, tried.ll_gbps, tried.ll128_gbps];
                    if !rates.iter().all(|rate| (1e-3..=1e9).contains(rate)) {
                        continue;
                    }
                    let mut got = errors.clone();
                    for (one, error_of) in observations.iter().zip(&mut got) {
                        if of.contains(&one.fifo.protocol) {
                            *error_of = error(one, &tried)?;
                        }
                    }
                    if got.iter().sum::<f64>() < errors.iter().sum() {
                        (best, errors) = (tried, got);
                    }
                }
            }
            if errors.iter().sum::<f64>() >= before {
                break;
            }
        }
    }
    // More digits than the last factor moves would be noise.
    let rounded = |x: f64| format!("{x:.2e}").parse().unwrap_or(x);
    Ok(SimModel {
        alpha_ns: rounded(best.alpha_ns),
        link_gbps: rounded(best.link_gbps),
        injection_gbps: rounded(best.injection_gbps),
        local_gbps: rounded(best.local_gbps),
        step_ns: rounded(best.step_ns),
        ll_alpha_ns: rounded(best.ll_alpha_ns),
        ll128_alpha_ns: rounded(best.ll128_alpha_ns),
        ll_gbps: rounded(best.ll_gbps),
        ll128_gbps: rounded(best.ll128_gbps),
        ..best
    })
}

/// What is fitted, each changed by a factor, and the protocols whose times it changes.
type Figure = (&'static [Protocol], fn(&mut SimModel, f64));

const FIGURES: [Figure; 8] = [
    // Also of signals and of reads of peers' memory, whatever the protocol.
    (&Protocol::ALL, |model, by| model.alpha_ns = latency(model.alpha_ns, by)),
    (&Protocol::ALL, |model, by| model.step_ns = latency(model.step_ns, by)),
    (&Protocol::ALL, |model, by| {
        model.link_gbps *= by;
        model.injection_gbps = model.link_gbps;
    }),
    (&Protocol::ALL, |model, by| model.local_gbps *= by),
    (&[Protocol::Ll], |model, by| model.ll_alpha_ns = latency(model.ll_alpha_ns, by)),
    (&[Protocol::Ll128], |model, by| model.ll128_alpha_ns = latency(model.ll128_alpha_ns, by)),
    (&[Protocol::Ll], |model, by| model.ll_gbps *= by),
    (&[Protocol::Ll128], |model, by| model.ll128_gbps *= by),
];

fn latency(ns: f64, by: f64) -> f64 {
    (ns * by).clamp(0.1, 1e9)
}

fn error(observation: &Observation<'_>, model: &SimModel) -> Result<f64, SimError> {
    let Observation { plan, block, dtype, slot_bytes, fifo, measured_ns } = *observation;
    let simulated = run(plan, model, block, dtype, (fifo, slot_bytes), 0)?.end / 1000;
    Ok(((simulated.max(1) as f64) / measured_ns).ln().abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Algorithm, generate};
    use crate::sim::simulate_with;
    use crate::types::{Collective, Rank};

    #[test]
    fn a_machine_is_found_again_from_its_times() {
        let machine = SimModel {
            name: "hidden".into(),
            alpha_ns: 3000.0,
            link_gbps: 7.0,
            injection_gbps: 7.0,
            local_gbps: 9.0,
            step_ns: 400.0,
            ll_alpha_ns: 900.0,
            ll_gbps: 3.0,
            ..SimModel::default()
        };
        let plan = |algorithm| generate(algorithm, Collective::AllReduce, 4, 1).unwrap();
        let plans = [Algorithm::Ring, Algorithm::OneShot, Algorithm::Exchange, Algorithm::Tree].map(plan);
        let sizes = [16u64, 1024, 65_536, 1 << 20];
        let pairs: Vec<_> = plans.iter().flat_map(|plan| sizes.map(|block| (plan, block))).collect();
        let time = |model: &SimModel, plan: &Plan, block, protocol| {
            let trace = simulate_with(plan, model, block, DType::F32, 1 << 18, Fifo::of(protocol));
            trace.unwrap().duration_ns() as f64
        };
        let observations: Vec<_> = pairs
            .iter()
            .flat_map(|&pair| [Protocol::Simple, Protocol::Ll].map(|protocol| (pair, protocol)))
            .map(|((plan, block), protocol)| Observation {
                plan,
                block,
                dtype: DType::F32,
                slot_bytes: 1 << 18,
                fifo: Fifo::of(protocol),
                measured_ns: time(&machine, plan, block, protocol),
            })
            .collect();
        let found = fit(&observations, &SimModel::default()).unwrap();
        // Held against a collective it has not seen.
        let other = generate(Algorithm::Ring, Collective::Broadcast { root: Rank(1) }, 5, 1).unwrap();
        for (block, protocol) in [100, 300_000].into_iter().zip([Protocol::Simple, Protocol::Ll]) {
            let ratio = time(&found, &other, block, protocol) / time(&machine, &other, block, protocol);
            assert!((0.8..1.25).contains(&ratio), "{block} {protocol}: {ratio} with {found}");
        }
        assert_eq!(found.ll128_alpha_ns, SimModel::default().ll128_alpha_ns, "nothing depends on it");
    }

    #[test]
    fn nothing_measured_gives_no_model() {
        assert!(fit(&[], &SimModel::default()).is_err());
    }
}
