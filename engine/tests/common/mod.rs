//! What several test programs of the GPU back end share.

use ringlab_engine::exec::cuda::devices;

/// Whether there is a GPU; where there has to be one, its absence is a failure.
pub fn gpu(test: &str) -> bool {
    let why = match devices() {
        Ok(found) if !found.is_empty() => return true,
        Ok(_) => "the driver shows no device".to_owned(),
        Err(why) => why.to_string(),
    };
    assert!(
        std::env::var_os("RINGLAB_REQUIRE_CUDA").is_none_or(|v| v != "1"),
        "RINGLAB_REQUIRE_CUDA=1, but {why}"
    );
    eprintln!("skipped: {test}: {why}");
    false
}
