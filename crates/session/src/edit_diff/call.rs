//! A call in a source, its arguments, and how they are added, replaced and taken away.

use std::ops::Range;

use super::source::{Source, TokenKind};

/// Bytes to be replaced by a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub at: Range<usize>,
    pub new: String,
}

impl Edit {
    pub fn insert(at: usize, new: String) -> Edit {
        Edit { at: at..at, new }
    }
}

/// A call by its brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub open: usize,
    pub close: usize,
}

/// An argument: its tokens, without the comma.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    pub name: Option<String>,
    /// The first token of its value, or of all of it without a name.
    pub value: usize,
    pub first: usize,
    /// The last token.
    pub last: usize,
    /// The comma behind it.
    pub comma: Option<usize>,
}

impl Call {
    /// The call whose last byte is before this one.
    pub fn ending_at(source: &Source, end: usize) -> Option<Call> {
        let close = source.tokens.iter().position(|it| it.end == end)?;
        Call::closed_by(source, close)
    }

    fn closed_by(source: &Source, close: usize) -> Option<Call> {
        let token = source.tokens.get(close).filter(|it| it.kind == TokenKind::Close)?;
        let call = Call { open: token.pair, close };
        let is_called = source.is(close, ")") && call.callee(source).is_some();
        is_called.then_some(call)
    }

    /// All calls of this name that end in these lines.
    pub fn named(source: &Source, name: &str, lines: Range<usize>) -> Vec<Call> {
        let closes =
            (0..source.tokens.len()).filter(|&it| source.kind(it) == Some(TokenKind::Close));
        closes
            .filter(|&it| lines.contains(&source.line_of(source.tokens[it].start)))
            .filter_map(|it| Call::closed_by(source, it))
            .filter(|it| it.callee(source) == Some(name))
            .collect()
    }

    /// The last part of what is called: `map` of `ds.map(…)`.
    pub fn callee<'a>(&self, source: &'a Source) -> Option<&'a str> {
        let before = self.open.checked_sub(1)?;
        let token = source.tokens.get(before)?;
        // What a statement begins with may stand before brackets that call nothing.
        const WORDS: [&str; 20] = [
            "and", "as", "assert", "await", "del", "elif", "else", "except", "for", "if", "in",
            "is", "lambda", "not", "or", "raise", "return", "while", "with", "yield",
        ];
        let name = source.of(before);
        (token.kind == TokenKind::Name && !WORDS.contains(&name)).then_some(name)
    }

    /// `None`: there is something that an edit cannot follow, as a generator or `*` and `**`.
    pub fn arguments(&self, source: &Source) -> Option<Vec<Argument>> {
        let mut all = Vec::new();
        let mut first = None;
        let mut last = self.open;
        let mut at = self.open + 1;
        let mut push = |first: Option<usize>, last: usize, comma: Option<usize>| -> Option<()> {
            let first = first?;
            // `==` is of two signs.
            let is_named = source.kind(first) == Some(TokenKind::Name)
                && source.is(first + 1, "=")
                && !source.is(first + 2, "=");
            let name = is_named.then(|| source.of(first).to_owned());
            let value = if is_named { first + 2 } else { first };
            if value > last {
                return None;
            }
            all.push(Argument { name, value, first, last, comma });
            Some(())
        };
        while at < self.close {
            match source.kind(at)? {
                TokenKind::Comment => (),
                TokenKind::Open => {
                    first = first.or(Some(at));
                    at = source.tokens[at].pair;
                    last = at;
                }
                TokenKind::Name if source.is(at, "for") => return None,
                TokenKind::Name if source.is(at, "lambda") => {
                    first = first.or(Some(at));
                    // Commas up to the colon are of its parameters.
                    while at < self.close && !source.is(at, ":") {
                        if source.kind(at) == Some(TokenKind::Open) {
                            at = source.tokens[at].pair;
                        }
                        at += 1;
                    }
                    last = at;
                }
                TokenKind::Sign if source.is(at, ",") => {
                    push(first, last, Some(at))?;
                    first = None;
                }
                TokenKind::Sign if source.is(at, "*") && first.is_none() => return None,
                _ => {
                    first = first.or(Some(at));
                    last = at;
                }
            }
            at += 1;
        }
        if first.is_some() {
            push(first, last, None)?;
        }
        Some(all)
    }

    /// Adds `name=value` behind all others, in the way in which they are laid out.
    pub fn with(&self, source: &Source, added: &str) -> Option<Edit> {
        let arguments = self.arguments(source)?;
        let Some(last) = arguments.last() else {
            return Some(Edit::insert(source.tokens[self.open].end, added.to_owned()));
        };
        let Some(comma) = last.comma else {
            return Some(Edit::insert(source.tokens[last.last].end, format!(", {added}")));
        };
        let line = source.line_of(source.tokens[comma].start);
        if line == source.line_of(source.tokens[self.close].start) {
            return Some(Edit::insert(source.tokens[comma].end, format!(" {added},")));
        }
        // One on each line, with a comma: so is the new one.
        let first_line = source.line_of(source.tokens[last.first].start);
        let indent = source.indent(first_line);
        let new = format!("{}{indent}{added},", source.newline());
        Some(Edit::insert(source.line_end(line), new))
    }

    /// Takes an argument away.
    pub fn without(&self, source: &Source, at: usize) -> Option<Edit> {
        let arguments = self.arguments(source)?;
        let gone = arguments.get(at)?;
        let start = source.tokens[gone.first].start;
        let ends = source.tokens[gone.comma.unwrap_or(gone.last)].end;
        let (first_line, last_line) = (source.line_of(start), source.line_of(ends - 1));
        let before = source.text[..start].rsplit('\n').next()?.trim();
        let after = source.text[ends..source.line_end(last_line)].trim();
        // Alone on its lines: they go, with what is said about them.
        let is_comment = after.is_empty() || after.starts_with('#');
        let ends_well = gone.comma.is_some() || at == 0;
        if before.is_empty() && is_comment && ends_well && last_line < source.lines.len() {
            let from = source.lines[first_line - 1];
            return Some(Edit { at: from..source.lines[last_line], new: String::new() });
        }
        let no_comment = |range: Range<usize>| {
            let mut comments = source.tokens.iter().filter(|it| it.kind == TokenKind::Comment);
            !comments.any(|it| it.start < range.end && it.end > range.start)
        };
        let range = if let (Some(comma), Some(next)) = (gone.comma, arguments.get(at + 1)) {
            // Up to the next one, or to the end of the line.
            let next = source.tokens[next.first].start;
            if source.line_of(next) == last_line {
                start..next
            } else {
                start..source.tokens[comma].end
            }
        } else if at > 0 {
            // With the comma before it.
            source.tokens[arguments[at - 1].last].end..source.tokens[gone.last].end
        } else {
            start..ends
        };
        no_comment(range.clone()).then(|| Edit { at: range, new: String::new() })
    }
}
