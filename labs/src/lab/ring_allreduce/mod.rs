//! Chapter 12: predict a ring all-reduce, run it, rewrite its plan and run that.

mod judge;
mod plan;

use std::str::FromStr;

use ringlab_engine::plan::{Algorithm, generate, text};
use ringlab_engine::types::{Collective, DType, RedOp};

use super::checker::{Checker, Kind, Needs, Run, Work};
use super::sheet::{Judged, Ruling};
use super::{backend_of, of_field};
use crate::api::{FieldError, VerifyReport};
use crate::form::Values;
use crate::job::{CollectiveTask, Task};
use crate::text::{Lang, Text};

pub(super) struct RingAllReduce;

/// Id of the lab's only task.
const TASK: &str = "all-reduce";
const WARMUP: u32 = 3;
const ITERATIONS: u32 = 10;
const ALGORITHM: Algorithm = Algorithm::Ring;

impl Checker for RingAllReduce {
    fn revision(&self) -> u32 {
        1
    }

    fn needs(&self) -> Needs {
        let named =
            |names: &[&str], kind| names.iter().map(|name| ((*name).to_owned(), kind)).collect::<Vec<_>>();
        let mut params = named(&["ranks"], Kind::Integer);
        params.extend(named(&["size", "dtype", "channels"], Kind::Choice));
        Needs {
            params,
            prediction: named(&["steps", "bytes", "chunk"], Kind::Integer),
            answers: Vec::new(),
            checks: ["correct", "steps", "bytes", "chunk", "traffic", "own_plan"].map(str::to_owned).to_vec(),
            takes_plan: true,
        }
    }

    fn compile(&self, params: &Values, code: Option<&str>, _seed: u64) -> Result<Work, Vec<FieldError>> {
        let backend = backend_of(params);
        let params = Params::read(params)?;
        let code = match code {
            Some(code) => code.to_owned(),
            None => params.starting_plan(Lang::En)?,
        };
        plan::accept(&code, &params).map_err(|refused| vec![refused.into_error()])?;
        let task = Task::Collective(CollectiveTask {
            id: TASK.to_owned(),
            backend,
            plan: code.clone(),
            collective: Collective::AllReduce,
            ranks: params.ranks,
            block: params.elements(),
            dtype: params.dtype,
            op: RedOp::Sum,
            in_place: false,
            warmup: WARMUP,
            iterations: ITERATIONS,
            trace: true,
        });
        Ok(Work { tasks: vec![task], plan: Some(code) })
    }

    fn starting_plan(&self, params: &Values, lang: Lang) -> Result<String, Vec<FieldError>> {
        Params::read(params)?.starting_plan(lang)
    }

    fn verify(&self, params: &Values, code: &str) -> Result<VerifyReport, Vec<FieldError>> {
        Ok(plan::report(code, &Params::read(params)?))
    }

    fn judge(&self, run: &Run) -> Judged {
        let plans = Params::read(run.params).ok().and_then(|params| {
            let ran = text::parse(run.compiled.plan.as_deref()?).ok()?.plan;
            let given = generate(ALGORITHM, Collective::AllReduce, params.ranks, params.channels).ok()?;
            Some((params, ran, given))
        });
        match plans {
            Some((params, ran, given)) => judge::judge(run, &params, &ran, &given),
            None => {
                let checks = self.needs().checks.into_iter();
                let rulings =
                    checks.map(|id| (id, Ruling::unmeasured("all-reduce", "the all-reduce"))).collect();
                Judged { rulings, tables: Vec::new() }
            }
        }
    }
}

/// The lab's parameters in the engine's terms.
#[derive(Debug, Clone, Copy)]
struct Params {
    ranks: u32,
    channels: u32,
    dtype: DType,
    /// Of the whole vector.
    bytes: u64,
}

impl Params {
    fn read(values: &Values) -> Result<Params, Vec<FieldError>> {
        let ranks = values.integer("ranks").and_then(|ranks| u32::try_from(ranks).ok());
        let params = Params {
            ranks: ranks.filter(|ranks| *ranks >= 2).ok_or_else(|| unusable("ranks"))?,
            channels: number(values, "channels")?,
            dtype: number(values, "dtype")?,
            bytes: number(values, "size")?,
        };
        // Equal chunks are what makes one figure the right one for all ranks; see `size` in lab.toml.
        let even = u64::from(params.ranks) * u64::from(params.channels) * 16;
        if params.bytes == 0 || !params.bytes.is_multiple_of(even) || params.bytes > 1 << 40 {
            return Err(vec![of_field(
                "params.size",
                Text::new(
                    format!(
                        "{} B 分不成 {even} B 的整数倍，各 rank 的块就不一样大；请另选一个大小。",
                        params.bytes
                    ),
                    format!(
                        "{} B is no multiple of {even} B, so chunks would differ in size; choose another",
                        params.bytes
                    ),
                ),
            )]);
        }
        Ok(params)
    }

    fn elements(&self) -> u64 {
        self.bytes / self.dtype.size() as u64
    }

    /// Bytes the busiest rank of any all-reduce has to send: 2(N−1)/N · S.
    fn lower_bound(&self) -> u64 {
        2 * u64::from(self.ranks - 1) * (self.bytes / u64::from(self.ranks))
    }

    fn starting_plan(&self, lang: Lang) -> Result<String, Vec<FieldError>> {
        text::parametric(ALGORITHM, Collective::AllReduce, self.ranks, self.channels, lang)
            .map_err(|error| vec![of_field("params.ranks", error.text())])
    }
}

/// A choice whose values are written as the type reads them.
fn number<T: FromStr>(values: &Values, name: &str) -> Result<T, Vec<FieldError>> {
    values.text(name).and_then(|value| value.parse().ok()).ok_or_else(|| unusable(name))
}

/// The catalogue offers a value that the lab's code cannot use.
fn unusable(name: &str) -> Vec<FieldError> {
    vec![of_field(
        &format!("params.{name}"),
        Text::new("这个实验用不了这个值；请另选一个。", "the lab cannot use this value; choose another"),
    )]
}
