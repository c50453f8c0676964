//! The shared library as a C program sees it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

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

#[test]
fn a_c_program_gets_errors_with_words_and_never_a_crash() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/check.c");
    let folder = std::env::temp_dir().join(format!("ringlab-capi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // The name that the program will look for.
    std::os::unix::fs::symlink(library(), folder.join("libnccl.so.2")).unwrap();
    let program = folder.join("check");
    let (done, text) = run(Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(&source)
        .arg(folder.join("libnccl.so.2"))
        .arg(format!("-Wl,-rpath,{}", folder.display())));
    assert!(done, "{text}");
    let (done, text) = run(Command::new(&program).env_remove("NCCL_DEBUG").env_remove("RINGLAB_DEBUG"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(done && text.ends_with("0 failures\n"), "{text}");
}
