//! `strobe bench` as users and scripts meet it: on run folders that are written here.

#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use statistics::Random;
use statistics::simulate::Noise;

const NS_PER_S: i64 = 1_000_000_000;

fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    command.arg("bench").args(args).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What is printed, and the exit code it comes with.
fn printed(args: &[&str], code: i32) -> String {
    let done = bench(args);
    assert_eq!(done.status.code(), Some(code), "{args:?}: {}", text(&done.stderr));
    text(&done.stdout)
}

fn json(args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = args.iter().chain(&["--format", "json"]).copied().collect();
    serde_json::from_str(&printed(&args, code)).unwrap()
}

/// The lines of a run of Keras steps with the usual noise, from that second on.
fn steps(n: usize, ms: f64, at_s: i64, seed: u64) -> String {
    steps_with(Noise::default(), n, ms, at_s, seed)
}

fn steps_with(noise: Noise, n: usize, ms: f64, at_s: i64, seed: u64) -> String {
    let series = noise.run(n, (ms * 1e9) as i64, &mut Random::seeded(seed));
    let mut time_ns = (1_794_806_400 + at_s) * NS_PER_S;
    let mut lines = String::from(
        "{\"strobe\": \"python\", \"version\": 1, \"host\": \"box\", \"pid\": 12}\n\
         [\"step-key\", 0, \"keras\", \"Model.fit\"]\n[\"examples\", 64]\n",
    );
    for (at, ps) in series.ps().iter().chain([&0]).enumerate() {
        let _ = writeln!(lines, "[\"step\", {time_ns}, {}]", at + 1);
        time_ns += ps / 1000;
    }
    lines
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn run(&self, name: &str, lines: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("python-12.jsonl"), lines).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

#[test]
fn one_run_is_measured_with_its_interval() {
    let folder = Folder::new();
    let run = folder.run("run", &steps(300, 30.0, 0, 1));
    let found = json(&[&run], 0);
    assert_eq!((&found["schema"], &found["what"]), (&Value::from(1), &Value::from("step")));
    let together = &found["together"];
    let of = |name: &str| together[name].as_f64().unwrap();
    assert!((of("median_ms") - 30.0).abs() < 1.0, "{together}");
    assert!(of("low_ms") <= of("median_ms") && of("median_ms") <= of("high_ms"));
    assert!((of("steps_per_s") - 1000.0 / of("mean_ms")).abs() < 1e-6);
    assert!((of("examples_per_s") - 64.0 * of("steps_per_s")).abs() < 1e-6);
    let run = &found["runs"][0];
    assert_eq!((&run["steady"], &run["pid"]), (&Value::from(true), &Value::from(12)));
    assert_eq!(run["steps_by"]["name"], "Model.fit");
    let skipped = run["warmup_skipped"].as_u64().unwrap();
    assert!((5..40).contains(&skipped), "{skipped}");
    assert_eq!(together["count"].as_u64().unwrap() + skipped, 300);
    // Percentiles that so few steps cannot tell are absent, not zero.
    let told: Vec<f64> = together["percentiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["p"].as_f64().unwrap())
        .collect();
    assert!(told.contains(&90.0) && !told.contains(&99.9), "{told:?}");
    assert!(together["between_runs"].is_null());
}

#[test]
fn the_report_of_a_run_says_the_same_pace() {
    let folder = Folder::new();
    let run = folder.run("run", &steps(300, 30.0, 0, 1));
    let manifest = r#"{"schema": 1, "kind": "run", "command": ["python", "train.py"]}"#;
    std::fs::write(Path::new(&run).join("manifest.json"), manifest).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_strobe"))
        .args(["report", &run, "--format", "json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let (steps, measured) = (&report["beside"]["steps"], json(&[&run], 0));
    let together = &measured["together"];
    assert_eq!(
        (&steps["median_ms"], &steps["steady"]),
        (&together["median_ms"], &together["count"])
    );
}

#[test]
fn text_fits_the_terminal_and_has_no_colours_in_a_pipe() {
    let folder = Folder::new();
    let runs: Vec<String> = (0..3)
        .map(|it| folder.run(&format!("old/{it}"), &steps(200, 30.0, it * 60, it as u64)))
        .collect();
    let new = folder.run("new", &steps(200, 33.0, 500, 9));
    for width in ["60", "80", "200"] {
        let done = Command::new(env!("CARGO_BIN_EXE_strobe"))
            .args(["bench", &new, "--compare"])
            .args(&runs)
            .env("COLUMNS", width)
            .output()
            .unwrap();
        let out = text(&done.stdout);
        assert!(out.contains("slower than") && out.contains("together"), "{out}");
        assert!(out.contains("All runs of one came before"), "{out}");
        assert!(!out.contains('\u{1b}'));
        // Numbers are never cut; 60 columns are too few for all of them.
        let widest = out.lines().map(|it| it.chars().count()).max().unwrap();
        assert!(width == "60" || widest <= width.parse().unwrap(), "{widest} of {width}:\n{out}");
    }
}

#[test]
fn two_sets_of_runs_are_compared_and_gated() {
    let folder = Folder::new();
    for round in 0..5_i64 {
        let seed = round as u64;
        folder.run(&format!("old/{round}"), &steps(200, 30.0, round * 100, seed));
        folder.run(&format!("same/{round}"), &steps(200, 30.0, round * 100 + 30, seed + 10));
        folder.run(&format!("new/{round}"), &steps(200, 33.0, round * 100 + 60, seed + 20));
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (old, same, new) = (path("old"), path("same"), path("new"));

    let slower = json(&[&new, "--compare", &old], 0);
    let comparison = &slower["comparison"];
    assert_eq!(
        (&comparison["verdict"], &comparison["in_pairs"]),
        (&Value::from("slower"), &Value::from(true))
    );
    let of = |name: &str| comparison["step"][name].as_f64().unwrap();
    assert!((of("share") - 0.1).abs() < 0.02, "{comparison}");
    assert!(of("low_ms") < 3.0 && 3.0 < of("high_ms"), "{comparison}");
    assert!((of("a_median_ms") - 30.0).abs() < 1.0 && of("noise_floor_ms") > 0.0);
    let faster = json(&[&old, "--compare", &new], 0);
    assert_eq!(faster["comparison"]["verdict"], "faster");
    let nothing = json(&[&same, "--compare", &old], 0);
    assert!(
        ["no difference", "cannot tell"]
            .contains(&nothing["comparison"]["verdict"].as_str().unwrap()),
        "{nothing}"
    );

    printed(&[&new, "--fail-if-slower", "--compare", &old], 1);
    printed(&[&new, "--fail-if-slower=5", "--compare", &old], 1);
    printed(&[&new, "--fail-if-slower=30", "--compare", &old], 0);
    printed(&[&old, "--fail-if-slower", "--compare", &new], 0);
    // So much noise that nothing can be told: the gate stays shut.
    let loud = |seed| steps_with(Noise::white(0.3), 60, 30.0, 0, seed);
    let (a, b) = (folder.run("loud/a", &loud(1)), folder.run("loud/b", &loud(2)));
    printed(&[&a, "--fail-if-slower", "--compare", &b], 3);
    let markdown = printed(&[&new, "--compare", &old, "--format", "md"], 0);
    assert!(
        markdown.contains("| run | steps |") && markdown.contains("is slower than"),
        "{markdown}"
    );
}

#[test]
fn what_is_odd_about_steps_is_said_with_a_number() {
    let folder = Folder::new();
    let write = |name: &str, noise: Noise, n: usize| {
        let series = noise.run(n, 30_000_000_000, &mut Random::seeded(5));
        let mut time_ns = 0;
        let mut lines = String::new();
        for (at, ps) in series.ps().iter().enumerate() {
            let _ = writeln!(lines, "[\"step\", {time_ns}, {at}]");
            time_ns += ps / 1000;
        }
        folder.run(name, &lines)
    };
    let drifts = write("drifts", Noise { drift: 0.15, ..Noise::white(0.01) }, 400);
    let out = printed(&[&drifts, "--warmup", "0"], 0);
    assert!(out.contains("Drift: steps become slower by 1"), "{out}");
    let two = write("two", Noise { mode: 0.4, mode_size: 0.2, ..Noise::white(0.01) }, 1000);
    let out = printed(&[&two], 0);
    assert!(out.contains("Modes: 2 kinds of steps") && out.contains("near 36."), "{out}");
    let plain = write("plain", Noise::white(0.01), 400);
    let out = printed(&[&plain], 0);
    assert!(!out.contains("Drift") && !out.contains("Modes"), "{out}");
    // A last quarter that is slower is no steady state.
    let mut jumps = std::fs::read_to_string(Path::new(&plain).join("python-12.jsonl")).unwrap();
    let last: i64 = jumps.lines().last().unwrap().split(", ").nth(1).unwrap().parse().unwrap();
    for at in 0..100 {
        let _ = writeln!(jumps, "[\"step\", {}, {}]", last + (at + 1) * 45_000_000, 400 + at);
    }
    let out = printed(&[&folder.run("jumps", &jumps)], 0);
    assert!(out.contains("No steady state"), "{out}");
}

#[test]
fn thinned_and_profiled_steps_are_told_apart() {
    let folder = Folder::new();
    let mut lines = String::new();
    for at in 0..100_i64 {
        let _ = writeln!(lines, "[\"step\", {}, {}]", at * 100_000_000, at * 10);
    }
    lines += "[\"said\", 5000000001, \"window-start\", \"\"]\n[\"said\", 5200000001, \"window-end\", \"\"]\n";
    let found = json(&[&folder.run("thin", &lines)], 0);
    let run = &found["runs"][0];
    assert_eq!(run["profiled_skipped"], 30);
    assert_eq!((&run["averaged"], &run["steps"]["count"]), (&Value::from(960), &Value::from(960)));
    assert_eq!(run["steps"]["median_ms"], 10.0);
    assert_eq!(run["steps"]["percentiles"].as_array().unwrap().len(), 0);
}

#[test]
fn steps_of_requests_are_latencies() {
    let folder = Folder::new();
    let lines = steps(3000, 5.0, 0, 3).replace("Model.fit", "Model.predict");
    let run = folder.run("serving", &lines);
    assert_eq!(json(&[&run], 0)["what"], "latency");
    let out = printed(&[&run], 0);
    assert!(out.contains("ms latency") && out.contains(", p99 "), "{out}");
}

#[test]
fn warmup_and_steps_can_be_told() {
    let folder = Folder::new();
    let run = folder.run("run", &steps(300, 30.0, 0, 1));
    let found = json(&[&run, "--warmup", "50", "--steps", "100"], 0);
    let run = &found["runs"][0];
    assert_eq!(
        (&run["warmup_skipped"], &run["steps"]["count"]),
        (&Value::from(50), &Value::from(100))
    );
    assert!(run["steady"].is_null());
}

#[test]
fn too_few_steps_exit_with_3() {
    let folder = Folder::new();
    let few = folder.run("few", &steps(12, 30.0, 0, 1));
    let out = printed(&[&few], 3);
    assert!(out.contains("at least 20 are needed"), "{out}");
    assert_eq!(json(&[&few], 3)["enough"], false);
    // A process that never took a step.
    let none = folder.run("none", "{\"strobe\": \"python\", \"pid\": 12}\n");
    let out = printed(&[&none], 3);
    assert!(out.contains("No steady steps"), "{out}");
    let found = json(&[&none, "--compare", &few], 3);
    assert!(found["together"].is_null() && found["comparison"].is_null(), "{found}");
}

#[test]
fn a_run_that_was_killed_is_measured_and_its_damage_told() {
    let folder = Folder::new();
    let lines = steps(100, 30.0, 0, 1);
    let cut = &lines[..lines.len() - 7];
    let found = json(&[&folder.run("cut", cut)], 0);
    assert_eq!(found["runs"][0]["notes"][0]["kind"], "truncated");
    assert!(found["together"]["count"].as_u64().unwrap() > 60, "{found}");
}

#[test]
fn hostile_lines_have_an_answer() {
    let folder = Folder::new();
    let mut lines = String::new();
    let mut random = Random::seeded(1);
    for _ in 0..500 {
        let time = match random.below(4) {
            0 => random.bits() as i64,
            1 => i64::MIN,
            2 => i64::MAX,
            _ => random.below(1000) as i64 - 500,
        };
        let n = [0, 1, 2, u64::MAX, random.bits()][random.below(5)];
        let _ = writeln!(lines, "[\"step\", {time}, {n}]");
        let _ = writeln!(lines, "[\"examples\", {n}]\n[\"said\", {time}, \"saved\", null]");
    }
    lines +=
        "[\"step\", 1e400, 5]\n[\"step-key\", 0, \"\\u001b[31m\", \"x\"]\n[[[[[[\n{}\n\u{1b}[2J\n";
    let run = folder.run("hostile", &lines);
    for format in ["text", "json", "md"] {
        let done = bench(&[&run, "--compare", &run, "--format", format]);
        assert!(matches!(done.status.code(), Some(0 | 3)), "{}", text(&done.stderr));
        assert!(!text(&done.stdout).contains('\u{1b}'), "{format} steers the terminal");
    }
}

#[test]
fn runs_of_a_command_are_told_by_one_line_each() {
    let folder = Folder::new();
    let log = folder.run("given", &steps(300, 30.0, 0, 1));
    // The command itself is named in the results; what it prints is not part of them.
    let copy = format!("cp {log}/python-12.jsonl \"$STROBE_RUN_FOLDER\"; printf '%s-%s\\n' of it");
    let done = bench(&["--runs", "2", "--", "sh", "-c", &copy]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(!text(&done.stdout).contains("of-it"), "results alone go to stdout");
    let said = text(&done.stderr);
    let ours: Vec<&str> = said.lines().filter(|it| *it != "of-it").collect();
    let [first, second] = ours.as_slice() else { panic!("{said}") };
    assert!(first.starts_with("run 1 of 2: sh -c") && second.starts_with("run 2 of 2: "), "{said}");
}

#[test]
fn errors_say_what_is_wrong_and_exit_with_2() {
    let folder = Folder::new();
    let run = folder.run("run", &steps(50, 30.0, 0, 1));
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let check = |args: &[&str], said: &str| {
        let done = bench(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(done.stdout.is_empty(), "{args:?} prints results");
        assert!(text(&done.stderr).contains(said), "{args:?}: {}", text(&done.stderr));
    };
    check(&["no/such/folder"], "there is no such folder");
    check(&[empty.to_str().unwrap()], "no step times here");
    check(&[&run, "--compare", "no/such/folder"], "there is no such folder");
    check(&[&run, "--fail-if-slower"], "needs something to be slower than");
    check(&[&run, "--fail-if-slower=-3", "--compare", &run], "no percentage");
    check(&[&run, "--warmup", "some"], "neither `auto` nor a number");
    check(&[&run, "--runs", "3"], "--runs needs a command");
    check(&[&run, "--", "true"], "cannot be used with");
    check(&[], "required");
    // What cannot be run is no measurement, whatever the reason.
    check(&["--runs", "1", "--", "/no/such/program"], "error");
}
