//! Keeps secrets and paths out of what can be shared.
//!
//! ```text
//! command   by what is known to be harmless: program, script, names of options, numbers
//! secrets   by name (`--api-key abc`, `password: abc`) and by shape (`hf_…`, `user:pw@host`)
//! text      the same, and of a path only its last part
//! Mask      the same in any bytes, without moving one: `*` in place of each
//! ```
//!
//! Nothing is known of formats: texts in, texts out. What is no secret stays as it is, above all
//! names of ops, layers and kernels, which look random at times.

mod command;
mod mask;
mod name;
mod path;
mod secret;
mod shape;

use std::borrow::Cow;
use std::ops::Range;

pub use command::{command, variable};
pub use mask::Mask;
pub use name::is_secret;

/// In place of a secret.
pub const HIDDEN: &str = "‹hidden›";

/// Any text without secrets that can be told.
pub fn secrets(text: &str) -> Cow<'_, str> {
    replaced(text, &secret::spans(text))
}

/// Any text without secrets that can be told, and with the last part only of absolute paths.
pub fn text(text: &str) -> Cow<'_, str> {
    match secrets(text) {
        Cow::Borrowed(it) => path::shortened(it),
        Cow::Owned(it) => Cow::Owned(path::shortened(&it).into_owned()),
    }
}

/// Spans are sorted and apart.
fn replaced<'a>(text: &'a str, spans: &[Range<usize>]) -> Cow<'a, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out += &text[at..span.start];
        out += HIDDEN;
        at = span.end;
    }
    out += &text[at..];
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
