//! Steps and breakdown against known truth: synthetic profiles by construction, captured ones by
//! an independent clock.

#![expect(clippy::unwrap_used, reason = "what cannot be read is a failed test")]

use std::path::{Path, PathBuf};

use analyses::step::{Step, median};
use analyses::step_time::{CATEGORIES, StepTime};
use session::Session;

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Mean time of each category per step, in ms, over hosts and devices.
fn breakdown(session: &Session) -> Vec<(&'static str, f64)> {
    let rows = session.tables().get::<StepTime>();
    let rows: Vec<&StepTime> = rows.iter().filter(|it| it.counts).collect();
    let mean = |of: fn(&StepTime) -> i64| {
        rows.iter().map(|it| of(it) as f64).sum::<f64>() / rows.len().max(1) as f64 / 1e9
    };
    CATEGORIES.iter().map(|&(name, of)| (name, mean(of))).collect()
}

#[test]
fn synthetic_profiles_come_out_as_they_were_made() {
    let folder = tempdir("synthetic");
    for scenario in synth::scenarios() {
        let truth = &scenario.truth;
        let root = folder.join(scenario.name);
        for (path, bytes) in scenario.tree() {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let session = Session::open(&root).unwrap();
        let steps = session.tables().get::<Step>();
        let name = scenario.name;
        let host = &steps.first().unwrap_or_else(|| panic!("{name}: no steps")).host;
        let of_host: Vec<&Step> = steps.iter().filter(|it| it.host == *host).collect();
        assert_eq!(of_host[0].found_by, truth.found_by.name(), "{name}");
        let warmup = of_host.iter().filter(|it| it.warmup).count() as u64;
        assert_eq!(warmup, truth.warmup_steps, "{name}: warm-up");

        // The generator writes one step more than it counts, since nothing ends it.
        let counted: Vec<i64> =
            of_host.iter().filter(|it| !it.warmup).map(|it| it.dur_ps).collect();
        let extra = counted.len() as u64 - truth.steps;
        assert!(extra <= 1, "{name}: {} steps, made {}", counted.len(), truth.steps);
        for (found, made) in counted.iter().zip(&truth.step_ms_each) {
            assert_eq!(*found, (made * 1e9).round() as i64, "{name}: step time");
        }

        let last = of_host.len() as i64 - extra as i64;
        let rows = session.tables().get::<StepTime>();
        let rows: Vec<&StepTime> = rows.iter().filter(|it| it.counts && it.step < last).collect();
        for &(category, of) in &CATEGORIES {
            let found = rows.iter().map(|it| of(it) as f64).sum::<f64>() / rows.len() as f64 / 1e9;
            let made = truth.breakdown_ms[category];
            let points = 100.0 * (found - made).abs() / truth.step_ms;
            // Dispatching the fetch is input to us and runtime to the generator: 0.8 points.
            assert!(points < 1.0, "{name}: {category} is {found} ms, made {made} ms");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The clock's parts and the categories that can hold their time.
const PARTS: &[(&str, &[&str])] = &[
    ("input", &["input"]),
    ("python", &["python"]),
    ("callback", &["python"]),
    ("numpy", &["python"]),
    ("checkpoint", &["output"]),
    ("tracing", &["compile"]),
    // A call into the framework is dispatch and computing; the clock cannot tell them apart.
    ("compute", &["compute", "runtime"]),
    ("run", &["compute", "runtime"]),
    ("eager", &["compute", "runtime", "python"]),
    ("compute_eager", &["compute", "runtime", "python"]),
    ("compute_incl_trace", &["compile", "compute", "runtime"]),
    ("compute_incl_compile", &["compile", "compute", "runtime"]),
];

/// Compares one capture with its clock; answers what does not fit.
fn against_clock(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("measured.json")).unwrap();
    let measured: serde_json::Value = serde_json::from_str(&text).unwrap();
    let clock: Vec<f64> =
        measured["step_ms"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    let session = Session::open(folder).unwrap();
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let steps = session.tables().get::<Step>();
    let found: Vec<f64> =
        steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps as f64 / 1e9).collect();
    let mut wrong = Vec::new();
    if found.len() < 3 {
        return vec![format!("{name}: only {} steps found", found.len())];
    }
    // A callback's clock may see a step or two less than the capture holds, or more: line up.
    let n = found.len().min(clock.len());
    if found.len().abs_diff(clock.len()) > 2 {
        wrong.push(format!("{name}: {} steps, the clock has {}", found.len(), clock.len()));
    }
    let distance =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|it| (it.0 - it.1).abs()).sum::<f64>();
    let shifted =
        |it: usize| (&found[it.min(found.len() - n)..], &clock[it.min(clock.len() - n)..]);
    let best = (0..=found.len().abs_diff(clock.len()))
        .min_by(|&a, &b| {
            let (a, b) = (shifted(a), shifted(b));
            distance(a.0, a.1).total_cmp(&distance(b.0, b.1))
        })
        .unwrap();
    let (ours, theirs) = (&shifted(best).0[..n], &shifted(best).1[..n]);
    let middle = |it: &[f64]| {
        let mut ps: Vec<i64> = it.iter().map(|it| (it * 1e9) as i64).collect();
        median(&mut ps).unwrap() as f64 / 1e9
    };
    let (our_median, clock_median) = (middle(ours), middle(theirs));
    if (our_median - clock_median).abs() > 0.03 * clock_median {
        wrong.push(format!("{name}: median {our_median} ms, by the clock {clock_median} ms"));
    }
    let breakdown = breakdown(&session);
    let total: f64 = breakdown.iter().map(|it| it.1).sum();
    for (part, fraction) in measured["fraction"].as_object().unwrap() {
        let Some((_, categories)) = PARTS.iter().find(|it| it.0 == part) else { continue };
        let share =
            breakdown.iter().filter(|it| categories.contains(&it.0)).map(|it| it.1).sum::<f64>()
                / total;
        let fraction = fraction.as_f64().unwrap();
        if (share - fraction).abs() > 0.05 {
            wrong.push(format!(
                "{name}: {part} is {fraction:.3} by the clock, {categories:?} {share:.3}"
            ));
        }
    }
    wrong
}

/// A capture as it would be without any annotation: what marks steps gets names of equal length
/// that mean nothing.
fn without_markers(folder: &Path) -> Session {
    let run = session::Run::find(folder).unwrap();
    let mut bytes = std::fs::read(&run.files[0]).unwrap();
    for (from, to) in [
        (&b"\x12\x08step_num"[..], &b"\x12\x08stop_num"[..]),
        (b"\x12\x02_r", b"\x12\x02_q"),
        (b"Profiled batch", b"Profiled butch"),
    ] {
        let places: Vec<usize> =
            (0..bytes.len() - from.len()).filter(|&it| bytes[it..].starts_with(from)).collect();
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    Session::from_bytes("stripped", bytes).unwrap()
}

/// Steps of captures without their markers; answers what does not fit.
fn unmarked_against_clock(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("measured.json")).unwrap();
    let measured: serde_json::Value = serde_json::from_str(&text).unwrap();
    let clock = measured["step_ms"].as_array().unwrap().len();
    let marked = Session::open(folder).unwrap();
    let middle = |session: &Session| {
        let steps = session.tables().get::<Step>();
        let mut durs: Vec<i64> =
            steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps).collect();
        (durs.len(), median(&mut durs).unwrap_or(0) as f64 / 1e9)
    };
    let session = without_markers(folder);
    let (n, found) = middle(&session);
    let (_, expected) = middle(&marked);
    let by = session.tables().get::<Step>().first().map(|it| it.found_by);
    let right = matches!(by, Some("calls" | "period"))
        && n.abs_diff(clock) <= 2
        && (found - expected).abs() <= 0.05 * expected;
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    (!right).then(|| format!("{name}: {n} steps of {found} ms by {by:?}, {clock} of {expected} ms"))
}

/// `custom_loop` calls one function twice a step: without a mark nothing tells two short steps
/// from one long one.
const AMBIGUOUS: &[&str] = &["custom_loop"];
/// Its markers are no bytes that could be renamed in place: it is text.
const NOT_BYTES: &[&str] = &["torch_slow_loader"];

#[test]
fn loops_without_any_annotation_get_their_steps() {
    let shared = repo().join("../shared/workloads/profiles");
    let mut captures = captures_in(&repo().join("testdata/captured"));
    if shared.exists() {
        captures.extend(captures_in(&shared));
    } else {
        println!("only our own captures: the shared workloads are not beside this repository");
    }
    captures.retain(|it| !AMBIGUOUS.iter().chain(NOT_BYTES).any(|name| it.ends_with(name)));
    let wrong: Vec<String> = captures.iter().filter_map(|it| unmarked_against_clock(it)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn captures_in(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.join("measured.json").exists())
        .collect();
    found.sort();
    found
}

#[test]
fn captured_profiles_agree_with_the_clock() {
    let mut captures = captures_in(&repo().join("testdata/captured"));
    captures.extend(captures_in(&repo().join("testdata/chrome")));
    assert!(captures.len() >= 12);
    let wrong: Vec<String> = captures.iter().flat_map(|it| against_clock(it)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shared_workloads_agree_with_the_clock() {
    let folder = repo().join("../shared/workloads/profiles");
    if !folder.exists() {
        println!("skipped: the shared workloads are not beside this repository");
        return;
    }
    let mut wrong: Vec<String> =
        captures_in(&folder).iter().flat_map(|it| against_clock(it)).collect();
    // In `mixed` the clock's input counts only Python inside py_function, a lower bound, and its
    // last step holds the profiler's stop, which dilutes the other parts.
    wrong.retain(|it| !it.starts_with("mixed: input") && !it.starts_with("mixed: callback"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn tempdir(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("strobe-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}
