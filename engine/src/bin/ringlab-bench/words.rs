//! Commands as they are recorded: a run's file is published, and folders tell of one machine only.

/// Variables that say how something was measured, by how their names begin.
const TELLING: [&str; 5] = ["NCCL_", "CUDA_", "RINGLAB_", "OMPI_MCA_", "OMP_"];

/// A word of a command without the folders of a path in it: `--json=/tmp/a.json` is `--json=a.json`. A path begins with `/`, `./`, `../`
/// or `~/`, at the word's begin or behind its first `=`.
pub fn bare(word: &str) -> String {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (&word[..=name.len()], value),
        None => ("", word),
    };
    let is_path = ["/", "./", "../", "~/"].iter().any(|begin| value.starts_with(begin));
    match value.trim_end_matches('/').rsplit_once('/') {
        Some((_, last)) if is_path => format!("{name}{last}"),
        _ => word.to_owned(),
    }
}

/// Every word of a line.
pub fn line(text: &str) -> String {
    text.split(' ').map(bare).collect::<Vec<_>>().join(" ")
}

/// What of this process's environment its children measure with, NAME=VALUE.
pub fn environment() -> Vec<String> {
    let mut all: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        // Where ranks meet names a host.
        .filter(|(name, _)| !name.ends_with("_COMM_ID"))
        .filter(|(name, _)| TELLING.iter().any(|begin| name.starts_with(begin)))
        .map(|(name, value)| bare(&format!("{name}={value}")))
        .collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_cut_and_nothing_else() {
        for (word, wanted) in [
            ("/a/b/ringlab-bench", "ringlab-bench"),
            ("./x", "x"),
            ("--json=/tmp/y.json", "--json=y.json"),
            ("CUDA_MPS_PIPE_DIRECTORY=/tmp/mps/", "CUDA_MPS_PIPE_DIRECTORY=mps"),
            ("target/release/p", "target/release/p"),
            ("--band", "--band"),
            ("8-64K,iters=5,algo=ring", "8-64K,iters=5,algo=ring"),
            ("/", "/"),
        ] {
            assert_eq!(bare(word), wanted);
        }
        assert_eq!(line("A=/b/c /d/e -g 2 --json /f/g.json"), "A=c e -g 2 --json g.json");
    }
}
