//! Functions of Python as profilers record them: `$train.py:12 main` from XLA's tracer, and PyTorch's
//! `train.py(12): main`.

use super::Dialect;
use crate::OpKind;

#[derive(Debug)]
pub struct Python;

impl Dialect for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn is_called_from_python(&self, event: &str) -> bool {
        event.starts_with('$')
    }

    fn on_host(&self, event: &str) -> Option<OpKind> {
        if !event.starts_with('$') {
            return None;
        }
        Some(if waits_for_loader(event) {
            OpKind::InputWait
        } else if event.ends_with(" block_until_ready") {
            OpKind::Sync
        } else {
            OpKind::Python
        })
    }
}

/// A Python frame that waits for a data loader, as `$dataloader.py:701 __next__`.
fn waits_for_loader(frame: &str) -> bool {
    let Some((place, function)) = frame.split_once(' ') else { return false };
    function == "__next__"
        && ["$dataloader.py", "$data_loader", "$iterator_ops.py", "$dataset_ops.py"]
            .iter()
            .any(|it| place.starts_with(it))
}

/// A function of Python that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFrame<'a> {
    pub function: &'a str,
    /// `train.py:12`.
    pub place: String,
}

/// Reads a recorded function's name.
pub fn frame(event: &str) -> PythonFrame<'_> {
    let text = event.trim_start_matches('$');
    let (place, function) = text.split_once(' ').unwrap_or(("", text));
    let torch = place.strip_suffix("):").and_then(|it| it.rsplit_once('('));
    let place = match torch {
        Some((file, line)) => format!("{file}:{line}"),
        None => place.to_owned(),
    };
    PythonFrame { function, place }
}
