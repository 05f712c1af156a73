//! The names of XLA, of its runtimes and compilers, and of the profiler that TensorFlow and JAX share.

use super::{Dialect, starts_with_any};
use crate::OpKind;

#[derive(Debug)]
pub struct Xla;

impl Dialect for Xla {
    fn name(&self) -> &'static str {
        "xla"
    }

    fn on_host(&self, event: &str) -> Option<OpKind> {
        Some(match event {
            _ if event.starts_with("ThunkExecutor::Execute") => OpKind::Program,
            _ if event.starts_with("ThreadpoolListener::") => OpKind::Listener,
            "MemoryAllocation" | "MemoryDeallocation" => OpKind::Memory,
            _ if event.starts_with("end: ") => OpKind::OpEnd,
            _ if is_compile(event) => OpKind::Compile,
            _ if starts_with_any(event, SYNC) => OpKind::Sync,
            _ if starts_with_any(event, RUNTIME) => OpKind::Runtime,
            _ => return None,
        })
    }

    fn is_no_op(&self, op: &str) -> bool {
        op == "XlaModule:"
    }

    fn shows_programs(&self, track: &str) -> bool {
        track == "XLA Modules"
    }

    fn is_pool(&self, thread: &str) -> bool {
        ["pjrt", "py_xla", "tfrt"].iter().any(|it| thread.contains(it))
    }

    fn runs_outcome(&self, event: &str) -> bool {
        event.starts_with("ExecuteReplicated") || event.contains("Executable::Execute")
    }

    fn on_device(&self, event: &str) -> Option<OpKind> {
        let lower = event.to_ascii_lowercase();
        let op = lower.trim_start_matches('%');
        // Which way a compiled program's copy goes, its name does not say.
        let is_copy = starts_with_any(op, &["copy-done", "copy-start"]);
        match starts_with_any(op, COLLECTIVES) {
            true => Some(OpKind::Collective),
            false => is_copy.then_some(OpKind::CopyIn),
        }
    }
}

const COLLECTIVES: &[&str] = &[
    "nccl",
    "rccl",
    "msccl",
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "send-done",
    "recv-done",
];

/// Waits of the host for work that it handed over.
const SYNC: &[&str] = &[
    "CommonPjRtBuffer::Await",
    "PjRtBuffer::Await",
    "BlockHostUntilDone",
    "BlockUntilReady",
    "BlockHostUntilReady",
    "block_until_ready",
    "SlinkyThreadPool::Await",
    "TfrtCpuBuffer::Await",
];

/// What hands work on and runs it.
const RUNTIME: &[&str] = &[
    "ParallelFor",
    "PjRt",
    "CommonPjRt",
    "Tfrt",
    "RecordUsage",
    "RecvAsync",
    "Wait for ",
    "ValidateInputTypeAndPlacement",
    "ThenExecuteCallback",
    "ExecuteReplicated",
    "CpuExecutable",
    "GpuExecutable",
    "XlaExecutable",
    "XlaLaunch",
    "_XlaRun",
];

/// Lowering, compiling and autotuning.
fn is_compile(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "backend_compile",
        "XlaCompil",
        "XlaLower",
        "CompileGraph",
        "CompileFunction",
        "CompileImpl",
        "CpuCompiler",
        "GpuCompiler",
        "NVPTXCompiler",
        "AMDGPUCompiler",
        "LlvmCompiler",
        "RunHloPasses",
        "RunBackend",
        "HloPass",
        "Autotun",
    ];
    starts_with_any(name, PREFIXES)
        || name.ends_with("::Compile")
        || name.contains("::CompileAndLoad")
        || name.contains("Compiler::")
}
