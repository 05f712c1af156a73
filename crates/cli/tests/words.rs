//! Help and documentation speak plain English, as reports do (whose sentences the laws read).

#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// What plain English has dropped, with what to say instead.
const HABITS: [(&str, &str); 12] = [
    ("unless told", "by default"),
    ("t most so many", "maximum number of"),
    ("so many", "this many, or how many"),
    ("goes on", "runs, continues"),
    ("anew", "again"),
    (" beside", "with, next to, during, in parallel"),
    ("would win", "would save"),
    ("is told", "is said, or who says it"),
    ("are told", "are said, or who says it"),
    ("there already", "already exists"),
    ("holds that", "takes that"),
    ("holds most of", "takes most of"),
];

fn check(place: &str, text: &str) {
    for (number, line) in text.lines().enumerate() {
        for (habit, instead) in HABITS {
            assert!(
                !has(line, habit),
                "{place}, line {}: {habit:?} in {line:?}; say: {instead}",
                number + 1
            );
        }
    }
}

/// As words of their own.
fn has(line: &str, habit: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|it: char| it.is_alphanumeric());
    line.match_indices(habit).any(|(at, _)| !goes_on(&line[at + habit.len()..]))
}

fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    let done = command.args(args).arg("--help").env("COLUMNS", "200").output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn help_is_plain() {
    let all = help(&[]);
    check("strobe --help", &all);
    let commands = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut n = 0;
    for line in commands.lines().filter(|it| it.starts_with("  ") && !it.starts_with("   ")) {
        let command = line.split_whitespace().next().unwrap();
        check(&format!("strobe {command} --help"), &help(&[command]));
        n += 1;
    }
    assert!(n > 10, "{all}");
}

#[test]
fn documentation_is_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("SECURITY.md")];
    pages.push(root.join("crates/python/README.md"));
    pages.extend(fs::read_dir(root.join("docs")).unwrap().map(|it| it.unwrap().path()));
    // That of words before and after, and that of sources of constants, which quotes code.
    let is_other = |it: &Path| it.ends_with("words.md") || it.ends_with("constants.md");
    pages.retain(|it| it.extension().is_some_and(|it| it == "md") && !is_other(it));
    assert!(pages.len() > 15);
    for page in pages {
        check(&page.display().to_string(), &fs::read_to_string(&page).unwrap());
    }
}
