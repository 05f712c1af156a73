//! Starts a training run or reaches into one, samples the hardware, writes a run folder.
//!
//! What lies in that folder is described in `docs/run-folder.md`.

mod beside;
pub mod folder;
mod git;
pub mod hardware;
mod hook;
mod launch;
pub mod live;
mod log;
mod manifest;
pub mod pid;
mod private;
pub mod remote;
mod running;
mod seal;
#[cfg(unix)]
mod signals;

pub use folder::{FolderError, RunFolder, new_run_folder, run_folders};
pub use git::GitState;
pub use hook::Settings;
pub use launch::{Ended, LaunchError, Launched, end_by_signal, find_command, launch};
pub use log::{ProcessLog, process_logs};
pub use manifest::{Manifest, write_manifest};
pub use running::{exists, going_on, run_of_process};
pub use seal::seal;
#[cfg(unix)]
pub use signals::outlive_file_limits;
