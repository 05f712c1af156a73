//! Starts a training run or reaches into one, samples the hardware, writes a run folder.
//!
//! What lies in that folder is described in `docs/run-folder.md`.

mod beside;
pub mod folder;
pub mod hardware;
mod hook;
mod launch;
pub mod live;
mod log;
mod manifest;
pub mod pid;
pub mod remote;
mod running;

pub use folder::{new_run_folder, run_folders};
pub use hook::Settings;
pub use launch::{Ended, LaunchError, end_by_signal, launch};
pub use log::{ProcessLog, process_logs};
pub use manifest::{Manifest, write_manifest};
pub use running::{exists, going_on, run_of_process};
