//! A model of a machine from what was measured on it.

use super::{SimError, simulate};
use crate::cost::SimModel;
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
    /// From the first span's start to the last one's end.
    pub measured_ns: f64,
}

/// The model with the least mean error, `|ln(simulated / measured)|`, that a descent along one figure at a time finds from `start`: the
/// steps are factors of 4 at first and 1.05 in the end. Link and injection are one figure here.
///
/// # Errors
/// As [`simulate`], and [`SimError::Model`] where a measured time is not positive or there is none.
pub fn fit(observations: &[Observation<'_>], start: &SimModel) -> Result<SimModel, SimError> {
    if observations.is_empty() {
        return Err(SimError::Model { what: "number of observations", got: 0.0 });
    }
    if let Some(bad) = observations.iter().find(|o| !(o.measured_ns.is_finite() && o.measured_ns > 0.0)) {
        return Err(SimError::Model { what: "measured_ns", got: bad.measured_ns });
    }
    let mut best = start.clone();
    let mut least = error(observations, &best)?;
    for factor in [4.0, 2.0, 1.3, 1.1, 1.05] {
        // Each round improves something or is the last with this factor.
        for _ in 0..12 {
            let before = least;
            for figure in FIGURES {
                for by in [factor, 1.0 / factor] {
                    let mut tried = best.clone();
                    figure(&mut tried, by);
                    let sensible = |x: f64| (1e-3..=1e9).contains(&x);
                    if !(sensible(tried.link_gbps) && sensible(tried.local_gbps)) {
                        continue;
                    }
                    let got = error(observations, &tried)?;
                    if got < least {
                        (best, least) = (tried, got);
                    }
                }
            }
            if least >= before {
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
        ..best
    })
}

/// What is fitted, each changed by a factor.
const FIGURES: [fn(&mut SimModel, f64); 4] = [
    |model, by| model.alpha_ns = (model.alpha_ns * by).clamp(0.1, 1e9),
    |model, by| model.step_ns = (model.step_ns * by).clamp(0.1, 1e9),
    |model, by| {
        model.link_gbps *= by;
        model.injection_gbps = model.link_gbps;
    },
    |model, by| model.local_gbps *= by,
];

fn error(observations: &[Observation<'_>], model: &SimModel) -> Result<f64, SimError> {
    let mut sum = 0.0;
    for Observation { plan, block, dtype, slot_bytes, measured_ns } in observations {
        let simulated = simulate(plan, model, *block, *dtype, *slot_bytes)?.duration_ns();
        sum += ((simulated.max(1) as f64) / measured_ns).ln().abs();
    }
    Ok(sum / observations.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Algorithm, generate};
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
        };
        let plan = |algorithm| generate(algorithm, Collective::AllReduce, 4, 1).unwrap();
        let plans = [Algorithm::Ring, Algorithm::OneShot, Algorithm::Exchange, Algorithm::Tree].map(plan);
        let sizes = [16u64, 1024, 65_536, 1 << 20];
        let pairs: Vec<_> = plans.iter().flat_map(|plan| sizes.map(|block| (plan, block))).collect();
        let time = |model: &SimModel, plan: &Plan, block| {
            simulate(plan, model, block, DType::F32, 1 << 18).unwrap().duration_ns() as f64
        };
        let observations: Vec<_> = pairs
            .iter()
            .map(|&(plan, block)| Observation {
                plan,
                block,
                dtype: DType::F32,
                slot_bytes: 1 << 18,
                measured_ns: time(&machine, plan, block),
            })
            .collect();
        let found = fit(&observations, &SimModel::default()).unwrap();
        // Held against a collective it has not seen.
        let other = generate(Algorithm::Ring, Collective::Broadcast { root: Rank(1) }, 5, 1).unwrap();
        for block in [100, 300_000] {
            let ratio = time(&found, &other, block) / time(&machine, &other, block);
            assert!((0.8..1.25).contains(&ratio), "{block}: {ratio} with {found}");
        }
    }

    #[test]
    fn nothing_measured_gives_no_model() {
        assert!(fit(&[], &SimModel::default()).is_err());
    }
}
