//! What an event is, told from its name: looked at once per distinct name, never per event.
//!
//! The names are those that TensorFlow, JAX, XLA and the CUDA and ROCm drivers give their work;
//! no file format is known here.

/// What an event does, as far as analyses care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum OpKind {
    /// A name nothing is known of: mostly an annotation from the user's own code.
    #[default]
    User,
    /// Brackets one training step.
    Step,
    /// A frame of the Python interpreter.
    Python,
    /// Framework work on the host: dispatch, executors, bookkeeping.
    Runtime,
    /// A driver call that hands work to a device.
    Launch,
    /// A wait for the device.
    Sync,
    /// A framework op running on the host.
    Op,
    /// An op that only calls others and so covers their time.
    CallOp,
    /// An op that calls back into Python.
    PythonOp,
    /// Communication between devices or hosts.
    Collective,
    /// A stage of the input pipeline producing an element.
    InputStage,
    /// The consumer's wait for the next batch.
    InputWait,
    /// Tracing, graph building, compiling, autotuning.
    Compile,
    /// Saving: checkpoints, summaries.
    Save,
    /// A kernel, or an op of a compiled program, on a device.
    Kernel,
    /// Host to device.
    CopyIn,
    /// Device to host.
    CopyOut,
    /// Within one device.
    CopyOnDevice,
    /// Between devices.
    CopyPeer,
    /// Filling device memory.
    Memset,
    /// An allocator's record, without length.
    Memory,
    /// A thread pool's record of handing over work, without length.
    Listener,
    /// A compiled program running its ops on the host.
    Program,
    /// The second half of a compiled op that went on asynchronously.
    OpEnd,
    /// On a summary track: drawn over others' time by a profiler, never time of its own.
    Summary,
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpKinds(u32);

impl OpKinds {
    pub fn insert(&mut self, kind: OpKind) {
        self.0 |= 1 << kind as u8;
    }

    pub fn insert_all(&mut self, kinds: OpKinds) {
        self.0 |= kinds.0;
    }

    pub fn contains(self, kind: OpKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}

impl OpKind {
    pub const ALL: [OpKind; 25] = [
        OpKind::User,
        OpKind::Step,
        OpKind::Python,
        OpKind::Runtime,
        OpKind::Launch,
        OpKind::Sync,
        OpKind::Op,
        OpKind::CallOp,
        OpKind::PythonOp,
        OpKind::Collective,
        OpKind::InputStage,
        OpKind::InputWait,
        OpKind::Compile,
        OpKind::Save,
        OpKind::Kernel,
        OpKind::CopyIn,
        OpKind::CopyOut,
        OpKind::CopyOnDevice,
        OpKind::CopyPeer,
        OpKind::Memset,
        OpKind::Memory,
        OpKind::Listener,
        OpKind::Program,
        OpKind::OpEnd,
        OpKind::Summary,
    ];

    /// As it stands in a column that a source fills, in which 0 says nothing.
    pub fn said(self) -> u8 {
        self as u8 + 1
    }

    /// The other way round.
    pub fn of_said(said: u8) -> Option<OpKind> {
        OpKind::ALL.get(usize::from(said).checked_sub(1)?).copied()
    }

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            OpKind::User => "user",
            OpKind::Step => "step",
            OpKind::Python => "python",
            OpKind::Runtime => "runtime",
            OpKind::Launch => "launch",
            OpKind::Sync => "sync",
            OpKind::Op => "op",
            OpKind::CallOp => "call_op",
            OpKind::PythonOp => "python_op",
            OpKind::Collective => "collective",
            OpKind::InputStage => "input_stage",
            OpKind::InputWait => "input_wait",
            OpKind::Compile => "compile",
            OpKind::Save => "save",
            OpKind::Kernel => "kernel",
            OpKind::CopyIn => "copy_in",
            OpKind::CopyOut => "copy_out",
            OpKind::CopyOnDevice => "copy_on_device",
            OpKind::CopyPeer => "copy_peer",
            OpKind::Memset => "memset",
            OpKind::Memory => "memory",
            OpKind::Listener => "listener",
            OpKind::Program => "program",
            OpKind::OpEnd => "op_end",
            OpKind::Summary => "summary",
        }
    }

    /// What an event of this name does on a host thread.
    pub fn on_host(name: &str) -> OpKind {
        if name.starts_with('$') {
            return if waits_for_loader(name) {
                OpKind::InputWait
            } else if name.ends_with(" block_until_ready") {
                OpKind::Sync
            } else {
                OpKind::Python
            };
        }
        if name.starts_with("ThunkExecutor::Execute") {
            return OpKind::Program;
        }
        if name.starts_with("ThreadpoolListener::") {
            return OpKind::Listener;
        }
        if matches!(name, "MemoryAllocation" | "MemoryDeallocation") {
            return OpKind::Memory;
        }
        if name.starts_with("end: ") {
            return OpKind::OpEnd;
        }
        if let Some(inner) = name.strip_prefix("EagerLocalExecute: ") {
            return match of_op_type(inner) {
                it @ (OpKind::InputWait | OpKind::Save | OpKind::PythonOp) => it,
                _ => OpKind::Runtime,
            };
        }
        if name.starts_with("IteratorGetNext") || name.starts_with("MultiDeviceIteratorGetNext") {
            return OpKind::InputWait;
        }
        if name.starts_with("Iterator::") {
            return OpKind::InputStage;
        }
        if let Some(op) = OpName::parse(name) {
            return match op.family {
                OpFamily::TfData => OpKind::InputStage,
                OpFamily::TensorFlow | OpFamily::Jax => of_op_type(op.op_type),
                OpFamily::Torch => OpKind::Op,
            };
        }
        if name == "TraceContext" || name == "Profiled batch" {
            return OpKind::Step;
        }
        if is_driver_call(name) {
            let waits = ["Synchronize", "StreamWait", "EventQuery"];
            return if waits.iter().any(|it| name.contains(it)) {
                OpKind::Sync
            } else {
                OpKind::Launch
            };
        }
        if is_copy(name).is_some() {
            // On the host these are the calls that ask for a copy, as an older profiler named them.
            return OpKind::Launch;
        }
        if starts_with_any(name, INPUT_PARTS) {
            return OpKind::InputStage;
        }
        if is_compile(name) {
            return OpKind::Compile;
        }
        if starts_with_any(name, SYNC) {
            return OpKind::Sync;
        }
        if starts_with_any(name, RUNTIME) || name.contains("::") {
            return OpKind::Runtime;
        }
        OpKind::User
    }

    /// What a framework op of this type does on the host.
    pub fn of_type(op_type: &str) -> OpKind {
        of_op_type(op_type)
    }

    /// What an event of this name does on a device.
    pub fn on_device(name: &str) -> OpKind {
        if let Some(copy) = is_copy(name) {
            return copy;
        }
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("memset") {
            return OpKind::Memset;
        }
        if is_collective(&lower) {
            return OpKind::Collective;
        }
        // Which way a compiled program's copy goes, its name does not say.
        if starts_with_any(lower.trim_start_matches('%'), &["copy-done", "copy-start"]) {
            return OpKind::CopyIn;
        }
        OpKind::Kernel
    }
}

/// Copies by NVIDIA's names (`MemcpyH2D`), the older ones (`MemcpyHToD`) and AMD's.
fn is_copy(name: &str) -> Option<OpKind> {
    match name {
        "CopyHostToDevice" => return Some(OpKind::CopyIn),
        "CopyDeviceToHost" => return Some(OpKind::CopyOut),
        "CopyDeviceToDevice" => return Some(OpKind::CopyOnDevice),
        _ => (),
    }
    let rest = name.strip_prefix("Memcpy").or_else(|| name.strip_prefix("hipMemcpy"))?;
    let rest = rest.to_ascii_lowercase().replace("to", "2");
    Some(match rest.get(..3).unwrap_or("") {
        "h2d" => OpKind::CopyIn,
        "d2h" => OpKind::CopyOut,
        "p2p" => OpKind::CopyPeer,
        "h2h" => return None,
        _ => OpKind::CopyOnDevice,
    })
}

fn is_driver_call(name: &str) -> bool {
    ["cuda", "hip", "cu"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|it| it.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

fn is_collective(lower: &str) -> bool {
    const PREFIXES: &[&str] = &[
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
    starts_with_any(lower.trim_start_matches('%'), PREFIXES)
}

/// A Python frame that waits for a data loader, as `$dataloader.py:701 __next__`.
fn waits_for_loader(frame: &str) -> bool {
    let Some((place, function)) = frame.split_once(' ') else { return false };
    function == "__next__"
        && ["$dataloader.py", "$data_loader", "$iterator_ops.py", "$dataset_ops.py"]
            .iter()
            .any(|it| place.starts_with(it))
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|it| name.starts_with(it))
}

/// What brackets or feeds the input pipeline, besides the stages themselves.
const INPUT_PARTS: &[&str] = &[
    "InstantiatedCapturedFunction::",
    "PrefetchProduce",
    "PrefetchConsume",
    "ParallelInterleaveProduce",
    "ParallelInterleaveConsume",
    "ParallelMapProduce",
    "ParallelMapConsume",
    "MapAndBatchProduce",
    "MapAndBatchConsume",
    "ParseExampleProduce",
    "ParseExampleConsume",
    "ParallelBatchProduce",
    "ParallelBatchConsume",
    "MakeIterator::",
    "TFRecordDatasetOp::",
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

const RUNTIME: &[&str] = &[
    "Eager",
    "TFE_",
    "FunctionRun",
    "SessionRun",
    "RunGraph",
    "RunStep",
    "Executor",
    "convert_to_tensor",
    "tf.constant",
    "ParallelFor",
    "PjitFunction",
    "PjRt",
    "CommonPjRt",
    "Tfrt",
    "DevicePut",
    "RecordUsage",
    "RecvAsync",
    "Wait for ",
    "ValidateInputTypeAndPlacement",
    "ThenExecuteCallback",
    "ExecuteReplicated",
    "shard_args",
    "TraceContext",
    "RemoteCall",
    "CpuExecutable",
    "GpuExecutable",
    "XlaExecutable",
    "XlaLaunch",
    "_XlaRun",
];

/// Tracing, lowering, compiling and autotuning of TensorFlow, JAX and XLA.
fn is_compile(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "tf.function-graph_building",
        "trace_to_jaxpr",
        "lower_sharding_computation",
        "lower_jaxpr",
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
        "MetaOptimizer",
        "Grappler",
        "GraphOptimization",
        "OptimizeFunctionGraph",
        "InstantiateFunction",
    ];
    starts_with_any(name, PREFIXES)
        || name.ends_with("::Compile")
        || name.contains("::CompileAndLoad")
        || name.contains("Compiler::")
}

/// What a framework op of this type does on the host.
fn of_op_type(op_type: &str) -> OpKind {
    const CALLS: &[&str] = &[
        "StatefulPartitionedCall",
        "PartitionedCall",
        "RemoteCall",
        "While",
        "StatelessWhile",
        "If",
        "StatelessIf",
        "Case",
        "XlaLaunch",
        "XlaLaunchV2",
        "_XlaRun",
        "XlaLocalLaunch",
    ];
    const SAVES: &[&str] = &[
        "SaveV2",
        "Save",
        "SaveSlices",
        "MergeV2Checkpoints",
        "WriteSummary",
        "WriteScalarSummary",
        "WriteHistogramSummary",
        "WriteImageSummary",
        "WriteAudioSummary",
        "WriteGraphSummary",
        "WriteRawProtoSummary",
        "FlushSummaryWriter",
        "SaveDatasetV2",
        "WriteFile",
    ];
    const COLLECTIVE: &[&str] = &["Collective", "NcclAllReduce", "NcclReduce", "NcclBroadcast"];
    if op_type.starts_with("IteratorGetNext")
        || op_type.starts_with("MultiDeviceIteratorGetNext")
        || op_type.starts_with("OptionalGetNext")
    {
        OpKind::InputWait
    } else if CALLS.contains(&op_type) {
        OpKind::CallOp
    } else if SAVES.contains(&op_type) {
        OpKind::Save
    } else if matches!(op_type, "PyFunc" | "EagerPyFunc" | "PyFuncStateless") {
        OpKind::PythonOp
    } else if starts_with_any(op_type, COLLECTIVE) {
        OpKind::Collective
    } else if matches!(op_type, "_Send" | "_Recv" | "_HostSend" | "_HostRecv" | "NoOp") {
        OpKind::Runtime
    } else {
        OpKind::Op
    }
}

/// Whose op a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpFamily {
    TensorFlow,
    TfData,
    Jax,
    Torch,
}

/// An op's name taken apart: `scope/sub/name:Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpName<'a> {
    pub family: OpFamily,
    /// With its scopes; for a stage of tf.data the whole text.
    pub name: &'a str,
    pub op_type: &'a str,
}

impl<'a> OpName<'a> {
    /// Reads `name:Type`, the way the frameworks' own profiler does. `None` for other names.
    pub fn parse(text: &'a str) -> Option<OpName<'a>> {
        let (left, right) = text.split_once(':')?;
        if left == "Iterator" {
            return Some(OpName { family: OpFamily::TfData, name: text, op_type: "Dataset" });
        }
        if let Some(op_type) = right.strip_prefix(':').filter(|_| is_torch_library(left)) {
            return Some(OpName { family: OpFamily::Torch, name: text, op_type });
        }
        let tensorflow =
            |op_type| Some(OpName { family: OpFamily::TensorFlow, name: left, op_type });
        if is_tf_name(left) && is_tf_type(right) {
            return tensorflow(right);
        }
        let op_type = if right.is_empty() { type_from_name(left) } else { right };
        // With a blank before the colon it is a sentence, or a command with a password.
        let is_name = right.is_empty() || !left.contains(' ');
        if is_name && is_jax_type(op_type) {
            let op_type = op_type.split('[').next().unwrap_or(op_type);
            return Some(OpName { family: OpFamily::Jax, name: left, op_type });
        }
        if right.is_empty() { tensorflow(op_type) } else { None }
    }

    /// The scopes around the op, outermost first; empty at the top.
    pub fn scope(&self) -> &'a str {
        match self.family {
            OpFamily::TfData | OpFamily::Torch => "",
            _ => self.name.rsplit_once('/').map_or("", |(scope, _)| scope),
        }
    }
}

/// The namespaces of PyTorch's own ops.
fn is_torch_library(text: &str) -> bool {
    ["aten", "c10d", "c10d_functional", "_c10d_functional", "prims", "torchvision"].contains(&text)
}

fn is_tf_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_alphanumeric() || it == b'.')
        && bytes.all(|it| it.is_ascii_alphanumeric() || b"_./>-\\".contains(&it))
}

fn is_tf_type(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_uppercase() || it == b'_')
        && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

fn is_jax_type(text: &str) -> bool {
    let word = match text.split_once('[') {
        Some((word, rest)) if rest.ends_with(']') => word,
        Some(_) => return false,
        None => text,
    };
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_lowercase() || it == b'_')
        && bytes.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

/// `model/dense/MatMul_3` is of type `MatMul`.
fn type_from_name(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.rsplit_once('_') {
        Some((word, number))
            if !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()) =>
        {
            word
        }
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::{OpFamily, OpKind, OpName};

    #[test]
    fn op_names_come_apart() {
        let parse =
            |text| OpName::parse(text).map(|it| (it.family, it.name, it.op_type, it.scope()));
        assert_eq!(
            parse("model/dense/MatMul:MatMul"),
            Some((OpFamily::TensorFlow, "model/dense/MatMul", "MatMul", "model/dense"))
        );
        assert_eq!(
            parse("Iterator::Root::Map"),
            Some((OpFamily::TfData, "Iterator::Root::Map", "Dataset", ""))
        );
        assert_eq!(
            parse("jit(f)/dot_general:dot_general[x=1]"),
            Some((OpFamily::Jax, "jit(f)/dot_general", "dot_general", "jit(f)"))
        );
        assert_eq!(
            parse("a/MatMul_12:"),
            Some((OpFamily::TensorFlow, "a/MatMul_12", "MatMul", "a"))
        );
        assert_eq!(parse("aten::mm"), Some((OpFamily::Torch, "aten::mm", "mm", "")));
        assert_eq!(parse("EagerLocalExecute: MatMul"), None);
        assert_eq!(parse("ThreadpoolListener::Record"), None);
        assert_eq!(parse("no colon"), None);
    }

    #[test]
    fn what_a_source_says_comes_back() {
        for kind in OpKind::ALL {
            assert_eq!(OpKind::of_said(kind.said()), Some(kind));
        }
        assert_eq!((OpKind::of_said(0), OpKind::of_said(u8::MAX)), (None, None));
    }

    #[test]
    fn host_names_say_what_they_do() {
        let check = |name: &str, kind: OpKind| assert_eq!(OpKind::on_host(name), kind, "{name}");
        check("IteratorGetNext:IteratorGetNext", OpKind::InputWait);
        check("IteratorGetNextOp::DoCompute", OpKind::InputWait);
        check("EagerLocalExecute: IteratorGetNext", OpKind::InputWait);
        check("EagerLocalExecute: SaveV2", OpKind::Save);
        check("EagerLocalExecute: MatMul", OpKind::Runtime);
        check("Iterator::Root::BatchV2", OpKind::InputStage);
        check("InstantiatedCapturedFunction::Run", OpKind::InputStage);
        check("model/StatefulPartitionedCall:StatefulPartitionedCall", OpKind::CallOp);
        check("cuLaunchKernel", OpKind::Launch);
        check("cuStreamSynchronize", OpKind::Sync);
        check("customer data", OpKind::User);
        check("tf.function-graph_building", OpKind::Compile);
        check("CpuCompiler::CloneAsThreadSafeModule", OpKind::Compile);
        check("$train.py:12 step", OpKind::Python);
        check("$dataloader.py:701 __next__", OpKind::InputWait);
        check("matmul:MatMul", OpKind::Op);
    }

    #[test]
    fn both_generations_of_copy_names_are_copies() {
        for (name, kind) in [
            ("MemcpyH2D", OpKind::CopyIn),
            ("MemcpyHToD", OpKind::CopyIn),
            ("MemcpyD2H", OpKind::CopyOut),
            ("MemcpyDToH", OpKind::CopyOut),
            ("MemcpyD2D", OpKind::CopyOnDevice),
            ("MemcpyP2P", OpKind::CopyPeer),
            ("CopyDeviceToDevice", OpKind::CopyOnDevice),
            ("Memset", OpKind::Memset),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", OpKind::Collective),
            ("ampere_sgemm_128x64_nn", OpKind::Kernel),
        ] {
            assert_eq!(OpKind::on_device(name), kind, "{name}");
        }
    }
}
