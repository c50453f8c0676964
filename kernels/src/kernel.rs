//! Which kernels there are.

use std::fmt;

/// Element type of a specialisation, named as in `cuda/element.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    Bf16,
    E4m3,
    E5m2,
}

impl Element {
    pub const ALL: [Element; 12] = [
        Element::I8,
        Element::U8,
        Element::I32,
        Element::U32,
        Element::I64,
        Element::U64,
        Element::F16,
        Element::F32,
        Element::F64,
        Element::Bf16,
        Element::E4m3,
        Element::E5m2,
    ];

    const fn name(self) -> &'static str {
        match self {
            Element::I8 => "int8",
            Element::U8 => "uint8",
            Element::I32 => "int32",
            Element::U32 => "uint32",
            Element::I64 => "int64",
            Element::U64 => "uint64",
            Element::F16 => "f16",
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::Bf16 => "bf16",
            Element::E4m3 => "e4m3",
            Element::E5m2 => "e5m2",
        }
    }
}

/// Reduction of a specialisation. An average is a sum with an epilogue, which every specialisation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    Sum,
    Prod,
    Min,
    Max,
    /// A sum whose operands may have a factor each.
    PreMulSum,
}

impl Reduction {
    pub const ALL: [Reduction; 5] =
        [Reduction::Sum, Reduction::Prod, Reduction::Min, Reduction::Max, Reduction::PreMulSum];

    /// Whether the direct kernel has it: factors belong to the plan's operands, which that kernel does not look at.
    pub const fn serves_direct(self) -> bool {
        !matches!(self, Reduction::PreMulSum)
    }

    const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "Sum",
            Reduction::Prod => "Prod",
            Reduction::Min => "Min",
            Reduction::Max => "Max",
            Reduction::PreMulSum => "PreMulSum",
        }
    }
}

/// What slots of connections are made of, numbered as in `cuda/program.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Simple,
    Ll,
    Ll128,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Simple, Protocol::Ll, Protocol::Ll128];
}

/// How far the ordering of counters has to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All ranks are on one device.
    Device,
    /// Ranks are on several devices.
    System,
}

/// Buffers on one side of a specialisation: it is unrolled for a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Count {
    /// 1 to [`Count::MOST_UNROLLED`].
    Exactly(u32),
    Any,
}

impl Count {
    pub const MOST_UNROLLED: u32 = 8;

    /// The specialisation that serves so many buffers.
    pub const fn of(buffers: u32) -> Count {
        match buffers {
            1..=Count::MOST_UNROLLED => Count::Exactly(buffers),
            _ => Count::Any,
        }
    }

    const fn macro_value(self) -> u32 {
        match self {
            Count::Exactly(buffers) => buffers,
            Count::Any => 0,
        }
    }
}

/// Most threads of a block of the fused interpreter.
pub const FUSED_THREADS: u32 = 512;

/// Threads of a block of the direct kernel.
pub const DIRECT_THREADS: u32 = 128;

/// One specialisation of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// The plan interpreter, entry point `run_plan`.
    Plan { element: Element, reduction: Reduction, protocol: Protocol, scope: Scope, traced: bool },
    /// The interpreter for several ranks of one process in one launch, entry point `run_ranks`.
    Ranks { element: Element, reduction: Reduction, protocol: Protocol, scope: Scope },
    /// The interpreter for programs that wait for nobody, entry point `run_fused`.
    Fused { element: Element, reduction: Reduction },
    /// Direct plans of ranks that share a device, entry point `run_direct`.
    Direct { element: Element, reduction: Reduction, average: bool, sources: Count, destinations: Count },
    /// Entry points `fill` and `check`.
    Data { element: Element },
    /// Entry point `stamp`.
    Clock,
}

impl Kernel {
    /// Every specialisation that can be asked for; of [`Count`]s, those that differ most.
    pub fn all() -> Vec<Kernel> {
        let counts = [1, 2, 4, 8, u32::MAX].map(Count::of);
        let mut all = vec![Kernel::Clock];
        for element in Element::ALL {
            all.push(Kernel::Data { element });
            for reduction in Reduction::ALL {
                for average in [false, true].into_iter().filter(|_| reduction.serves_direct()) {
                    for sources in counts {
                        let direct = |destinations| Kernel::Direct {
                            element,
                            reduction,
                            average,
                            sources,
                            destinations,
                        };
                        all.extend(counts.map(direct));
                    }
                }
                all.push(Kernel::Fused { element, reduction });
                for protocol in Protocol::ALL {
                    for scope in [Scope::Device, Scope::System] {
                        let plan = |traced| Kernel::Plan { element, reduction, protocol, scope, traced };
                        all.extend([false, true].map(plan));
                        all.push(Kernel::Ranks { element, reduction, protocol, scope });
                    }
                }
            }
        }
        all
    }

    /// File name and text of the source.
    pub(crate) const fn source(self) -> (&'static str, &'static str) {
        match self {
            Kernel::Plan { .. } | Kernel::Ranks { .. } => ("plan.cu", include_str!("../cuda/plan.cu")),
            Kernel::Fused { .. } => ("fused.cu", include_str!("../cuda/fused.cu")),
            Kernel::Direct { .. } => ("direct.cu", include_str!("../cuda/direct.cu")),
            Kernel::Data { .. } => ("data.cu", include_str!("../cuda/data.cu")),
            Kernel::Clock => ("clock.cu", include_str!("../cuda/clock.cu")),
        }
    }

    /// Macro definitions that select the specialisation.
    pub(crate) fn definitions(self) -> Vec<String> {
        match self {
            Kernel::Plan { element, reduction, protocol, scope, traced } => vec![
                format!("-DRINGLAB_ELEMENT={}", element.name()),
                format!("-DRINGLAB_REDUCTION={}", reduction.name()),
                format!("-DRINGLAB_PROTOCOL={}", protocol as u8),
                format!("-DRINGLAB_SYSTEM_SCOPE={}", u8::from(scope == Scope::System)),
                format!("-DRINGLAB_TRACED={}", u8::from(traced)),
            ],
            Kernel::Ranks { element, reduction, protocol, scope } => {
                let one = Kernel::Plan { element, reduction, protocol, scope, traced: false };
                let mut definitions = one.definitions();
                definitions.push("-DRINGLAB_RANKS".into());
                definitions
            }
            Kernel::Fused { element, reduction } => vec![
                format!("-DRINGLAB_ELEMENT={}", element.name()),
                format!("-DRINGLAB_REDUCTION={}", reduction.name()),
                format!("-DRINGLAB_MOST_THREADS={FUSED_THREADS}"),
                // Nothing is sent on connections, and nobody is waited for.
                format!("-DRINGLAB_PROTOCOL={}", Protocol::Simple as u8),
                "-DRINGLAB_SYSTEM_SCOPE=0".into(),
            ],
            Kernel::Direct { element, reduction, average, sources, destinations } => vec![
                format!("-DRINGLAB_ELEMENT={}", element.name()),
                format!("-DRINGLAB_REDUCTION={}", reduction.name()),
                format!("-DRINGLAB_AVERAGE={}", u8::from(average)),
                format!("-DRINGLAB_SOURCES={}", sources.macro_value()),
                format!("-DRINGLAB_DESTINATIONS={}", destinations.macro_value()),
                format!("-DRINGLAB_THREADS={DIRECT_THREADS}"),
                "-DRINGLAB_SYSTEM_SCOPE=0".into(),
            ],
            Kernel::Data { element } => vec![format!("-DRINGLAB_ELEMENT={}", element.name())],
            Kernel::Clock => vec!["-DRINGLAB_SYSTEM_SCOPE=0".into()],
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, _) = self.source();
        write!(f, "{file}")?;
        for definition in self.definitions() {
            write!(f, " {definition}")?;
        }
        Ok(())
    }
}

/// Headers any source may include, by the name it includes them with.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("direct.cuh", include_str!("../cuda/direct.cuh")),
    ("element.cuh", include_str!("../cuda/element.cuh")),
    ("exact.cuh", include_str!("../cuda/exact.cuh")),
    ("line.cuh", include_str!("../cuda/line.cuh")),
    ("memory.cuh", include_str!("../cuda/memory.cuh")),
    ("program.cuh", include_str!("../cuda/program.cuh")),
    ("trace.cuh", include_str!("../cuda/trace.cuh")),
    ("transfer.cuh", include_str!("../cuda/transfer.cuh")),
    ("wait.cuh", include_str!("../cuda/wait.cuh")),
];

/// Compute capability to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arch {
    pub major: u32,
    pub minor: u32,
}

impl Arch {
    /// Oldest the sources support: bfloat16 conversion needs it.
    pub const OLDEST: Arch = Arch { major: 8, minor: 0 };
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}
