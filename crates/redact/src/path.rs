//! Of absolute paths the last part: folders tell who somebody is and what they work on.

use std::borrow::Cow;

/// `/home/me/train.py:12` as `…/train.py:12`, somebody's home as `~`. Names of devices
/// (`/device:GPU:0`) and of ops (`model/dense/MatMul`) are none.
pub fn shortened(text: &str) -> Cow<'_, str> {
    if !text.contains(['/', '\\']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    // Up to here the text is in `out`.
    let mut taken = 0;
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let quote = before;
        let begins = before.is_none_or(is_before_a_path);
        before = Some(letter);
        if !begins || at < taken {
            continue;
        }
        let Some(path) = Path::at(text, at, quote) else { continue };
        if let Some(short) = path.short() {
            out += &text[taken..at];
            out += &short;
            taken = path.end;
        }
    }
    if taken == 0 {
        return Cow::Borrowed(text);
    }
    out += &text[taken..];
    Cow::Owned(out)
}

fn is_before_a_path(it: char) -> bool {
    it.is_whitespace() || "\"'`,;:([{<|=&?@".contains(it)
}

fn ends_a_path(it: char) -> bool {
    it.is_whitespace() || "\"'`,;()[]<>|{}".contains(it)
}

fn is_separator(it: char) -> bool {
    matches!(it, '/' | '\\')
}

/// Folders below which everybody has one of their own.
const HOMES: [&str; 3] = ["home", "Users", "Documents and Settings"];

struct Path<'a> {
    /// `gs:` of `gs://bucket/x`; a drive's letter says nothing and is left out.
    scheme: &'a str,
    parts: Vec<&'a str>,
    end: usize,
}

impl<'a> Path<'a> {
    fn at(text: &'a str, at: usize, quote: Option<char>) -> Option<Path<'a>> {
        let rest = &text[at..];
        let root = root(rest)?;
        let scheme = &rest[..root.scheme];
        let end = match quote.filter(|it| "\"'`".contains(*it)) {
            Some(quote) if let Some(closed) = rest.find(quote) => closed,
            _ => end_of(rest),
        };
        let parts = || rest[root.length.min(end)..end].split(is_separator);
        let parts: Vec<&str> = parts().filter(|it| !it.is_empty()).collect();
        // `/job:localhost/replica:0`, `/device:GPU:0`.
        let is_device = root.is_plain && parts.first().is_some_and(|it| it.contains(':'));
        (!is_device).then_some(Path { scheme, parts, end: at + end })
    }

    /// What stays of it, where something goes.
    fn short(&self) -> Option<String> {
        let (last, above) = self.parts.split_last()?;
        match above {
            [] => None,
            [home] if HOMES.contains(home) && self.scheme.is_empty() => Some("~".to_owned()),
            _ => Some(format!("{}…/{last}", self.scheme)),
        }
    }
}

struct Root {
    length: usize,
    /// How much of it stays.
    scheme: usize,
    /// A slash alone, which may begin other things than paths.
    is_plain: bool,
}

fn root(rest: &str) -> Option<Root> {
    let bytes = rest.as_bytes();
    let letter_at = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let separator_at = |at: usize| bytes.get(at).is_some_and(|it| b"/\\".contains(it));
    let root = |length, scheme, is_plain| Some(Root { length, scheme, is_plain });
    match bytes {
        [b'/', ..] if !separator_at(1) => root(1, 0, true),
        [b'~', b'/', ..] => root(2, 0, false),
        // `C:\Users`, `C:/Users`, and `C:\\Users` as it is written in other texts.
        [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic() => {
            let is_address = bytes.get(2..4) == Some(b"//");
            if is_address { None } else { root(3, 0, false) }
        }
        [b'\\', b'\\', ..] if letter_at(2) => root(2, 0, false),
        _ => {
            let scheme = rest.find("://").filter(|&it| {
                it > 1
                    && rest[..it]
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
            })?;
            root(scheme + 3, scheme + 1, false)
        }
    }
}

/// Where a path without quotes ends. Names of folders may have spaces in them.
fn end_of(rest: &str) -> usize {
    let word_end = |from: usize| rest[from..].find(ends_a_path).map_or(rest.len(), |it| from + it);
    let mut end = word_end(0);
    loop {
        let path = &rest[..end];
        let last = path.rsplit(is_separator).next().unwrap_or(path);
        // A file ends a path.
        if last.contains('.') || path.ends_with(is_separator) {
            return end;
        }
        let is_home = HOMES.iter().any(|home| {
            path.split(is_separator).find(|it| !it.is_empty() && !it.ends_with(':')) == Some(*home)
        });
        // Below a home people name things as they like; elsewhere the next word may be a name.
        let most = if is_home { 3 } else { 1 };
        let mut at = end;
        let mut joined = None;
        for _ in 0..most {
            if !rest[at..].starts_with(' ') {
                break;
            }
            let next = word_end(at + 1);
            let word = &rest[at + 1..next];
            let is_name = |it: char| it.is_alphanumeric() || "_-.&+".contains(it);
            match word.find(is_separator) {
                Some(0) => break,
                // `MB/s` is no folder.
                Some(it) if !word.ends_with("/s") && word[..it].chars().all(is_name) => {
                    joined = Some(next);
                    break;
                }
                None if !word.is_empty() && word.chars().all(is_name) => at = next,
                _ => break,
            }
        }
        match joined {
            Some(next) => end = next,
            None => return end,
        }
    }
}
