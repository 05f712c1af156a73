//! What an event does, by its category and name.
//!
//! | category                                    | kind                                       |
//! |---------------------------------------------|--------------------------------------------|
//! | `cpu_op`, `Operator`                        | op; a few by their names                   |
//! | `user_annotation`                           | user; `ProfilerStep#` a step, `enumerate(DataLoader)` the wait for input |
//! | `python_function`, `FEE` (viztracer)        | python; a data loader's `__next__` the wait for input |
//! | `kernel`, `Kernel`, `mtia_ccp_events`       | kernel, or collective by its name          |
//! | `gpu_memcpy`, `Memcpy`                      | copy, by its direction                     |
//! | `gpu_memset`, `Memset`                      | memset                                     |
//! | `cuda_runtime`, `cuda_driver`, `Runtime`, … | launch, or sync by its name                |
//! | `cpu_instant_event` `[memory]`              | memory                                     |
//! | `cuda_sync`, `gpu_user_annotation`, `Trace`, `overhead` | summary                        |
//! | none, others                                | told from the name                         |

use trace::dialect;
use trace::{OpKind, TrackKind};

/// What a category says of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Work on a device: its process is the device, its thread a stream.
    DeviceWork(DeviceWork),
    /// Drawn by the profiler over a device's streams.
    DeviceSummary,
    /// Drawn by the profiler over the host's time.
    HostSummary,
    Op,
    Annotation,
    Python,
    DriverCall,
    Memory,
    /// An op of TensorFlow 1, whose name stands among its arguments.
    TensorFlow1,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceWork {
    Kernel,
    Copy,
    Memset,
}

impl Class {
    pub fn of(cat: &[u8], name: &[u8]) -> Class {
        match cat {
            b"kernel" | b"Kernel" | b"mtia_ccp_events" | b"concurrent_kernel" | b"xpu_kernel" => {
                Class::DeviceWork(DeviceWork::Kernel)
            }
            b"gpu_memcpy" | b"Memcpy" => Class::DeviceWork(DeviceWork::Copy),
            b"gpu_memset" | b"Memset" => Class::DeviceWork(DeviceWork::Memset),
            b"gpu_user_annotation" | b"cuda_sync" | b"cuda_profiler_range" | b"mtia_insight" => {
                Class::DeviceSummary
            }
            b"Trace" | b"overhead" | b"Overhead" | b"cuda_event" => Class::HostSummary,
            b"cpu_op" | b"Operator" => Class::Op,
            b"user_annotation" | b"UserAnnotation" => Class::Annotation,
            b"python_function" | b"PythonFunction" | b"FEE" => Class::Python,
            b"cuda_runtime"
            | b"cuda_driver"
            | b"Runtime"
            | b"mtia_runtime"
            | b"xpu_runtime"
            | b"xpu_driver"
            | b"hip_runtime"
            | b"privateuse1_runtime"
            | b"privateuse1_driver" => Class::DriverCall,
            b"cpu_instant_event" if name == b"[memory]" => Class::Memory,
            b"Op" => Class::TensorFlow1,
            _ => Class::Unknown,
        }
    }

    /// On which side of the machine its events are, where the category says so.
    pub fn track(self) -> Option<TrackKind> {
        match self {
            Class::DeviceWork(_) => Some(TrackKind::Stream),
            Class::DeviceSummary | Class::HostSummary => Some(TrackKind::Summary),
            Class::Unknown | Class::TensorFlow1 => None,
            _ => Some(TrackKind::Thread),
        }
    }
}

/// The name of PyTorch's step marker, and what the loop's number follows.
pub const STEP: &str = "ProfilerStep#";

/// What the event does; `None` leaves it to its name, as every format's.
pub fn kind_of(class: Class, name: &str) -> Option<OpKind> {
    Some(match class {
        Class::DeviceWork(DeviceWork::Kernel) => OpKind::on_device(name),
        Class::DeviceWork(DeviceWork::Copy) => copy_kind(name),
        Class::DeviceWork(DeviceWork::Memset) => OpKind::Memset,
        Class::DeviceSummary | Class::HostSummary => OpKind::Summary,
        Class::Op | Class::Annotation if name.starts_with(STEP) => OpKind::Step,
        Class::Op | Class::Annotation if dialect::any(|it| it.loader(name).is_some()) => {
            OpKind::InputWait
        }
        Class::Op | Class::Annotation if name.starts_with("gloo:") || name.starts_with("mpi:") => {
            OpKind::Collective
        }
        Class::Op => match name {
            _ if name.starts_with("autograd::engine::evaluate_function: ") => OpKind::CallOp,
            // Brackets that PyTorch puts around others' ops.
            _ if name.starts_with("Optimizer.") => OpKind::User,
            _ if name.starts_with("Torch-Compiled Region") => OpKind::CallOp,
            _ if name.ends_with("(dynamo_timed)") || COMPILES.contains(&name) => OpKind::Compile,
            "TorchDynamo Cache Lookup"
            | "Pregraph bytecode"
            | "AOTDispatcher Runtime Wrapper Prologue"
            | "record_param_comms" => OpKind::Runtime,
            _ => OpKind::Op,
        },
        Class::Annotation => OpKind::User,
        Class::Python => python_kind(name),
        Class::DriverCall => driver_kind(name),
        Class::Memory => OpKind::Memory,
        Class::TensorFlow1 | Class::Unknown => return None,
    })
}

/// What `torch.compile` does before it runs anything: reading bytecode, making graphs, handing them
/// to a backend. What lies inside says so too, with `(dynamo_timed)` behind its name.
const COMPILES: [&str; 4] =
    ["dynamo", "entire_frame_compile", "backend_compile", "entire_backward_compile"];

/// By the arrow that PyTorch writes: `Memcpy HtoD (Pageable -> Device)`.
fn copy_kind(name: &str) -> OpKind {
    let has = |it: &str| name.contains(it);
    if has("HtoD") || has("HostToDevice") {
        OpKind::CopyIn
    } else if has("DtoH") || has("DeviceToHost") {
        OpKind::CopyOut
    } else if has("PtoP") || has("Peer") {
        OpKind::CopyPeer
    } else {
        OpKind::CopyOnDevice
    }
}

/// `cudaStreamSynchronize` waits; an event that a stream waits for holds up no thread.
fn driver_kind(name: &str) -> OpKind {
    let waits = name.contains("Synchronize") || name.contains("EventQuery");
    if waits { OpKind::Sync } else { OpKind::Launch }
}

/// Frames of PyTorch are `torch/utils/data/dataloader.py(628): __next__`.
fn python_kind(name: &str) -> OpKind {
    // The call into the engine: Python waits in it for what other threads run.
    if name.starts_with("<built-in method run_backward") {
        return OpKind::Runtime;
    }
    let Some((place, function)) = name.split_once(": ") else { return OpKind::Python };
    let file = place.split('(').next().unwrap_or(place);
    if function == "__next__" && file.ends_with("torch/utils/data/dataloader.py") {
        OpKind::InputWait
    } else if file.ends_with("torch/_dynamo/convert_frame.py") && function == "compile_inner"
        || file.ends_with("torch/_inductor/compile_fx.py") && function == "compile_fx"
    {
        OpKind::Compile
    } else if function == "save" && file.ends_with("torch/serialization.py") {
        OpKind::Save
    } else {
        OpKind::Python
    }
}

/// From and to which memory a copy goes, as other sources say it: `pageable to device`.
pub fn copy_memory(name: &str) -> Option<String> {
    let inner = name.split_once('(')?.1.split_once(')')?.0;
    let (from, to) = inner.split_once(" -> ")?;
    // Older versions misspelt it.
    let plain = |it: &str| it.to_ascii_lowercase().replace("pagable", "pageable");
    Some(format!("{} to {}", plain(from), plain(to)))
}

#[cfg(test)]
mod tests {
    use trace::OpKind;

    use super::{Class, copy_memory, kind_of};

    #[test]
    fn categories_and_names_say_what_events_do() {
        for (cat, name, kind) in [
            ("cpu_op", "aten::mm", Some(OpKind::Op)),
            (
                "Operator",
                "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                Some(OpKind::InputWait),
            ),
            ("user_annotation", "ProfilerStep#7", Some(OpKind::Step)),
            ("user_annotation", "my part", Some(OpKind::User)),
            ("cpu_op", "autograd::engine::evaluate_function: MmBackward0", Some(OpKind::CallOp)),
            ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)", Some(OpKind::Collective)),
            ("kernel", "ampere_sgemm_128x64_tn", Some(OpKind::Kernel)),
            ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", Some(OpKind::CopyIn)),
            ("Memcpy", "Memcpy DtoH (Device -> Pagable)", Some(OpKind::CopyOut)),
            ("gpu_memcpy", "Memcpy PtoP (Device -> Device)", Some(OpKind::CopyPeer)),
            ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", Some(OpKind::CopyOnDevice)),
            ("cuda_runtime", "cudaStreamSynchronize", Some(OpKind::Sync)),
            ("cuda_runtime", "cudaStreamWaitEvent", Some(OpKind::Launch)),
            ("cuda_driver", "cuLaunchKernelEx", Some(OpKind::Launch)),
            (
                "python_function",
                "torch/utils/data/dataloader.py(628): __next__",
                Some(OpKind::InputWait),
            ),
            ("python_function", "train.py(7): main", Some(OpKind::Python)),
            ("cpu_instant_event", "[memory]", Some(OpKind::Memory)),
            ("gpu_user_annotation", "ProfilerStep#7", Some(OpKind::Summary)),
            ("", "IteratorGetNext", None),
        ] {
            let class = Class::of(cat.as_bytes(), name.as_bytes());
            assert_eq!(kind_of(class, name), kind, "{cat} {name}");
        }
    }

    #[test]
    fn copies_say_between_which_memories() {
        let of = |name| copy_memory(name);
        assert_eq!(of("Memcpy HtoD (Pageable -> Device)").as_deref(), Some("pageable to device"));
        assert_eq!(of("Memcpy HtoD (Pagable -> Device)").as_deref(), Some("pageable to device"));
        assert_eq!(of("CopyHostToDevice"), None);
    }
}
