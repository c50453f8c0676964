//! Every kernel compiles for every architecture, without a GPU.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringlab_kernels::{
    Arch, Cache, CacheOutcome, Count, Element, Kernel, Protocol, Reduction, Scope, compile, load, why_missing,
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

/// One of the direct kernel's many specialisations, with numbers of buffers that take turns as `i` and `j` do.
fn direct(i: usize, element: Element, j: usize, reduction: Reduction) -> Kernel {
    let buffers = [2, 3, 4, 8, 64][(i + j) % 5];
    let (sources, destinations) = [(buffers, buffers), (buffers, 1), (1, buffers), (1, 1)][(i + 2 * j) % 4];
    Kernel::Direct {
        element,
        reduction,
        average: reduction == Reduction::Sum && i.is_multiple_of(2),
        sources: Count::of(sources),
        destinations: Count::of(destinations),
    }
}

/// Compiles all of them, as many at a time as there are processors.
fn compiles(work: &[(Kernel, Arch)]) {
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

/// About a third of a second of one processor each.
#[test]
fn every_kernel_compiles_for_hopper_of_variants_one_for_each_type_and_reduction() {
    let name = "every_kernel_compiles_for_hopper_of_variants_one_for_each_type_and_reduction";
    if !compiler(name) {
        return;
    }
    let in_full = |kernel: &Kernel| match kernel {
        Kernel::Direct { .. } | Kernel::Ranks { .. } | Kernel::Fused { .. } => false,
        Kernel::Plan { protocol, .. } => *protocol == Protocol::Simple,
        Kernel::Data { .. } | Kernel::Clock => true,
    };
    let mut kernels: Vec<Kernel> = Kernel::all().into_iter().filter(in_full).collect();
    for (i, element) in Element::ALL.into_iter().enumerate() {
        for (j, reduction) in Reduction::ALL.into_iter().enumerate().filter(|(_, r)| r.serves_direct()) {
            kernels.push(direct(i, element, j, reduction));
        }
        let (reduction, protocol) = (Reduction::ALL[i % Reduction::ALL.len()], Protocol::ALL[i % 3]);
        kernels.push(Kernel::Ranks {
            element,
            reduction,
            protocol,
            scope: [Scope::Device, Scope::System][i % 2],
        });
        kernels.push(Kernel::Fused { element, reduction });
        for (j, reduction) in Reduction::ALL.into_iter().enumerate() {
            let (scope, traced) = ([Scope::Device, Scope::System][(i + j) % 2], (i + j) / 2 % 2 == 0);
            let lines = [Protocol::Ll, Protocol::Ll128];
            kernels.extend(lines.map(|protocol| Kernel::Plan {
                element,
                reduction,
                protocol,
                scope,
                traced,
            }));
        }
    }
    eprintln!("{name}: {} of {} kernels", kernels.len(), Kernel::all().len());
    let hopper = Arch { major: 9, minor: 0 };
    let work: Vec<_> = kernels.into_iter().map(|kernel| (kernel, hopper)).collect();
    compiles(&work);
}

/// Only element types have code of their own for an architecture (fp8 conversions), so each is compiled once and the rest takes turns:
/// every reduction, scope and tracing with some type, not with each.
#[test]
fn every_type_compiles_for_ampere_and_blackwell_with_one_reduction_each() {
    let name = "every_type_compiles_for_ampere_and_blackwell_with_one_reduction_each";
    if !compiler(name) {
        return;
    }
    let archs = [Arch { major: 8, minor: 0 }, Arch { major: 10, minor: 0 }];
    let mut kernels = vec![Kernel::Clock];
    for (i, element) in Element::ALL.into_iter().enumerate() {
        let reduction = Reduction::ALL[i % Reduction::ALL.len()];
        let scope = [Scope::Device, Scope::System][i % 2];
        kernels.push(Kernel::Data { element });
        let protocol = Protocol::ALL[i / 4 % 3];
        kernels.push(Kernel::Plan { element, reduction, protocol, scope, traced: i / 2 % 2 == 0 });
        if reduction.serves_direct() {
            kernels.push(direct(i, element, i, reduction));
        }
    }
    eprintln!("{name}: {} of {} kernels for each architecture", kernels.len(), Kernel::all().len());
    let work: Vec<_> = kernels.into_iter().flat_map(|kernel| archs.map(|arch| (kernel, arch))).collect();
    compiles(&work);
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
