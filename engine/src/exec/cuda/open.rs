//! Preparing a session: refusing what cannot run, opening devices, placing programs.

use std::sync::Arc;

use ringlab_kernels::Scope;

use super::buffers::{self, Buffers};
use super::direct::{self, Direct};
use super::driver::{self, Device, Memory};
use super::fused::Fused;
use super::image::{self, Image, Placed};
use super::mapped::Mapped;
use super::part::Part;
use super::phases::{self, Phases};
use super::session::{CudaSession, FactorTable};
use super::slices::{self, SliceLens};
use crate::data::Exact;
use crate::exec::optimise::overlap::{Halves, halves};
use crate::exec::program::{self, Operand, Program};
use crate::exec::{ExecError, KernelChoice, Session, SessionSpec};
use crate::plan::Buffer;
use crate::plan::layout::Layout;
use crate::types::RedOp;
use crate::verify::verify_with;

/// Longest chunk: offsets within it, also in lines of twice its size, are 32 bits wide on the device.
const MOST_CHUNK_BYTES: usize = 1 << 30;

/// Prepares a plan to run on the devices of the spec.
///
/// # Errors
/// [`ExecError::Refused`] when there is no driver, compiler or such device, when the plan is malformed or when it does not fit;
/// [`ExecError::Device`] when the driver fails.
pub fn open(spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
    Ok(Box::new(prepare(spec)?))
}

fn prepare(spec: SessionSpec) -> Result<CudaSession, ExecError> {
    crate::exec::refuse_in_place(&spec)?;
    refuse_chunks(&spec)?;
    let (programs, links) = program::compile(&spec.plan).map_err(ExecError::Refused)?;
    let plan = &spec.plan;
    let exact = Exact::new(0, spec.dtype, spec.op, plan.ranks);
    exact.map_err(|err| ExecError::Refused(err.to_string()))?;
    let factors = crate::exec::factors(&spec)?;
    refuse_sizes(&spec)?;
    let lens = SliceLens::new(spec.block, spec.dtype.size(), plan.chunks, plan.channels);
    let slices = slices::infer(&programs, &lens).map_err(ExecError::Refused)?;

    let devices = open_devices(&spec)?;
    let distinct = buffers::distinct(&devices);
    let scope = if distinct.len() > 1 { Scope::System } else { Scope::Device };
    let ends = buffers::ends(&programs, links.carries_data.len());
    let buffers = Buffers::new(&spec, &devices, &ends, &links.carries_data)?;
    let mut phases = programs
        .iter()
        .zip(&slices)
        .map(|(program, slices)| phases::gather(program, slices, |operand| buffers.canonical(operand)))
        .collect::<Result<Vec<Phases>, _>>()
        .map_err(ExecError::Refused)?;
    if let Some(Halves { cuts, lag }) = halves(&programs) {
        phases.iter_mut().zip(cuts).for_each(|(phases, cut)| phases.put_off(cut, lag));
    }

    let abort = Mapped::zeroed(&distinct[0], 1)?;
    let meeting = Memory::zeroed(&distinct[0], 8)?;
    // In place the inputs are multiplied before the plan starts.
    let scales = factors.is_some() && !spec.in_place;
    let mut parts = Vec::with_capacity(distinct.len());
    for device in &distinct {
        let here = |&i: &usize| devices[programs[i].rank.index()].ordinal.number == device.ordinal.number;
        let local: Vec<usize> = (0..programs.len()).filter(here).collect();
        let mut image = Image::default();
        for &i in &local {
            image.add(placed(&programs[i], &phases[i], &buffers, scales, spec.dtype.size() as u64));
        }
        parts.push(Part::new(&spec, device, local, image, scope, buffers.chunk_bytes)?);
    }
    let direct = direct(&spec, &devices[0], &parts, &buffers)?;
    let fused = fused(&spec, &programs, &parts, &buffers, direct.is_some())?;
    let factors = match factors {
        Some(bits) => {
            let table = Memory::holding(&distinct[0], bytemuck::cast_slice::<u64, u8>(&bits))?;
            Some(FactorTable { bits, table })
        }
        None => None,
    };
    let stamps = Memory::zeroed(&distinct[0], 8)?;
    let launches = Memory::zeroed(&distinct[0], 8)?;
    let results = Memory::zeroed(&distinct[0], 16)?;
    let device_of = devices.iter().map(|d| {
        let same = |part: &Part| part.stream.device().ordinal.number == d.ordinal.number;
        parts.iter().position(same).expect("every rank's device has its part")
    });
    let part_of = device_of.collect();
    Ok(CudaSession {
        parts,
        part_of,
        spec,
        programs,
        phases,
        direct,
        fused,
        abort,
        meeting,
        factors,
        stamps,
        stamp_capacity: 1,
        launches,
        results,
        buffers,
    })
}

/// The specialised kernel, if it is wanted and serves the plan here.
fn direct(
    spec: &SessionSpec,
    device: &Arc<Device>,
    parts: &[Part],
    buffers: &Buffers,
) -> Result<Option<Direct>, ExecError> {
    if spec.op == RedOp::PreMulSum && spec.plan.collective.reduces() {
        return match spec.kernel {
            KernelChoice::Specialised => Err(ExecError::Refused(
                "there is no specialised kernel for pre-multiplied sums; choose auto or interpreter".into(),
            )),
            _ => Ok(None),
        };
    }
    let serves = direct::serves(&spec.plan);
    match (spec.kernel, parts) {
        (KernelChoice::Interpreter | KernelChoice::Fused, _) => Ok(None),
        (_, [part]) if serves => Direct::new(spec, device, &part.info, buffers).map(Some),
        (KernelChoice::Auto, _) => Ok(None),
        (KernelChoice::Specialised, _) if serves => Err(ExecError::Refused(format!(
            "the specialised kernel needs all ranks on one device, not on {}; choose auto or interpreter",
            parts.len()
        ))),
        (KernelChoice::Specialised, _) => Err(ExecError::Refused(format!(
            "there is no specialised kernel for the plan {}, only for the generated one_shot and two_shot plans; choose auto or \
             interpreter",
            spec.plan.name
        ))),
    }
}

/// The plan's programs made free of each other, if they are wanted and can be.
fn fused(
    spec: &SessionSpec,
    programs: &[Program],
    parts: &[Part],
    buffers: &Buffers,
    direct: bool,
) -> Result<Option<Fused>, ExecError> {
    if direct || spec.kernel == KernelChoice::Interpreter {
        return Ok(None);
    }
    let fused = match parts {
        [part] => Fused::new(spec, programs, part, buffers)?,
        _ => None,
    };
    if fused.is_none() && spec.kernel == KernelChoice::Fused {
        return Err(ExecError::Refused(format!(
            "the programs of {} cannot be freed of each other here: that takes all ranks on one device, no FIFOs, no average, and a plan \
             in which nobody overwrites what a peer still reads; choose auto or interpreter",
            spec.plan.name
        )));
    }
    Ok(fused)
}

/// Refuses chunks of several steps where the plan is not known to do with the fewer chunks that a connection then holds.
fn refuse_chunks(spec: &SessionSpec) -> Result<(), ExecError> {
    spec.fifo.check().map_err(|why| ExecError::Refused(why.to_string()))?;
    if spec.fifo.chunk_steps == 1 {
        return Ok(());
    }
    let proof = verify_with(&spec.plan, spec.in_place, spec.fifo);
    proof.map(drop).map_err(|refusal| {
        ExecError::Refused(format!(
            "the plan {} has no chunks of {} steps: {}",
            spec.plan.name,
            spec.fifo.chunk_steps,
            refusal.message().en
        ))
    })
}

fn refuse_sizes(spec: &SessionSpec) -> Result<(), ExecError> {
    let steps = spec.fifo.chunk_steps;
    if spec.slot_bytes < 16 || spec.slot_bytes > MOST_CHUNK_BYTES / steps as usize {
        return Err(ExecError::Refused(format!(
            "a FIFO slot has 16 bytes or more, and a chunk of {steps} at most {MOST_CHUNK_BYTES} bytes, not {} a slot",
            spec.slot_bytes
        )));
    }
    crate::exec::refuse_block(spec.block)?;
    let (plan, chunk_bytes) = (&spec.plan, spec.fifo.chunk_bytes(spec.slot_bytes));
    let layout = Layout::new(spec.block, spec.dtype.size(), plan.chunks, plan.channels, chunk_bytes);
    image::refuse_tiles(layout.tiles(), chunk_bytes as u64).map_err(ExecError::Refused)?;
    if spec.devices.is_empty() {
        return Err(ExecError::Refused("no device was named; name one for each rank, or one for all".into()));
    }
    Ok(())
}

/// The device of every rank, each opened once, all able to reach each other.
fn open_devices(spec: &SessionSpec) -> Result<Vec<Arc<Device>>, ExecError> {
    driver::start()?;
    let count = driver::device_count()?;
    let number = |rank: u32| spec.devices[rank as usize % spec.devices.len()];
    let mut opened: Vec<Arc<Device>> = Vec::new();
    let mut by_rank = Vec::with_capacity(spec.plan.ranks as usize);
    for number in (0..spec.plan.ranks).map(number) {
        if number >= count {
            return Err(ExecError::Refused(format!(
                "there is no device {number}; the driver shows {count}, counted from 0"
            )));
        }
        let known = opened.iter().find(|device| device.ordinal.number == number).cloned();
        let device = match known {
            Some(device) => device,
            None => {
                opened.push(Device::open(number)?);
                opened[opened.len() - 1].clone()
            }
        };
        by_rank.push(device);
    }
    for a in &opened {
        for b in opened.iter().filter(|b| b.ordinal.number != a.ordinal.number) {
            if !a.ordinal.can_reach(b.ordinal)? {
                return Err(ExecError::Refused(format!(
                    "device {} cannot read and write device {}'s memory (no peer access); put all ranks on one of them",
                    a.ordinal.number, b.ordinal.number
                )));
            }
            a.reach(b)?;
        }
    }
    Ok(by_rank)
}

pub fn placed<'a>(
    program: &Program,
    phases: &'a Phases,
    buffers: &Buffers,
    scales: bool,
    elem_size: u64,
) -> Placed<'a> {
    let channel = program.channel.0;
    let source = |operand: Operand| {
        let mut placed = buffers.place(operand, channel);
        if scales && operand.buffer == Buffer::Input {
            placed.advances = 2 + operand.rank as u32;
        }
        placed
    };
    let operands = phases.phases.iter().map(|phase| {
        let of_move = |mv: &phases::Move| {
            let dsts = mv.dsts.iter().map(|&dst| buffers.place(dst, channel));
            mv.srcs.iter().map(|&src| source(src)).chain(dsts).collect()
        };
        phase.moves.iter().map(of_move).collect()
    });
    let endpoints = phases.endpoints.iter().map(|endpoint| {
        let (mine, theirs, slots) = buffers.endpoint(endpoint);
        let role = image::role(endpoint.role);
        image::Endpoint { mine: mine.0, theirs: theirs.0, slots: slots.0, peer: endpoint.peer.0, role }
    });
    Placed {
        phases,
        operands: operands.collect(),
        endpoints: endpoints.collect(),
        spans: buffers.output_spans(program.rank, channel),
        elem_size,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fifo::{Fifo, Protocol};
    use crate::plan::{Algorithm, generate};
    use crate::types::{Collective, DType, Factors, RedOp};

    /// A deadline that no execution can meet, then one that any can.
    #[test]
    fn after_a_stall_the_session_is_exact_again() {
        if let Err(why) = driver::start() {
            assert!(std::env::var_os("RINGLAB_REQUIRE_CUDA").is_none_or(|v| v != "1"), "{why}");
            eprintln!("skipped: after_a_stall_the_session_is_exact_again: {why}");
            return;
        }
        for algorithm in Algorithm::ALL.into_iter().filter(|a| a.supports(Collective::AllReduce)) {
            for op in [RedOp::Sum, RedOp::Avg] {
                let spec = SessionSpec {
                    plan: generate(algorithm, Collective::AllReduce, 4, 2).unwrap(),
                    // Longer than it takes a block to look at the time twice.
                    block: 4_000_000,
                    dtype: DType::F16,
                    op,
                    factors: Factors::Parity,
                    in_place: true,
                    slot_bytes: 4096,
                    fifo: Fifo::default(),
                    deadline: Duration::from_secs(5),
                    devices: vec![0],
                    trace_spans: 0,
                    // The specialised kernel waits for nobody, so nothing stops it.
                    kernel: KernelChoice::Interpreter,
                };
                let mut session = prepare(spec).unwrap();
                for round in 0..10 {
                    session.spec.deadline = Duration::from_nanos(1);
                    let stopped = session.run(3);
                    assert!(matches!(stopped, Err(ExecError::Stalled { .. })), "{stopped:?}");
                    session.spec.deadline = Duration::from_secs(5);
                    session.fill(round).unwrap();
                    session.run(1).unwrap();
                    let report = session.check(round).unwrap();
                    assert_eq!((report.wrong, report.first_wrong), (0, None), "{algorithm} {op}");
                }
            }
        }
    }

    /// Near a multiple of [`CLEAN_EVERY`] steps a message of one line has to leave no line of an earlier step in any slot.
    #[test]
    fn lines_are_cleaned_before_a_flag_recurs() {
        if let Err(why) = driver::start() {
            assert!(std::env::var_os("RINGLAB_REQUIRE_CUDA").is_none_or(|v| v != "1"), "{why}");
            eprintln!("skipped: lines_are_cleaned_before_a_flag_recurs: {why}");
            return;
        }
        /// As in kernels/cuda/line.cuh.
        const CLEAN_EVERY: u64 = 1 << 30;
        let spec = SessionSpec {
            plan: generate(Algorithm::Ring, Collective::AllReduce, 2, 1).unwrap(),
            block: 4096,
            dtype: DType::U8,
            op: RedOp::Sum,
            factors: Factors::Parity,
            in_place: false,
            // One element in the last tile of the second chunk, none in that of the first.
            slot_bytes: 2032,
            fifo: Fifo::of(Protocol::Ll),
            deadline: Duration::from_secs(5),
            devices: vec![0],
            trace_spans: 0,
            kernel: KernelChoice::Interpreter,
        };
        // 2^32 - 4: flags go through 0, which is what memory that was never written holds.
        for start in [CLEAN_EVERY - 2, 4 * CLEAN_EVERY - 4] {
            let mut session = prepare(spec.clone()).unwrap();
            let counts =
                session.parts[0].counts.values::<u64>(2 * session.parts[0].endpoints_per_block as usize);
            let begin = |words: usize| vec![start; words];
            session.parts[0].counts.write(0, bytemuck::cast_slice(&begin(counts.unwrap().len()))).unwrap();
            let (counters, slots) = session.buffers.fifos();
            // Two connections, each with three counters on a line of their own.
            let (words, fifo_bytes) = (2 * 3 * 128 / 8, 2 * 8 * session.buffers.step_bytes);
            for memory in counters {
                memory.write(0, bytemuck::cast_slice(&begin(words))).unwrap();
            }
            slots.iter().for_each(|memory| memory.set(0, fifo_bytes, 0xEE).unwrap());
            session.fill(1).unwrap();
            session.run(3).unwrap();
            let report = session.check(1).unwrap();
            assert_eq!((report.wrong, report.first_wrong), (0, None), "from {start}");
            for memory in session.buffers.fifos().1 {
                let words = memory.values::<u32>(fifo_bytes as usize / 4).unwrap();
                let slot = session.buffers.step_bytes as usize / 4;
                let lines = session.buffers.slice_bytes.min(session.buffers.chunk_bytes) as usize * 2 / 4;
                for words in words.chunks(slot) {
                    let stale = words[..lines].iter().skip(1).step_by(2).filter(|flag| **flag == 0xEEEE_EEEE);
                    assert_eq!(stale.count(), 0, "from {start}");
                }
            }
        }
    }
}
