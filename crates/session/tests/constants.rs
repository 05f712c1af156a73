//! Every number that rules and analyses rest on, with where it comes from: `docs/constants.md`.
//!
//! A constant's doc comment ends in a line of one of these forms, which may go on over further
//! lines:
//!
//! ```text
//! /// Source: measured by `bench/diagnosis/run`, what was measured
//! /// Source: physical, the reason
//! /// Source: document, which one and where
//! /// Source: choice, why so
//! ```
//!
//! Constants are found in the code itself, by its tokens; what stands below `#[cfg(test)]` and in
//! `testing.rs` is not looked at.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed helper is a failed test")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Crates whose numbers decide what is said of a run.
const CRATES: [&str; 2] = ["rules", "analyses"];

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

// The code, by its tokens.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    /// Of a text or a character.
    Quoted,
    /// `///`, without the slashes.
    Doc,
    Mark,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    /// Where it begins.
    at: usize,
}

impl Token<'_> {
    fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Word | Kind::Mark)
    }

    fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let is_field = found.last().is_some_and(|it| it.is("."));
        let (kind, len) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            let len = rest.find('\n').unwrap_or(rest.len());
            let is_doc = rest.starts_with("///") && !rest.starts_with("////");
            if !is_doc {
                at += len;
                continue;
            }
            (Kind::Doc, len)
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |it| it + 2);
            continue;
        } else if let Some(len) = quoted_len(rest) {
            (Kind::Quoted, len)
        } else if first.is_ascii_digit() {
            (Kind::Number, number_len(rest, is_field))
        } else if first.is_alphabetic() || first == '_' {
            (Kind::Word, rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len()))
        } else {
            (Kind::Mark, first.len_utf8())
        };
        found.push(Token { kind, text: &rest[..len], at });
        at += len;
    }
    found
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Texts, raw and of bytes too, and characters; a lifetime is none.
fn quoted_len(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c: char| !matches!(c, 'b' | 'c' | 'r'))?;
    let body = &rest[prefix..];
    let is_raw = rest[..prefix].ends_with('r');
    let n_hashes = body.find(|c| c != '#')?;
    if is_raw && body[n_hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(n_hashes));
        let text = prefix + n_hashes + 1;
        return Some(text + rest[text..].find(&end)? + end.len());
    }
    let quote = body.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    if quote == '\'' {
        let mut inside = body[1..].chars();
        let first = inside.next()?;
        if first != '\\' && inside.next() != Some('\'') {
            return None;
        }
    }
    let mut escaped = false;
    let end = body[1..].find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some(prefix + end + 2)
}

/// `1.5e-3`, `0x1F_u32`, `20`; of `it.0.1` and `0..9` only the digits.
fn number_len(rest: &str, is_field: bool) -> usize {
    let digits = |from: usize| {
        rest[from..].find(|c: char| !is_of_word(c)).map_or(rest.len(), |it| from + it)
    };
    let mut len = digits(0);
    if is_field || rest.starts_with("0x") {
        return len;
    }
    let mut behind = rest[len..].chars();
    let is_point = behind.next() == Some('.');
    if is_point && !behind.next().is_some_and(|it| it == '.' || it.is_alphabetic() || it == '_') {
        len = digits(len + 1);
    }
    if rest[..len].ends_with(['e', 'E']) && rest[len..].starts_with(['-', '+']) {
        len = digits(len + 1);
    }
    len
}

/// Code that runs, of a file: without its tests.
fn without_tests(code: &str) -> &str {
    let tests = code.lines().find(|it| it.trim_start() == "#[cfg(test)]");
    tests.map_or(code, |it| &code[..it.as_ptr().addr() - code.as_ptr().addr()])
}

// Constants.

#[derive(Debug, Clone, PartialEq, Eq)]
struct Constant {
    /// `rules/input.rs`
    file: String,
    name: String,
    value: String,
    /// The first sentence of its doc comment.
    what: String,
    source: Option<Source>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    /// One of [`SOURCES`].
    kind: &'static str,
    why: String,
    /// What measures it.
    command: Option<String>,
}

const SOURCES: [&str; 4] = ["measured", "physical", "document", "choice"];

impl Source {
    /// `measured by `command`, …` or `choice, …`.
    fn parse(text: &str) -> Result<Source, String> {
        let kind = SOURCES
            .into_iter()
            .find(|it| text.strip_prefix(it).is_some_and(|rest| rest.starts_with([',', ' '])));
        let kind = kind.ok_or_else(|| format!("begins with none of {SOURCES:?}: {text}"))?;
        let mut rest = &text[kind.len()..];
        let mut command = None;
        if kind == "measured" {
            let by = rest.strip_prefix(" by `").and_then(|it| it.split_once('`'));
            let (by, behind) = by.ok_or_else(|| format!("by which `command`? {text}"))?;
            command = Some(by.to_owned());
            rest = behind;
        }
        let why = rest.trim_start_matches([',', ':', ' ']).to_owned();
        match kind != "measured" && why.is_empty() {
            true => Err(format!("{kind}, and no word why")),
            false => Ok(Source { kind, why, command }),
        }
    }
}

/// A constant with its place among the tokens.
struct Declaration {
    constant: Constant,
    from: usize,
    to: usize,
}

/// Constants that hold a number; the others are of no interest, but their numbers are not magic.
fn declarations(file: &str, code: &str, tokens: &[Token<'_>]) -> Vec<Declaration> {
    let mut found = Vec::new();
    for from in 0..tokens.len() {
        let is_const = tokens[from].is("const") || tokens[from].is("static");
        let [Some(name), Some(colon)] = [tokens.get(from + 1), tokens.get(from + 2)] else { break };
        if !is_const || name.kind != Kind::Word || !colon.is(":") {
            continue;
        }
        // A semicolon within brackets is that of an array.
        let mut depth = 0;
        let mut equals = None;
        let mut to = from;
        for (at, token) in tokens.iter().enumerate().skip(from + 3) {
            match token.text {
                "(" | "[" | "{" if token.kind == Kind::Mark => depth += 1,
                ")" | "]" | "}" if token.kind == Kind::Mark => depth -= 1,
                "=" if token.kind == Kind::Mark && depth == 0 && equals.is_none() => {
                    equals = Some(at)
                }
                ";" if token.kind == Kind::Mark && depth == 0 => to = at,
                _ => (),
            }
            if depth < 0 || to != from {
                break;
            }
        }
        // Neither a parameter nor a trait's promise of a constant.
        let Some(equals) = equals.filter(|_| to != from) else { continue };
        let value: Vec<&str> =
            code[tokens[equals].end()..tokens[to].at].split_whitespace().collect();
        let has_number = tokens[equals..to].iter().any(|it| it.kind == Kind::Number);
        let doc = doc_before(tokens, from);
        let (what, source) = match doc.split_once("Source: ") {
            Some((what, source)) => (what.trim().to_owned(), Some(source.trim().to_owned())),
            None => (doc, None),
        };
        let source = source.map(|it| {
            Source::parse(&it).unwrap_or_else(|wrong| panic!("{file}: {}: {wrong}", name.text))
        });
        let constant = Constant {
            file: file.to_owned(),
            name: name.text.to_owned(),
            value: if has_number { value.join(" ") } else { String::new() },
            what: first_sentence(&what),
            source,
        };
        found.push(Declaration { constant, from, to });
    }
    found
}

/// The doc comment above a declaration, as one line.
fn doc_before(tokens: &[Token<'_>], at: usize) -> String {
    let mut at = at;
    let is_visibility =
        |it: &Token<'_>| ["pub", "(", ")", "crate", "super"].iter().any(|word| it.is(word));
    while at > 0 && is_visibility(&tokens[at - 1]) {
        at -= 1;
    }
    let mut lines = Vec::new();
    while at > 0 && tokens[at - 1].kind == Kind::Doc {
        at -= 1;
        lines.push(tokens[at].text.trim_start_matches('/').trim());
    }
    lines.reverse();
    lines.join(" ")
}

fn first_sentence(doc: &str) -> String {
    let end = doc.match_indices(". ").map(|it| it.0).find(|&it| {
        // Not behind `e.g.`.
        doc[it + 2..].starts_with(|c: char| c.is_uppercase() || c == '`')
    });
    end.map_or(doc, |it| &doc[..=it]).to_owned()
}

/// Files of the crates that are no tests, by their short names.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in CRATES {
        let folder = repo().join("crates").join(name).join("src");
        let mut folders = vec![folder.clone()];
        while let Some(below) = folders.pop() {
            for path in std::fs::read_dir(below).unwrap().map(|it| it.unwrap().path()) {
                let short =
                    path.strip_prefix(&folder).unwrap().to_string_lossy().replace('\\', "/");
                if path.is_dir() {
                    folders.push(path);
                } else if short.ends_with(".rs")
                    && !["testing.rs", "tests.rs"]
                        .contains(&path.file_name().unwrap().to_str().unwrap())
                {
                    found
                        .push((format!("{name}/{short}"), std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

fn constants() -> Vec<Constant> {
    let mut found = Vec::new();
    for (file, code) in files() {
        let code = without_tests(&code);
        let of_file = declarations(&file, code, &tokens(code)).into_iter().map(|it| it.constant);
        found.extend(of_file.filter(|it| !it.value.is_empty()));
    }
    found
}

/// Longer ones are tables of their own.
const LONGEST_VALUE: usize = 100;

/// How many there are, and of each kind of source.
fn counts(constants: &[Constant]) -> String {
    let of_kind = SOURCES.map(|kind| {
        let is_of = |it: &&Constant| it.source.as_ref().is_some_and(|it| it.kind == kind);
        format!("{} {kind}", constants.iter().filter(is_of).count())
    });
    format!("{} constants: {}", constants.len(), of_kind.join(", "))
}

fn markdown(constants: &[Constant]) -> String {
    let mut out = format!(
        "# Constants\n\nMade from the code by `UPDATE=1 cargo test -p session --test constants`: the \
         numbers that rules and analyses rest on. Durations are picoseconds. A constant says where it \
         comes from in the last line of its doc comment: measured by a command, physical, a document, \
         or a choice; a guess is called one.\n\n{}.\n\n\
         | file | constant | value | what it is | source | command |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        counts(constants)
    );
    let cell = |it: &str| it.replace('|', "\\|");
    for it in constants {
        let value = match it.value.char_indices().nth(LONGEST_VALUE) {
            Some((end, _)) => format!("{}…", &it.value[..end]),
            None => it.value.clone(),
        };
        let source = it.source.as_ref().map_or(String::new(), |it| match it.why.as_str() {
            "" => it.kind.to_owned(),
            why => format!("{}: {why}", it.kind),
        });
        let command = it.source.as_ref().and_then(|it| it.command.as_ref());
        let command = command.map_or(String::new(), |it| format!("`{it}`"));
        let row = [
            format!("`{}`", it.file),
            format!("`{}`", it.name),
            format!("`{}`", cell(&value)),
            cell(&it.what),
            cell(&source),
            cell(&command),
        ];
        writeln!(out, "| {} |", row.join(" | ")).unwrap();
    }
    out
}

#[test]
fn the_table_of_constants_is_fresh() {
    let path = repo().join("docs/constants.md");
    let fresh = markdown(&constants());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == fresh, "docs/constants.md is stale: run UPDATE=1 cargo test");
}

#[test]
fn every_constant_has_a_source() {
    let constants = constants();
    let without: Vec<String> = constants
        .iter()
        .filter(|it| it.source.is_none())
        .map(|it| format!("{}: {} = {}", it.file, it.name, it.value))
        .collect();
    assert!(
        without.is_empty(),
        "{} of {} constants without a source:\n{}",
        without.len(),
        constants.len(),
        without.join("\n")
    );
}

// Numbers outside of constants.

/// Nothing, one, a pair or half of something: no choice.
const PLAIN: [f64; 3] = [0.0, 1.0, 2.0];

/// Functions that read a field of a protobuf message by its number, which its `.proto` fixes.
const READ_FIELDS: [&str; 6] = ["list", "message", "nth", "number", "numbers", "text"];

/// Functions that take a value times a number, or ask for a multiple of it.
const MULTIPLY: [&str; 3] = ["checked_mul", "saturating_mul", "wrapping_mul"];

/// Numbers of a file that stand in no constant and decide something: place and text.
fn magic(file: &str, code: &str) -> Vec<String> {
    let tokens = tokens(code);
    let declared = declarations(file, code, &tokens);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let in_constant = declared.iter().any(|it| (it.from..it.to).contains(&at));
        if token.kind == Kind::Number && !in_constant && !is_mechanics(&tokens, at) {
            let line = code[..token.at].lines().count().max(1);
            found.push(format!("{file}:{line}: {}", token.text));
        }
    }
    found
}

/// Whether a number follows from the code around it, so that nobody chose it.
fn is_mechanics(tokens: &[Token<'_>], at: usize) -> bool {
    let number = tokens[at].text.replace('_', "");
    // Bits, of masks and hashes.
    if ["0x", "0b", "0o"].iter().any(|it| number.starts_with(it)) {
        return true;
    }
    let Some(value) = value_of(&number) else { return false };
    let before = |by: usize| at.checked_sub(by).map_or("", |it| tokens[it].text);
    let behind = |by: usize| tokens.get(at + by).map_or("", |it| it.text);
    let argument_of = |of: &[&str]| before(1) == "(" && of.contains(&before(2));
    let is_factor = ["*", "/"].contains(&before(1))
        || before(1) == "=" && ["*", "/"].contains(&before(2))
        || ["*", "/"].contains(&behind(1))
        || argument_of(&MULTIPLY);
    let is_unit = value >= 1000.0 && value.log10().fract() == 0.0;

    PLAIN.contains(&value)
        // `it.0`, not `0..9`
        || before(1) == "." && before(2) != "."
        // From one unit to another, and percent of a share.
        || is_unit && is_factor
        || value == 100.0 && number.contains('.') && is_factor
        // `it >> 3`, `1 << 20`: bits again, and binary units.
        || [before(1), before(2)] == ["<", "<"]
        || [before(1), before(2)] == [">", ">"]
        // Digits of a number.
        || before(1) == "%"
        || argument_of(&["is_multiple_of"])
        // `[i64; 3]`, `parts[3]`
        || before(1) == ";" && behind(1) == "]"
        || before(1) == "[" && behind(1) == "]" && at >= 2 && is_value(&tokens[at - 2])
        // `i64::MIN / 4` leaves room for sums.
        || before(1) == "/" && ["MIN", "MAX"].contains(&before(2))
        || is_field_number(tokens, at)
        || is_pattern(tokens, at)
}

fn value_of(number: &str) -> Option<f64> {
    if let Ok(value) = number.parse() {
        return Some(value);
    }
    // `20_u8`, `1f64`
    let end = number.find(['u', 'i', 'f'])?;
    number[..end].parse().ok()
}

/// Whether an expression may end here: what follows in brackets is an index of it.
fn is_value(token: &Token<'_>) -> bool {
    token.kind == Kind::Word || token.is(")") || token.is("]")
}

/// `message(3)`, `number(instruction, 35)`.
fn is_field_number(tokens: &[Token<'_>], at: usize) -> bool {
    let opens = (0..at).rev().take_while(|&it| !tokens[it].is(";")).find(|&it| tokens[it].is("("));
    let Some(opens) = opens.filter(|&it| it > 0) else { return false };
    let is_last = tokens.get(at + 1).is_some_and(|it| it.is(")"));
    let is_first = opens + 1 == at;
    (is_first || is_last) && READ_FIELDS.contains(&tokens[opens - 1].text)
}

/// Cases of a `match`, as types and products by their numbers; not what a case leads to, nor what
/// it asks behind an `if`.
fn is_pattern(tokens: &[Token<'_>], at: usize) -> bool {
    // Brackets that are open around the number, within the braces of the `match`.
    let (mut closed, mut open, mut is_guard) = (0, 0, true);
    for token in tokens[..at].iter().rev() {
        match token.text {
            ")" | "]" | "}" => closed += 1,
            "{" if closed == 0 => break,
            "(" | "[" if closed == 0 => open += 1,
            "(" | "[" | "{" => closed -= 1,
            "," if closed == 0 => is_guard = false,
            "if" if closed == 0 && is_guard => return false,
            _ => (),
        }
    }
    for (at, token) in tokens.iter().enumerate().skip(at + 1) {
        let is_next = |it: &str| tokens.get(at + 1).is_some_and(|next| next.is(it));
        match token.text {
            "(" | "[" => open += 1,
            ")" | "]" => open -= 1,
            "," if open > 0 => (),
            "if" => return open == 0,
            "=" if is_next(">") => return open == 0,
            // `6..=9`, `Value::Number(it)`
            "=" if tokens[at - 1].is(".") => (),
            "|" | "." | ":" => (),
            _ if token.kind != Kind::Mark => (),
            _ => return false,
        }
    }
    false
}

#[test]
fn numbers_are_constants() {
    let found: Vec<String> =
        files().iter().flat_map(|(file, code)| magic(file, without_tests(code))).collect();
    assert!(
        found.is_empty(),
        "{} numbers outside of constants:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn constants_are_read_as_they_are_written() {
    let code = "
        /// How much may stay; of [0, 1]. Measured long ago.
        /// Source: measured by `bench/diagnosis/run`, steps after the fix
        /// took so long
        pub(crate) const LEFT: [f64; 2] = [1.0,
            0.6e-3];
        /// A name.
        const NAME: &str = \"const NOT: u8 = 7; \\\" 8\";
        // Source: of another's
        const SHORT: Dur = Dur(20_000_000);
        trait Row { const N: usize; }
        fn f<const M: usize>(it: (u8, u8)) -> f64 { it.0 as f64 * 0.25 + [0; 64].len() as f64 + 1.0 }
        fn g<'a>(it: &'a str) -> bool { it.len() > 3 && (0..9).contains(&it.1.2) && it != r#\"\"99\"# }
        fn h(n: i64) -> &'static str {
            let (time_us, share) = (n / 1_000_000, n as f64 * 100.0);
            let (n, bits) = (number(it, 35) % 7, n & 0x7F | 1 << 12);
            match (n, bits) {
                (3, 4 | 6..=9) => \"K80\",
                (5, Kind::Of(it)) if bits > 8 => \"P100\",
                _ => (n * 10 > 1000, 64),
            }
        }
        #[cfg(test)]
        mod tests { const T: u8 = 9; }
    ";
    let code = without_tests(code);
    let found: Vec<Constant> =
        declarations("f.rs", code, &tokens(code)).into_iter().map(|it| it.constant).collect();
    let [left, name, short] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((left.name.as_str(), left.value.as_str()), ("LEFT", "[1.0, 0.6e-3]"));
    assert_eq!(left.what, "How much may stay; of [0, 1].");
    let source = left.source.as_ref().unwrap();
    assert_eq!(
        (source.kind, source.why.as_str()),
        ("measured", "steps after the fix took so long")
    );
    assert_eq!(source.command.as_deref(), Some("bench/diagnosis/run"));
    assert_eq!((name.value.as_str(), name.source.as_ref()), ("", None));
    assert_eq!((short.value.as_str(), short.what.as_str()), ("Dur(20_000_000)", ""));
    assert_eq!(
        magic("f.rs", code),
        [
            "f.rs:12: 0.25",
            "f.rs:13: 3",
            "f.rs:13: 9",
            "f.rs:19: 8",
            "f.rs:20: 10",
            "f.rs:20: 1000",
            "f.rs:20: 64"
        ]
    );
}

#[test]
fn a_source_has_one_of_four_forms() {
    let kind = |text: &str| Source::parse(text).map(|it| it.kind).ok();
    assert_eq!(kind("physical, light is not faster"), Some("physical"));
    assert_eq!(kind("document, the CUDA guide, table 27"), Some("document"));
    assert_eq!(kind("choice, as many as a person reads"), Some("choice"));
    assert_eq!(kind("measured by `bench/run`"), Some("measured"));
    for wrong in ["measured", "measured by somebody", "choice", "choice, ", "felt right"] {
        assert_eq!(kind(wrong), None, "{wrong}");
    }
}
