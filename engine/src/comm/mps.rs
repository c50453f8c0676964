//! NVIDIA's multi-process service, without which kernels of different processes take turns on a GPU instead of running together.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::error::CommError;
use crate::random;

const CONTROL: &str = "nvidia-cuda-mps-control";

/// Where the driver's tools are when the path does not name them.
const FOLDERS: [&str; 2] = ["/usr/bin", "/usr/local/nvidia/bin"];

const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";

/// Longest that a command of the control program may take.
const COMMAND: Duration = Duration::from_secs(10);

/// A service of our own in a folder of its own; it ends with this value. Processes started with [`Mps::environment`] use it.
#[derive(Debug)]
pub struct Mps {
    control: PathBuf,
    folder: PathBuf,
}

impl Mps {
    /// Whether this process already uses a service.
    pub fn is_given() -> bool {
        std::env::var_os(PIPES).is_some()
    }

    /// # Errors
    /// [`CommError::Unsupported`] when there is no such program here, [`CommError::System`] when it does not start.
    pub fn start() -> Result<Mps, CommError> {
        let control = find(&search_path()).ok_or_else(|| {
            CommError::Unsupported(format!(
                "{CONTROL} is not installed here, so processes cannot share a GPU at the same time; install the driver's compute \
                 utilities, or use ranks of one process"
            ))
        })?;
        let folder = folder()?;
        let mps = Mps { control, folder };
        let mut start = mps.command();
        start.arg("-d");
        run(start, None).map_err(|why| CommError::System(format!("{CONTROL} -d: {why}")))?;
        Ok(mps)
    }

    /// For the processes that are to share the GPU.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [(PIPES, self.folder.clone()), (LOGS, self.folder.clone())]
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.control);
        command.envs(self.environment());
        command
    }
}

impl Drop for Mps {
    fn drop(&mut self) {
        // Whatever fails here leaves a service without clients, which does no harm.
        let _ = run(self.command(), Some("quit\n"));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from)).collect()
}

fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(CONTROL)).find(|program| program.is_file())
}

/// The service's pipes need a short path of its own.
fn folder() -> Result<PathBuf, CommError> {
    let token: [u8; 6] =
        random::bytes().map_err(|why| CommError::System(format!("cannot name a folder: {why}")))?;
    let name: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = std::env::temp_dir().join(format!("ringlab-mps-{name}"));
    std::fs::create_dir(&folder)
        .map_err(|why| CommError::System(format!("cannot make the folder {}: {why}", folder.display())))?;
    Ok(folder)
}

/// Runs to the end, within [`COMMAND`].
fn run(mut command: Command, input: Option<&str>) -> Result<(), String> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|why| why.to_string())?;
    if let Some(mut stdin) = child.stdin.take()
        && let Some(input) = input
    {
        std::io::Write::write_all(&mut stdin, input.as_bytes()).map_err(|why| why.to_string())?;
    }
    let ended = wait(&mut child);
    if ended.is_err() {
        // Gone already, or it cannot be ended.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

fn wait(child: &mut Child) -> Result<(), String> {
    let until = Instant::now() + COMMAND;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => return Err(format!("it did not end within {} s", COMMAND.as_secs())),
            Err(why) => return Err(why.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn script(folder: &Path, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let program = folder.join(CONTROL);
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn the_program_is_found_on_the_path_or_not_at_all() {
        let folder = folder().unwrap();
        assert_eq!(find(std::slice::from_ref(&folder)), None);
        let program = script(&folder, "#!/bin/sh\n");
        assert_eq!(find(std::slice::from_ref(&folder)), Some(program));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_service_is_told_to_quit_and_leaves_nothing() {
        let tools = folder().unwrap();
        let heard = tools.join("heard");
        let control = script(&tools, &format!("#!/bin/sh\ncat >{}\ntest -d \"${PIPES}\"\n", heard.display()));
        let mps = Mps { control, folder: folder().unwrap() };
        let kept = mps.folder.clone();
        drop(mps);
        assert_eq!(std::fs::read_to_string(heard).unwrap(), "quit\n");
        assert!(!kept.exists());
        std::fs::remove_dir_all(tools).unwrap();
    }
}
