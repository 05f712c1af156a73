//! What only names say, one file for each framework, driver or compiler: no format is known here.
//!
//! | asked                                   | by                                       |
//! |-----------------------------------------|------------------------------------------|
//! | what an event does, by its name alone   | `TraceBuilder::finish`                   |
//! | what a thread calls                     | the table of the driving thread's calls  |
//! | which events begin a step               | steps without markers                    |
//! | where a call from Python goes on        | where the step goes                      |
//!
//! A framework says `None` to what is not its own; the first that says something is right.

mod cuda;
mod jax;
mod python;
mod tensorflow;
mod torch;
mod xla;

pub use python::{PythonFrame, frame};
pub(crate) use tensorflow::of_op_type;
pub(crate) use torch::is_torch_library;

use std::fmt::Debug;

use crate::OpKind;

/// What one framework's names say.
pub trait Dialect: Debug + Sync {
    /// As tables call it.
    fn name(&self) -> &'static str;

    /// As its makers write it.
    fn title(&self) -> &'static str {
        self.name()
    }

    /// Whether an event of this name shows that the framework computes here, or feeds who does.
    fn shows(&self, _event: &str) -> bool {
        false
    }

    /// What a source says of a run of this framework: the name of a fact.
    fn fact(&self) -> Option<&'static str> {
        None
    }

    /// The user's function behind the name of a call, a graph or a compiled program.
    fn function_of<'a>(&self, _name: &'a str) -> Option<&'a str> {
        None
    }

    /// What a place in the user's code makes or calls, by the kind under which it was noted.
    fn site(&self, _kind: &str) -> Option<SiteRole> {
        None
    }

    /// Stands for an op that is not known.
    fn is_no_op(&self, _op: &str) -> bool {
        false
    }

    /// A source says which events are ops: their names alone do not.
    fn says_ops(&self) -> bool {
        false
    }

    /// A line of this name shows the compiled programs that a device runs.
    fn shows_programs(&self, _track: &str) -> bool {
        false
    }

    /// What an event of this name does on a host thread.
    fn on_host(&self, _event: &str) -> Option<OpKind> {
        None
    }

    /// What an event of this name does on a device, if it is no kernel.
    fn on_device(&self, _event: &str) -> Option<OpKind> {
        None
    }

    /// What an event on the driving thread calls, as far as it says so itself.
    fn call<'a>(&self, _event: &'a str, _kind: OpKind) -> Option<Call<'a>> {
        None
    }

    /// Inside the call of a single op, the run of the op itself.
    fn runs_op(&self, _event: &str) -> bool {
        false
    }

    /// A call that makes a tensor of a Python value: it is reached like an op.
    fn makes_tensor(&self, _event: &str) -> bool {
        false
    }

    /// A call that only gives a tensor back.
    fn gives_back(&self, _event: &str) -> bool {
        false
    }

    /// A call that a training loop makes once a step or a few times, if nothing else marks steps.
    fn begins_step(&self, _event: &str, _kind: OpKind) -> bool {
        false
    }

    /// A function that trains, tests or predicts on one batch.
    fn is_batch(&self, _function: &str) -> bool {
        false
    }

    /// A thread of this name makes input ahead of the steps that use it.
    fn makes_input(&self, _thread: &str) -> bool {
        false
    }

    /// A thread of this name belongs to the runtime: no code of the user runs there.
    fn is_pool(&self, _thread: &str) -> bool {
        false
    }

    /// An event of this name is called from Python alone.
    fn is_called_from_python(&self, _event: &str) -> bool {
        false
    }

    /// A file of the framework that calls Python to make a batch.
    fn calls_for_input(&self, _file: &str) -> bool {
        false
    }

    /// A call of a whole function, which may first have to be compiled.
    fn calls_function(&self, _event: &str, _kind: OpKind) -> bool {
        false
    }

    /// A call inside tracing or compiling that runs the outcome.
    fn runs_outcome(&self, _event: &str) -> bool {
        false
    }

    /// Called on its own, this op only reads or hands on a value, as happens before a save.
    fn reads_value(&self, _op: &str) -> bool {
        false
    }

    /// Between two such events, one after the other, the thread is still inside the call that
    /// Python made.
    fn goes_on(&self, _event: &str) -> bool {
        false
    }

    /// A loader that makes batches in Python: where it makes them.
    fn loader(&self, _event: &str) -> Option<Loader> {
        None
    }

    /// Ops of a backward pass show in their names that they are.
    fn names_gradients(&self) -> bool {
        false
    }

    /// Products and the like: what a model is made of.
    fn is_math(&self, _op: &str) -> bool {
        false
    }

    /// An op that mostly has weights of its own: one after the other they are a model's layers.
    fn is_layer(&self, _op: &str) -> bool {
        false
    }

    /// What an op's event takes beside the op's own work, where the whole event is the op and no
    /// other shows its run.
    fn beside_work(&self, _op: &str) -> Option<OpCost> {
        None
    }
}

/// What the driving thread calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// Something that was compiled as a whole, by the user's name.
    Function(&'a str),
    Op(&'a str),
    NextBatch,
}

/// What a place in the user's code is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteRole {
    /// A function that is compiled as a whole.
    Function,
    /// The call that trains.
    Fit,
    /// What prepares a model for that.
    CompileModel,
    /// A loader that makes batches in Python.
    Loader,
    /// What is called between batches.
    Callback,
}

/// Where a loader makes its batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loader {
    /// In the thread that asks for them.
    InProcess,
    Workers,
}

/// How much of an op's event is not its own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpCost {
    /// It is reached, checked and recorded: a compiler that fuses it saves that.
    Dispatched,
    /// As above, and a compiler leaves it a call of its own.
    StaysCall,
}

/// All of them, in the order in which they are asked.
pub static ALL: &[&dyn Dialect] =
    &[&python::Python, &tensorflow::TensorFlow, &jax::Jax, &torch::Torch, &cuda::Cuda, &xla::Xla];

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|it| name.starts_with(it))
}

/// What the first that knows the event says of it.
pub fn call(event: &str, kind: OpKind) -> Option<Call<'_>> {
    ALL.iter().find_map(|it| it.call(event, kind))
}

/// A framework as its makers write it, by its name in tables.
pub fn title(name: &str) -> &str {
    ALL.iter().find(|it| it.name() == name).map_or(name, |it| it.title())
}

/// The user's function behind the name of a call, a graph or a compiled program.
pub fn function_of(name: &str) -> Option<&str> {
    ALL.iter().find_map(|it| it.function_of(name))
}

/// What a place in the user's code is good for, by the kind under which it was noted.
pub fn site(kind: &str) -> Option<SiteRole> {
    ALL.iter().find_map(|it| it.site(kind))
}

/// Whether ops of this family show in their names that they belong to a backward pass.
pub fn family_names_gradients(family: &str) -> bool {
    any(|it| it.name() == family && it.names_gradients())
}

/// Whether any of them says so.
pub fn any(says: impl Fn(&dyn Dialect) -> bool) -> bool {
    ALL.iter().any(|&it| says(it))
}

#[cfg(test)]
mod tests {
    use super::{Call, any, call};
    use crate::OpKind;

    #[test]
    fn each_framework_says_what_is_called() {
        let check = |event, kind, expected| assert_eq!(call(event, kind), expected, "{event}");
        let runtime = OpKind::Runtime;
        check("EagerLocalExecute: Mul", runtime, Some(Call::Op("Mul")));
        check(
            "EagerLocalExecute: __inference_train_step_130",
            runtime,
            Some(Call::Function("train_step")),
        );
        check("EagerLocalExecute: IteratorGetNext", runtime, Some(Call::NextBatch));
        check("PjitFunction(train_step)", runtime, Some(Call::Function("train_step")));
        check("aten::mm", OpKind::Op, Some(Call::Op("aten::mm")));
        check("fbgemm::permute", OpKind::Op, Some(Call::Op("fbgemm::permute")));
        check(
            "autograd::engine::evaluate_function: MmBackward0",
            OpKind::CallOp,
            Some(Call::Op("MmBackward0")),
        );
        check(
            "Torch-Compiled Region: 0/1",
            OpKind::CallOp,
            Some(Call::Function("compiled region")),
        );
        check("ExecutorState::Process", runtime, None);
        check("my part", OpKind::User, None);
    }

    #[test]
    fn what_begins_a_step_is_the_framework_s_own() {
        let begins = |event, kind| any(|it| it.begins_step(event, kind));
        assert!(begins("Optimizer.step#Adam.step", OpKind::User));
        assert!(begins("PjitFunction(f)", OpKind::Runtime));
        assert!(begins("EagerLocalExecute: IteratorGetNext", OpKind::InputWait));
        assert!(!begins("aten::mm", OpKind::Op));
    }
}
