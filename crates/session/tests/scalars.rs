//! Training logs beside a profile: every value as TensorBoard itself reads it, and which of them
//! belong to what was opened.

#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use analyses::run_info::window;
use analyses::scalar::Scalar;
use serde_json::Value;
use session::{OpenError, Session, SqlLimits};

fn captured() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured/scalars")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(from, to).unwrap();
}

fn runs(path: &Path) -> BTreeSet<String> {
    let session = Session::open(path).unwrap();
    session.tables().get::<Scalar>().iter().map(|it| it.run.to_string()).collect()
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// Written by TensorFlow 2 and 1, Keras, PyTorch and tensorboardX; `tensorboard.json` is what
/// TensorBoard's own reader says of them.
#[test]
fn every_value_is_as_tensorboard_reads_it() {
    let session = Session::open(&captured()).unwrap();
    let answers = std::fs::read(captured().join("tensorboard.json")).unwrap();
    let answers: BTreeMap<String, Value> = serde_json::from_slice(&answers).unwrap();
    let mut expected = BTreeMap::new();
    let mut others = BTreeMap::new();
    for (run, answer) in &answers {
        for (tag, points) in answer["scalars"].as_object().unwrap() {
            let point = |it: &Value| {
                let value: f64 = it[2].as_str().unwrap().parse().unwrap();
                // Bits: NaN equals itself, and zeros differ by their sign.
                (it[0].as_i64().unwrap(), it[1].as_i64().unwrap(), value.to_bits())
            };
            let mut points: Vec<_> = points.as_array().unwrap().iter().map(point).collect();
            points.sort_by_key(|it| (it.0, it.1));
            expected.insert((run.clone(), tag.clone()), points);
        }
        for (kind, count) in answer["others"].as_object().unwrap() {
            others.insert((run.clone(), kind.clone()), count.as_u64().unwrap());
        }
    }
    let mut found: BTreeMap<(String, String), Vec<_>> = BTreeMap::new();
    for it in session.tables().get::<Scalar>().iter() {
        let points = found.entry((it.run.to_string(), it.tag.to_string())).or_default();
        points.push((it.step, it.wall_unix_ns.unwrap(), it.value.0.to_bits()));
    }
    assert_eq!(found, expected);
    assert!(found.values().map(Vec::len).sum::<usize>() > 100);
    let left_out = &session.trace().left_out;
    let left_out: BTreeMap<_, _> =
        left_out.iter().map(|it| ((it.run.to_string(), it.kind.clone()), it.count)).collect();
    // TensorBoard reads a graph twice where it was written in two ways, and shows it once.
    let written_twice = ("v1".to_owned(), "meta_graphs".to_owned());
    others.insert(written_twice, 1);
    assert_eq!(left_out, others);
    assert_eq!(session.trace().notes, []);
}

#[test]
fn after_a_restart_old_points_are_marked() {
    let session = Session::open(&captured()).unwrap();
    let rows = session.tables().get::<Scalar>();
    let again = rows.iter().filter(|it| &*it.tag == "named_once/scalar_summary");
    let again: Vec<_> = again.map(|it| (it.step, it.value.0, it.superseded)).collect();
    assert_eq!(
        again,
        [
            (0, 1.0, false),
            (1, 0.5, false),
            (2, 0.25, true),
            (2, -0.25, false),
            (3, 0.125, true),
            (3, -0.125, false)
        ]
    );
    assert_eq!(rows.iter().filter(|it| it.superseded).count(), 2, "no others");
}

/// A real log of Keras: training and validation, and a profile of three of its batches.
#[test]
fn wherever_a_log_is_opened_its_runs_are_named_as_in_tensorboard() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("logs");
    let keras = captured().join("keras");
    let profile = "train/plugins/profile/run/host.xplane.pb";
    for file in ["train/events.out.tfevents.1.vm", "validation/events.out.tfevents.1.vm", profile] {
        copy(&keras.join(file), &log.join(file));
    }
    // Neither another experiment nor another part of this one's parent is meant.
    copy(
        &captured().join("tf2/events.out.tfevents.1.vm"),
        &log.join("notes/events.out.tfevents.1"),
    );
    copy(
        &captured().join("tf2/events.out.tfevents.1.vm"),
        &folder.path().join("x/events.out.tfevents.1"),
    );

    assert_eq!(runs(&log), names(["train", "validation", "notes"]), "all below the log folder");
    assert_eq!(runs(&log.join("train")), names(["."]));
    for deep in [profile, "train/plugins/profile/run", "train/plugins/profile", "train/plugins"] {
        assert_eq!(runs(&log.join(deep)), names(["train", "validation"]), "{deep}");
    }
    assert_eq!(runs(&log.join("validation/events.out.tfevents.1.vm")), names(["."]));
    assert_eq!(
        runs(folder.path()),
        names(["logs/train", "logs/validation", "logs/notes", "x"]),
        "further up, the path is part of the name"
    );

    // A log that is not called train has no other halves.
    std::fs::rename(log.join("train"), log.join("first")).unwrap();
    assert_eq!(runs(&log.join("first/plugins/profile/run")), names(["."]));
}

#[test]
fn a_log_joins_its_profile_by_the_wall_clock_and_does_not_stretch_it() {
    let keras = captured().join("keras");
    let session = Session::open(&keras).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("host.xplane.pb");
    copy(&keras.join("train/plugins/profile/run/host.xplane.pb"), &alone);
    let alone = Session::open(&alone).unwrap();
    assert!(alone.tables().get::<Scalar>().is_empty());
    assert_eq!(window(session.trace()), window(alone.trace()));
    assert_eq!(session.trace().origin_unix_ns, alone.trace().origin_unix_ns);
    assert_eq!(session.trace().counters, alone.trace().counters);
    assert_eq!(session.report().breakdown, alone.report().breakdown);
    assert_eq!(session.trace().notes, alone.trace().notes);

    // The callback profiled batches 6 to 8, and logged each as it ended.
    let query = "SELECT scalar.step FROM scalar, run_info WHERE tag = 'batch_loss' \
                 AND key = 'window' AND time_ps BETWEEN 0 AND \
                 (SELECT max(start_ps + dur_ps) FROM event) ORDER BY scalar.step";
    let answer = session.sql(query, &SqlLimits::default()).unwrap();
    let steps: Vec<String> = answer.rows.iter().map(|it| format!("{:?}", it[0])).collect();
    assert!(!steps.is_empty() && steps.len() <= 4, "{steps:?}");
    assert!(
        steps.iter().all(|it| ["5", "6", "7", "8"].iter().any(|n| it.contains(n))),
        "{steps:?}"
    );
}

#[test]
fn a_log_without_a_profile_is_opened_for_its_scalars() {
    let session = Session::open(&captured().join("tf2")).unwrap();
    assert_eq!(session.tables().get::<Scalar>().len(), 16);
    assert!(session.tables().get::<Scalar>().iter().all(|it| it.time_ps.is_none()));
    let report = session.report();
    assert_eq!((report.steps, report.run.events, report.run.scalars), (None, 0, 16));
    // One without scalars has nothing to show.
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read(captured().join("tf2/events.out.tfevents.1.vm")).unwrap();
    let first = 16 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let only_its_version = &file[..first];
    for (name, bytes) in [
        ("events.out.tfevents.1.vm.profile-empty", only_its_version),
        ("events.out.tfevents.2.vm", only_its_version),
        ("events.out.tfevents.3.vm", b""),
        ("events.out.tfevents.4.vm", b"something else"),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let error = Session::open(folder.path()).unwrap_err();
        assert!(matches!(error, OpenError::NoProfile { .. }), "{name}: {error}");
    }
}

#[test]
fn a_capture_of_ours_keeps_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let keras = captured().join("keras/train");
    let run = folder.path().join("run");
    copy(&keras.join("plugins/profile/run/host.xplane.pb"), &run.join("profile/7/a.xplane.pb"));
    copy(&keras.join("events.out.tfevents.1.vm"), &run.join("profile/7/events.out.tfevents.1"));
    copy(&keras.join("events.out.tfevents.1.vm"), &folder.path().join("b/events.out.tfevents.1"));
    std::fs::write(run.join("manifest.json"), r#"{"schema": 1}"#).unwrap();
    assert_eq!(runs(folder.path()), names(["profile/7"]));
}

#[test]
fn a_broken_log_does_not_hide_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let keras = captured().join("keras/train");
    let log = folder.path();
    copy(&keras.join("plugins/profile/run/host.xplane.pb"), &log.join("host.xplane.pb"));
    std::fs::write(log.join("events.out.tfevents.1"), b"x").unwrap();
    let session = Session::open(log).unwrap();
    let notes: Vec<_> = session.trace().notes.iter().map(|it| it.kind.name()).collect();
    assert_eq!(notes, ["unreadable-file"]);
    assert!(session.report().steps.is_some());
}
