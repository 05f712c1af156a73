//! A command line by what is known to be harmless.
//!
//! What stays: the program, the script or module, names of options, numbers, yes and no, and the
//! words of options that are known (`--optimizer adam`). All else may be a secret, or somebody's
//! folder, and nobody misses it.

use crate::HIDDEN;
use crate::name::is_secret;
use crate::secret::spans;
use crate::shape::is_random;

/// Options with a word or a few for a value, the same in many programs; `-` as `_`.
const WORDS: [&str; 34] = [
    "accelerator",
    "activation",
    "arch",
    "backend",
    "compile",
    "device",
    "devices",
    "distributed_backend",
    "dtype",
    "format",
    "gpu",
    "gpus",
    "jit",
    "log_level",
    "loss",
    "lr_scheduler",
    "mixed_precision",
    "mode",
    "model",
    "model_name",
    "model_type",
    "optim",
    "optimizer",
    "platform",
    "platforms",
    "policy",
    "precision",
    "scheduler",
    "schedule",
    "split",
    "strategy",
    "sync",
    "task",
    "verbosity",
];

/// First words after a launcher.
const SUBCOMMANDS: [&str; 14] = [
    "run",
    "train",
    "launch",
    "fit",
    "test",
    "eval",
    "evaluate",
    "exec",
    "predict",
    "serve",
    "bench",
    "benchmark",
    "finetune",
    "python",
];

/// Short options whose value may be a password or a user.
const SUSPECT: [&str; 6] = ["-p", "-P", "-u", "-k", "-a", "-H"];

/// A command line without what may be secret.
pub fn command(arguments: &[String]) -> Vec<String> {
    let mut out = Vec::with_capacity(arguments.len());
    let mut before = Before::Nothing;
    for argument in arguments {
        let (shown, next) = shown(argument, &before);
        out.push(shown);
        before = next;
    }
    out
}

/// The value of an environment variable that is known to matter for speed, word by word.
pub fn variable(value: &str) -> String {
    let word = |it: &str| match it.strip_prefix("--") {
        Some(_) => shown(it, &Before::Word).0,
        None if is_plain_list(it) => it.to_owned(),
        None => HIDDEN.to_owned(),
    };
    value.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// What came before an argument, as far as it says what the argument is.
enum Before {
    Nothing,
    Word,
    /// `-m` of Python: a module's name comes next.
    Module,
    /// An option that may have its value next.
    Option(String),
    /// The script: what follows is its own.
    Script,
}

fn shown(argument: &str, before: &Before) -> (String, Before) {
    let hidden = || HIDDEN.to_owned();
    match before {
        Before::Nothing => {
            let program = last_part(argument);
            let shown = if is_name(program) { program.to_owned() } else { hidden() };
            return (shown, Before::Word);
        }
        Before::Module if is_name(argument) => return (argument.to_owned(), Before::Script),
        Before::Option(name) if !is_option(argument) => {
            // `-u` is also Python's.
            let is_suspect = name != "-u" && SUSPECT.contains(&name.as_str());
            let is_script = is_script(argument) && !is_secret(name) && !is_suspect;
            return match () {
                () if is_harmless(name, argument) => (argument.to_owned(), Before::Word),
                () if is_script => (last_part(argument).to_owned(), Before::Script),
                () => (hidden(), Before::Word),
            };
        }
        _ => (),
    }
    if argument == "--" {
        return (argument.to_owned(), Before::Word);
    }
    if is_option(argument) {
        return option(argument, before);
    }
    if let Some((name, value)) = argument.split_once('=').filter(|it| is_name(it.0)) {
        let value = if is_harmless(name, value) { value.to_owned() } else { hidden() };
        return (format!("{name}={value}"), Before::Word);
    }
    match () {
        () if is_script(argument) => (last_part(argument).to_owned(), Before::Script),
        () if is_number(argument) || is_program(argument) || is_subcommand(argument) => {
            (argument.to_owned(), Before::Word)
        }
        () => (hidden(), Before::Word),
    }
}

/// An option with its value, if that is attached.
fn option(argument: &str, before: &Before) -> (String, Before) {
    let (name, value) = match argument.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    };
    let plain = name.trim_start_matches('-');
    let is_long = name.starts_with("--");
    if !is_name(plain) {
        return (HIDDEN.to_owned(), Before::Word);
    }
    // `-phunter2`: one dash, a letter, and what belongs to it. `-batch_size=3` is known.
    let is_short = plain.len() == 1 || is_known(plain) || ["np", "OO"].contains(&plain);
    if !is_long && !is_short {
        let letter: String = plain.chars().take(1).collect();
        return (format!("-{letter}{HIDDEN}"), Before::Word);
    }
    match value {
        Some(value) if is_harmless(name, value) => (argument.to_owned(), Before::Word),
        Some(_) => (format!("{name}={HIDDEN}"), Before::Word),
        None if name == "-m" && !matches!(before, Before::Script) => {
            (name.to_owned(), Before::Module)
        }
        None => (name.to_owned(), Before::Option(name.to_owned())),
    }
}

fn is_option(argument: &str) -> bool {
    argument.len() > 1 && argument.starts_with('-') && !is_number(argument)
}

/// Whether this value of an option says nothing that others should not know.
fn is_harmless(name: &str, value: &str) -> bool {
    if is_secret(name) || SUSPECT.contains(&name) {
        return false;
    }
    let is_switch =
        ["true", "false", "yes", "no", "on", "off", "none", "null", "auto", "all", "default"]
            .contains(&value.to_ascii_lowercase().as_str());
    is_switch || is_number(value) || (is_known(name) && is_plain_list(value))
}

fn is_known(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    let last = name.rsplit('.').next().unwrap_or(&name);
    WORDS.contains(&last) || last.starts_with("xla_") || last.starts_with("tf_xla_")
}

/// More digits are an account, a telephone or a card.
const MOST_DIGITS: usize = 9;

fn is_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let parts = || text.split([',', 'x']);
    (1..=MOST_DIGITS).contains(&digits)
        && parts().all(|it| it.parse::<f64>().is_ok_and(f64::is_finite))
}

/// `adam`, `cuda:0`, `float32,int8`, `expandable_segments:True`.
fn is_plain_list(text: &str) -> bool {
    text.split([',', ':']).all(|it| is_number(it) || is_name(it))
}

/// `python3.12`, `batch-size`, `pkg.train`: short, of usual letters, and nothing that looks like a
/// key.
fn is_name(text: &str) -> bool {
    (1..=48).contains(&text.len())
        && text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"_.-+".contains(&it))
        && !is_random(text)
        && spans(text).is_empty()
}

fn is_script(argument: &str) -> bool {
    let name = last_part(argument);
    let is_source = [".py", ".sh", ".ipynb"].iter().any(|it| name.ends_with(it));
    is_source && is_name(name) && !argument.contains(['=', '@', '?', ':'])
}

/// Those that start others: `env`, `nice`, `torchrun`.
fn is_program(argument: &str) -> bool {
    let name = last_part(argument);
    let python = name.trim_start_matches("python");
    let is_python =
        python.len() < name.len() && python.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    is_python && argument == name
}

fn is_subcommand(argument: &str) -> bool {
    SUBCOMMANDS.contains(&argument)
}

fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
