//! Takes a file of Python apart, as far as edits need it: names, strings, brackets, lines.
//!
//! No grammar: what an edit cannot tell from these it does not do. A file that does not come out
//! even, with a bracket that nobody closes, is no source at all.

/// One token, and where it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
    /// Of a bracket: the token that it pairs with.
    pub pair: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Name,
    Number,
    Text,
    Open,
    Close,
    /// One character of an operator.
    Sign,
    Comment,
    /// The end of a statement's line; not inside brackets.
    End,
}

#[derive(Debug)]
pub(super) struct Source {
    pub text: String,
    pub tokens: Vec<Token>,
    /// Where each line begins.
    pub lines: Vec<usize>,
}

/// The tokens of a statement's line, without comments and its end; a statement inside brackets or
/// with `\` has one of several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement {
    pub first: usize,
    /// One behind the last.
    pub until: usize,
}

impl Source {
    pub fn parse(text: String) -> Result<Source, &'static str> {
        let tokens = Scanner { text: text.as_bytes(), at: 0, tokens: Vec::new(), open: Vec::new() }
            .scan()?;
        let ends = text.bytes().enumerate().filter(|it| it.1 == b'\n').map(|it| it.0 + 1);
        let mut lines: Vec<usize> = std::iter::once(0).chain(ends).collect();
        if lines.len() > 1 && lines.last() == Some(&text.len()) {
            lines.pop();
        }
        Ok(Source { text, tokens, lines })
    }

    pub fn of(&self, token: usize) -> &str {
        self.tokens.get(token).map_or("", |it| &self.text[it.start..it.end])
    }

    pub fn is(&self, token: usize, text: &str) -> bool {
        self.of(token) == text
    }

    /// The number of the line, from 1, in which a byte stands.
    pub fn line_of(&self, byte: usize) -> usize {
        self.lines.partition_point(|&it| it <= byte)
    }

    /// A line without its end.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.lines.get(number.checked_sub(1)?)?;
        let end = self.lines.get(number).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// The byte behind a line's last character.
    pub fn line_end(&self, number: usize) -> usize {
        let start = number.checked_sub(1).and_then(|it| self.lines.get(it)).copied();
        start.map_or(self.text.len(), |it| it + self.line(number).map_or(0, str::len))
    }

    pub fn indent(&self, number: usize) -> &str {
        let line = self.line(number).unwrap_or_default();
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// How the file ends its lines.
    pub fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    pub fn statements(&self) -> Vec<Statement> {
        let mut all = Vec::new();
        let mut first = None;
        for (at, token) in self.tokens.iter().enumerate() {
            match (token.kind, first) {
                (TokenKind::Comment, _) | (TokenKind::End, None) => (),
                (TokenKind::End, Some(begin)) => {
                    all.push(Statement { first: begin, until: at });
                    first = None;
                }
                (_, None) => first = Some(at),
                _ => (),
            }
        }
        if let Some(first) = first {
            all.push(Statement { first, until: self.tokens.len() });
        }
        all
    }

    /// The statement that has something on this line.
    pub fn statement_at(&self, line: usize) -> Option<Statement> {
        let on_line = |it: &Statement| {
            let last = self.last_of(it.first, it.until);
            let first = self.line_of(self.tokens[it.first].start);
            (first..=self.line_of(self.tokens[last].end.saturating_sub(1))).contains(&line)
        };
        self.statements().into_iter().find(on_line)
    }

    /// The column of a statement's first token, where only white space is before it.
    pub fn depth(&self, statement: Statement) -> usize {
        let start = self.tokens[statement.first].start;
        start - self.lines[self.line_of(start) - 1]
    }

    /// The last token that is no comment.
    pub fn last_of(&self, first: usize, until: usize) -> usize {
        let kept = |it: &usize| self.tokens[*it].kind != TokenKind::Comment;
        (first..until).rev().find(kept).unwrap_or(first)
    }

    /// The next token that is no comment.
    pub fn next(&self, token: usize) -> usize {
        let mut next = token + 1;
        while self.tokens.get(next).is_some_and(|it| it.kind == TokenKind::Comment) {
            next += 1;
        }
        next
    }

    pub fn kind(&self, token: usize) -> Option<TokenKind> {
        self.tokens.get(token).map(|it| it.kind)
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    open: Vec<usize>,
}

impl Scanner<'_> {
    fn scan(mut self) -> Result<Vec<Token>, &'static str> {
        if self.text.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        while let Some(&byte) = self.text.get(self.at) {
            let start = self.at;
            match byte {
                b' ' | b'\t' | b'\r' | b'\x0c' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    if self.open.is_empty() {
                        self.push(TokenKind::End, start);
                    }
                }
                b'\\' => {
                    // The statement goes on.
                    let rest = &self.text[start + 1..];
                    let n = if rest.starts_with(b"\r\n") { 2 } else { 1 };
                    if !rest.starts_with(b"\n") && n == 1 {
                        return Err("it has a backslash outside of strings");
                    }
                    self.at += 1 + n;
                }
                b'#' => {
                    let rest = &self.text[start..];
                    let n = rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len());
                    self.at += n;
                    let is_crlf = self.text[self.at - 1] == b'\r';
                    self.tokens.push(Token {
                        kind: TokenKind::Comment,
                        start,
                        end: self.at - usize::from(is_crlf),
                        pair: 0,
                    });
                }
                b'(' | b'[' | b'{' => {
                    self.at += 1;
                    self.open.push(self.tokens.len());
                    self.push(TokenKind::Open, start);
                }
                b')' | b']' | b'}' => {
                    self.at += 1;
                    let pair = self.open.pop().ok_or("a bracket is closed that was not opened")?;
                    let opened = self.text[self.tokens[pair].start];
                    if !matches!((opened, byte), (b'(', b')') | (b'[', b']') | (b'{', b'}')) {
                        return Err("its brackets do not match");
                    }
                    self.tokens[pair].pair = self.tokens.len();
                    self.push(TokenKind::Close, start);
                    if let Some(it) = self.tokens.last_mut() {
                        it.pair = pair;
                    }
                }
                b'"' | b'\'' => {
                    self.at = end_of_text(self.text, start, start)?;
                    self.push(TokenKind::Text, start);
                }
                b'0'..=b'9' => {
                    self.at += run(&self.text[start..], |it| {
                        it.is_ascii_alphanumeric() || it == b'_' || it == b'.'
                    });
                    // The exponent's sign: `1e-3`.
                    let is_decimal = !self.text[start..].starts_with(b"0x")
                        && !self.text[start..].starts_with(b"0X");
                    if is_decimal
                        && matches!(self.text[self.at - 1], b'e' | b'E')
                        && matches!(self.text.get(self.at), Some(b'+' | b'-'))
                    {
                        self.at += 1;
                        self.at += run(&self.text[self.at..], |it| {
                            it.is_ascii_alphanumeric() || it == b'_'
                        });
                    }
                    self.push(TokenKind::Number, start);
                }
                _ if is_name(byte) => {
                    let n = run(&self.text[start..], |it| is_name(it) || it.is_ascii_digit());
                    let is_prefix = n <= 2
                        && self.text[start..start + n].iter().all(|it| b"rRbBuUfFtT".contains(it))
                        && matches!(self.text.get(start + n), Some(b'"' | b'\''));
                    if is_prefix {
                        self.at = end_of_text(self.text, start, start + n)?;
                        self.push(TokenKind::Text, start);
                    } else {
                        self.at += n;
                        self.push(TokenKind::Name, start);
                    }
                }
                b'\0' => return Err("it is no text"),
                _ => {
                    self.at += 1;
                    self.push(TokenKind::Sign, start);
                }
            }
        }
        if self.open.is_empty() { Ok(self.tokens) } else { Err("a bracket is never closed") }
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.tokens.push(Token { kind, start, end: self.at, pair: 0 });
    }
}

fn run(text: &[u8], is_it: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|it| !is_it(*it)).unwrap_or(text.len())
}

/// Letters of any language: Python checks which.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Where a string ends whose prefix begins at `start` and whose quotes begin at `at`.
fn end_of_text(text: &[u8], start: usize, at: usize) -> Result<usize, &'static str> {
    const OPEN: &str = "a string is never closed";
    let has_fields = text[start..at].iter().any(|it| b"fFtT".contains(it));
    let is_raw = text[start..at].iter().any(|it| b"rR".contains(it));
    let quote = text[at];
    let is_long = text[at..].starts_with(&[quote; 3]);
    let width = if is_long { 3 } else { 1 };
    let mut at = at + width;
    loop {
        let byte = *text.get(at).ok_or(OPEN)?;
        if byte == b'\\' {
            // Also of a raw string a backslash keeps the quote behind it from ending it. But in a raw
            // one with fields it does not keep a brace from beginning one.
            at += if is_raw && has_fields && matches!(text.get(at + 1), Some(b'{' | b'}')) {
                1
            } else {
                2
            };
        } else if byte == quote && (!is_long || text[at..].starts_with(&[quote; 3])) {
            return Ok(at + width);
        } else if byte == b'\n' && !is_long {
            return Err(OPEN);
        } else if byte == b'{' && has_fields {
            at = if text.get(at + 1) == Some(&b'{') {
                at + 2
            } else {
                end_of_field(text, at + 1, 0)?
            };
        } else {
            at += 1;
        }
    }
}

/// Where a field of a string ends: behind its brace.
fn end_of_field(text: &[u8], mut at: usize, depth: usize) -> Result<usize, &'static str> {
    const OPEN: &str = "a field of a string is never closed";
    if depth > 8 {
        return Err(OPEN);
    }
    let mut open = 0;
    let mut is_format = false;
    loop {
        let byte = *text.get(at).ok_or(OPEN)?;
        match byte {
            b'{' if is_format => at = end_of_field(text, at + 1, depth + 1)?,
            b'}' if open == 0 => return Ok(at + 1),
            b'\n' if is_format => return Err(OPEN),
            _ if is_format => at += 1,
            b'"' | b'\'' => {
                let before = &text[..at];
                let n =
                    before.iter().rev().take(2).take_while(|it| b"rRbBuUfFtT".contains(it)).count();
                at = end_of_text(text, at - n, at)?;
            }
            b'(' | b'[' | b'{' => {
                open += 1;
                at += 1;
            }
            b')' | b']' | b'}' => {
                if open == 0 {
                    return Err(OPEN);
                }
                open -= 1;
                at += 1;
            }
            b':' if open == 0 => {
                is_format = true;
                at += 1;
            }
            b'#' => return Err("a field of a string has a comment"),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, TokenKind};

    fn tokens(text: &str) -> Vec<String> {
        let source = Source::parse(text.to_owned()).unwrap();
        let shown = |it: usize| match source.kind(it) {
            Some(TokenKind::End) => "⏎".to_owned(),
            _ => source.of(it).to_owned(),
        };
        (0..source.tokens.len()).map(shown).collect()
    }

    #[test]
    fn strings_hide_what_is_in_them() {
        for text in [
            r#""a(\"b""#,
            r#"'it\'s (' "#,
            r#"r'\'('"#,
            "'''a\n(\n'''",
            r#"f"{x['(']}""#,
            r#"f"{x["("]!r:>{width}}""#,
            r#"f"{x:'>10} (""#,
            r#"f"{{ ( }}""#,
            r#"rb"\(""#,
            r#"f'''{
                x}'''"#,
            r#"f"{d[':']:{w}.{p}f} [""#,
        ] {
            assert_eq!(tokens(text), [text.trim()], "{text}");
        }
    }

    #[test]
    fn numbers_names_and_lines() {
        assert_eq!(tokens("x = 1e-3  # (\n"), ["x", "=", "1e-3", "# (", "⏎"]);
        assert_eq!(tokens("f(1,\n 2)\ny"), ["f", "(", "1", ",", "2", ")", "⏎", "y"]);
        assert_eq!(tokens("a = b \\\n  .c\n"), ["a", "=", "b", ".", "c", "⏎"]);
        assert_eq!(tokens("0xe-1"), ["0xe", "-", "1"]);
        assert_eq!(tokens("été.map"), ["été", ".", "map"]);
    }

    #[test]
    fn what_does_not_come_out_even_is_no_source() {
        for text in ["f(", "f)", "(]", "'abc", "'''abc", "f'{x'", "a \\ b", "x = '\n'"] {
            assert!(Source::parse(text.to_owned()).is_err(), "{text}");
        }
    }
}
