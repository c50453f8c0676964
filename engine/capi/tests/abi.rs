//! The shared library as a C program sees it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where cargo puts the shared library that it builds with this test.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let library = here.with_file_name("libnccl.so");
    assert!(library.is_file(), "{} was not built", library.display());
    library
}

fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?} does not start: {why}"));
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn exactly_the_listed_functions_are_exported_each_with_its_twin() {
    let listed: BTreeSet<String> = include_str!("symbols.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|name| [name.to_owned(), format!("p{name}")])
        .collect();
    assert_eq!(listed.len(), 84);
    let (done, text) = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    assert!(done, "{text}");
    let exported: BTreeSet<String> =
        text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    assert_eq!(exported, listed);
}

#[test]
fn the_library_is_found_under_nccls_name() {
    let (done, text) = run(Command::new("readelf").arg("-d").arg(library()));
    assert!(done, "{text}");
    assert!(text.lines().any(|line| line.contains("SONAME") && line.contains("[libnccl.so.2]")), "{text}");
}

/// Compiles a C program of `tests/c` against the library, calls `with` with a command for it, and cleans up.
fn with_program<T>(name: &str, with: impl FnOnce(&mut Command) -> T) -> T {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/c/{name}.c"));
    // Tests run at the same time, in one process.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ringlab-capi-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // The name that the program will look for.
    std::os::unix::fs::symlink(library(), folder.join("libnccl.so.2")).unwrap();
    let program = folder.join(name);
    let (done, text) = run(Command::new("cc")
        .args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(&source)
        .arg(folder.join("libnccl.so.2"))
        .args([&format!("-Wl,-rpath,{}", folder.display()), "-ldl"]));
    assert!(done, "{text}");
    let result = with(Command::new(&program).env_remove("NCCL_DEBUG").env_remove("RINGLAB_DEBUG"));
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

#[test]
fn a_c_program_gets_errors_with_words_and_never_a_crash() {
    let (done, text) = with_program("check", run);
    assert!(done && text.ends_with("0 failures\n"), "{text}");
}

#[test]
fn ranks_as_processes_on_one_gpu_compute_what_they_should() {
    let required = std::env::var_os("RINGLAB_REQUIRE_CUDA").is_some_and(|v| v == "1");
    for ranks in ["1", "2", "4"] {
        let (done, text) = with_program("device", |program| run(program.args([ranks, "1003"])));
        let absent = text.contains("there is no CUDA driver") && !required;
        assert!(done || absent, "{ranks} ranks:\n{text}");
    }
}

#[test]
fn the_log_shows_version_and_calls_when_asked_for() {
    let quiet = with_program("check", run).1;
    assert!(!quiet.contains("RINGLAB"), "{quiet}");
    let text = with_program("check", |program| {
        run(program.env("NCCL_DEBUG", "INFO").env("NCCL_DEBUG_SUBSYS", "CALL"))
    })
    .1;
    assert!(
        text.contains("as NCCL 2.22.3")
            && text.contains("RINGLAB WARN ncclCommCount: the communicator is null"),
        "{text}"
    );
}
