//! Timing every algorithm at every size.

use std::collections::BTreeSet;
use std::time::Duration;

use ringlab_engine::exec::{ExecError, Hardware, Session, SessionSpec};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::plan::{self, Algorithm, GenerateError, Plan};
use ringlab_engine::tuner::Protocol;
use ringlab_engine::types::{Collective, DType, Factors, RedOp};

use crate::args::Args;
use crate::bench::{Opener, Shape, median};

/// A round of executions back to back is cut to about this long: at large sizes one is enough.
const ROUND: Duration = Duration::from_millis(200);

/// Rounds of different algorithms take turns, so that a slow moment of the machine hits all of them; as many are kept ready at a time as
/// have buffers of this many bytes together, but not too many, since their connections take memory as well.
const TOGETHER: u64 = 1 << 28;
const MOST_TOGETHER: u64 = 8;

/// One algorithm at one size.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Point {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    pub collective: &'static str,
    pub ranks: u32,
    pub channels: u32,
    /// Of the larger buffer.
    pub bytes: u64,
    /// What carried it out: the interpreter or a specialised kernel.
    pub kernel: &'static str,
    /// Executions a round.
    pub iters: u32,
    /// Microseconds per execution, by round.
    pub rounds_us: Vec<f64>,
}

impl Point {
    pub fn time_us(&self) -> f64 {
        median(&self.rounds_us)
    }
}

pub struct Measurement {
    pub points: Vec<Point>,
    /// What the back end refused, and why.
    pub skipped: Vec<String>,
    /// Algorithms that have no plan for the collective.
    pub no_plan: BTreeSet<Algorithm>,
    pub hardware: Hardware,
}

/// All algorithms of a collective on a number of ranks, at all sizes, protocols and numbers of channels. Out of place; checked when `-c` is above 0.
/// `progress` is told each point.
pub fn measure(
    args: &Args,
    open: &Opener,
    collective: Collective,
    ranks: u32,
    channels: &[u32],
    devices: &[u32],
    mut progress: impl FnMut(&Point),
) -> Result<Measurement, String> {
    let dtype = args.dtype.list(&DType::ALL)[0];
    let op = if collective.reduces() { args.op.list(&RedOp::ALL)[0] } else { RedOp::Sum };
    let mut shapes: Vec<Shape> =
        args.sizes().map(|bytes| Shape::new(collective, ranks, bytes, dtype)).collect();
    shapes.dedup();
    let mut plans = Vec::new();
    let (mut skipped, mut no_plan) = (Vec::new(), BTreeSet::new());
    for algorithm in Algorithm::ALL {
        for &channels in channels {
            match plan::generate(algorithm, collective, ranks, channels) {
                Ok(plan) => {
                    let protocols = &args.tune.tune_protocols;
                    plans.extend(protocols.iter().map(|protocol| (algorithm, *protocol, plan.clone())));
                }
                Err(GenerateError::Unsupported { .. }) => {
                    no_plan.insert(algorithm);
                }
                Err(why) => skipped.push(format!("{algorithm}: {}", why.text().en)),
            }
        }
    }
    let (mut points, mut hardware) = (Vec::new(), None);
    let mut refused = Vec::new();
    for shape in shapes {
        let spec = |plan: &Plan, protocol: Protocol| SessionSpec {
            plan: plan.clone(),
            block: shape.count,
            dtype,
            op,
            factors: Factors::Parity,
            in_place: false,
            slot_bytes: args.slot_bytes(),
            fifo: Fifo::of(protocol),
            deadline: Duration::from_secs(args.timeout),
            devices: devices.to_vec(),
            trace_spans: 0,
            kernel: args.kernel,
        };
        let together = (TOGETHER / (2 * u64::from(ranks) * shape.bytes).max(1)).clamp(1, MOST_TOGETHER);
        for group in plans.chunks(together as usize) {
            let failed = |algorithm: &Algorithm, err: String| {
                format!(
                    "{algorithm} for {} of {} bytes on {ranks} ranks: {err}",
                    collective.name(),
                    shape.bytes
                )
            };
            let mut runs = Vec::new();
            for (algorithm, protocol, plan) in group {
                if refused.contains(&(*algorithm, *protocol, plan.channels)) {
                    continue;
                }
                match Running::start(args, open, *algorithm, spec(plan, *protocol)) {
                    Ok(run) => runs.push(run),
                    Err(ExecError::Refused(why)) => {
                        skipped.push(format!(
                            "{algorithm} {protocol} with {} channels on {ranks} ranks: {why}",
                            plan.channels
                        ));
                        refused.push((*algorithm, *protocol, plan.channels));
                    }
                    Err(err) => return Err(failed(algorithm, err.to_string())),
                }
            }
            for _ in 0..args.rounds {
                for run in &mut runs {
                    run.round().map_err(|err| failed(&run.algorithm, err))?;
                }
            }
            for mut run in runs {
                run.check(args.check).map_err(|err| failed(&run.algorithm, err))?;
                let described = run.session.describe();
                let point = Point {
                    algorithm: run.algorithm,
                    protocol: run.protocol,
                    collective: collective.name(),
                    ranks,
                    channels: run.channels,
                    bytes: shape.bytes,
                    kernel: described.kernel,
                    iters: run.iters,
                    rounds_us: run.rounds_us,
                };
                progress(&point);
                points.push(point);
                hardware = Some(described);
            }
        }
    }
    // What cannot run at all sizes is not to be chosen at some.
    points.retain(|point: &Point| !refused.contains(&(point.algorithm, point.protocol, point.channels)));
    let hardware = hardware.ok_or("nothing was measured: no size or no algorithm is left")?;
    Ok(Measurement { points, skipped, no_plan, hardware })
}

/// A warm session and its rounds so far.
struct Running {
    algorithm: Algorithm,
    protocol: Protocol,
    channels: u32,
    session: Box<dyn Session>,
    iters: u32,
    rounds_us: Vec<f64>,
}

impl Running {
    fn start(
        args: &Args,
        open: &Opener,
        algorithm: Algorithm,
        spec: SessionSpec,
    ) -> Result<Running, ExecError> {
        let (channels, protocol) = (spec.plan.channels, spec.fifo.protocol);
        let mut session = open(spec)?;
        session.fill(0)?;
        let warmup = args.warmup.max(1);
        let one = session.run(warmup)?.wall / warmup;
        let fitting = (ROUND.as_nanos() / one.as_nanos().max(1)).min(u128::from(args.iters)) as u32;
        Ok(Running { algorithm, protocol, channels, session, iters: fitting.max(1), rounds_us: Vec::new() })
    }

    fn round(&mut self) -> Result<(), String> {
        let timing = self.session.run(self.iters).map_err(|err| err.to_string())?;
        self.rounds_us.push(timing.wall.as_secs_f64() * 1e6 / f64::from(self.iters));
        Ok(())
    }

    fn check(&mut self, times: u32) -> Result<(), String> {
        for seed in 1..=u64::from(times) {
            self.session.fill(seed).map_err(|err| err.to_string())?;
            self.session.run(1).map_err(|err| err.to_string())?;
            let wrong = self.session.check(seed).map_err(|err| err.to_string())?.wrong;
            if wrong > 0 {
                return Err(format!("{wrong} elements are wrong, so its time means nothing"));
            }
        }
        Ok(())
    }
}
