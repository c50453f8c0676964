//! `--explain`: choices in words, without running anything.

use ringlab_engine::tuner::nccl::{Comm, Func, Model, Operation, Settings, nvls_supported};
use ringlab_engine::tuner::{Choice, Query};
use ringlab_engine::types::{DType, RedOp};
use serde_json::json;

use crate::args::Args;
use crate::bench::Shape;

pub fn explain(args: &Args) -> Result<(), String> {
    let choices = match args.tune.profile.as_deref() {
        None | Some("nccl") => {
            let per_node = args.ranks / args.tune.nccl_nodes;
            if per_node * args.tune.nccl_nodes != args.ranks {
                return Err(format!(
                    "-g {} ranks do not spread evenly over {} nodes",
                    args.ranks, args.tune.nccl_nodes
                ));
            }
            nccl(args, Comm::dgx_h100(args.tune.nccl_nodes, per_node).map_err(|err| err.to_string())?)?
        }
        Some(name) => match name.strip_prefix("nccl:") {
            Some(path) => nccl(args, Comm::load(path.as_ref()).map_err(|err| err.to_string())?)?,
            None => own(args)?,
        },
    };
    for choice in &choices {
        super::write(&(choice.explain(args.tune.lang) + "\n"))?;
    }
    if let Some(path) = &args.json {
        let file = json!({
            "version": 1,
            "program": "ringlab-perf --explain",
            "command": std::env::args().collect::<Vec<_>>(),
            "choices": choices,
        });
        std::fs::write(path, format!("{file:#}\n"))
            .map_err(|err| format!("cannot write {}: {err}", path.display()))?;
    }
    Ok(())
}

fn sizes(args: &Args) -> impl Iterator<Item = (u64, DType, RedOp)> {
    let dtype = args.dtype.list(&DType::ALL)[0];
    let op = args.ops()[0];
    let (collective, ranks) = (args.collective(), args.ranks);
    args.sizes().map(move |bytes| (Shape::new(collective, ranks, bytes, dtype).bytes, dtype, op))
}

fn own(args: &Args) -> Result<Vec<Choice>, String> {
    let tuner = super::tuner(args)?;
    sizes(args)
        .map(|(bytes, ..)| {
            tuner.choose(Query { collective: args.collective(), bytes }).map_err(|err| err.to_string())
        })
        .collect()
}

fn nccl(args: &Args, mut comm: Comm) -> Result<Vec<Choice>, String> {
    let Some(func) = Func::of(args.collective()) else {
        return Err(format!(
            "NCCL 2.22 builds {} out of sends and receives, for which it has no choice of algorithm",
            args.collective().name()
        ));
    };
    let set = Settings::from_env().map_err(|err| err.to_string())?;
    if set != Settings::default() {
        comm.settings = set;
    }
    let model = Model::new(comm).map_err(|err| err.to_string())?;
    sizes(args)
        .map(|(bytes, dtype, op)| {
            let operation =
                Operation { nvls_supported: nvls_supported(op, dtype), ..Operation::sum(func, bytes) };
            model.choose(&operation).map_err(|err| err.to_string())
        })
        .collect()
}
