//! The engine's kernels, loaded on one device, each launched by a function of its own: a kernel's arguments are checked by the
//! function's types, and what an address points to is kept alive by the session that owns kernels and memory alike.

use std::collections::HashMap;
use std::ffi::{CStr, c_uint, c_void};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use cudarc::driver::{result, sys};
use ringlab_kernels::Protocol as Slots;
use ringlab_kernels::{Arch, Cache, Count, DIRECT_THREADS, Element, Kernel, KernelError, Reduction, Scope};

use super::device::DeviceInfo;
use super::direct::DirectParams;
use super::driver::{Address, Device, Function, Module, Stream, failed};
use super::foreign::ForeignStream;
use super::image::{Exact, Params, Ranks};
use super::rank::Factor;
use crate::exec::ExecError;
use crate::fifo::Protocol;
use crate::types::{DType, RedOp};

const DATA_THREADS: u32 = 256;

pub struct Kernels {
    plain: Function,
    /// Loaded by the first traced run.
    traced: Option<Function>,
    traced_kernel: Kernel,
    arch: Arch,
    fill: Function,
    check: Function,
    scale: Function,
    stamp: Function,
    multiprocessors: u32,
}

const fn element(dtype: DType) -> Element {
    match dtype {
        DType::I8 => Element::I8,
        DType::U8 => Element::U8,
        DType::I32 => Element::I32,
        DType::U32 => Element::U32,
        DType::I64 => Element::I64,
        DType::U64 => Element::U64,
        DType::F16 => Element::F16,
        DType::F32 => Element::F32,
        DType::F64 => Element::F64,
        DType::Bf16 => Element::Bf16,
        DType::F8E4m3 => Element::E4m3,
        DType::F8E5m2 => Element::E5m2,
    }
}

const fn reduction(op: RedOp) -> Reduction {
    match op {
        RedOp::Sum | RedOp::Avg => Reduction::Sum,
        RedOp::Prod => Reduction::Prod,
        RedOp::Min => Reduction::Min,
        RedOp::Max => Reduction::Max,
        RedOp::PreMulSum => Reduction::PreMulSum,
    }
}

const fn slots(protocol: Protocol) -> Slots {
    match protocol {
        Protocol::Simple => Slots::Simple,
        Protocol::Ll => Slots::Ll,
        Protocol::Ll128 => Slots::Ll128,
    }
}

impl Kernels {
    pub fn load(
        device: &Arc<Device>,
        info: &DeviceInfo,
        dtype: DType,
        op: RedOp,
        protocol: Protocol,
        scope: Scope,
    ) -> Result<Kernels, ExecError> {
        let (major, minor) = info.capability;
        let arch = Arch { major, minor };
        let plan = |traced| {
            let (element, reduction, protocol) = (element(dtype), reduction(op), slots(protocol));
            Kernel::Plan { element, reduction, protocol, scope, traced }
        };
        let data = module(device, Kernel::Data { element: element(dtype) }, arch)?;
        Ok(Kernels {
            plain: module(device, plan(false), arch)?.function(c"run_plan")?,
            traced: None,
            traced_kernel: plan(true),
            arch,
            fill: data.function(c"fill")?,
            check: data.function(c"check")?,
            scale: data.function(c"scale")?,
            stamp: module(device, Kernel::Clock, arch)?.function(c"stamp")?,
            multiprocessors: info.multiprocessors,
        })
    }

    /// Makes [`Kernels::run_plan`] ready to trace.
    pub fn load_traced(&mut self, device: &Arc<Device>) -> Result<(), ExecError> {
        if self.traced.is_none() {
            let function = module(device, self.traced_kernel, self.arch)?.function(c"run_plan")?;
            self.traced = Some(function);
        }
        Ok(())
    }

    fn interpreter(&self, traced: bool) -> &Function {
        match &self.traced {
            Some(function) if traced => function,
            None if traced => unreachable!("a traced run loads its kernel first"),
            _ => &self.plain,
        }
    }

    /// Blocks of so many threads that can be resident on the device together.
    pub fn resident_blocks(&self, traced: bool, threads: u32, shared_bytes: u32) -> Result<u32, ExecError> {
        Ok(resident_per_multiprocessor(self.interpreter(traced), threads, shared_bytes)?
            * self.multiprocessors)
    }

    /// Queues one execution of all the device's programs. Blocks wait for each other, so all have to run together.
    pub fn run_plan(
        &self,
        stream: &Stream,
        traced: bool,
        (blocks, threads): (u32, u32),
        shared_bytes: u32,
        params: &Params,
    ) -> Result<(), ExecError> {
        let function = self.interpreter(traced);
        stream.device().bind()?;
        let mut args = [arg(params)];
        // SAFETY: `run_plan` takes one `Params` by value, copied by the call; its addresses belong to the session, which waits for the
        // stream before it frees anything. `program::compile` and `slices::infer` bound every access to those buffers.
        unsafe {
            result::launch_cooperative_kernel(
                function.raw(),
                (blocks, 1, 1),
                (threads, 1, 1),
                shared_bytes,
                stream.raw(),
                &mut args,
            )
        }
        .map_err(failed(format!("launching the interpreter with {blocks} blocks")))
    }

    /// Queues the filling of `elements` elements at `out`.
    pub fn fill(&self, stream: &Stream, exact: &Exact, out: Address, elements: u64) -> Result<(), ExecError> {
        let mut args = [arg(exact), arg(&out), arg(&elements)];
        // SAFETY: the kernel writes `elements` elements at `out`, which the session owns.
        unsafe { self.launch(&self.fill, stream, self.data_blocks(elements), DATA_THREADS, &mut args) }
    }

    /// Queues the multiplication of `elements` elements at `data` by `factor`, bits of the type.
    pub fn scale(&self, stream: &Stream, data: Address, elements: u64, factor: u64) -> Result<(), ExecError> {
        let nowhere = Address::NULL;
        let mut args = [arg(&data), arg(&elements), arg(&nowhere), arg(&factor)];
        // SAFETY: the kernel reads and writes `elements` elements at `data`, which the session owns.
        unsafe { self.launch(&self.scale, stream, self.data_blocks(elements), DATA_THREADS, &mut args) }
    }

    /// Queues a comparison of `elements` elements at `got`; `result` has two words.
    pub fn check(
        &self,
        stream: &Stream,
        exact: &Exact,
        got: Address,
        elements: u64,
        input: bool,
        result: Address,
    ) -> Result<(), ExecError> {
        let input = c_uint::from(input);
        let mut args = [arg(exact), arg(&got), arg(&elements), arg(&input), arg(&result)];
        // SAFETY: the kernel reads `elements` elements at `got` and writes two words at `result`, both owned by the session.
        unsafe { self.launch(&self.check, stream, self.data_blocks(elements), DATA_THREADS, &mut args) }
    }

    /// Queues a stamp of the device clock behind everything queued so far.
    pub fn stamp(
        &self,
        stream: &Stream,
        stamps: Address,
        launches: Address,
        capacity: u64,
    ) -> Result<(), ExecError> {
        let mut args = [arg(&stamps), arg(&launches), arg(&capacity)];
        // SAFETY: the kernel writes one of `capacity` words at `stamps` and one at `launches`, both owned by the session.
        unsafe { self.launch(&self.stamp, stream, 1, 1, &mut args) }
    }

    fn data_blocks(&self, elements: u64) -> u32 {
        let wanted = elements.div_ceil(u64::from(DATA_THREADS)).max(1);
        wanted.min(u64::from(self.multiprocessors * 8)) as u32
    }

    /// # Safety
    /// `args` are pointers to the function's parameters, in order and of its types.
    unsafe fn launch(
        &self,
        function: &Function,
        stream: &Stream,
        blocks: u32,
        threads: u32,
        args: &mut [*mut c_void],
    ) -> Result<(), ExecError> {
        stream.device().bind()?;
        let size = Launch { grid: [blocks, 1, 1], threads, shared_bytes: 0 };
        // SAFETY: the caller's promise.
        unsafe { launch(function, size, stream.into(), args, || "launching a kernel".into()) }
    }
}

/// Size of a launch.
#[derive(Debug, Clone, Copy)]
struct Launch {
    grid: [u32; 3],
    threads: u32,
    shared_bytes: u32,
}

/// Queues a launch. The device has to be current.
///
/// # Safety
/// `args` are pointers to the function's parameters, in order and of its types; function and stream live as long as what was queued runs.
unsafe fn launch(
    function: &Function,
    Launch { grid: [x, y, z], threads, shared_bytes }: Launch,
    stream: ForeignStream,
    args: &mut [*mut c_void],
    context: impl FnOnce() -> String,
) -> Result<(), ExecError> {
    // SAFETY: the caller's promise.
    unsafe {
        result::launch_kernel(function.raw(), (x, y, z), (threads, 1, 1), shared_bytes, stream.raw(), args)
    }
    .map_err(|error| failed(context())(error))
}

/// A kernel's entry point, one per process and device.
///
/// Loading can wait for kernels that run, and a rank that loads while a peer's kernel of the same operation waits for it would never end.
/// As it is, whoever comes first loads before anyone has launched; and who needs what is there already waits for nobody's loading.
fn entry(
    device: &Arc<Device>,
    info: &DeviceInfo,
    kernel: Kernel,
    name: &'static CStr,
) -> Result<Arc<Function>, ExecError> {
    type Loaded = RwLock<HashMap<(u32, Kernel, &'static CStr), Arc<Function>>>;
    static LOADED: LazyLock<Loaded> = LazyLock::new(Loaded::default);
    static LOADING: Mutex<()> = Mutex::new(());
    let key = (device.ordinal.number, kernel, name);
    let loaded = || LOADED.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(function) = loaded() {
        return Ok(function);
    }
    let _one_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(function) = loaded() {
        return Ok(function);
    }
    let (major, minor) = info.capability;
    let function = Arc::new(module(device, kernel, Arch { major, minor })?.function(name)?);
    LOADED.write().unwrap_or_else(PoisonError::into_inner).insert(key, function.clone());
    Ok(function)
}

/// The interpreter alone, for ranks that launch for themselves.
pub fn interpreter(
    device: &Arc<Device>,
    info: &DeviceInfo,
    dtype: DType,
    op: RedOp,
    protocol: Protocol,
    scope: Scope,
) -> Result<Arc<Function>, ExecError> {
    let (element, reduction, protocol) = (element(dtype), reduction(op), slots(protocol));
    entry(device, info, Kernel::Plan { element, reduction, protocol, scope, traced: false }, c"run_plan")
}

/// The interpreter for several ranks of one process in one launch.
pub fn ranks_interpreter(
    device: &Arc<Device>,
    info: &DeviceInfo,
    dtype: DType,
    op: RedOp,
    protocol: Protocol,
    scope: Scope,
) -> Result<Arc<Function>, ExecError> {
    let (element, reduction, protocol) = (element(dtype), reduction(op), slots(protocol));
    entry(device, info, Kernel::Ranks { element, reduction, protocol, scope }, c"run_ranks")
}

/// Queues one execution of several ranks' programs on a stream. The device has to be current.
pub fn run_ranks(
    function: &Function,
    size: RankLaunch,
    stream: ForeignStream,
    ranks: &Ranks,
) -> Result<(), ExecError> {
    let mut args = [arg(ranks)];
    // SAFETY: `run_ranks` takes one `Ranks` by value, copied by the call; its addresses are as in `run_rank`, once they count from the
    // blocks of their rank.
    unsafe {
        launch(function, size.launch(), stream, &mut args, || {
            format!("launching the interpreter for several ranks with {} blocks", size.blocks)
        })
    }
}

/// The interpreter for programs that wait for nobody.
pub fn fused(
    device: &Arc<Device>,
    info: &DeviceInfo,
    dtype: DType,
    op: RedOp,
) -> Result<Arc<Function>, ExecError> {
    entry(device, info, Kernel::Fused { element: element(dtype), reduction: reduction(op) }, c"run_fused")
}

/// Blocks of so many threads that are resident on a multiprocessor together.
pub fn resident_per_multiprocessor(
    function: &Function,
    threads: u32,
    shared_bytes: u32,
) -> Result<u32, ExecError> {
    // SAFETY: the function is loaded.
    let blocks = unsafe {
        result::occupancy::max_active_block_per_multiprocessor(
            function.raw(),
            threads as i32,
            shared_bytes as usize,
        )
    };
    Ok(blocks.map_err(failed("asking how many blocks fit"))? as u32)
}

/// Queues one execution of programs that wait for nobody. The device has to be current.
pub fn run_fused(
    function: &Function,
    size: RankLaunch,
    stream: ForeignStream,
    params: &Params,
) -> Result<(), ExecError> {
    let mut args = [arg(params)];
    // SAFETY: as in `Kernels::run_plan`.
    unsafe {
        launch(function, size.launch(), stream, &mut args, || {
            format!("launching the fused interpreter with {} blocks", size.blocks)
        })
    }
}

/// The direct kernel alone, for so many sources and destinations.
///
/// # Errors
/// As [`Kernels::load`].
pub fn direct(
    device: &Arc<Device>,
    info: &DeviceInfo,
    dtype: DType,
    op: RedOp,
    average: bool,
    (sources, destinations): (u32, u32),
) -> Result<Arc<Function>, ExecError> {
    let (element, reduction) = (element(dtype), reduction(op));
    let (sources, destinations) = (Count::of(sources), Count::of(destinations));
    let kernel = Kernel::Direct { element, reduction, average, sources, destinations };
    entry(device, info, kernel, c"run_direct")
}

/// Queues one execution by the direct kernel. The device has to be current.
pub fn run_direct(
    function: &Function,
    stream: ForeignStream,
    grid: [u32; 3],
    params: &DirectParams,
) -> Result<(), ExecError> {
    let mut args = [arg(params)];
    let size = Launch { grid, threads: DIRECT_THREADS, shared_bytes: 0 };
    // SAFETY: `run_direct` takes one `DirectParams` by value, copied by the call; its addresses are those of whole buffers of the sizes
    // it states: a session's, which waits for the stream before it frees anything, or the caller's, as in NCCL's interface.
    unsafe { launch(function, size, stream, &mut args, || "launching the direct kernel".into()) }
}

/// The multiplication of inputs in place, for ranks that launch for themselves.
pub fn multiplier(device: &Arc<Device>, info: &DeviceInfo, dtype: DType) -> Result<Arc<Function>, ExecError> {
    entry(device, info, Kernel::Data { element: element(dtype) }, c"scale")
}

/// Blocks of a multiplication: enough to keep any device busy, few enough to leave room for peers' kernels.
const MULTIPLIER_BLOCKS: u64 = 256;

/// Queues the multiplication of `elements` elements at `data` on the caller's stream. The device has to be current.
pub fn multiply(
    function: &Function,
    stream: ForeignStream,
    data: u64,
    elements: u64,
    factor: Factor,
) -> Result<(), ExecError> {
    let (at, bits) = match factor {
        Factor::Bits(bits) => (0u64, bits),
        Factor::Device(at) => (at, 0),
    };
    let blocks = elements.div_ceil(u64::from(DATA_THREADS)).clamp(1, MULTIPLIER_BLOCKS) as u32;
    let mut args = [arg(&data), arg(&elements), arg(&at), arg(&bits)];
    let size = Launch { grid: [blocks, 1, 1], threads: DATA_THREADS, shared_bytes: 0 };
    // SAFETY: `scale` reads and writes `elements` elements at `data` and reads one at `at`, buffers of the caller of the sizes it stated,
    // as in NCCL's interface.
    unsafe { launch(function, size, stream, &mut args, || "launching a multiplication".into()) }
}

/// Size of an interpreter's launch.
#[derive(Debug, Clone, Copy)]
pub struct RankLaunch {
    pub blocks: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl RankLaunch {
    fn launch(self) -> Launch {
        let RankLaunch { blocks, threads, shared_bytes } = self;
        Launch { grid: [blocks, 1, 1], threads, shared_bytes }
    }
}

/// Queues one execution of one rank's programs on the caller's stream. The device has to be current.
pub fn run_rank(
    function: &Function,
    size: RankLaunch,
    stream: ForeignStream,
    params: &Params,
) -> Result<(), ExecError> {
    let mut args = [arg(params)];
    // SAFETY: `run_plan` takes one `Params` by value, copied by the call. Its addresses are the port's, which waits for its kernels
    // before it frees anything, and the caller's buffers, of the sizes the caller stated, as in NCCL's interface.
    unsafe {
        launch(function, size.launch(), stream, &mut args, || {
            format!("launching the interpreter with {} blocks", size.blocks)
        })
    }
}

fn module(device: &Arc<Device>, kernel: Kernel, arch: Arch) -> Result<Arc<Module>, ExecError> {
    let image = ringlab_kernels::load(kernel, arch, &Cache::from_env()).map_err(refused)?;
    Module::load(device, &image.cubin)
}

fn arg<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// A missing compiler is a limit of the machine, a rejected source a fault of ours.
fn refused(error: KernelError) -> ExecError {
    match error {
        KernelError::NoCompiler(_) | KernelError::TooOld { .. } => ExecError::Refused(error.to_string()),
        other => ExecError::Device { context: "compiling a kernel".into(), message: other.to_string() },
    }
}

const _: () = {
    assert!(size_of::<Address>() == size_of::<sys::CUdeviceptr>());
};
