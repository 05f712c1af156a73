//! Where the secrets of a text are.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::name::is_secret;
use crate::shape::{self, random_words};

/// A pattern that does not compile finds nothing, and a test fails.
type Pattern = LazyLock<Option<Regex>>;

macro_rules! pattern {
    ($name:ident = $text:expr) => {
        static $name: Pattern = LazyLock::new(|| Regex::new($text).ok());
    };
}

pattern!(
    PRIVATE_KEY = r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z ]*-----|$)"
);
// `Authorization: Bearer abc`: all up to the end of the line or of the quotes.
pattern!(
    HEADER = r#"(?ix)
    \b(?: (?:proxy-)?authorization | (?:set-)?cookie | x-[a-z-]*(?:key|token|auth|secret|signature) )
    \\*["']? \s*[:=]\s* \\*["']? ([^"'\r\n\\]+)"#
);
pattern!(SCHEME = r"(?i)\b(?:bearer|basic|digest|token)\s+([A-Za-z0-9+/=._~-]{8,})");
pattern!(
    NAMED = r#"(?x)
    ([A-Za-z][A-Za-z0-9_.\-]{0,80}) \\*["']? (\s*(?:=>|:=|=|:)\s*)
    (?: \\*"([^"\r\n]+?)\\*(?:"|$) | \\*'([^'\r\n]+?)\\*(?:'|$) | ([^\s"'`&,;(){}\[\]<>]+) )"#
);
pattern!(
    OPTION = r#"(?x)
    (?:^|[\s"'`(=]) --? ([A-Za-z][A-Za-z0-9_-]*) \s+
    (?: "([^"]+)" | '([^']+)' | ([^\s"'-][^\s"']*) )"#
);
// As `curl -u`, and as `-p` of many.
pattern!(USER = r#"(?:^|[\s"'`])-u\s*["']?([^\s"']+:[^\s"']+)"#);
pattern!(SHORT_PASSWORD = r#"(?:^|[\s"'`])-p\s+["']?([^\s"'-][^\s"']*)"#);
pattern!(ATTACHED_PASSWORD = r#"\b(?:sshpass|mysql|mysqldump|mariadb)\b[^\n]*?\s-p([^\s"']+)"#);
pattern!(ADDRESS = r#"\b[A-Za-z][A-Za-z0-9+.-]*://([^\s"'`<>]+)"#);
pattern!(DATA_SHAPE = r"^[a-z]+[0-9]*(?:\[|$)");

/// Sorted and apart.
pub fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    // Most texts are names of ops.
    let is_suspect = |it: u8| matches!(it, b'=' | b':' | b'-' | b'_' | b' ' | b'\t' | b'\n');
    if text.len() < 8 || (text.len() < 20 && !text.bytes().any(is_suspect)) {
        return spans;
    }
    whole(&PRIVATE_KEY, text, &mut spans);
    whole(&shape::KEY, text, &mut spans);
    for pattern in [&HEADER, &USER, &SHORT_PASSWORD, &ATTACHED_PASSWORD] {
        first_group(pattern, text, |_| true, &mut spans);
    }
    // `basic training` is no password.
    let is_key = |it: &str| it.bytes().any(|it| !it.is_ascii_lowercase());
    first_group(&SCHEME, text, is_key, &mut spans);
    addresses(text, &mut spans);
    named(text, &mut spans);
    options(text, &mut spans);
    random_words(text, &mut spans);
    merged(spans)
}

fn whole(pattern: &Pattern, text: &str, out: &mut Vec<Range<usize>>) {
    let Some(pattern) = pattern.as_ref() else { return };
    out.extend(pattern.find_iter(text).map(|it| it.range()));
}

fn first_group(
    pattern: &Pattern,
    text: &str,
    is_wanted: impl Fn(&str) -> bool,
    out: &mut Vec<Range<usize>>,
) {
    let Some(pattern) = pattern.as_ref() else { return };
    let groups = pattern.captures_iter(text).filter_map(|it| it.get(1));
    out.extend(groups.filter(|it| is_wanted(it.as_str())).map(|it| it.range()));
}

/// Who and how of `scheme://who:how@host`, and all that an address is asked with.
fn addresses(text: &str, out: &mut Vec<Range<usize>>) {
    let Some(pattern) = ADDRESS.as_ref().filter(|_| text.contains("://")) else { return };
    for rest in pattern.captures_iter(text).filter_map(|it| it.get(1)) {
        let (start, rest) = (rest.start(), rest.as_str());
        let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        // A password may hold anything, also what ends a host. Where a colon comes before it,
        // what is in front of the last `@` is taken for one.
        let who = match (host.contains('@'), host.contains(':')) {
            (_, true) => rest.rfind('@'),
            (true, false) => host.rfind('@'),
            (false, false) => None,
        };
        let after = who.map_or(0, |at| at + 1);
        out.extend(who.map(|at| start..start + at));
        if let Some(asked) = rest[after..].find(['?', '#']).map(|it| after + it + 1)
            && rest[asked..].contains('=')
        {
            out.push(start + asked..start + rest.len());
        }
    }
}

fn named(text: &str, out: &mut Vec<Range<usize>>) {
    let Some(pattern) = NAMED.as_ref().filter(|_| text.contains(['=', ':'])) else { return };
    let mut at = 0;
    while let Some(found) = pattern.captures_at(text, at) {
        let (Some(name), Some(sign)) = (found.get(1), found.get(2)) else { return };
        let value = found.get(3).or(found.get(4)).or(found.get(5));
        // What looks like a value may be the next name: `env=PASSWORD=abc`.
        at = sign.end();
        let Some(value) = value else { continue };
        let is_quoted = found.get(5).is_none();
        if is_secret(name.as_str()) && !is_plain(name.as_str(), sign.as_str(), value.as_str()) {
            out.push(value.range());
            at = value.end();
        } else if is_quoted && !value.as_str().contains(['=', ':']) {
            at = value.end();
        }
    }
}

/// Values that are none: `token:0` is an output of an op, `token: f32[8]` an array's shape.
fn is_plain(name: &str, sign: &str, value: &str) -> bool {
    let is_number = value.bytes().all(|it| it.is_ascii_digit());
    let is_output = sign == ":" && is_number && value.len() <= 3;
    let is_shape = value.len() < 12
        && sign.contains(':')
        && ["token", "key"].contains(&name)
        && DATA_SHAPE.as_ref().is_some_and(|it| it.is_match(value));
    let is_nothing = ["none", "null", "true", "false", "...", "…", "token"];
    is_output || is_shape || is_nothing.contains(&value.to_ascii_lowercase().as_str())
}

fn options(text: &str, out: &mut Vec<Range<usize>>) {
    let Some(pattern) = OPTION.as_ref().filter(|_| text.contains('-')) else { return };
    let mut at = 0;
    while let Some(found) = pattern.captures_at(text, at) {
        let Some(name) = found.get(1) else { return };
        at = name.end();
        let value = found.get(2).or(found.get(3)).or(found.get(4));
        if let Some(value) = value.filter(|_| is_secret(name.as_str())) {
            out.push(value.range());
            at = value.end();
        }
    }
}

fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|it| (it.start, it.end));
    let mut out: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => out.push(span),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_compile() {
        let all = [
            &super::PRIVATE_KEY,
            &super::HEADER,
            &super::SCHEME,
            &super::NAMED,
            &super::OPTION,
            &super::USER,
            &super::SHORT_PASSWORD,
            &super::ATTACHED_PASSWORD,
            &super::ADDRESS,
            &super::DATA_SHAPE,
            &crate::shape::KEY,
        ];
        for (at, pattern) in all.iter().enumerate() {
            assert!(pattern.is_some(), "pattern {at}");
        }
    }
}
