//! TensorFlow's names on the host.

use super::{Call, Dialect, SiteRole, starts_with_any};
use crate::{OpFamily, OpKind, OpName};

#[derive(Debug)]
pub struct TensorFlow;

/// What it puts in front of what it is called for.
const CALLS: &str = crate::EAGER_CALL;

impl Dialect for TensorFlow {
    fn name(&self) -> &'static str {
        "tensorflow"
    }

    fn title(&self) -> &'static str {
        "TensorFlow"
    }

    fn shows(&self, event: &str) -> bool {
        event == "SessionRun" || starts_with_any(event, SHOWS)
    }

    fn on_host(&self, event: &str) -> Option<OpKind> {
        if let Some(inner) = event.strip_prefix(CALLS) {
            return Some(match of_op_type(inner) {
                it @ (OpKind::InputWait | OpKind::Save | OpKind::PythonOp) => it,
                _ => OpKind::Runtime,
            });
        }
        if starts_with_any(event, &["IteratorGetNext", "MultiDeviceIteratorGetNext"]) {
            return Some(OpKind::InputWait);
        }
        if event.starts_with("Iterator::") {
            return Some(OpKind::InputStage);
        }
        // JAX writes the names of its ops in the same form.
        if let Some(op) = OpName::parse(event) {
            return match op.family {
                OpFamily::TfData => Some(OpKind::InputStage),
                OpFamily::TensorFlow | OpFamily::Jax => Some(of_op_type(op.op_type)),
                OpFamily::Torch | OpFamily::Compiled | OpFamily::Kernel => None,
            };
        }
        Some(match event {
            "TraceContext" | "Profiled batch" => OpKind::Step,
            _ if starts_with_any(event, INPUT_PARTS) => OpKind::InputStage,
            _ if starts_with_any(event, COMPILES) => OpKind::Compile,
            _ if starts_with_any(event, RUNTIME) => OpKind::Runtime,
            _ => return None,
        })
    }

    fn call<'a>(&self, event: &'a str, _kind: OpKind) -> Option<Call<'a>> {
        let callee = event.strip_prefix(CALLS)?;
        Some(match plain_function(callee) {
            Some(function) => Call::Function(function),
            None if callee == "IteratorGetNext" => Call::NextBatch,
            None => Call::Op(callee),
        })
    }

    fn function_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let inner = GRAPHS.iter().find_map(|it| name.strip_prefix(it))?;
        let inner = inner.split("__XlaMustCompile").next().unwrap_or(inner);
        let inner = inner.split("__.").next().unwrap_or(inner);
        // A number is put behind each.
        Some(match inner.rsplit_once('_') {
            Some((word, number)) if number.parse::<u64>().is_ok() => word,
            _ => inner,
        })
    }

    fn site(&self, kind: &str) -> Option<SiteRole> {
        Some(match kind {
            "tf.function" => SiteRole::Function,
            "keras.fit" => SiteRole::Fit,
            "keras.compile" => SiteRole::CompileModel,
            "keras.PyDataset" => SiteRole::Loader,
            "keras.callback" => SiteRole::Callback,
            _ => return None,
        })
    }

    fn runs_op(&self, event: &str) -> bool {
        event.starts_with("KernelAndDevice")
    }

    fn makes_tensor(&self, event: &str) -> bool {
        ["convert_to_tensor", "tf.constant", "TFE_"].iter().any(|it| event.starts_with(it))
    }

    fn gives_back(&self, event: &str) -> bool {
        event == "TFE_DeleteTensorHandle"
    }

    fn is_batch(&self, function: &str) -> bool {
        KERAS.contains(&function)
    }

    fn makes_input(&self, thread: &str) -> bool {
        thread.starts_with("tf_data_")
    }

    fn is_called_from_python(&self, event: &str) -> bool {
        event.starts_with("TFE_Py")
    }

    fn calls_for_input(&self, file: &str) -> bool {
        let callers = [
            "tensorflow/python/ops/script_ops.py",
            "tensorflow/python/data/ops/from_generator_op.py",
        ];
        callers.iter().any(|it| file.ends_with(it))
    }

    fn calls_function(&self, event: &str, kind: OpKind) -> bool {
        match kind {
            OpKind::Op => {
                ["__inference_", "__forward_", "__backward_", "Xla", "_Xla"]
                    .iter()
                    .any(|it| event.starts_with(it))
                    || event.contains(":Xla")
                    || event.contains(":_Xla")
            }
            OpKind::Runtime => event == "ExecutorState::ProcessAsync::Start",
            _ => false,
        }
    }

    fn runs_outcome(&self, event: &str) -> bool {
        event == "EagerKernelExecute"
    }

    fn names_gradients(&self) -> bool {
        true
    }

    fn reads_value(&self, op: &str) -> bool {
        READS.contains(&op)
    }

    fn begins_step(&self, event: &str, kind: OpKind) -> bool {
        matches!(event, "SessionRun" | "RunGraph" | "FunctionRun")
            || kind == OpKind::InputWait && event.starts_with("Eager")
    }
}

/// What is put in front of a function's name where it becomes a graph, and a program.
const GRAPHS: &[&str] =
    &["__inference_", "__forward_", "__backward_", "a_inference_", "a_forward_", "a_backward_"];

const SHOWS: &[&str] =
    &["TFE_", "Eager", "tf.function", "ExecutorState::Process", "Iterator::", "IteratorGetNext"];

/// What Keras calls the function of a batch.
const KERAS: &[&str] = &[
    "train_function",
    "test_function",
    "predict_function",
    "one_step_on_iterator",
    "one_step_on_data",
    "multi_step_on_iterator",
];

/// Ops that the saver calls before it saves: every variable is looked at and read, and the names of
/// files are put together.
const READS: &[&str] = &[
    "VarIsInitializedOp",
    "DisableCopyOnRead",
    "ReadVariableOp",
    "Identity",
    "_EagerConst",
    "Const",
    "Pack",
    "StringJoin",
    "ShardedFilename",
    "RegexFullMatch",
    "StaticRegexFullMatch",
    "Select",
    "NoOp",
];

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

/// Tracing, and rewriting graphs.
const COMPILES: &[&str] = &[
    "tf.function-graph_building",
    "MetaOptimizer",
    "Grappler",
    "GraphOptimization",
    "OptimizeFunctionGraph",
    "InstantiateFunction",
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
    "TraceContext",
    "RemoteCall",
];

/// What a framework op of this type does on the host.
pub fn of_op_type(op_type: &str) -> OpKind {
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

/// `__inference_train_step_130` is the user's `train_step`.
fn plain_function(name: &str) -> Option<&str> {
    let rest = ["__inference_", "__forward_", "__backward_"]
        .iter()
        .find_map(|it| name.strip_prefix(it))?;
    match rest.rsplit_once('_') {
        Some((word, digits))
            if !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()) =>
        {
            Some(word)
        }
        _ => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::plain_function;

    #[test]
    fn functions_have_the_names_users_gave_them() {
        assert_eq!(plain_function("__inference_train_step_130"), Some("train_step"));
        assert_eq!(plain_function("__inference_one_step_on_data_7"), Some("one_step_on_data"));
        assert_eq!(plain_function("MatMul"), None);
    }
}
