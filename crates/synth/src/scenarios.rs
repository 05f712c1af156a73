//! Makes the small profiles: each function lays out one way for a run to spend its time.
//!
//! Every scenario has one step start more than `truth.steps`: the last step has
//! no successor to end it, though it is written out like the others.
//! Times are microseconds from the start of the step.

mod accelerators;
mod causes;
mod dialects;
mod tpu;
mod wild;

use std::path::{Path, PathBuf};

use crate::rig::{FIRST_STEP_US, Rig};
use crate::space::{Value, text};
use crate::truth::{FoundBy, Ledger, Tiles, Truth};

/// A profile and what should be found in it.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// File name and content, one per host.
    pub files: Vec<(String, Vec<u8>)>,
    pub truth: Truth,
}

impl Scenario {
    /// What belongs on disk, with paths below a common folder: a log directory and its truth.
    pub fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = Path::new(self.name);
        let mut truth = self.truth.to_json();
        truth["about"] = self.about.into();
        let truth = (folder.join("truth.json"), format!("{truth:#}\n").into_bytes());
        let run = folder.join("plugins/profile/run");
        let profiles = self.files.iter().map(|(name, bytes)| (run.join(name), bytes.clone()));
        profiles.chain([truth]).collect()
    }
}

/// All small profiles; the same bytes every time.
pub fn scenarios() -> Vec<Scenario> {
    vec![
        causes::input_70(),
        causes::overlap_streams(),
        causes::nccl_two_gpus(),
        dialects::cuda_graph(),
        dialects::rocm(),
        dialects::tf2020(),
        dialects::keras3(),
        tpu::tpu(),
        causes::two_hosts(),
        dialects::unmarked_calls(),
        dialects::unmarked_kernels(),
        causes::compile_every_step(),
        causes::checkpoint(),
        causes::warmup(),
        dialects::odd_encodings(),
        accelerators::well_tuned(),
        accelerators::transfer_bound(),
        accelerators::exposed_collective(),
        accelerators::straggler(),
        accelerators::sync_stall(),
        accelerators::tiny_ops(),
        accelerators::small_batch(),
        accelerators::no_tensor_cores(),
        accelerators::low_occupancy(),
    ]
}

/// Profiles as people publish them, of which less holds than of the others.
pub fn wild_scenarios() -> Vec<Scenario> {
    vec![
        wild::keras_one_batch(),
        wild::keras_silent_gpu(),
        wild::skewed_clock(),
        wild::stop_inside(),
    ]
}

fn one_host(
    name: &'static str,
    about: &'static str,
    found_by: FoundBy,
    (bytes, ledger): (Vec<u8>, Ledger),
) -> Scenario {
    let files = vec![("host0.xplane.pb".to_owned(), bytes)];
    Scenario { name, about, files, truth: ledger.truth(found_by, 1) }
}

/// Lays out `n_steps` steps of equal length and one more, which is not declared.
fn repeat(rig: &mut Rig, n_steps: u64, devices: &[Tiles<'_>], lay_out: impl Fn(&mut Rig, u64)) {
    let step_us: u64 = devices[0].iter().map(|it| it.1).sum();
    for step in 0..=n_steps {
        rig.begin_step(FIRST_STEP_US + step * step_us);
        lay_out(rig, step);
        if step < n_steps {
            rig.end_step(devices);
        }
    }
}

/// `tf.profiler.experimental.Trace("train", step_num=…, _r=1)`.
fn train_marker(rig: &mut Rig, step: u64, dur_us: u64) {
    let stats = [("step_num", Value::I64(step as i64)), ("_r", Value::I64(1))];
    rig.host("train", 0, dur_us, &stats);
}

/// A call of a compiled `tf.function`, as the eager runtime shows it.
fn function_call(rig: &mut Rig, at_us: u64, dur_us: u64) {
    let function = "__inference_train_step_53";
    let stats = [("eager_op", text(function)), ("is_func", Value::I64(1))];
    rig.host("EagerExecute", at_us, dur_us, &stats);
    rig.host(&format!("EagerLocalExecute: {function}"), at_us, dur_us, &[]);
    rig.host("EagerKernelExecute", at_us, dur_us, &[]);
    rig.host("FunctionRun", at_us, dur_us, &[("id", Value::U64(7))]);
}

#[cfg(test)]
mod tests {
    use super::scenarios;

    #[test]
    fn same_bytes_every_time() {
        for (first, second) in scenarios().into_iter().zip(scenarios()) {
            assert_eq!(first.files, second.files, "{}", first.name);
        }
    }

    #[test]
    fn breakdown_adds_to_the_step() {
        for scenario in scenarios() {
            let truth = scenario.truth;
            let total: f64 = truth.breakdown_ms.values().sum();
            assert!((total - truth.step_ms).abs() < 1e-9, "{}: {total}", scenario.name);
            for device in &truth.breakdown_ms_by_device {
                let total: f64 = device.values().sum();
                assert!((total - truth.step_ms).abs() < 1e-9, "{}: {total}", scenario.name);
            }
        }
    }

    #[test]
    fn files_stay_small() {
        for scenario in scenarios() {
            for (name, bytes) in &scenario.files {
                assert!(bytes.len() < 150_000, "{}/{name}: {} bytes", scenario.name, bytes.len());
            }
        }
    }
}
