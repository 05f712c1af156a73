//! What an event is, told from its name: looked at once per distinct name, never per event.
//!
//! The names are those that TensorFlow, JAX, XLA and the CUDA and ROCm drivers give their work;
//! no file format is known here.

use crate::dialect;

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
        let said = dialect::ALL.iter().find_map(|it| it.on_host(name));
        // A method of some class in C++ is nothing that a user wrote.
        said.unwrap_or(if name.contains("::") { OpKind::Runtime } else { OpKind::User })
    }

    /// What a framework op of this type does on the host.
    pub fn of_type(op_type: &str) -> OpKind {
        dialect::of_op_type(op_type)
    }

    /// What an event of this name does on a device.
    pub fn on_device(name: &str) -> OpKind {
        dialect::ALL.iter().find_map(|it| it.on_device(name)).unwrap_or(OpKind::Kernel)
    }
}

/// Whose op a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpFamily {
    TensorFlow,
    TfData,
    Jax,
    Torch,
    /// Known only from the compiled program.
    Compiled,
    /// A kernel of which nothing else is known.
    Kernel,
}

impl OpFamily {
    const ALL: [OpFamily; 6] = [
        OpFamily::TensorFlow,
        OpFamily::TfData,
        OpFamily::Jax,
        OpFamily::Torch,
        OpFamily::Compiled,
        OpFamily::Kernel,
    ];

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            OpFamily::TensorFlow => "tensorflow",
            OpFamily::TfData => "tf.data",
            OpFamily::Jax => "jax",
            OpFamily::Torch => "torch",
            OpFamily::Compiled => "xla",
            OpFamily::Kernel => "kernel",
        }
    }

    pub fn of_name(name: &str) -> Option<OpFamily> {
        OpFamily::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Of ops whose names do not say it, in a run of these frameworks: a trace is mostly one
    /// framework's.
    pub fn untold(frameworks: &[&str]) -> OpFamily {
        match frameworks {
            [.., "torch"] => OpFamily::Torch,
            _ => OpFamily::TensorFlow,
        }
    }

    /// Whether its names have the scopes around an op in them.
    pub fn has_scopes(self) -> bool {
        matches!(self, OpFamily::TensorFlow | OpFamily::Jax)
    }

    /// Whether a framework's op of that name may be known on the host, too.
    pub fn is_of_framework(self) -> bool {
        !matches!(self, OpFamily::Compiled | OpFamily::Kernel)
    }

    /// The scopes around an op of this name.
    pub fn scope(self, name: &str) -> &str {
        match self.has_scopes() {
            true => name.rsplit_once('/').map_or("", |it| it.0),
            false => "",
        }
    }
}

/// An op's name taken apart: `scope/sub/name:Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpName<'a> {
    pub family: OpFamily,
    /// With its scopes; for a stage of tf.data the whole text.
    pub name: &'a str,
    pub op_type: &'a str,
}

/// Any op's name, also one that shows no type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnyOpName<'a> {
    pub family: OpFamily,
    pub name: &'a str,
    pub op_type: Option<String>,
}

impl<'a> AnyOpName<'a> {
    /// `untold`: whose it is if the name does not say it.
    pub fn of(text: &'a str, untold: OpFamily) -> AnyOpName<'a> {
        // What others write into their names is none of PyTorch's: `gloo:all_reduce` is a whole
        // name.
        if untold == OpFamily::Torch {
            let op_type = text.split_once("::").map(|it| it.1.to_owned());
            return AnyOpName { family: untold, name: text, op_type };
        }
        if let Some(op) = OpName::parse(text) {
            let op_type = Some(op.op_type.to_owned());
            return AnyOpName { family: op.family, name: op.name, op_type };
        }
        // Without a type, the last part of the name tells it, as it does where the type is empty.
        let typed = format!("{text}:");
        let op = OpName::parse(&typed).filter(|_| !text.contains(':'));
        AnyOpName {
            family: op.map_or(untold, |it| it.family),
            name: text,
            op_type: op.map(|it| it.op_type.to_owned()),
        }
    }

    /// The op that this event calls on its own.
    pub fn of_call(text: &'a str) -> AnyOpName<'a> {
        let name = text.strip_prefix(EAGER_CALL).unwrap_or(text);
        AnyOpName { family: OpFamily::TensorFlow, name, op_type: Some(name.to_owned()) }
    }
}

/// What TensorFlow puts in front of an op that is called on its own.
pub const EAGER_CALL: &str = "EagerLocalExecute: ";

impl<'a> OpName<'a> {
    /// Reads `name:Type`, the way the frameworks' own profiler does. `None` for other names.
    pub fn parse(text: &'a str) -> Option<OpName<'a>> {
        let (left, right) = text.split_once(':')?;
        if left == "Iterator" {
            return Some(OpName { family: OpFamily::TfData, name: text, op_type: "Dataset" });
        }
        if let Some(op_type) = right.strip_prefix(':').filter(|_| dialect::is_torch_library(left)) {
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
        self.family.scope(self.name)
    }
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
