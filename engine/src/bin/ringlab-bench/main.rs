//! `ringlab-bench`: our engine beside a peer, in turns within one run. See `--help` for how.

mod args;
mod band;
mod child;
mod copy;
mod gpu;
mod parse;
mod peer;
mod report;
mod robust;
mod samples;
mod store;
mod tables;
mod target;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use self::args::{Args, PeerKind};
use self::band::Band;
use self::child::Line;
use self::peer::Peer;
use self::report::Report;
use self::samples::Samples;

const WRONG_OR_MISSED: u8 = 1;
const CANNOT_RUN: u8 = 3;

fn main() -> ExitCode {
    // A word in place of the first flag is another command, which needs none of the flags of a run.
    let rest = || std::env::args_os().skip(1);
    let done = match rest().next().as_deref().and_then(|first| first.to_str()) {
        Some("copy") => copy::run(&copy::Args::parse_from(rest())),
        Some("gpu") => gpu::run(&gpu::Args::parse_from(rest())),
        Some("robust") => robust::run(&robust::Args::parse_from(rest())),
        Some("store") => store::run(&store::Args::parse_from(rest())),
        Some("tables") => tables::run(&tables::Args::parse_from(rest())),
        _ => run(&Args::of(std::env::args())),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(WRONG_OR_MISSED),
        Err(why) => {
            eprintln!("ringlab-bench: {why}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

/// Returns whether every element was right and, with `--enforce`, every target met.
fn run(args: &Args) -> Result<bool, String> {
    args.validate()?;
    let scratch = child::Scratch::new()?;
    let peer = Peer::prepare(args, &scratch)?;
    let mut report = Report::new(args);
    if args.peer == PeerKind::Nccl {
        report.copy(copy::measured(&scratch, 0)?);
    }
    let mut wrong = 0;
    for &ranks in &args.ranks {
        for band in &args.bands(ranks) {
            let samples = measure(args, &peer, &scratch, ranks, band, &mut report)?;
            wrong += samples.wrong();
            report.add(args, ranks, band, &samples);
        }
    }
    println!("{}", report.markdown());
    if let Some(path) = &args.json {
        child::write_json(path, &report.json(args))?;
    }
    if wrong > 0 {
        eprintln!("ringlab-bench: {wrong} wrong elements: the figures beside them mean nothing");
    }
    Ok(wrong == 0 && (report.all_met() || !args.enforce))
}

/// All rounds of one band of sizes. The side that begins changes with every round, so that neither always runs on a machine warmed up,
/// or throttled, by the other.
fn measure(
    args: &Args,
    peer: &Peer,
    scratch: &child::Scratch,
    ranks: u32,
    band: &Band,
    report: &mut Report,
) -> Result<Samples, String> {
    let deadline = Duration::from_secs(args.deadline);
    let mut samples = Samples::default();
    for round in 0..args.rounds {
        // Checked once: what is timed afterwards is the same program on the same sizes.
        let check = round == 0;
        let json = scratch.path("ours.json");
        let ours = || -> Result<(Line, Vec<samples::Row>, serde_json::Value), String> {
            let line = peer::ours(args, ranks, band, check, &json);
            line.run(deadline)?;
            let file = child::read_json(&json)?;
            Ok((line, samples::rows_of_ours(&file)?, file))
        };
        let theirs = || -> Result<(Line, Vec<samples::Row>, Option<String>), String> {
            let line = peer.line(args, ranks, band, check);
            let text = line.run(deadline)?;
            let rows = parse::rows(&text).map_err(|err| format!("{}: {err}", line.shown()))?;
            Ok((line, rows, parse::library(&text)))
        };
        let (ours, theirs) = if round % 2 == 0 {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        eprintln!(
            "{ranks} ranks, {} to {} bytes, round {} of {}",
            band.first,
            band.last,
            round + 1,
            args.rounds
        );
        if round == 0 {
            report.commands(ranks, band, &ours.0, &theirs.0);
        }
        report.met_hardware(&ours.2, theirs.2);
        samples.add(ours.1, theirs.1)?;
    }
    Ok(samples)
}
