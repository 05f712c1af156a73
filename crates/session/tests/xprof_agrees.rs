//! Ops and kernels against XProf's own answers, kept beside the profiles (XProf 2.24.2).
//!
//! Where we differ on purpose, [`DIFFERENCES`] says so and why; each is worked out from the
//! profile itself, so that nothing else can hide behind it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use analyses::kernel_time::KernelTime;
use analyses::op_time::OpTime;
use analyses::step::Step;
use serde_json::Value;
use session::Session;
use trace::{EventId, FactValue, OpName, TrackKind};

/// What we do otherwise, on purpose.
///
/// | difference         | XProf                                  | here                           |
/// |--------------------|----------------------------------------|--------------------------------|
/// | carriers           | counts every host event that carries a | counts runs of ops only; an    |
/// |                    | `tf_op` stat as a run of that op: an   | allocation is no run of the op |
/// |                    | allocator's records, driver calls      |                                |
/// | eager ops          | leaves out ops called from Python on a | lists them with the time of    |
/// |                    | CPU: they have no event of their own   | their kernel's run, which then |
/// |                    |                                        | is no self time of a `PyFunc`  |
/// | compiled for CPU   | leaves out ops of XLA:CPU programs     | lists them, family `xla`       |
/// | annotations        | knows no op of kernels in profiles of  | takes it from the annotation   |
/// |                    | 2020, which say it in another stat     |                                |
/// | compiled ops       | looks a kernel's op up in the program, | takes the op that the event    |
/// |                    | whatever the event says                | names, else the compiled op    |
/// | unset memory       | prints the registers and shared memory | says they are not known        |
/// |                    | that AMD's older profiler never set    |                                |
/// | generated kernels  | takes every `gemm_fusion` for one that | says it is not known: the name |
/// |                    | uses tensor cores                      | does not tell                  |
const DIFFERENCES: &[&str] = &[
    "carriers",
    "eager ops",
    "compiled for CPU",
    "annotations",
    "compiled ops",
    "unset memory",
    "generated kernels",
];

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What differed on purpose: how often, by name in [`DIFFERENCES`].
#[derive(Default)]
struct Report {
    compared: usize,
    differences: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Report {
    fn differs(&mut self, name: &'static str) {
        assert!(DIFFERENCES.contains(&name), "{name} is not explained");
        *self.differences.entry(name).or_default() += 1;
    }
}

/// The rows of XProf's first table in a file, column by its name.
fn rows_of(path: &Path) -> Vec<BTreeMap<String, Value>> {
    rows_of_table(path, 0)
}

fn rows_of_table(path: &Path, table: usize) -> Vec<BTreeMap<String, Value>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    if path.extension().is_some_and(|it| it == "gz") {
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        std::io::BufReader::new(file).read_to_string(&mut text).unwrap();
    }
    let mut json: Value = serde_json::from_str(&text).unwrap();
    if json.is_array() {
        json = json[table].take();
    }
    let columns: Vec<String> = json["cols"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    let cells = |row: &Value| -> BTreeMap<String, Value> {
        let values = row["c"].as_array().unwrap().iter().map(|it| it["v"].clone());
        columns.iter().cloned().zip(values).collect()
    };
    json["rows"].as_array().unwrap().iter().map(cells).collect()
}

fn number(row: &BTreeMap<String, Value>, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} is {:?}", row[column]))
}

fn text<'a>(row: &'a BTreeMap<String, Value>, column: &str) -> &'a str {
    row[column].as_str().unwrap()
}

#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    count: i64,
    total_ps: i64,
    self_ps: i64,
}

/// Host events that carry an op's name in `tf_op`, by that op: runs of it to XProf.
fn carriers(session: &Session) -> BTreeMap<String, Runs> {
    let trace = session.trace();
    let mut found: BTreeMap<String, Runs> = BTreeMap::new();
    for track in trace.tracks_of(TrackKind::Thread) {
        for row in trace.tracks[track.row()].rows() {
            if trace.events.detail[row].0 == 0 {
                continue;
            }
            for (key, value) in trace.args.of(EventId(row as u32)) {
                if let ("tf_op", FactValue::Text(op)) = (key.as_str(), value) {
                    let name = OpName::parse(&op).map_or(op.as_str(), |it| it.name);
                    let runs = found.entry(name.to_owned()).or_default();
                    runs.count += 1;
                    runs.total_ps += trace.events.dur[row].0;
                    runs.self_ps += trace.events.dur[row].0;
                }
            }
        }
    }
    found
}

fn host_ops(profile: &Path, reference: &Path, report: &mut Report) {
    let session = Session::open(profile).unwrap();
    let rows = session.tables().get::<OpTime>();
    let carriers = carriers(&session);
    let mut ours: BTreeMap<&str, Runs> = BTreeMap::new();
    for row in rows.iter().filter(|it| it.side == "host") {
        if row.family == "xla" {
            report.differs("compiled for CPU");
        } else if row.eager == Some(true) && row.op_type.as_ref() == Some(&row.name) {
            report.differs("eager ops");
        } else {
            let runs = Runs { count: row.count, total_ps: row.total_ps, self_ps: row.self_ps };
            ours.insert(&row.name, runs);
        }
    }
    let theirs = rows_of(reference);
    let theirs: Vec<_> = theirs
        .iter()
        .filter(|it| text(it, "host_or_device") == "Host" && text(it, "operation") != "IDLE")
        .collect();
    let place = reference.parent().unwrap().display();
    for row in &theirs {
        let name = text(row, "operation");
        let mut expected = ours.remove(name).unwrap_or_default();
        if let Some(more) = carriers.get(name) {
            report.differs("carriers");
            expected.count += more.count;
            expected.total_ps += more.total_ps;
            expected.self_ps += more.self_ps;
        }
        report.compared += 1;
        let near = |ours_ps: i64, column: &str| {
            let theirs_ps = number(row, column) * 1e6;
            (ours_ps as f64 - theirs_ps).abs() <= 1000.0
        };
        let agrees = expected.count == number(row, "occurrences") as i64
            && near(expected.total_ps, "total_time")
            && near(expected.self_ps, "total_self_time");
        if !agrees {
            report.wrong.push(format!(
                "{place}: {name}: {expected:?}, XProf {} runs, {} µs, self {} µs",
                row["occurrences"], row["total_time"], row["total_self_time"]
            ));
        }
    }
    // XProf prints 500 rows at most.
    if theirs.len() < 499 {
        report.wrong.extend(ours.keys().map(|it| format!("{place}: XProf does not know {it}")));
    }
}

#[test]
fn host_ops_of_captured_profiles() {
    let mut report = Report::default();
    let mut n_answers = 0;
    let folder = repo().join("testdata/captured");
    let mut captures: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    captures.sort();
    for capture in captures {
        let reference = capture.join("xprof_framework_op_stats.json");
        if reference.exists() {
            n_answers += 1;
            host_ops(&capture, &reference, &mut report);
        }
    }
    assert!(n_answers >= 12, "capturing again removes XProf's answers: ask it again");
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    println!("{} rows compared, on purpose {:?}", report.compared, report.differences);
}

/// Runs of a kernel: how many, total, shortest, longest; and whether on tensor cores.
type KernelRuns = (i64, i64, i64, i64, Option<bool>);

/// Kernels of one name and shape, by op.
type ByOp = BTreeMap<String, KernelRuns>;

fn add(by_op: &mut ByOp, op: &str, one: KernelRuns) {
    let sum = by_op.entry(op.to_owned()).or_insert((0, 0, i64::MAX, 0, one.4));
    *sum = (sum.0 + one.0, sum.1 + one.1, sum.2.min(one.2), sum.3.max(one.3), one.4);
}

/// The same, whatever the op.
fn together(by_op: &ByOp) -> ByOp {
    let mut all = ByOp::new();
    by_op.values().for_each(|&it| add(&mut all, "", it));
    all
}

fn kernels(profile: &Path, reference: &Path, report: &mut Report) {
    let session = Session::open(profile).unwrap();
    let place = reference.parent().unwrap().display();
    let compiled = session.trace().details.iter().any(|it| it.hlo_op.is_some());
    let rows = rows_of(reference);
    let mut theirs: BTreeMap<[String; 3], ByOp> = BTreeMap::new();
    for row in &rows {
        // Microseconds with three digits.
        let ps = |column: &str| (number(row, column) * 1e3).round() as i64 * 1000;
        let sum = (
            number(row, "occurrences") as i64,
            ps("total_duration_us"),
            ps("min_duration_us"),
            ps("max_duration_us"),
            row["is_kernel_using_tensor_core"].as_bool(),
        );
        let key = ["kernel_name", "grid_dim", "block_dim"].map(|it| text(row, it).to_owned());
        add(theirs.entry(key).or_default(), text(row, "op_name"), sum);
    }
    let unset = rows.iter().any(|it| number(it, "registers_per_thread") > 512.0);
    let mut ours: BTreeMap<[String; 3], ByOp> = BTreeMap::new();
    for row in session.tables().get::<KernelTime>().iter() {
        let shape = |it: &Option<String>| it.clone().unwrap_or_default();
        let key = [row.name.clone(), shape(&row.grid), shape(&row.block)];
        let op = row.op.as_deref().unwrap_or("");
        let sum = (row.count, row.total_ps, row.min_ps, row.max_ps, row.uses_tensor_cores);
        add(ours.entry(key).or_default(), op, sum);
        if unset {
            report.differs("unset memory");
            assert_eq!((row.registers, row.static_shared_bytes), (None, None), "{place}");
        }
    }

    report.compared += theirs.values().map(BTreeMap::len).sum::<usize>();
    for (key, theirs) in &theirs {
        let Some(mut found) = ours.remove(key) else {
            report.wrong.push(format!("{place}: {key:?} is missing"));
            continue;
        };
        let mut theirs = theirs.clone();
        if found.values().all(|it| it.4.is_none()) {
            report.differs("generated kernels");
            theirs.values_mut().for_each(|it| it.4 = None);
        }
        if !found.keys().eq(theirs.keys()) {
            report.differs(if compiled { "compiled ops" } else { "annotations" });
            (found, theirs) = (together(&found), together(&theirs));
        }
        if found != theirs {
            report.wrong.push(format!("{place}: {key:?}: {found:?}, XProf {theirs:?}"));
        }
    }
    report.wrong.extend(ours.keys().map(|it| format!("{place}: XProf does not know {it:?}")));
}

/// Profiles beside this repository that come with XProf's answers.
fn corpus() -> Option<Vec<PathBuf>> {
    let folder = repo().join("../shared/corpus/xplane");
    let Ok(found) = std::fs::read_dir(&folder) else {
        println!("skipped: the shared corpus is not beside this repository");
        return None;
    };
    let mut found: Vec<PathBuf> =
        found.map(|it| it.unwrap().path()).filter(|it| it.join("xprof_ref").exists()).collect();
    found.sort();
    Some(found)
}

/// The profile in a folder of the corpus, and one of XProf's answers about it.
fn with_answer(folder: &Path, answer: &str) -> Option<(PathBuf, PathBuf)> {
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let profile = files.into_iter().find(|it| it.to_string_lossy().ends_with(".xplane.pb"))?;
    let answers = [answer.to_owned(), format!("{answer}.gz")];
    let answer = answers.iter().map(|it| folder.join("xprof_ref").join(it)).find(|it| it.exists());
    Some((profile, answer?))
}

#[test]
fn host_ops_of_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let mut report = Report::default();
    for folder in &corpus {
        let (profile, answer) = with_answer(folder, "framework_op_stats.json").unwrap();
        host_ops(&profile, &answer, &mut report);
    }
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert!(report.compared > 0);
    println!("{} rows compared, on purpose {:?}", report.compared, report.differences);
}

#[test]
fn kernels_of_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let mut report = Report::default();
    for folder in &corpus {
        // XProf lists no kernels for a TPU.
        if let Some((profile, answer)) = with_answer(folder, "kernel_stats.json") {
            kernels(&profile, &answer, &mut report);
        }
    }
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert!(report.compared > 0);
    println!("{} rows compared, on purpose {:?}", report.compared, report.differences);
}

/// Of the corpus XProf finds steps in one profile only, and there by its own summary line.
#[test]
fn steps_of_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let mut compared = 0;
    for folder in &corpus {
        let Some((profile, answer)) = with_answer(folder, "input_pipeline_analyzer.json") else {
            continue;
        };
        let theirs = rows_of_table(&answer, 1);
        let session = Session::open(&profile).unwrap();
        let ours = session.tables().get::<Step>();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let theirs = (number(theirs, "stepTimeMs") * 1e9).round() as i64;
            assert_eq!(ours.dur_ps, theirs, "{}", profile.display());
            compared += 1;
        }
    }
    assert!(compared > 0, "no step was compared");
}
