//! Every kernel compiles for every architecture, without a GPU.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringlab_kernels::{
    Arch, Cache, CacheOutcome, Count, Element, Kernel, Reduction, Scope, compile, load, why_missing,
};

/// Whether NVRTC is there; where it has to be, its absence is a failure.
fn compiler(test: &str) -> bool {
    let Some(why) = why_missing() else { return true };
    assert!(
        std::env::var_os("RINGLAB_REQUIRE_NVRTC").is_none_or(|v| v != "1"),
        "RINGLAB_REQUIRE_NVRTC=1, but {why}: put the folder of libnvrtc.so.13 into LD_LIBRARY_PATH"
    );
    eprintln!("skipped: {test}: {why}");
    false
}

/// Every source with every element type and reduction. Scope and tracing change single instructions whatever the type is, so they take
/// turns: every element type and every reduction sees all four pairs of them. So do the direct kernel's numbers of buffers.
fn one_of_each() -> Vec<Kernel> {
    let mut kernels = vec![Kernel::Clock];
    for (i, element) in Element::ALL.into_iter().enumerate() {
        kernels.push(Kernel::Data { element });
        for (j, reduction) in Reduction::ALL.into_iter().enumerate() {
            let scope = [Scope::Device, Scope::System][(i + j) % 2];
            let buffers = [2, 3, 4, 8, 64][(i + j) % 5];
            let (sources, destinations) =
                [(buffers, buffers), (buffers, 1), (1, buffers), (1, 1)][(i + 2 * j) % 4];
            kernels.push(Kernel::Direct {
                element,
                reduction,
                average: reduction == Reduction::Sum && i % 2 == 0,
                sources: Count::of(sources),
                destinations: Count::of(destinations),
            });
            kernels.push(Kernel::Plan { element, reduction, scope, traced: (i + j) / 2 % 2 == 0 });
        }
    }
    kernels
}

#[test]
fn every_kernel_compiles_for_ampere_hopper_and_blackwell() {
    if !compiler("every_kernel_compiles_for_ampere_hopper_and_blackwell") {
        return;
    }
    let archs = [Arch { major: 8, minor: 0 }, Arch { major: 9, minor: 0 }, Arch { major: 10, minor: 0 }];
    let kernels = one_of_each();
    let work: Vec<(Kernel, Arch)> =
        kernels.into_iter().flat_map(|kernel| archs.map(|arch| (kernel, arch))).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(kernel, arch)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match compile(kernel, arch) {
                        Ok(cubin) if cubin.starts_with(b"\x7fELF") => {}
                        Ok(cubin) => failures
                            .lock()
                            .unwrap()
                            .push(format!("{kernel} {arch}: no ELF, {} bytes", cubin.len())),
                        Err(e) => failures.lock().unwrap().push(e.to_string()),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), work.len(), failures.join("\n"));
}

#[test]
fn the_second_load_comes_from_the_cache() {
    if !compiler("the_second_load_comes_from_the_cache") {
        return;
    }
    let dir = std::env::temp_dir().join(format!("ringlab-kernels-{}", std::process::id()));
    let cache = Cache::at(&dir);
    let arch = Arch { major: 9, minor: 0 };
    let first = load(Kernel::Clock, arch, &cache).unwrap();
    let second = load(Kernel::Clock, arch, &cache).unwrap();
    assert_eq!((first.cache, second.cache), (CacheOutcome::Stored, CacheOutcome::Hit));
    assert_eq!(first.cubin, second.cubin);
    let other = load(Kernel::Clock, Arch { major: 8, minor: 0 }, &cache).unwrap();
    assert_eq!(other.cache, CacheOutcome::Stored, "another architecture is another image");
    std::fs::remove_dir_all(dir).unwrap();
}
