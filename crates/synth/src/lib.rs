//! Makes synthetic XSpace profiles of known truth: the oracle our reader and analyses are tested against.
//!
//! Two products. [`scenarios`] are small profiles, one per way a run can be
//! slow and per dialect of the collectors, each with the [`Truth`] an analysis
//! should arrive at. [`write_big`] streams a profile of any size, to measure speed.
//!
//! What the truth means, for every instant of a step (from the start of one to
//! the start of the next) and for each device, the first that holds:
//!
//! | category       | when                                                              |
//! |----------------|-------------------------------------------------------------------|
//! | `compute`      | a kernel, a memset or a copy within the device runs on any stream |
//! | `collective`   | an `nccl` kernel or a peer-to-peer copy runs                      |
//! | `transfer_in`  | a copy from the host runs                                         |
//! | `transfer_out` | a copy to the host runs                                           |
//! | `input`        | the driving thread waits for the next batch                       |
//! | `compile`      | it traces or compiles                                             |
//! | `output`       | it writes a checkpoint                                            |
//! | `runtime`      | it is in some other event of the framework or driver              |
//! | `python`       | it is in no event but the step marker                             |
//! | `idle`         | there is no host in the profile                                   |
//!
//! Depends on none of our crates, on purpose.

mod big;
mod rig;
mod scenarios;
mod space;
mod truth;
mod wire;

pub use big::{Shape, Written, write_big};
pub use scenarios::{Scenario, scenarios, wild_scenarios};
pub use truth::{Category, CopyTruth, Direction, FoundBy, KernelTruth, Truth};
