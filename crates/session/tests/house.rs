//! How the house is built, as far as a program can see it: names of frameworks are in dialects.

#![expect(clippy::unwrap_used, reason = "what cannot be read is a failed test")]

use std::path::{Path, PathBuf};

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => rust_files(&path, found),
            false if path.extension().is_some_and(|it| it == "rs") => found.push(path),
            false => (),
        }
    }
}

/// What is written for machines: neither comments, which speak to people of what they know, nor
/// tests, which draw what frameworks write.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|it| !it.1.trim_start().starts_with("//"))
}

#[test]
fn analyses_and_rules_name_no_framework() {
    const FRAMEWORKS: [&str; 7] = ["tensorflow", "keras", "jax", "torch", "xla", "aten::", "pjit"];
    let mut files = Vec::new();
    for part in ["crates/analyses/src", "crates/rules/src"] {
        rust_files(&repo().join(part), &mut files);
    }
    assert!(files.len() > 80, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(repo()).unwrap().display().to_string();
        if path.contains("/dialect") || path.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, code) in code(&text) {
            let lower = code.to_lowercase();
            if FRAMEWORKS.iter().any(|it| lower.contains(it)) {
                found.push(format!("{path}:{line}: {}", code.trim()));
            }
        }
    }
    assert!(found.is_empty(), "a dialect can say this:\n{}", found.join("\n"));
}

#[test]
fn comments_and_tests_are_no_code() {
    let text = "/// jax\nlet a = 1;\n#[cfg(test)]\nmod tests { jax }\n";
    assert_eq!(code(text).collect::<Vec<_>>(), [(2, "let a = 1;")]);
}
