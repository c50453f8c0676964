//! Ranks as processes: this program starts itself once a rank, or finds itself started by `mpirun`.

use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ringlab_engine::comm::{self, CommError, Communicator, Config, Mps, UniqueId};
use ringlab_engine::exec::cuda::devices;
use ringlab_engine::exec::{ExecError, Session, SessionSpec};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::args::Args;

/// Tells a process started by this program its rank, how many there are, and its parent.
const RANK: &str = "RINGLAB_PERF_RANK";
/// The communicator's id, in hexadecimal digits.
const ID: &str = "RINGLAB_PERF_ID";

/// Rank and number of ranks as launchers tell them: Open MPI, MPICH and Intel MPI, Slurm.
const LAUNCHERS: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// What a rank's process may take to end after the first has ended.
const END: Duration = Duration::from_secs(30);

/// One rank of a run whose ranks are processes.
#[derive(Debug, Clone)]
pub struct Place {
    comm: Arc<Communicator>,
    /// Whether buffers are registered with all ranks.
    registers: bool,
}

impl Place {
    /// This process's place, if it is one rank of several.
    ///
    /// # Errors
    /// When it is, but cannot join the others.
    pub fn of_this_process(args: &mut Args) -> Result<Option<Place>, String> {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
        let (rank, ranks, id) = if let Ok(place) = std::env::var(RANK) {
            let (rank, ranks) = started_by_parent(&place)?;
            let id = std::env::var(ID).map_err(|_| format!("{RANK} is set without {ID}"))?;
            (rank, ranks, id_of_hex(&id)?)
        } else {
            let launched = LAUNCHERS.iter().find_map(|(rank, ranks)| Some((number(rank)?, number(ranks)?)));
            let Some((rank, ranks)) = launched.filter(|&(_, ranks)| ranks > 1) else { return Ok(None) };
            if std::env::var_os("RINGLAB_COMM_ID").is_none() {
                return Err(format!(
                    "this is rank {rank} of {ranks} processes; set RINGLAB_COMM_ID=HOST:PORT for all of them, an address of the first \
                     one's host, so that they find each other"
                ));
            }
            (rank, ranks, UniqueId::create(None).map_err(text)?)
        };
        // Started by a launcher they are processes as well.
        (args.ranks, args.procs) = (ranks, true);
        let all = devices().map_err(|why| why.to_string())?;
        let list = if args.devices.is_empty() {
            all.iter().map(|device| device.ordinal).collect()
        } else {
            args.devices.clone()
        };
        let device = *list.get(rank as usize % list.len().max(1)).ok_or("the driver shows no device")?;
        let config = Config {
            deadline: Duration::from_secs(args.timeout),
            max_channels: args.most_channels(),
            slot_bytes: args.slot_bytes() as u64 / 16 * 16,
            ..Config::default()
        };
        let comm = Communicator::init(&id, ranks, rank, device, config).map_err(text)?;
        Ok(Some(Place { comm: Arc::new(comm), registers: args.register }))
    }

    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    pub fn open(&self, spec: SessionSpec) -> Result<Box<dyn Session>, ExecError> {
        let open = if self.registers { comm::session::open_registered } else { comm::session::open };
        Ok(Box::new(open(&self.comm, spec)?))
    }
}

fn text(error: CommError) -> String {
    error.to_string()
}

/// `RANK/RANKS/PARENT`: ends this process with its parent.
fn started_by_parent(place: &str) -> Result<(u32, u32), String> {
    let broken = || format!("{RANK}={place} is not what ringlab-perf sets");
    let parts: Vec<u32> = place.split('/').filter_map(|part| part.parse().ok()).collect();
    let [rank, ranks, parent] = parts[..] else { return Err(broken()) };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|why| why.to_string())?;
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    if now == parent { Ok((rank, ranks)) } else { Err("the process that started this rank is gone".into()) }
}

fn id_of_hex(hex: &str) -> Result<UniqueId, String> {
    let mut bytes = [0; UniqueId::BYTES];
    let digits = hex.as_bytes();
    if digits.len() != 2 * bytes.len() {
        return Err(format!("{ID} has {} digits, not {}", digits.len(), 2 * bytes.len()));
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|why| why.to_string())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|why| format!("{ID}: {why}"))?;
    }
    UniqueId::from_bytes(bytes).map_err(text)
}

/// Starts this program once a rank and waits for all. The service that lets them share a GPU is started and ended here, unless there
/// is one already.
pub fn parent(args: &Args) -> ExitCode {
    match start_all(args) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("ringlab-perf: {why}");
            ExitCode::from(crate::CANNOT_RUN)
        }
    }
}

fn start_all(args: &Args) -> Result<u8, String> {
    let id = UniqueId::create(None).map_err(text)?;
    let hex: String = id.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let mps = if Mps::is_given() { None } else { mps() };
    let program = std::env::current_exe().map_err(|why| format!("cannot find this program: {why}"))?;
    let mut ranks = Ranks(Vec::new());
    for rank in 0..args.ranks {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1));
        command.env(RANK, format!("{rank}/{}/{}", args.ranks, std::process::id())).env(ID, &hex);
        if let Some(mps) = &mps {
            command.envs(mps.environment());
        }
        // The first rank speaks for all.
        if rank > 0 {
            command.stdout(Stdio::null());
        }
        ranks.0.push(command.spawn().map_err(|why| format!("cannot start rank {rank}: {why}"))?);
    }
    ranks.wait()
}

fn mps() -> Option<Mps> {
    match Mps::start() {
        Ok(mps) => Some(mps),
        Err(why) => {
            eprintln!(
                "ringlab-perf: {why}\nringlab-perf: the ranks take turns on the GPU: times say nothing about the engine"
            );
            None
        }
    }
}

/// Processes that end with this value.
struct Ranks(Vec<Child>);

impl Ranks {
    /// The worst exit code. When one has ended badly the others learn it from the communicator; those that do not end are killed.
    fn wait(&mut self) -> Result<u8, String> {
        let mut worst = 0;
        let mut until = None;
        while !self.0.is_empty() {
            let mut left = Vec::new();
            for mut child in self.0.drain(..) {
                match child.try_wait() {
                    Ok(None) => left.push(child),
                    Ok(Some(status)) => {
                        worst = worst.max(status.code().map_or(crate::CANNOT_RUN, |code| code as u8));
                        until = until.or(Some(std::time::Instant::now() + END));
                    }
                    Err(why) => return Err(format!("cannot wait for a rank: {why}")),
                }
            }
            self.0 = left;
            if until.is_some_and(|until| std::time::Instant::now() > until) && !self.0.is_empty() {
                return Err(format!(
                    "{} ranks did not end within {} s of the first; they were killed",
                    self.0.len(),
                    END.as_secs()
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(worst)
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Already gone is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
