//! Profiles as people publish them: what is true of each was read from its events by hand, and the
//! report must say the same.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};

use analyses::step::Step;
use session::Session;
use session::report::Report;
use trace::NoteKind;

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A profile of the shared corpus; `None`, and a line that says so, where that is not there.
fn corpus(name: &str) -> Option<Session> {
    let folder = repo().join("../shared/corpus/xplane").join(name);
    if !folder.exists() {
        println!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(Session::open(&folder).unwrap())
}

fn share(report: &Report, category: &str) -> f64 {
    report.breakdown.iter().find(|it| it.category == category).map_or(0.0, |it| it.share)
}

fn step_ms(session: &Session) -> Vec<f64> {
    let steps = session.tables().get::<Step>();
    steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps as f64 / 1e9).collect()
}

fn near(found: f64, truth: f64, within: f64) {
    assert!((found - truth).abs() <= within, "{found} is not {truth} ± {within}");
}

/// One `train_function` of 54.5 ms, of which `IteratorGetNext` takes 43.5 ms. The device is Metal,
/// which records nothing.
#[test]
fn one_batch_on_metal_that_waits_for_input() {
    let Some(session) = corpus("tf211-m1pro-metal-onebatch-input") else { return };
    let report = session.measurements();
    let steps = report.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.found_by), (1, "calls"));
    assert_eq!(steps.marker, "train_function");
    assert!(steps.confidence <= 0.5);
    near(step_ms(&session)[0], 54.5, 0.01);
    near(share(&report, "input"), 43.5 / 54.5, 0.02);
    assert!(share(&report, "python") < 0.05, "the callback's time is no Python of the step");
    assert_metal(&report);
}

/// One `train_function` of 26.9 ms; the callback that writes the graph comes 718 ms later.
#[test]
fn one_batch_on_metal_and_a_callback() {
    let Some(session) = corpus("tf211-m1pro-metal-onebatch-small") else { return };
    let report = session.measurements();
    near(step_ms(&session)[0], 26.865, 0.01);
    assert_eq!(step_ms(&session).len(), 1);
    assert_eq!(share(&report, "output"), 0.0, "no summary is written in the step");
    assert!(!report.top_ops.is_empty());
    assert_metal(&report);
}

/// What Metal computes is hidden in the framework's time: that is no cost of every step.
#[test]
fn hidden_work_is_no_small_batch() {
    let Some(session) = corpus("tf211-m1pro-metal-onebatch-small") else { return };
    let report = session.report();
    let found: Vec<&str> = report.diagnosis.causes.iter().map(|it| it.rule).collect();
    assert!(!found.contains(&"small-batch"), "{found:?}");
}

/// 21 batches, of which the first and last lack their marker. 19 are marked 31 to 49.
#[test]
fn twenty_one_batches_on_metal() {
    let Some(session) = corpus("tf28-m1pro-metal-21batches") else { return };
    let steps = session.tables().get::<Step>();
    assert_eq!(steps.len(), 21);
    assert_eq!((steps[0].number, steps[20].number), (Some(30), Some(50)));
    assert!(steps.iter().all(|it| it.complete), "the profile goes on behind the last batch");
    let report = session.measurements();
    near(report.steps.as_ref().unwrap().median.0 as f64 / 1e9, 5.0, 0.1);
    assert_metal(&report);
}

fn assert_metal(report: &Report) {
    assert_eq!((report.run.devices_present(), report.run.devices.len()), (1, 0));
    let said = report.run.unrecorded_devices().unwrap();
    assert!(said.contains("Metal"), "{said}");
    assert!(report.unknown.iter().any(|it| it.0 == "transfer_in"), "{:?}", report.unknown);
}

/// Three calls of `transformer_block`, after 0.88, 24.9 and 28.5 ms; `stop_trace` begins after
/// 33.7 ms. The first takes 24 ms, 20.6 ms of which a thread of the runtime executes.
#[test]
fn attention_on_an_amd_gpu() {
    let Some(session) = corpus("jax08-mi300x-attention") else { return };
    let steps = session.tables().get::<Step>();
    assert_eq!(steps.len(), 3);
    let warmup: Vec<bool> = steps.iter().map(|it| it.warmup).collect();
    assert_eq!(warmup, [true, false, false]);
    assert!(steps[2].complete, "all its work was done when the profiler was stopped");
    near(steps[0].dur_ps as f64 / 1e9, 24.01, 0.02);
    let found = step_ms(&session);
    near(found[0], 3.625, 0.01);
    near(found[1], 5.151, 0.01);
    let rows = session.tables().get::<analyses::step_time::StepTime>();
    let first = rows.iter().find(|it| it.step == 0).unwrap();
    assert!(first.python_ps < 5_000_000_000, "{first:?}");
    let report = session.measurements();
    assert_eq!(report.run.devices_present(), 8);
    assert_eq!(report.run.devices_computing(), 1);
    assert_eq!(report.run.devices[0].name, "AMD GPU, gfx94x (MI300X class)");
    assert!(report.run.unrecorded_devices().unwrap().starts_with("7 of 8 GPUs are idle"));
}

/// A Julia program runs one compiled program on two GPUs: 7.65 ms for two kernels of 2 µs.
#[test]
fn one_program_of_julia() {
    let Some(session) = corpus("reactant-1080ti") else { return };
    let report = session.measurements();
    let steps = report.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.found_by), (1, "calls"));
    assert!(steps.confidence <= 0.5);
    near(step_ms(&session)[0], 7.646, 0.01);
    assert!(share(&report, "runtime") > 0.99, "{:?}", report.breakdown);
    assert!(share(&report, "compute") < 0.001);
    assert_eq!(report.run.devices_computing(), 2);
}

/// A hundred runs of `jit_f` on each of four TPUs, 784 ms each. 96.6 % of that waits for copies
/// between the host's memory and the device's.
#[test]
fn inference_on_tpus_waits_for_copies() {
    let Some(session) = corpus("jax-tpu-v6e4-inference") else { return };
    let found = step_ms(&session);
    assert!((98..=100).contains(&found.len()), "{} steps", found.len());
    let report = session.measurements();
    near(report.steps.as_ref().unwrap().median.0 as f64 / 1e9, 784.2, 1.0);
    assert!(found.iter().all(|it| (600.0..1000.0).contains(it)), "{found:?}");
    let copies = share(&report, "transfer_in") + share(&report, "transfer_out");
    near(copies, 0.966, 0.02);
    near(share(&report, "compute"), 0.031, 0.01);
    // Three copies in for one that is waited for on the way out.
    assert!(share(&report, "transfer_in") > 2.0 * share(&report, "transfer_out"));
    assert_eq!(report.run.devices_computing(), 4);
    assert!(report.notes.iter().all(|it| it.kind != NoteKind::ClockShifted));
}

/// Eight GPUs, of which two compute, 640 ms apart; the longer one's step of 21.3 ms is the step.
#[test]
fn one_of_several_workers_on_v100s() {
    let Some(session) = corpus("tf2-v100x8-multiworker") else { return };
    let report = session.measurements();
    let steps = report.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.found_by), (1, "markers"));
    assert!(steps.confidence <= 0.5);
    near(step_ms(&session)[0], 21.310, 0.01);
    // Its own device's kernels, not the mean with one that ran at another time.
    let rows = session.tables().get::<analyses::step_time::StepTime>();
    let devices: Vec<&str> = rows.iter().map(|it| it.device.as_str()).collect();
    assert_eq!(devices, ["/device:GPU:6"]);
    assert_eq!((report.run.devices_present(), report.run.devices_computing()), (8, 2));
    let name = "NVIDIA GPU, compute capability 7.0 (V100 class)";
    assert!(report.run.devices.iter().all(|it| it.name == name), "{:?}", report.run.devices);
}

fn synthetic(name: &str) -> Session {
    Session::open(&repo().join("testdata/synthetic").join(name)).unwrap()
}

#[test]
fn synthetic_ones_come_out_as_they_were_made() {
    for scenario in synth::wild_scenarios() {
        let (name, truth) = (scenario.name, &scenario.truth);
        let session = synthetic(name);
        let report = session.measurements();
        let steps = report.steps.as_ref().unwrap_or_else(|| panic!("{name}: no steps"));
        assert_eq!(steps.found_by, truth.found_by.name(), "{name}");
        let found = step_ms(&session);
        // Where nothing cuts it off, the generator writes one more than it counts.
        assert!(found.len().abs_diff(truth.steps as usize) <= 1, "{name}: {found:?}");
        for (found, made) in found.iter().zip(&truth.step_ms_each) {
            near(*found, *made, 1e-6);
        }
        for (category, made) in &truth.breakdown_ms {
            let found = share(&report, category) * truth.step_ms;
            let within = 0.01 * truth.step_ms;
            assert!((found - made).abs() <= within, "{name}: {category} {found}, made {made}");
        }
    }
}

#[test]
fn a_skewed_clock_is_moved_and_said() {
    let session = synthetic("skewed_clock");
    let trace = session.trace();
    let by = trace.clock_shifts[0].by.0 as f64 / 1e9;
    near(by, 0.3, 0.01);
    let report = session.measurements();
    let note = report.notes.iter().find(|it| it.kind == NoteKind::ClockShifted).unwrap();
    assert!(note.first.contains("/device:GPU:0"), "{}", note.first);
    assert!(report.steps.unwrap().confidence < 0.9);
}

#[test]
fn a_step_that_the_stop_cuts_is_not_counted() {
    let session = synthetic("stop_inside");
    let steps = session.tables().get::<Step>();
    assert_eq!(steps.len(), 6);
    assert!(!steps[5].complete);
    assert_eq!(steps[5].dur_ps, 2_500_000_000);
}

#[test]
fn a_gpu_that_recorded_nothing_is_said() {
    let report = synthetic("keras_silent_gpu").measurements();
    assert_eq!((report.run.devices.len(), report.run.silent_devices.len()), (0, 1));
    let said = report.run.unrecorded_devices().unwrap();
    assert!(said.contains("CUPTI needs permission"), "{said}");
}

/// Of five calls on eight GPUs the host spends most in the runtime's own work on other threads.
#[test]
fn overhead_without_a_remedy_is_named_and_not_hidden_behind_a_small_finding() {
    let headline = |it: Session| session::report::words::headline(&it.report());
    if let Some(session) = corpus("jax08-mi300x-conv") {
        let said = headline(session);
        assert!(said.contains("most of it in BufferSequencingEvent::Execute"), "{said}");
    }
    if let Some(session) = corpus("jax-mi300x-conv-legacy") {
        let said = headline(session);
        assert!(said.contains("But 3.06 ms (89%) is framework overhead on the host"), "{said}");
        assert!(said.contains("no edit is known for that"), "{said}");
    }
    // What Metal computes is hidden there: that is no overhead.
    if let Some(session) = corpus("tf28-m1pro-metal-21batches") {
        let said = headline(session);
        assert!(said.contains("which may be waiting for the device"), "{said}");
        assert!(!said.contains("overhead"), "{said}");
    }
}
