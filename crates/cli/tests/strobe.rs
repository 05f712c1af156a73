//! The program as users and scripts meet it: what it prints where, and its exit codes.

#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn strobe(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    command.args(args).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn report_json(path: &Path) -> serde_json::Value {
    let done = strobe(&["report", path.to_str().unwrap(), "--format", "json"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn the_report_has_the_shape_of_the_contract() {
    let report = report_json(&testdata("synthetic/input_70"));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["run"]["frameworks"][0], "tensorflow");
    assert_eq!(report["run"]["devices"][0]["kind"], "gpu");
    assert_eq!(report["steps"]["found_by"], "markers");
    assert_eq!(report["steps"]["median_ms"], 10.0);
    let breakdown = report["breakdown"].as_array().unwrap();
    let of = |category: &str| {
        let found = breakdown.iter().find(|it| it["category"] == category).unwrap();
        found["ms_per_step"].as_f64().unwrap()
    };
    assert!((of("input") - 7.0).abs() < 0.1, "{}", of("input"));
    assert!((of("transfer_in") - 0.9).abs() < 0.1);
    assert!((of("compute") - 1.35).abs() < 0.1);
    let shares: f64 = breakdown.iter().map(|it| it["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn what_cannot_be_measured_is_left_out_with_its_reason() {
    let report = report_json(&testdata("captured/keras_fit"));
    let has = |list: &str, category: &str| {
        report[list].as_array().unwrap().iter().any(|it| it["category"] == category)
    };
    assert!(!has("breakdown", "transfer_in"));
    assert!(has("breakdown_unknown", "transfer_in"));
    assert!(has("breakdown", "collective"), "measured, and nothing: a zero");
}

#[test]
fn text_fits_the_terminal_and_has_no_colours_in_a_pipe() {
    for width in ["60", "80", "200"] {
        let done = Command::new(env!("CARGO_BIN_EXE_strobe"))
            .args(["report", testdata("captured/keras_fit").to_str().unwrap()])
            .env("COLUMNS", width)
            .output()
            .unwrap();
        let out = text(&done.stdout);
        // Code is there to be copied: it fits 80 columns and is never broken for less.
        let is_code = |it: &&str| width == "60" && it.starts_with("      ");
        let widest = out.lines().filter(|it| !is_code(it)).map(|it| it.chars().count()).max();
        let widest = widest.unwrap();
        assert!(widest <= width.parse().unwrap(), "{widest} columns of {width}:\n{out}");
        assert!(!out.contains('\u{1b}'));
    }
}

/// As people read it: units, no zeros, and all that the terminal says.
#[test]
fn markdown_is_for_people() {
    let path = testdata("captured/run_folder");
    let path = path.to_str().unwrap();
    let markdown = text(&strobe(&["report", path, "--format", "md"]).stdout);
    for line in markdown.lines().filter(|it| it.starts_with("| ")) {
        let has_unit = |it: &str| [" s", " ms", " µs", "%"].iter().any(|unit| it.ends_with(unit));
        let numbers = line.split(" | ").map(|it| it.trim_matches(['|', ' ']));
        for it in numbers.filter(|it| it.starts_with(|it: char| it.is_ascii_digit())) {
            assert!(has_unit(it) || it.parse::<u64>().is_ok(), "{it} in {line}");
            let digits = it.chars().filter(char::is_ascii_digit).count();
            assert!(digits <= 4, "{it} in {line}");
        }
    }
    assert!(!markdown.contains("| collective |"), "nothing to show: {markdown}");
    for said in [
        "| input | 174.8 ms | 61% |",
        "Steps: mean 285 ms ± 194 ms, median 265 ms, p95 756 ms; found by calls",
        "Whole run, without the profiler: median 155 ms",
        "or in a thread (train.py:69)",
        "No gain is predicted: this profile does not show what it would save.",
        "Also triggers: input-bound.",
        "Not measured: transfer_in, transfer_out",
    ] {
        assert_eq!(markdown.matches(said).count(), 1, "{said}: {markdown}");
    }
    // A list is one, not as many as it has lines.
    assert!(!markdown.contains("(30%).\n\n- Outside any"), "{markdown}");
}

#[test]
fn a_fact_of_the_first_line_is_not_broken() {
    let done = strobe(&["report", testdata("captured/keras_fit").to_str().unwrap()]);
    let text = text(&done.stdout);
    let first: Vec<&str> = text.lines().take_while(|it| !it.is_empty()).collect();
    assert_eq!(first.last(), Some(&" 8 steady steps of 8"), "{text}");
}

#[test]
fn errors_say_what_is_wrong_and_exit_with_2() {
    let check = |args: &[&str], said: &str| {
        let done = strobe(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(done.stdout.is_empty(), "{args:?} prints results");
        let error = text(&done.stderr);
        assert_eq!(error.matches(said).count(), 1, "{args:?}: {error}");
    };
    let here = testdata("captured/keras_fit");
    let here = here.to_str().unwrap();
    check(&["report", "no/such/path"], "no such file or folder");
    check(&["report", env!("CARGO_MANIFEST_DIR")], "no profile in this folder");
    check(
        &["report", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
        "not a profile that strobe can read",
    );
    check(&["table", here, "nonsense"], "no table is called");
    check(&["table", here, "op_tim"], "did you mean op_time?");
    check(&["table", here, "op_time", "--columns", "self_pss"], "did you mean self_ps?");
    check(&["explain", "nonsense"], "no rule or table is called");
    check(&["explain", "input-serial-mapp"], "did you mean input-serial-map?");
    check(&["sql", here, "select * from nonsense"], "nonsense");
    check(&["sql", here, "delete from step"], "only queries");
    check(&["frobnicate"], "unrecognized subcommand");
    check(&["frobnicate"], "strobe <PATH>");
    check(&["run", "--step", "3", "python", "train.py"], "a similar argument exists: '--steps'");
    check(&["run", "--no-such-option"], "unexpected argument '--no-such-option'");
    let page = "no/such/folder/page.html";
    check(&["export", here, "--to", "html", "-o", page], "No such file or directory");
}

#[test]
fn a_profile_without_steps_exits_with_3() {
    let folder = tempfile::tempdir().unwrap();
    // A host plane of that name and nothing in it.
    let path = folder.path().join("empty.xplane.pb");
    std::fs::write(&path, b"\x0a\x0b\x12\x09/host:CPU").unwrap();
    let done = strobe(&["report", path.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(3));
    assert!(text(&done.stdout).contains("no events"));
    let doctor = strobe(&["doctor", path.to_str().unwrap()]);
    assert_eq!(doctor.status.code(), Some(3));
}

#[test]
fn a_profile_that_is_cut_off_says_so_first() {
    let whole = testdata("synthetic/tiny_ops/plugins/profile/run/host0.xplane.pb");
    let bytes = std::fs::read(whole).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.xplane.pb");
    // The first part of one device: no host, no marks of steps.
    std::fs::write(&path, &bytes[..20_000]).unwrap();
    let report = report_json(&path);
    let headline = report["headline"].as_str().unwrap();
    assert!(headline.starts_with("This profile is cut off"), "{headline}");
    assert_eq!(report["notes"][0]["kind"], "cut-off");
    assert_eq!(report["notes"][0]["count"], 1);
    assert_eq!(report["notes"][0]["first"], "the file ends at byte 20000");

    // Also where nothing can be said of steps any more.
    let whole = testdata("captured/keras_fit/train/plugins/profile/run/host.xplane.pb");
    let bytes = std::fs::read(whole).unwrap();
    std::fs::write(&path, &bytes[..60_000]).unwrap();
    let done = strobe(&["report", path.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(3));
    assert!(text(&done.stdout).contains("This profile is cut off"), "{}", text(&done.stdout));
}

#[test]
fn nothing_is_written_beside_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.xplane.pb");
    let profile = testdata("captured/retrace_loop/plugins/profile/run/host.xplane.pb");
    std::fs::copy(profile, &path).unwrap();
    for args in [vec!["report"], vec!["table"], vec!["doctor"]] {
        let args: Vec<&str> = args.into_iter().chain([path.to_str().unwrap()]).collect();
        assert_eq!(strobe(&args).status.code(), Some(0), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_path_alone_means_its_report() {
    let path = testdata("synthetic/input_70");
    let path = path.to_str().unwrap();
    let [short, long] =
        [strobe(&[path, "--format", "json"]), strobe(&["report", path, "--format", "json"])];
    assert_eq!(short.status.code(), Some(0), "{}", text(&short.stderr));
    assert_eq!(text(&short.stdout), text(&long.stdout));
}

#[test]
fn a_command_needs_no_dashes_before_it() {
    for dashes in [&["--"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let args =
            [&["run", "--quiet", "--out", out.to_str().unwrap()], dashes, &["sh", "-c", "exit 7"]];
        assert_eq!(strobe(&args.concat()).status.code(), Some(7), "{dashes:?}");
    }
}

#[test]
fn shells_and_readers_of_manuals_get_theirs() {
    for shell in ["bash", "zsh", "fish"] {
        let done = strobe(&["completions", shell]);
        assert!(text(&done.stdout).contains("strobe") && done.status.success(), "{shell}");
    }
    assert!(text(&strobe(&["man"]).stdout).contains("strobe"));
    let folder = tempfile::tempdir().unwrap();
    assert!(strobe(&["man", folder.path().to_str().unwrap()]).status.success());
    assert!(folder.path().join("strobe-report.1").exists());
}

#[test]
fn tables_for_people_have_units_and_fit() {
    let path = testdata("captured/keras_fit");
    let path = path.to_str().unwrap();
    let narrow = strobe(&["table", path, "op_time"]);
    let narrow = text(&narrow.stdout);
    assert!(narrow.lines().all(|it| it.chars().count() <= 80), "{narrow}");
    assert!(narrow.contains(" ms") && narrow.contains('%'), "{narrow}");
    assert!(narrow.contains("Not shown: "), "{narrow}");
    let wide = strobe(&["table", path, "op_time", "--wide"]);
    let head = text(&wide.stdout);
    assert_eq!(head.lines().next().unwrap().split_whitespace().count(), 15, "{head}");
    let chosen = strobe(&[
        "table",
        path,
        "op_time",
        "--columns",
        "count,name",
        "--format",
        "csv",
        "--limit",
        "1",
    ]);
    assert!(text(&chosen.stdout).starts_with("count,name\r\n"), "{}", text(&chosen.stdout));
    let events = strobe(&["table", path, "event", "--limit", "2", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_slice(&events.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert!(rows[0]["start_ps"].is_i64());
}

#[test]
fn folded_rows_add_up_to_the_table() {
    let path = testdata("synthetic/tiny_ops");
    let path = path.to_str().unwrap();
    let total = |by: &[&str]| {
        let args = [&["table", path, "kernel_time", "--format", "json"], by].concat();
        let rows: serde_json::Value = serde_json::from_slice(&strobe(&args).stdout).unwrap();
        let rows = rows.as_array().unwrap();
        let sum = |of: &str| rows.iter().map(|it| it[of].as_i64().unwrap()).sum::<i64>();
        (sum("total_ps"), sum("count"))
    };
    for by in ["name", "op", "layer"] {
        assert_eq!(total(&["--by", by]), total(&[]), "{by}");
    }
}

#[test]
fn tables_and_queries_agree() {
    let path = testdata("synthetic/input_70");
    let path = path.to_str().unwrap();
    let table = strobe(&["table", path, "step", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_slice(&table.stdout).unwrap();
    let sum: i64 = rows.as_array().unwrap().iter().map(|it| it["dur_ps"].as_i64().unwrap()).sum();
    let query = strobe(&["sql", path, "select sum(dur_ps) s from step", "--format", "csv"]);
    assert_eq!(text(&query.stdout), format!("s\r\n{sum}\r\n"));
}

#[test]
fn of_several_runs_the_newest_is_taken_and_named() {
    let folder = tempfile::tempdir().unwrap();
    for (run, from) in
        [("2026_01_01_00_00_00", "jax_steps"), ("2026_02_01_00_00_00", "retrace_loop")]
    {
        let to = folder.path().join("train/plugins/profile").join(run);
        std::fs::create_dir_all(&to).unwrap();
        let from = testdata(&format!("captured/{from}/plugins/profile/run/host.xplane.pb"));
        std::fs::copy(from, to.join("host.xplane.pb")).unwrap();
    }
    let done = strobe(&["report", folder.path().to_str().unwrap(), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["run"]["name"], "2026_02_01_00_00_00");
    assert!(text(&done.stderr).contains("2 runs here"), "{}", text(&done.stderr));
}

/// A training log without a profile cannot be judged, but shown.
#[test]
fn a_log_without_a_profile_shows_its_scalars() {
    let path = testdata("captured/scalars/torch");
    let path = path.to_str().unwrap();
    let done = strobe(&["report", path]);
    assert_eq!(done.status.code(), Some(3), "not enough data to judge");
    let said = text(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("There is no profile here"), "{said}");
    assert!(said.contains("`strobe table PATH scalar`"), "{said}");
    let table = strobe(&["table", path, "scalar", "--format", "json"]);
    assert_eq!(table.status.code(), Some(0));
    let rows: serde_json::Value = serde_json::from_slice(&table.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 29);
    assert_eq!(rows[0]["run"], ".");
    let query = "select count(*) n from scalar where tag = 'Loss/train' and value is null";
    let nan = strobe(&["sql", path, query, "--format", "csv"]);
    assert_eq!(text(&nan.stdout), "n\r\n1\r\n", "the loss that was NaN");
}

#[test]
fn the_demo_needs_nothing_but_the_program() {
    let done = strobe(&["demo", "--no-serve"]);
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stdout).contains("waiting for input"), "{}", text(&done.stdout));
}

/// Where a page says `<!-- strobe ARGS -->`, it shows what the program prints today;
/// `UPDATE=1 cargo test` rewrites it.
#[test]
fn reports_in_the_documentation_are_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (page, reports) in [("README.md", 1), ("docs/first-report.md", 4)] {
        let path = root.join(page);
        let text_of_page = std::fs::read_to_string(&path).unwrap();
        let mut parts = text_of_page.split("<!-- strobe ");
        let mut fresh = parts.next().unwrap().to_owned();
        let mut shown = 0;
        for part in parts {
            let (args, rest) = part.split_once(" -->\n").unwrap();
            let (_, tail) = rest.split_once("<!-- /strobe -->").unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
            command.args(args.split(' ')).current_dir(&root).env("COLUMNS", "80");
            let printed = text(&command.output().unwrap().stdout);
            fresh +=
                &format!("<!-- strobe {args} -->\n```text\n{printed}```\n<!-- /strobe -->{tail}");
            shown += 1;
        }
        assert_eq!(shown, reports, "{page}");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap();
        assert!(found == fresh, "{page} shows other reports: run UPDATE=1 cargo test");
    }
}
