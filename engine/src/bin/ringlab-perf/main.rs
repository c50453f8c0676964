//! `ringlab-perf`: measures and checks a collective with nccl-tests' flags and table. See `--help` for what is timed.

mod args;
mod bench;
mod channels;
mod fifo;
#[cfg(feature = "cuda")]
mod procs;
mod random;
mod report;
mod sim_report;
mod table;
#[cfg(feature = "cuda")]
mod threads;
mod tune;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use ringlab_engine::exec::{self, Backend, ExecError, Hardware};
use ringlab_engine::fifo::Fifo;
use ringlab_engine::types::{DType, RedOp};

use self::args::Args;
use self::bench::{Measured, Opener, Settings, Shape};
use self::channels::Channels;
use self::tune::Chooser;

const WRONG: u8 = 1;
const CANNOT_RUN: u8 = 3;

fn main() -> ExitCode {
    let mut args = Args::parse();
    if let Err(why) = args.validate() {
        Args::command().error(ErrorKind::ValueValidation, why).exit();
    }
    if let Some(count) = args.random {
        return concluded(random(&args, count));
    }
    if args.tune.explain {
        return concluded(tune::explain(&args).map(|()| 0));
    }
    if args.sim_report {
        return concluded(sim_report(&args));
    }
    let outcome = match place(&mut args) {
        Ok(Where::Parent) => return start_ranks(&args),
        Ok(Where::Rank { speaks, open, .. }) if args.tune.tune_report.is_some() => {
            tune::report(&args, speaks, &open).map(|()| 0)
        }
        Ok(Where::Rank { speaks, open, channels }) => run(&args, speaks, open, channels),
        Err(why) => Err(why),
    };
    concluded(outcome)
}

/// Nothing is checked here, so nothing is wrong.
fn sim_report(args: &Args) -> Result<u64, String> {
    let devices = devices(args).map_err(|why| why.to_string())?;
    let report = sim_report::run(args, &devices)?;
    if let Some(path) = &args.json {
        let text = format!("{report:#}\n");
        std::fs::write(path, text).map_err(|err| format!("cannot write {}: {err}", path.display()))?;
    }
    Ok(0)
}

fn random(args: &Args, count: u64) -> Result<u64, String> {
    let devices = devices(args).map_err(|why| why.to_string())?;
    random::run(args.backend, &devices, Duration::from_secs(args.timeout), count, args.seed)
}

/// What the number of wrong elements means for the caller.
fn concluded(outcome: Result<u64, String>) -> ExitCode {
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(WRONG),
        Err(why) => {
            eprintln!("ringlab-perf: {why}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

/// What this process is to do.
enum Where {
    /// Start a process for every rank.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "processes share GPUs"))]
    Parent,
    /// Measure: all ranks, or one of them. One process prints.
    Rank { speaks: bool, open: Opener, channels: Channels },
}

fn in_this_process(args: &Args) -> Where {
    let backend = args.backend;
    let open: Opener = Box::new(move |spec| exec::open(backend, spec));
    let channels = match (args.channels, backend) {
        (None, Backend::Cuda) => {
            let used = devices(args).map_or(1, |devices| devices.len() as u32);
            Channels::filling(args.ranks.div_ceil(used.max(1)), multiprocessors(args))
        }
        _ => Channels::Fixed(args.channels()),
    };
    Where::Rank { speaks: true, open, channels }
}

#[cfg(feature = "cuda")]
fn place(args: &mut Args) -> Result<Where, String> {
    if args.backend == Backend::Cpu {
        return Ok(in_this_process(args));
    }
    if args.threads {
        let (open, channels) = (threads::opener(args)?, Channels::Fixed(args.channels()));
        return Ok(Where::Rank { speaks: true, open, channels });
    }
    match procs::Place::of_this_process(args)? {
        Some(place) => {
            let speaks = place.rank() == 0;
            let channels = Channels::Fixed(args.channels());
            Ok(Where::Rank { speaks, open: Box::new(move |spec| place.open(spec)), channels })
        }
        None if args.procs => Ok(Where::Parent),
        None if args.register => {
            Err("--register is for ranks of several processes; give --procs, or start them with mpirun"
                .into())
        }
        None => Ok(in_this_process(args)),
    }
}

#[cfg(not(feature = "cuda"))]
fn place(args: &mut Args) -> Result<Where, String> {
    Ok(in_this_process(args))
}

#[cfg(feature = "cuda")]
fn start_ranks(args: &Args) -> ExitCode {
    procs::parent(args)
}

#[cfg(not(feature = "cuda"))]
fn start_ranks(_args: &Args) -> ExitCode {
    ExitCode::from(CANNOT_RUN)
}

/// Returns the number of wrong elements over all lines.
fn run(args: &Args, speaks: bool, open: Opener, channels: Channels) -> Result<u64, String> {
    let chooser = Chooser::new(args, channels)?;
    let (plan, fifo, _) = chooser.plan(args, args.max_bytes.0)?;
    let settings = Settings {
        open,
        backend: args.backend,
        plan,
        fifo,
        slot_bytes: args.slot_bytes(),
        devices: devices(args).map_err(|err| err.to_string())?,
        deadline: Duration::from_secs(args.timeout),
        iters: args.iters,
        rounds: args.rounds,
        warmup: args.warmup,
        checks: args.check,
        kernel: args.kernel,
        replays: args.replays,
    };
    let mut run = Run {
        settings,
        chooser,
        speaks,
        out: std::io::stdout(),
        rows: vec![],
        wrong: 0,
        busbw: vec![],
        hardware: None,
    };
    run.introduce(args)?;
    for dtype in args.dtype.list(&DType::ALL) {
        for op in args.ops() {
            for bytes in args.sizes() {
                run.line(args, bytes, dtype, op)?;
            }
        }
    }
    run.conclude(args)
}

struct Run {
    settings: Settings,
    chooser: Chooser,
    /// Whether this process prints and writes: one of them does.
    speaks: bool,
    out: std::io::Stdout,
    rows: Vec<serde_json::Value>,
    wrong: u64,
    busbw: Vec<f64>,
    hardware: Option<Hardware>,
}

impl Run {
    fn print(&mut self, text: &str) -> Result<(), String> {
        if !self.speaks {
            return Ok(());
        }
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|err| format!("cannot write the table: {err}"))
    }

    fn introduce(&mut self, args: &Args) -> Result<(), String> {
        let Settings { backend, plan, slot_bytes, devices, iters, rounds, warmup, checks, .. } =
            &self.settings;
        let (step, kind) = match args.step_factor {
            2.. => (args.step_factor, "factor"),
            _ => (args.step_bytes.0, "bytes"),
        };
        let on = match backend {
            Backend::Cpu => "threads of this process".into(),
            Backend::Cuda if args.procs => "a process a rank".into(),
            Backend::Cuda if args.threads => {
                format!("a communicator of this process a rank, an execution a group, devices {devices:?}")
            }
            Backend::Cuda => format!("devices {devices:?}, rank r on the (r mod {})-th", devices.len()),
        };
        let text = format!(
            "# ringlab-perf {} backend {backend}\n\
             # Collective test starting: {} {}\n\
             # ranks {} channels {}{} slot {slot_bytes} {} minBytes {} maxBytes {} step: {step}({kind}) warmup iters: {warmup} iters: {iters} \
             rounds: {rounds} (median) validation: {checks}\n\
             #\n# Using {on}\n{}\n",
            env!("CARGO_PKG_VERSION"),
            plan.collective.name(),
            args.algo,
            plan.ranks,
            if self.chooser.fixes(plan.channels) { "" } else { "up to " },
            plan.channels,
            self.carried(args),
            args.min_bytes.0,
            args.max_bytes.0,
            table::header(),
        );
        self.print(&text)
    }

    /// How connections carry data, for the heading.
    fn carried(&self, args: &Args) -> String {
        let Fifo { protocol, chunk_steps, slice_steps } = self.settings.fifo;
        let protocol = match self.chooser {
            Chooser::Auto(_) if args.fifo.proto.is_none() => "auto".into(),
            _ => protocol.to_string(),
        };
        format!("protocol {protocol} chunkSteps {chunk_steps} sliceSteps {slice_steps}")
    }

    fn line(&mut self, args: &Args, bytes: u64, dtype: DType, op: RedOp) -> Result<(), String> {
        let collective = self.settings.plan.collective;
        let shape = Shape::new(collective, self.settings.plan.ranks, bytes, dtype);
        let (plan, fifo, choice) = self.chooser.plan(args, shape.bytes)?;
        (self.settings.plan, self.settings.fifo) = (plan, fifo);
        if let Some(choice) = &choice {
            self.print(&tune::comment(choice))?;
        }
        let redop = if collective.reduces() { op.name() } else { "none" };
        let root = collective.root().map_or(-1, |root| i64::from(root.0));
        self.print(&table::preamble(shape.bytes, shape.count, dtype.name(), redop, root))?;
        let out_of_place = self.half(shape, dtype, op, false)?;
        let in_place = match collective.alias() {
            Some(_) => Some(self.half(shape, dtype, op, true)?),
            None => {
                self.print(&table::no_cells())?;
                None
            }
        };
        self.print("\n")?;
        for (measured, place) in [(Some(&out_of_place), "out of place"), (in_place.as_ref(), "in place")] {
            let wrong = measured.and_then(|measured| measured.first_wrong.as_ref());
            if let Some(w) = wrong.filter(|_| self.speaks) {
                eprintln!(
                    "{place}: rank {} element {}: expected {}, got {}",
                    w.rank, w.index, w.expected, w.got
                );
            }
        }
        let channels = self.settings.plan.channels;
        let mut row =
            report::row(shape, channels, dtype.name(), redop, root, &out_of_place, in_place.as_ref());
        row["fifo"] = serde_json::json!(fifo);
        if let Some(choice) = choice {
            row["choice"] = serde_json::json!(choice);
        }
        self.rows.push(row);
        Ok(())
    }

    fn half(&mut self, shape: Shape, dtype: DType, op: RedOp, in_place: bool) -> Result<Measured, String> {
        let measured =
            bench::measure(&self.settings, shape, dtype, op, in_place).map_err(|err| format!("\n{err}"))?;
        self.print(&table::cells(&measured.cells))?;
        self.wrong += measured.cells.wrong.unwrap_or(0);
        self.busbw.push(measured.cells.busbw);
        self.hardware = Some(measured.hardware.clone());
        Ok(measured)
    }

    fn conclude(mut self, args: &Args) -> Result<u64, String> {
        let mean = self.busbw.iter().sum::<f64>() / self.busbw.len().max(1) as f64;
        let executed = self.hardware.as_ref().map_or(String::new(), |hardware| {
            format!("# {:<20} : {} kernel on {}\n", "Executed by", hardware.kernel, hardware.device)
        });
        let verdict = if self.wrong == 0 { "OK" } else { "FAILED" };
        let text = format!(
            "{executed}# {:<20} : {} {verdict}\n# {:<20} : {mean:.6} \n#\n# Collective test concluded: {} {}\n",
            "Out of bounds values",
            self.wrong,
            "Avg bus bandwidth",
            self.settings.plan.collective.name(),
            args.algo,
        );
        self.print(&text)?;
        if let (Some(path), Some(hardware), true) = (&args.json, &self.hardware, self.speaks) {
            let file =
                report::file(&self.settings, hardware, &args.algo.to_string(), self.rows, self.wrong, mean);
            let text = format!("{file:#}\n");
            std::fs::write(path, text).map_err(|err| format!("cannot write {}: {err}", path.display()))?;
        }
        Ok(self.wrong)
    }
}

/// The devices ranks are spread over: those named, or all there are but no more than ranks.
fn devices(args: &Args) -> Result<Vec<u32>, ExecError> {
    match args.backend {
        Backend::Cpu => Ok(vec![]),
        Backend::Cuda if !args.devices.is_empty() => Ok(args.devices.clone()),
        Backend::Cuda => cuda_devices(args.ranks),
    }
}

#[cfg(feature = "cuda")]
fn cuda_devices(ranks: u32) -> Result<Vec<u32>, ExecError> {
    let all = ringlab_engine::exec::cuda::devices()?;
    Ok(all.iter().map(|device| device.ordinal).take(ranks as usize).collect())
}

/// Of the device that has the fewest among those used.
#[cfg(feature = "cuda")]
fn multiprocessors(args: &Args) -> u32 {
    let all = ringlab_engine::exec::cuda::devices().unwrap_or_default();
    let used = |ordinal| args.devices.is_empty() || args.devices.contains(&ordinal);
    all.iter().filter(|d| used(d.ordinal)).map(|d| d.multiprocessors).min().unwrap_or(1)
}

#[cfg(not(feature = "cuda"))]
fn multiprocessors(_args: &Args) -> u32 {
    1
}

#[cfg(not(feature = "cuda"))]
fn cuda_devices(_ranks: u32) -> Result<Vec<u32>, ExecError> {
    Err(ExecError::Refused("this build has no CUDA back end; build with the feature `cuda`".into()))
}
