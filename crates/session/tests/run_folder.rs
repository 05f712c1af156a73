//! A run folder is opened as one run: the profile and what was sampled beside it.

#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use std::path::{Path, PathBuf};

use analyses::hardware::Hardware;
use analyses::run_info::window;
use session::Session;
use session::report::words::headline;

/// A real profile in a run folder, with samples from long before to long after it.
fn run_folder(folder: &Path) -> (PathBuf, Session) {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured");
    let profile = testdata.join("retrace_loop/plugins/profile/run/host.xplane.pb");
    let alone = Session::open(&profile).unwrap();
    let below = folder.join("profile/7/plugins/profile/run");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::copy(&profile, below.join("vm.xplane.pb")).unwrap();
    std::fs::write(folder.join("manifest.json"), r#"{"schema": 1}"#).unwrap();
    let host = alone.trace().tracks_of(trace::TrackKind::Host).next().unwrap();
    let mut text = format!(
        "{{\"strobe\":\"hardware\",\"version\":1,\"host\":{:?},\"cores\":2,\
         \"columns\":[\"cpu/all\",\"memory/process\"]}}\n",
        alone.trace().track_name(host)
    );
    let origin = alone.trace().origin_unix_ns.unwrap();
    for at in -1000..5000_i64 {
        text += &format!("[{},0.5,{}]\n", origin + at * 10_000_000, 1_000_000 + at);
    }
    std::fs::write(folder.join("hardware.jsonl"), text).unwrap();
    (profile, alone)
}

#[test]
fn samples_join_the_profile_and_do_not_stretch_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, alone) = run_folder(folder.path());
    let run = Session::open(folder.path()).unwrap();
    assert_eq!(run.run.files.len(), 2);
    assert_eq!(run.trace().counters.len() - alone.trace().counters.len(), 12_000);
    assert_eq!(run.trace().origin_unix_ns, alone.trace().origin_unix_ns);
    assert_eq!(run.trace().notes, alone.trace().notes);
    assert_eq!(run.trace().tracks_of(trace::TrackKind::Host).count(), 1, "one host, not two");
    assert_eq!(window(run.trace()), window(alone.trace()));
    let (with, without) = (run.report(), alone.report());
    assert_eq!(with.breakdown, without.breakdown);
    let rows = run.tables().get::<Hardware>();
    let steps = run.tables().get::<analyses::step::Step>();
    let n_counted = steps.iter().filter(|it| it.counts()).count();
    assert!(n_counted > 2);
    assert_eq!(rows.len(), 2 * (n_counted + 1), "each step knows its resources");
    assert!(rows.iter().filter(|it| &*it.counter == "cpu/all").all(|it| it.mean == 0.5));
}

#[test]
fn samples_without_a_profile_are_opened_too() {
    let folder = tempfile::tempdir().unwrap();
    run_folder(folder.path());
    std::fs::remove_dir_all(folder.path().join("profile")).unwrap();
    let run = Session::open(folder.path()).unwrap();
    let rows = run.tables().get::<Hardware>();
    let seen: Vec<_> = rows.iter().map(|it| (it.step, &*it.counter, it.n)).collect();
    assert_eq!(seen, [(None, "cpu/all", 6000), (None, "memory/process", 6000)]);
}

/// What `strobe run` leaves of a PyTorch training whose profile is damaged.
const TORCH: &str = r#"{"strobe":"python","version":1,"host":"box","pid":7,"thread":7,"script":"train.py"}
["framework","torch","2.15.0"]
["step-key",1000000000,"optimizer","SGD",7]
["step",1000000000,1]
["step",1010000000,2]
["step",1020000000,3]
["said",1025000000,"window-start","steps are steady"]
["frame",0,"/me/train.py","log",12]
["node",0,null,0,14]
["sample",1030000000,7,0]
["sample",1030000000,8,0]
["step",1060000000,4]
["said",1070000000,"window-end","2 steps"]
["said",1075000000,"saved","0.1 s"]
["step",1080000000,5]
["step",1090000000,6]
"#;

#[test]
fn without_a_profile_that_can_be_read_what_is_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("torch")).unwrap();
    write("manifest.json", r#"{"schema": 1}"#);
    write("torch/7.pt.trace.json", "{}");
    write("python-7.jsonl", TORCH);
    write("python-9.jsonl", &TORCH.replace('7', "9"));
    let samples = r#"{"strobe":"hardware","version":1,"host":"box","columns":["cpu/process","memory/process"]}
[1000000000,0.5,100]
[1050000000,1.5,300]
"#;
    write("hardware.jsonl", samples);
    let report = Session::open(folder.path()).unwrap().report();
    assert_eq!((report.run.events, report.run.frameworks.as_slice()), (0, ["torch"].as_slice()));
    assert_eq!(report.steps, None, "of a profile there are none");
    let steps = report.beside.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.processes, steps.name.as_deref()), (10, 2, Some("SGD")));
    assert_eq!(steps.median.to_string(), "10 ms", "without those that were profiled");
    let lines: Vec<_> = report
        .beside
        .lines
        .iter()
        .map(|it| (&*it.activity, &*it.function, it.line, it.share))
        .collect();
    assert_eq!(lines, [("driving", "log", Some(14), 1.0)]);
    let machine = &report.beside.machine[0];
    assert_eq!((machine.cores_used, machine.memory_peak_bytes), (Some(1.0), Some(300.0)));
    let notes: Vec<_> = report.notes.iter().map(|it| (it.kind.name(), it.first.as_str())).collect();
    let broken = "torch/7.pt.trace.json: not a profile that strobe can read";
    assert_eq!(notes, [("unreadable-file", broken)]);
    assert_eq!(
        headline(&report),
        "Each step takes 10 ms by the run's own clock; without a profile it cannot be said where the time goes."
    );
}
