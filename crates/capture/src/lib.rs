//! Starts a training run or reaches into one, samples the hardware, writes a run folder.
//!
//! What lies in that folder is described in `docs/run-folder.md`.

pub mod hardware;
