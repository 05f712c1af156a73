//! What each change does to a source. Where it is not certain that an edit does just that, the
//! reason is answered instead.

use analyses::code_site::Site;

use super::call::{Argument, Call, Edit};
use super::compiled::jit;
use super::seldom::every_n_steps;
use super::source::{Source, TokenKind};

/// A change of the user's code. Names are stable: reports and `strobe try` use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// `.map(f)` in parallel.
    ParallelMap,
    /// `.interleave(f)` in parallel.
    ParallelInterleave,
    /// `.prefetch(…)` behind the last stage.
    Prefetch,
    /// `.cache()` behind a stage.
    Cache,
    /// `@tf.function` or `@jax.jit` above a function.
    Jit,
    /// `reduce_retracing=True` for a `tf.function`.
    ReduceRetracing,
    /// No `run_eagerly=True` in `model.compile`.
    NoRunEagerly,
    /// `jit_compile=True` for a `tf.function` or in `model.compile`.
    JitCompile,
    /// So many steps for each call of Keras' function.
    StepsPerExecution(u32),
    /// A batch of so many; twice as many where none is given.
    LargerBatch(Option<u32>),
    /// A statement of a loop in one of so many steps.
    EveryNSteps(u32),
    /// `float64` is `float32`.
    Float32,
}

/// As Keras' own guide to `steps_per_execution` begins; it matters little above.
const STEPS_PER_EXECUTION: u32 = 16;
/// What is done once in so many steps costs a hundredth.
pub(super) const EVERY_N_STEPS: u32 = 100;

/// Names of all changes.
pub const CHANGES: [&str; 12] = [
    "parallel-map",
    "parallel-interleave",
    "prefetch",
    "cache",
    "jit",
    "reduce-retracing",
    "no-run-eagerly",
    "jit-compile",
    "steps-per-execution",
    "larger-batch",
    "every-n-steps",
    "float32",
];

impl Change {
    /// A name, with a number where the change takes one: `larger-batch=256`.
    pub fn parse(text: &str) -> Option<Change> {
        let (name, number) = match text.split_once('=') {
            Some((name, number)) => (name, Some(number.parse::<u32>().ok().filter(|it| *it > 0)?)),
            None => (text, None),
        };
        let change = match name {
            "steps-per-execution" => {
                return Some(Change::StepsPerExecution(number.unwrap_or(STEPS_PER_EXECUTION)));
            }
            "larger-batch" => return Some(Change::LargerBatch(number)),
            "every-n-steps" => return Some(Change::EveryNSteps(number.unwrap_or(EVERY_N_STEPS))),
            "parallel-map" => Change::ParallelMap,
            "parallel-interleave" => Change::ParallelInterleave,
            "prefetch" => Change::Prefetch,
            "cache" => Change::Cache,
            "jit" => Change::Jit,
            "reduce-retracing" => Change::ReduceRetracing,
            "no-run-eagerly" => Change::NoRunEagerly,
            "jit-compile" => Change::JitCompile,
            "float32" => Change::Float32,
            _ => return None,
        };
        number.is_none().then_some(change)
    }

    pub fn name(self) -> &'static str {
        match self {
            Change::ParallelMap => "parallel-map",
            Change::ParallelInterleave => "parallel-interleave",
            Change::Prefetch => "prefetch",
            Change::Cache => "cache",
            Change::Jit => "jit",
            Change::ReduceRetracing => "reduce-retracing",
            Change::NoRunEagerly => "no-run-eagerly",
            Change::JitCompile => "jit-compile",
            Change::StepsPerExecution(_) => "steps-per-execution",
            Change::LargerBatch(_) => "larger-batch",
            Change::EveryNSteps(_) => "every-n-steps",
            Change::Float32 => "float32",
        }
    }

    /// Edits in the order of the file.
    pub(super) fn edits(self, source: &Source, site: &Site) -> Result<Vec<Edit>, String> {
        match self {
            Change::ParallelMap => parallel(source, site, "map"),
            Change::ParallelInterleave => parallel(source, site, "interleave"),
            Change::Prefetch => {
                let added = format!("prefetch({})", autotune(source)?);
                chained(source, site, &added)
            }
            Change::Cache => chained(source, site, "cache()"),
            Change::Jit => jit(source, site),
            Change::ReduceRetracing => {
                keyword(source, &function_call(source, site)?, "reduce_retracing", "True")
            }
            Change::JitCompile if site.kind == "tf.function" => {
                keyword(source, &function_call(source, site)?, "jit_compile", "True")
            }
            Change::JitCompile => keyword(
                source,
                &Made::Call(own_call(source, site, "compile")?),
                "jit_compile",
                "True",
            ),
            Change::StepsPerExecution(n) => {
                let call = Made::Call(own_call(source, site, "compile")?);
                keyword(source, &call, "steps_per_execution", &n.to_string())
            }
            Change::NoRunEagerly => no_run_eagerly(source, site),
            Change::LargerBatch(n) => larger_batch(source, site, n),
            Change::EveryNSteps(n) => every_n_steps(source, site, n),
            Change::Float32 => float32(source, site),
        }
    }
}

/// What takes keywords: a call, or a decorator that is none yet.
enum Made {
    Call(Call),
    /// The decorator's last token.
    Bare(usize),
}

/// The method that a kind is about: `map` of `dataset.map`.
fn method(site: &Site) -> &str {
    site.kind.rsplit('.').next().unwrap_or(&site.kind)
}

/// The call of the site, which must be of this name: a library's call that makes the same is not
/// the user's to change.
fn own_call(source: &Source, site: &Site, name: &str) -> Result<Call, String> {
    if method(site) != name && !(site.kind == "keras.fit" && name == "fit") {
        return Err(format!("this line is no call of {name}"));
    }
    let end_line = usize::try_from(site.end_line).unwrap_or(0);
    let call = match site.end_col.and_then(|it| usize::try_from(it).ok()) {
        Some(end_col) => {
            let start = end_line.checked_sub(1).and_then(|it| source.lines.get(it));
            start.and_then(|it| Call::ending_at(source, it + end_col))
        }
        None => {
            // Without columns: where one line has one such call.
            let line = usize::try_from(site.line).unwrap_or(0);
            let found = Call::named(source, name, line..end_line.max(line) + 1);
            match found.as_slice() {
                [only] => Some(*only),
                [] => None,
                _ => return Err(format!("this line has several calls of {name}")),
            }
        }
    };
    let call = call.ok_or_else(|| format!("the call of {name} was not found on this line"))?;
    match call.callee(source) {
        Some(callee) if callee == name => Ok(call),
        Some(callee) => Err(format!("{name} is called inside {callee}, which is not your code")),
        None => Err(format!("the call of {name} was not found on this line")),
    }
}

fn arguments(source: &Source, call: &Call) -> Result<Vec<Argument>, String> {
    call.arguments(source)
        .ok_or_else(|| "its arguments are not plain: a generator, * or **".to_owned())
}

fn value<'a>(source: &'a Source, argument: &Argument) -> &'a str {
    &source.text[source.tokens[argument.value].start..source.tokens[argument.last].end]
}

fn replace_value(source: &Source, argument: &Argument, new: &str) -> Edit {
    let at = source.tokens[argument.value].start..source.tokens[argument.last].end;
    Edit { at, new: new.to_owned() }
}

/// Gives a keyword this value, where it has none that somebody chose.
fn keyword(source: &Source, made: &Made, name: &str, new: &str) -> Result<Vec<Edit>, String> {
    let call = match made {
        Made::Bare(last) => {
            return Ok(vec![Edit::insert(source.tokens[*last].end, format!("({name}={new})"))]);
        }
        Made::Call(call) => call,
    };
    let given = arguments(source, call)?;
    match given.iter().find(|it| it.name.as_deref() == Some(name)) {
        None => {
            let edit = call.with(source, &format!("{name}={new}"));
            Ok(vec![edit.ok_or("its arguments are not plain")?])
        }
        Some(it) if value(source, it) == new => Err(format!("{name}={new} is already there")),
        Some(it) => match value(source, it) {
            "None" | "False" | "1" => Ok(vec![replace_value(source, it, new)]),
            other => Err(format!("{name}={other} is already given")),
        },
    }
}

fn parallel(source: &Source, site: &Site, name: &str) -> Result<Vec<Edit>, String> {
    let call = own_call(source, site, name)?;
    let positional = arguments(source, &call)?.iter().filter(|it| it.name.is_none()).count();
    if positional > 1 {
        return Err(format!("{name} has more than one argument without a name"));
    }
    keyword(source, &Made::Call(call), "num_parallel_calls", &autotune(source)?)
}

/// How this file writes `tf.data.AUTOTUNE`.
fn autotune(source: &Source) -> Result<String, String> {
    let tensorflow = module(source, "tensorflow")?;
    Ok(format!("{tensorflow}.data.AUTOTUNE"))
}

/// The name under which a file imports a module for all of it.
pub(super) fn module(source: &Source, name: &str) -> Result<String, String> {
    let mut found = None;
    for it in source.statements() {
        if source.depth(it) > 0 || !source.is(it.first, "import") {
            continue;
        }
        let mut at = it.first + 1;
        while at < it.until {
            let is_it = source.is(at, name) && !source.is(at + 1, ".");
            let mut end = at;
            while end < it.until && !source.is(end, ",") {
                end += 1;
            }
            if is_it && source.is(at + 1, "as") {
                found = Some(source.of(at + 2).to_owned());
            } else if is_it {
                found = Some(name.to_owned());
            }
            at = end + 1;
        }
    }
    let found = found.ok_or_else(|| format!("the file does not import {name} under a name"))?;
    let is_changed = |it: &usize| {
        source.is(*it, &found)
            && source.is(it + 1, "=")
            && !source.is(it + 2, "=")
            && !it
                .checked_sub(1)
                .is_some_and(|it| source.is(it, ".") || source.is(it, ",") || source.is(it, "("))
    };
    if (0..source.tokens.len()).any(|it| is_changed(&it)) {
        return Err(format!("the name {found} is used for something else too"));
    }
    Ok(found)
}

/// A further method behind the site's call.
fn chained(source: &Source, site: &Site, added: &str) -> Result<Vec<Edit>, String> {
    let (name, _) = added.split_once('(').unwrap_or((added, ""));
    if !site.kind.starts_with("dataset.") || site.kind == "dataset.iter" {
        return Err("this line makes no dataset".to_owned());
    }
    if method(site) == name {
        return Err(format!("{name} is already there"));
    }
    let call = own_call(source, site, method(site))?;
    let next = source.next(call.close);
    if source.is(next, ".") && source.is(source.next(next), name) {
        return Err(format!("{name} is already there"));
    }
    let close = &source.tokens[call.close];
    let line = source.line_of(close.start);
    // A chain with one method on each line goes on like that.
    let dot = call.open.checked_sub(2).filter(|it| source.is(*it, "."));
    let rest = source.text[close.end..source.line_end(line)].trim();
    if let Some(dot) = dot {
        let dot_line = source.line_of(source.tokens[dot].start);
        let before = &source.text[source.lines[dot_line - 1]..source.tokens[dot].start];
        let is_inside = (0..dot).any(|it| {
            source.kind(it) == Some(TokenKind::Open) && source.tokens[it].pair > call.close
        });
        let is_alone = rest.is_empty() || rest.starts_with('#');
        if before.trim().is_empty() && is_inside && is_alone {
            let new = format!("{}{before}.{added}", source.newline());
            return Ok(vec![Edit::insert(source.line_end(line), new)]);
        }
    }
    Ok(vec![Edit::insert(close.end, format!(".{added}"))])
}

/// The `tf.function` of a site: above a function, or called with one.
fn function_call(source: &Source, site: &Site) -> Result<Made, String> {
    if site.kind != "tf.function" {
        return Err("this line makes no tf.function".to_owned());
    }
    let line = usize::try_from(site.line).unwrap_or(0);
    let statement = source.statement_at(line).ok_or("there is nothing on this line")?;
    if !source.is(statement.first, "@") {
        return Ok(Made::Call(own_call(source, site, "function")?));
    }
    // `@a.b`, or `@a.b(…)`.
    let mut at = statement.first + 1;
    while source.kind(at) == Some(TokenKind::Name) && source.is(at + 1, ".") {
        at += 2;
    }
    let callee = source.of(at).to_owned();
    let last = source.last_of(statement.first, statement.until);
    if at == last && callee == "function" {
        return Ok(Made::Bare(at));
    }
    let call = Call { open: at + 1, close: last };
    let is_call = source.is(at + 1, "(") && source.tokens[at + 1].pair == last;
    let is_partial = callee == "partial" && {
        let first = arguments(source, &call).unwrap_or_default();
        first.first().is_some_and(|it| value(source, it).ends_with(".function"))
    };
    if is_call && (callee == "function" || is_partial) {
        return Ok(Made::Call(call));
    }
    Err("the decorator is not a plain tf.function".to_owned())
}

fn no_run_eagerly(source: &Source, site: &Site) -> Result<Vec<Edit>, String> {
    let call = own_call(source, site, "compile")?;
    let given = arguments(source, &call)?;
    let at = given.iter().position(|it| it.name.as_deref() == Some("run_eagerly"));
    let at = at.ok_or("this compile has no run_eagerly")?;
    match value(source, &given[at]) {
        "True" => {
            Ok(vec![call.without(source, at).ok_or("a comment stands between its arguments")?])
        }
        other => Err(format!("run_eagerly={other} is not always True")),
    }
}

fn larger_batch(source: &Source, site: &Site, n: Option<u32>) -> Result<Vec<Edit>, String> {
    let call = own_call(source, site, method(site))?;
    let given = arguments(source, &call)?;
    let named = given.iter().find(|it| it.name.as_deref() == Some("batch_size"));
    let is_batch = matches!(site.kind.as_str(), "dataset.batch" | "dataset.padded_batch");
    let first = given.first().filter(|it| it.name.is_none() && is_batch);
    let argument = named.or(first).ok_or("this call has no batch size")?;
    let old = value(source, argument);
    if let Ok(number) = old.parse::<u32>() {
        let new = larger(number, n)?;
        return Ok(vec![replace_value(source, argument, &new)]);
    }
    // A constant of the file, set once, and to what the run had.
    let is_name =
        argument.value == argument.last && source.kind(argument.value) == Some(TokenKind::Name);
    if !is_name {
        return Err(format!("the batch size is {old}, which is not a number"));
    }
    let sets = (0..source.tokens.len()).filter(|&it| {
        source.is(it, old)
            && source.kind(it) == Some(TokenKind::Name)
            && (source.is(it + 1, "=") && !source.is(it + 2, "=")
                // `+=` and the like, and a loop or a parameter of that name.
                || (source.kind(it + 1) == Some(TokenKind::Sign) && source.is(it + 2, "="))
                || source.is(it.wrapping_sub(1), "for"))
            && !source.is(it.wrapping_sub(1), ",")
            && !source.is(it.wrapping_sub(1), "(")
    });
    let sets: Vec<usize> = sets.collect();
    let statements = source.statements();
    let constant = match sets.as_slice() {
        [only] => statements.iter().find(|it| {
            it.first == *only
                && it.until == only + 3
                && source.depth(**it) == 0
                && source.is(only + 1, "=")
        }),
        _ => None,
    };
    let at =
        constant.map(|it| it.first + 2).filter(|it| source.kind(*it) == Some(TokenKind::Number));
    let at = at.ok_or_else(|| {
        format!("the batch size is {old}, which is not set once to a number in this file")
    })?;
    let number =
        source.of(at).parse::<u32>().map_err(|_| format!("{old} is not a whole number"))?;
    if site.arg("batch_size").is_some_and(|it| it != number.to_string()) {
        return Err(format!("the run had another batch size than {old} in this file"));
    }
    let new = larger(number, n)?;
    Ok(vec![Edit { at: source.tokens[at].start..source.tokens[at].end, new }])
}

fn larger(old: u32, n: Option<u32>) -> Result<String, String> {
    let new = n.unwrap_or(old.saturating_mul(2));
    if new <= old { Err(format!("the batch is already of {old}")) } else { Ok(new.to_string()) }
}

fn float32(source: &Source, site: &Site) -> Result<Vec<Edit>, String> {
    let line = usize::try_from(site.line).unwrap_or(0);
    let statement = source.statement_at(line).ok_or("there is nothing on this line")?;
    let edits: Vec<Edit> = (statement.first..statement.until)
        .filter_map(|it| {
            let new = match (source.kind(it)?, source.of(it)) {
                (TokenKind::Name, "float64") => "float32".to_owned(),
                (TokenKind::Text, text @ ("\"float64\"" | "'float64'")) => text.replace("64", "32"),
                _ => return None,
            };
            Some(Edit { at: source.tokens[it].start..source.tokens[it].end, new })
        })
        .collect();
    if edits.is_empty() { Err("this line names no float64".to_owned()) } else { Ok(edits) }
}
