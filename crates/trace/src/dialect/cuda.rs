//! The names of NVIDIA's and AMD's drivers, and of their libraries for communication.

use super::{Dialect, starts_with_any};
use crate::OpKind;

#[derive(Debug)]
pub struct Cuda;

impl Dialect for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn on_host(&self, event: &str) -> Option<OpKind> {
        if is_driver_call(event) {
            let waits = ["Synchronize", "StreamWait", "EventQuery"];
            let waits = waits.iter().any(|it| event.contains(it));
            return Some(if waits { OpKind::Sync } else { OpKind::Launch });
        }
        // On the host these are the calls that ask for a copy, as an older profiler named them.
        is_copy(event).map(|_| OpKind::Launch)
    }

    fn on_device(&self, event: &str) -> Option<OpKind> {
        if let Some(copy) = is_copy(event) {
            return Some(copy);
        }
        let lower = event.to_ascii_lowercase();
        if lower.starts_with("memset") {
            return Some(OpKind::Memset);
        }
        starts_with_any(&lower, &["nccl", "rccl", "msccl"]).then_some(OpKind::Collective)
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
