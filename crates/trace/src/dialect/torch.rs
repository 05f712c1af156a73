//! PyTorch's names on the host.

use super::{Call, Dialect, Loader, OpCost, SiteRole};
use crate::OpKind;

#[derive(Debug)]
pub struct Torch;

/// What the engine of the backward pass puts in front of each function of the graph.
const ENGINE: &str = "autograd::engine::evaluate_function: ";
/// The wait for a batch.
const LOADER: &str = "enumerate(DataLoader)";
/// A part of the program that `torch.compile` compiled.
const REGION: &str = "Torch-Compiled Region: ";

impl Dialect for Torch {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn title(&self) -> &'static str {
        "PyTorch"
    }

    fn shows(&self, event: &str) -> bool {
        event.starts_with("aten::")
    }

    fn fact(&self) -> Option<&'static str> {
        Some("pytorch_profiler_schema")
    }

    fn site(&self, kind: &str) -> Option<SiteRole> {
        (kind == "torch.DataLoader").then_some(SiteRole::Loader)
    }

    fn says_ops(&self) -> bool {
        true
    }

    fn calls_for_input(&self, file: &str) -> bool {
        let callers = ["torch/utils/data/_utils/fetch.py", "torch/utils/data/_utils/worker.py"];
        callers.iter().any(|it| file.ends_with(it))
    }

    fn on_host(&self, event: &str) -> Option<OpKind> {
        if self.loader(event).is_some() {
            return Some(OpKind::InputWait);
        }
        let (library, _) = event.split_once("::")?;
        is_torch_library(library).then_some(OpKind::Op)
    }

    fn call<'a>(&self, event: &'a str, kind: OpKind) -> Option<Call<'a>> {
        if event.starts_with(LOADER) {
            return Some(Call::NextBatch);
        }
        if let Some(function) = event.strip_prefix(ENGINE) {
            return Some(match function {
                "CompiledFunctionBackward" => Call::Function("compiled backward"),
                _ => Call::Op(function),
            });
        }
        if event.starts_with(REGION) {
            return Some(Call::Function("compiled region"));
        }
        // Any library may add ops: `fbgemm::…`, `torchvision::…`.
        let is_op = kind == OpKind::Op
            && event.split_once("::").is_some_and(|it| is_namespace(it.0) && is_plain(it.1));
        is_op.then_some(Call::Op(event))
    }

    fn begins_step(&self, event: &str, _kind: OpKind) -> bool {
        event.starts_with("Optimizer.step#") || event.starts_with(LOADER)
    }

    fn goes_on(&self, event: &str) -> bool {
        event.starts_with(ENGINE)
    }

    fn loader(&self, event: &str) -> Option<Loader> {
        let iterator = event.strip_prefix(LOADER)?;
        Some(match iterator.contains("MultiProcessing") {
            true => Loader::Workers,
            false => Loader::InProcess,
        })
    }

    fn is_math(&self, op: &str) -> bool {
        const MATH: [&str; 9] =
            ["mm", "conv", "matmul", "linear", "einsum", "attention", "lstm", "gru", "rnn"];
        op.split_once("::").is_some_and(|(namespace, op)| {
            is_namespace(namespace)
                && !op.starts_with("linalg")
                && MATH.iter().any(|it| op.contains(it))
        })
    }

    fn is_layer(&self, op: &str) -> bool {
        const LAYERS: [&str; 6] =
            ["linear", "conv", "batch_norm", "layer_norm", "group_norm", "embedding"];
        let name = op.strip_prefix("aten::").unwrap_or("");
        LAYERS.iter().any(|it| name.starts_with(it))
    }

    fn beside_work(&self, op: &str) -> Option<OpCost> {
        let (namespace, op) = op.split_once("::")?;
        if !is_namespace(namespace) {
            return None;
        }
        const STAY: [&str; 9] =
            ["mm", "conv", "matmul", "attention", "lstm", "gru", "rnn", "linalg", "sort"];
        Some(if STAY.iter().any(|it| op.contains(it)) {
            OpCost::StaysCall
        } else {
            OpCost::Dispatched
        })
    }
}

fn is_namespace(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains("::") && !text.contains(' ')
}

/// The namespaces of PyTorch's own ops.
pub fn is_torch_library(text: &str) -> bool {
    ["aten", "c10d", "c10d_functional", "_c10d_functional", "prims", "torchvision"].contains(&text)
}
