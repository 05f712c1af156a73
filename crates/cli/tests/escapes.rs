//! Names in profiles and paths are other people's texts: whatever they hold, no command lets a
//! terminal obey it.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sets the title, colours, and begins an escape with the one character that an eight-bit terminal
/// needs.
const EVIL: &str = "\x1b]0;owned\x07\x1b[31m\u{9b}8m";

/// A profile with escapes in the names of ops, threads and steps, in a folder with escapes in its
/// name.
fn evil_profile(folder: &Path, n_runs: usize) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured/keras_fit");
    let mut bytes = fs::read(root.join("train/plugins/profile/run/host.xplane.pb")).unwrap();
    // As long as the names before: the file's own lengths stay true.
    for (name, evil) in [
        ("adjust_gamma", "\x1b]0;t\x07gamm\u{9b}"),
        ("Profiled batch", "Prof\x1b[8m batch"),
        ("tf_Compute", "tf_\x1b[2J\rx\x08"),
        ("ReadVariableOp", "Read\x7f\x1bcable\u{9b}p"),
    ] {
        assert_eq!(name.len(), evil.len());
        let (name, evil) = (name.as_bytes(), evil.as_bytes());
        let mut n_replaced = 0;
        for at in 0..bytes.len() - name.len() {
            if bytes[at..].starts_with(name) {
                bytes[at..at + name.len()].copy_from_slice(evil);
                n_replaced += 1;
            }
        }
        assert!(n_replaced > 0, "{name:?}");
    }
    let path = folder.join(format!("log{n_runs}{EVIL}"));
    for run in 0..n_runs {
        let run = path.join("plugins/profile").join(format!("{run}{EVIL}"));
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join(format!("host{EVIL}.xplane.pb")), &bytes).unwrap();
    }
    path
}

/// What a command prints, stdout before stderr.
fn strobe(args: &[&str], folder: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    // Where runs are kept, and what a missing command is looked for in.
    command.args(args).env("HOME", folder).env("XDG_STATE_HOME", folder).current_dir(folder);
    let done = command.output().unwrap();
    format!("{}{}", text(done.stdout), text(done.stderr))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn assert_harmless(args: &[&str], printed: &str) {
    let obeyed = |it: char| it.is_control() && !matches!(it, '\n' | '\t');
    for line in printed.split('\n') {
        // Lines of CSV end so.
        let line = line.strip_suffix('\r').unwrap_or(line);
        assert!(!line.contains(obeyed), "{args:?}: {line:?}");
    }
}

#[test]
fn no_command_lets_a_terminal_obey_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [1, 2].map(|n_runs| evil_profile(folder.path(), n_runs));
    let (path, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let missing = format!("{path}/nothing");
    let page = format!("{path}/page.html");
    let kept = folder.path().join(format!("kept{EVIL}"));
    let kept = kept.to_str().unwrap();
    let command = format!("train{EVIL}");
    let sql = format!("select name, char(27) || '[31m' || char(155) as \"{EVIL}\" from event");
    let bad_sql = format!("select \"{EVIL}\"");

    // Whether names or paths are shown, by the signs in place of escapes.
    let mut cases: Vec<(Vec<&str>, bool)> = vec![
        (vec!["demo", "--no-serve"], false),
        (vec!["run", "--", &command], true),
        (vec!["run", "--out", kept, "--", "true"], true),
        (vec!["attach", EVIL], true),
        (vec!["attach", "1", EVIL, "--duration", EVIL], true),
        (vec!["top", &missing, "--once"], true),
        (vec!["report", path, "--all"], true),
        (vec!["report", two], true),
        (vec!["report", path, "--diff"], false),
        (vec!["report", &missing], true),
        (vec!["report", path, EVIL], true),
        (vec!["serve", &missing], true),
        (vec!["serve", path, "--port", EVIL], true),
        (vec!["table", path], false),
        (vec!["table", path, EVIL], true),
        (vec!["sql", path, &bad_sql], true),
        (vec!["sql", &missing, "select 1"], true),
        (vec!["bench", path], true),
        (vec!["bench", "--runs", "1", "--", &command], true),
        (vec!["export", path, "--to", "html", "--out", &page], true),
        (vec!["export", &missing, "--to", "html"], true),
        (vec!["explain", EVIL], true),
        (vec!["doctor", path], true),
        (vec!["doctor", &missing], true),
        (vec!["completions", EVIL], true),
        (vec!["completions", "bash"], false),
        (vec!["man"], false),
        (vec!["licenses"], false),
        (vec!["licenses", EVIL], true),
    ];
    for format in ["text", "md", "csv", "json"] {
        for table in ["host_thread", "host_call", "step", "op_time", "run_info"] {
            // In a narrow column, its middle is cut out.
            let shows = table == "host_thread" || (table == "step" && format != "text");
            cases.push((vec!["table", path, table, "--format", format], shows));
        }
        cases.push((vec!["sql", path, &sql, "--format", format, "--limit", "50"], true));
        cases.push((vec!["report", path, "--format", format], format != "csv"));
    }
    for (args, shows) in &cases {
        let printed = strobe(args, folder.path());
        assert_harmless(args, &printed);
        let signs = ["␛", "\u{fffd}", "\\u001b", "\\u{1b}"];
        assert!(!shows || signs.iter().any(|it| printed.contains(it)), "{args:?}: {printed}");
    }

    // Whoever adds a command adds it above.
    let help = strobe(&["--help"], folder.path());
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for line in commands.lines().filter(|it| it.starts_with("  ") && !it.starts_with("   ")) {
        let command = line.split_whitespace().next().unwrap();
        let is_tried = cases.iter().any(|it| it.0[0] == command);
        assert!(is_tried || command == "help", "{command} is not tried here");
    }
}

#[test]
fn values_of_json_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = evil_profile(folder.path(), 1);
    let query = "select char(155) || char(27) || char(127) as x";
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    let done = command.arg("sql").arg(&path).args([query, "--format", "json"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(rows[0]["x"], "\u{9b}\x1b\x7f");
}

/// All that is printed goes through `output.rs`.
#[test]
fn nothing_else_writes_to_the_terminal() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut n_files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            n_files += 1;
            let is_outlet = path.ends_with("src/output.rs");
            for line in fs::read_to_string(&path).unwrap().lines().filter(|_| !is_outlet) {
                // A child's output may be ours: it is another program's.
                let writes = ["io::stdout", "io::stderr"].iter().any(|it| line.contains(it));
                assert!(!writes || line.contains("Stdio::from"), "{}: {line}", path.display());
            }
        }
    }
    assert!(n_files > 10);
}
