//! Secrets in files of any format.
//!
//! Each letter becomes `*`: nothing moves, so that lengths and offsets inside the file stay true.

use std::fmt::Write as _;
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};

use crate::name::is_secret;
use crate::secret::spans;
use crate::shape::KEYS;

/// What is known to be secret in a run, and what looks like a key anywhere.
#[derive(Debug)]
pub struct Mask {
    pattern: Option<Regex>,
    longest: usize,
}

/// Shorter ones are found everywhere, and guessed anyway.
const SHORTEST: usize = 6;
/// Longer than a key. A certificate is longer, and is found by its value.
const LONGEST_KEY: usize = 1024;
/// With more the pattern would be too large; no job has so many.
const MOST_SECRETS: usize = 2000;

impl Mask {
    /// For a run of this command in this environment.
    pub fn new(command: &[String], environment: impl Iterator<Item = (String, String)>) -> Mask {
        let mut secrets: Vec<String> = Vec::new();
        for (name, value) in environment {
            match is_secret(&name) {
                true => secrets.push(value),
                false => secrets.extend(spans(&value).into_iter().map(|it| value[it].to_owned())),
            }
        }
        secrets.extend(secrets_of(command));
        secrets.retain(|it| is_telling(it));
        secrets.extend(secrets.iter().map(|it| in_json(it)).collect::<Vec<_>>());
        // The longest first: of two that begin alike the whole is hidden.
        secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
        secrets.dedup();
        secrets.truncate(MOST_SECRETS);
        let longest = secrets.first().map_or(0, String::len).max(LONGEST_KEY);
        let known = secrets.iter().map(|it| regex::escape(it));
        let pattern =
            known.chain([KEYS.replace("(?x)", "(?x:") + ")"]).collect::<Vec<_>>().join("|");
        // Letters of a key are those of ASCII, in whatever bytes.
        let pattern = RegexBuilder::new(&pattern).unicode(false).size_limit(64 << 20).build().ok();
        Mask { pattern, longest }
    }

    /// No secret is longer: a file can be looked at in pieces that overlap by so much.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Hides what is found; answers how many bytes were hidden.
    pub fn hide(&self, bytes: &mut [u8]) -> usize {
        let Some(pattern) = &self.pattern else { return 0 };
        let is_key = |it: &Range<usize>| {
            let has_digit = bytes[it.clone()].iter().any(u8::is_ascii_digit);
            let before = it.start.checked_sub(1).and_then(|at| bytes.get(at));
            // In front of a text its length may be anything; `task-` and `half_` are words.
            has_digit || !before.is_some_and(u8::is_ascii_alphabetic)
        };
        let found = pattern.find_iter(bytes).map(|it| it.range());
        let found: Vec<Range<usize>> = found.filter(is_key).collect();
        let mut hidden = 0;
        for span in found {
            hidden += span.len();
            bytes[span].fill(b'*');
        }
        hidden
    }
}

/// The values that a command line gives under a secret's name, or that look like one.
fn secrets_of(command: &[String]) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut is_next = false;
    for argument in command {
        if std::mem::take(&mut is_next) && !argument.starts_with('-') {
            secrets.push(argument.clone());
            continue;
        }
        secrets.extend(spans(argument).into_iter().map(|it| argument[it].to_owned()));
        is_next = argument.starts_with('-')
            && !argument.contains('=')
            && (is_secret(argument) || argument == "-p");
    }
    secrets
}

/// As it is written inside of JSON: a backslash in front of quotes, letters beyond ASCII by number.
fn in_json(secret: &str) -> String {
    let mut out = String::with_capacity(secret.len());
    for it in secret.chars() {
        match it {
            '"' | '\\' => out.extend(['\\', it]),
            it if it.is_ascii() => out.push(it),
            it => {
                for unit in it.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// Whether nothing else is called like that: `default` is a password somewhere.
fn is_telling(secret: &str) -> bool {
    let is_word = secret.bytes().all(|it| it.is_ascii_alphabetic());
    let is_number = secret.bytes().all(|it| it.is_ascii_digit());
    secret.len() >= SHORTEST && !((is_word || is_number) && secret.len() < 2 * SHORTEST)
}
