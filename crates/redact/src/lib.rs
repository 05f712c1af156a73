//! Keeps secrets and paths out of what can be shared.
//!
//! What is told from a name (`--api-key abc`) or from its shape (`hf_…`) is hidden; of a path only
//! its last part stays. Nothing is known of formats: texts in, texts out.

use std::borrow::Cow;

/// In place of a secret.
pub const HIDDEN: &str = "‹hidden›";

/// Words in the name of an argument or a variable whose value nobody else should read.
const SECRET: [&str; 9] =
    ["token", "secret", "password", "passwd", "apikey", "api_key", "api-key", "credential", "auth"];

pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|it| name.contains(it)) || name.ends_with("_key") || name.ends_with("-key")
}

/// A command line without the values of secret arguments and without passwords in addresses.
pub fn command(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let mut out = Vec::with_capacity(arguments.len());
    for argument in arguments {
        if std::mem::take(&mut hide_next) && !argument.starts_with('-') {
            out.push(HIDDEN.to_owned());
            continue;
        }
        match argument.split_once('=') {
            Some((name, _)) if is_secret(name) => out.push(format!("{name}={HIDDEN}")),
            Some((name, value)) => out.push(format!("{name}={}", address(value))),
            None => {
                hide_next = argument.starts_with('-') && is_secret(argument);
                out.push(address(argument));
            }
        }
    }
    out
}

/// `scheme://user:password@host` without who and how.
fn address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://{HIDDEN}{}", &rest[user.len()..]),
        None => text.to_owned(),
    }
}

/// How keys of well-known services begin. All are long, and letters, digits, `-`, `_` and `.`.
const KEYS: [&str; 12] = [
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "hf_",
    "sk-",
    "xoxb-",
];
const SHORTEST_KEY: usize = 20;

/// Any text without secrets that can be told, and with the last part only of absolute paths.
pub fn text(text: &str) -> Cow<'_, str> {
    let is_suspect = |it: char| matches!(it, '/' | '\\' | '=') || it == '_' || it == '-';
    if !text.contains(is_suspect) && text.len() < SHORTEST_KEY {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends_a_word).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                out += name;
                out.push('=');
                out += HIDDEN;
            }
            Some((name, value)) => {
                out += name;
                out.push('=');
                out += &hidden_key(value).unwrap_or_else(|| last_part(value));
            }
            None => out += &hidden_key(word).unwrap_or_else(|| last_part(word)),
        }
        let mut marks = after.chars();
        out.extend(marks.next());
        rest = marks.as_str();
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

fn ends_a_word(it: char) -> bool {
    it.is_whitespace()
        || matches!(it, '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '[' | ']' | '<' | '>' | '|')
}

fn hidden_key(word: &str) -> Option<Cow<'_, str>> {
    let is_key = word.len() >= SHORTEST_KEY
        && KEYS.iter().any(|it| word.starts_with(it))
        && word.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    is_key.then_some(Cow::Borrowed(HIDDEN))
}

/// `/home/me/train.py:12` as `…/train.py:12`. Names of devices (`/device:GPU:0`) and of ops
/// (`model/dense/MatMul`) are none.
fn last_part(word: &str) -> Cow<'_, str> {
    let is_windows = word.as_bytes().get(1..3) == Some(br":\")
        && word.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let (begin, separator) = match word.find("://") {
        Some(at) => (at + 1, '/'),
        None if is_windows => (0, '\\'),
        None if word.starts_with('/') || word.starts_with("~/") => (0, '/'),
        None => return Cow::Borrowed(word),
    };
    let path = &word[begin..];
    let first = path.trim_start_matches(['~', '/']).split('/').next().unwrap_or_default();
    if begin == 0 && !is_windows && first.contains(':') {
        return Cow::Borrowed(word);
    }
    let path = path.trim_end_matches(separator);
    match path.rsplit_once(separator) {
        Some((above, last)) if !above.trim_matches(['~', '/']).is_empty() => {
            Cow::Owned(format!("{}…/{last}", &word[..begin]))
        }
        _ => Cow::Borrowed(word),
    }
}

#[cfg(test)]
mod tests {
    use super::{command, text};

    #[test]
    fn of_paths_the_last_part_stays() {
        for (given, kept) in [
            ("/home/me/train.py", "…/train.py"),
            ("loop (/home/me/train.py:12)", "loop (…/train.py:12)"),
            ("File \"/a/b c.py\", line 3", "File \"…/b c.py\", line 3"),
            ("~/runs/7/", "…/7"),
            ("C:\\Users\\me\\x.py", "…/x.py"),
            ("gs://bucket/me/data.tfrecord", "gs:…/data.tfrecord"),
            ("--data=/mnt/me/imagenet --lr 0.1", "--data=…/imagenet --lr 0.1"),
            // Names of ours and of the frameworks'.
            ("/device:GPU:0", "/device:GPU:0"),
            (
                "/job:localhost/replica:0/task:0/device:CPU:0",
                "/job:localhost/replica:0/task:0/device:CPU:0",
            ),
            ("model/dense/MatMul:MatMul", "model/dense/MatMul:MatMul"),
            ("/host:CPU", "/host:CPU"),
            ("a / b", "a / b"),
            ("regs:32 static_shared:0 grid:1,1,1", "regs:32 static_shared:0 grid:1,1,1"),
        ] {
            assert_eq!(text(given), kept, "{given}");
        }
    }

    #[test]
    fn secrets_inside_texts_are_hidden() {
        for (given, kept) in [
            ("WANDB_API_KEY=abc python train.py", "WANDB_API_KEY=‹hidden› python train.py"),
            ("key ghp_0123456789abcdefghij0123 end", "key ‹hidden› end"),
            ("x=hf_0123456789abcdefghij0123", "x=‹hidden›"),
            ("sk-learn", "sk-learn"),
            ("token=", "token="),
        ] {
            assert_eq!(text(given), kept, "{given}");
        }
    }

    fn check(arguments: &str, expected: &str) {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        assert_eq!(command(&arguments).join(" "), expected);
    }

    #[test]
    fn secrets_are_hidden_and_the_rest_is_kept() {
        check("python train.py --lr=0.1", "python train.py --lr=0.1");
        check("train --api-key abc --steps 3", "train --api-key ‹hidden› --steps 3");
        check("train --WANDB_TOKEN=abc x", "train --WANDB_TOKEN=‹hidden› x");
        check("WANDB_API_KEY=abc train", "WANDB_API_KEY=‹hidden› train");
        check("train --use-auth --steps 3", "train --use-auth --steps 3");
        check("train s3://me:pw@bucket/a", "train s3://‹hidden›@bucket/a");
        check("train --data=https://u:p@h/x", "train --data=https://‹hidden›@h/x");
        check("train https://h/a@b", "train https://h/a@b");
    }
}
