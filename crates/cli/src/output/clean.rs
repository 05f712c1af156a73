//! Keeps what texts would make a terminal do from reaching it.
//!
//! Names in a profile, paths and messages are other people's texts. An escape in one could hide
//! lines, retitle the window or answer for the keyboard. Everything that is printed passes
//! [`clean`]; our own styles pass because they carry a key that no text can know.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

/// Another for each process.
static KEY: LazyLock<String> =
    LazyLock::new(|| format!("{:016x}", RandomState::new().build_hasher().finish()));

/// An escape of our own, as `1m` for bold.
pub fn escape(code: &str) -> String {
    format!("\x1b{}[{code}", *KEY)
}

/// The text with a visible sign for each character that a terminal would obey. Only ends of lines,
/// tabs and our own escapes stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        out += &rest[..at];
        let mut tail = rest[at..].chars();
        let obeyed = tail.next().unwrap_or_default();
        rest = tail.as_str();
        match obeyed {
            '\x1b' if rest.starts_with(KEY.as_str()) => {
                out.push(obeyed);
                rest = &rest[KEY.len()..];
            }
            // Lines of CSV end so.
            '\r' if rest.starts_with('\n') => out.push(obeyed),
            _ => out.push(sign(obeyed)),
        }
    }
    out += rest;
    Cow::Owned(out)
}

/// JSON with such characters as escapes of JSON, which keep their value.
pub fn clean_json(json: &str) -> Cow<'_, str> {
    // Outside of strings there are none, and those below a space are escaped already.
    if !json.contains(is_obeyed) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for it in json.chars() {
        match is_obeyed(it) {
            true => out += &format!("\\u{:04x}", u32::from(it)),
            false => out.push(it),
        }
    }
    Cow::Owned(out)
}

pub fn is_clean(text: &str) -> bool {
    !text.contains(is_obeyed)
}

/// Control characters, the eight-bit ones too, and those that turn the direction of a line.
fn is_obeyed(it: char) -> bool {
    let turns = matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (it.is_control() && it != '\n' && it != '\t')
}

/// One column wide, as what it stands for is none.
fn sign(it: char) -> char {
    match u32::from(it) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_json, escape};

    #[test]
    fn texts_are_shown_and_not_obeyed() {
        assert_eq!(
            clean("model/dense:MatMul · 3 µs\n\tx\r\n"),
            "model/dense:MatMul · 3 µs\n\tx\r\n"
        );
        assert_eq!(clean("a\x1b[31mb\x1b]0;t\x07c"), "a␛[31mb␛]0;t␇c");
        assert_eq!(clean("a\rb\x08\x7f\0"), "a␍b␈␡␀");
        assert_eq!(clean("\u{9b}31m\u{85}\u{202e}"), "\u{fffd}31m\u{fffd}\u{fffd}");
        assert_eq!(clean("\x1b"), "␛");
    }

    #[test]
    fn our_own_styles_stay() {
        let styled = format!("{}name\x1b[0m{}", escape("1m"), escape("0m"));
        assert_eq!(clean(&styled), "\x1b[1mname␛[0m\x1b[0m");
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!("\u{9b}31m \x1b \x7f \u{202e} µ");
        let text = value.to_string();
        let cleaned = clean_json(&text);
        assert!(cleaned.chars().all(|it| !it.is_control()), "{cleaned:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&cleaned).unwrap(), value);
    }
}
