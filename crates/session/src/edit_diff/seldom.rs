//! A statement of the training loop in one of N steps.
//!
//! ```text
//! for x, y in batches:                 for step, (x, y) in enumerate(batches):
//!     loss = train_step(x, y)              loss = train_step(x, y)
//!     log_loss(loss)               ─▶      if step % 100 == 0:
//!                                              log_loss(loss)
//! ```
//!
//! Only what a training can do without: what it looks at, not what it learns from.

use analyses::code_site::Site;

use super::call::Edit;
use super::source::{Source, Statement, TokenKind};

const NO_COUNTER: &str = "the loop around it has no counter of range or enumerate";

pub(super) fn every_n_steps(source: &Source, site: &Site, n: u32) -> Result<Vec<Edit>, String> {
    let line = usize::try_from(site.line).unwrap_or(0);
    let statements = source.statements();
    let statement = source.statement_at(line).ok_or("there is nothing on this line")?;
    let at =
        statements.iter().position(|it| *it == statement).ok_or("there is nothing on this line")?;
    if !is_plain_call(source, statement) {
        return Err("this line is not only a call".to_owned());
    }
    let place = Place::of(source, &statements, at)?;
    let head = statements[place.head];
    let head_line = source.line_of(source.tokens[head.first].start);
    if site.arg("loop").is_some_and(|it| it != head_line.to_string()) {
        return Err("it is inside another loop".to_owned());
    }
    may_be_left_out(source, &statements, place.head, at)?;
    if let Some(condition) = place.condition {
        return less_often(source, statements[condition], &counter(source, head)?, n);
    }
    let (counter, mut edits) = match counter(source, head) {
        Ok(it) => (it, Vec::new()),
        Err(why) => counted(source, head).ok_or(why)?,
    };
    for it in body(source, &statements, place.head) {
        let is_set = source.is(it.first, &counter)
            && (source.is(it.first + 1, "=") && !source.is(it.first + 2, "=")
                || source.is(it.first + 2, "="));
        if is_set {
            return Err(format!("{counter} is changed inside the loop"));
        }
    }
    edits.extend(indented(source, &statements, &place, &format!("if {counter} % {n} == 0:"))?);
    Ok(edits)
}

/// Where a statement is inside its loop.
struct Place {
    /// The statements to be put below a condition; a `with` goes with all of its body.
    first: usize,
    last: usize,
    /// What they are directly below.
    above: usize,
    /// The `if step % n == k` around them.
    condition: Option<usize>,
    /// The loop.
    head: usize,
}

impl Place {
    fn of(source: &Source, statements: &[Statement], at: usize) -> Result<Place, String> {
        let above = |at: usize| {
            let depth = source.depth(statements[at]);
            statements[..at].iter().rposition(|it| source.depth(*it) < depth)
        };
        let mut place = Place { first: at, last: at, above: at, condition: None, head: at };
        let mut inner = at;
        let mut is_first = true;
        loop {
            let head = above(inner).ok_or("this line is in no loop")?;
            if is_first {
                place.above = head;
            }
            match source.of(statements[head].first) {
                "for" => return Ok(Place { head, ..place }),
                "with" => {
                    let inside = body(source, statements, head);
                    let is_for_it = |it: &Statement| {
                        is_plain_call(source, *it) && is_looked_at(source, *it).is_ok()
                    };
                    if is_first && inside.iter().all(is_for_it) {
                        place.first = head;
                        place.last = head + inside.len();
                        // The next one up is what it is below.
                        inner = head;
                        continue;
                    }
                }
                "if" if place.condition.is_none() => place.condition = Some(head),
                "while" => return Err(NO_COUNTER.to_owned()),
                _ => return Err(NO_COUNTER.to_owned()),
            }
            is_first = false;
            inner = head;
        }
    }
}

/// The statements below one.
fn body<'a>(source: &Source, statements: &'a [Statement], head: usize) -> &'a [Statement] {
    let depth = source.depth(statements[head]);
    let rest = &statements[head + 1..];
    &rest[..rest.iter().take_while(|it| source.depth(**it) > depth).count()]
}

/// Puts whole lines below a condition.
fn indented(
    source: &Source,
    statements: &[Statement],
    place: &Place,
    condition: &str,
) -> Result<Vec<Edit>, String> {
    let (from, until) = (statements[place.first].first, statements[place.last].until);
    let first = source.line_of(source.tokens[from].start);
    let last_token = source.last_of(from, until);
    let last = source.line_of(source.tokens[last_token].end - 1);
    let long = |it: usize| {
        let token = &source.tokens[it];
        token.kind == TokenKind::Text && source.text[token.start..token.end].contains('\n')
    };
    if (from..until).any(long) {
        return Err("a string of this line goes over several lines".to_owned());
    }
    let indent = source.indent(first);
    let above = source.line_of(source.tokens[statements[place.above].first].start);
    let unit = indent.strip_prefix(source.indent(above)).filter(|it| !it.is_empty());
    let unit = unit.ok_or("the lines of this loop are not indented alike")?;
    let begins = format!("{indent}{condition}{}{unit}", source.newline());
    let mut edits = vec![Edit::insert(source.lines[first - 1], begins)];
    for line in first + 1..=last {
        if source.line(line).is_some_and(|it| !it.trim().is_empty()) {
            edits.push(Edit::insert(source.lines[line - 1], unit.to_owned()));
        }
    }
    Ok(edits)
}

/// `if step % 4 == 0:` with a larger number.
fn less_often(
    source: &Source,
    condition: Statement,
    counter: &str,
    n: u32,
) -> Result<Vec<Edit>, String> {
    let at = condition.first;
    let number = at + 3;
    let is_it = source.is(at + 1, counter)
        && source.is(at + 2, "%")
        && source.kind(number) == Some(TokenKind::Number)
        && source.is(number + 1, "=")
        && source.is(number + 2, "=")
        && source.kind(number + 3) == Some(TokenKind::Number)
        && source.is(number + 4, ":");
    let old = is_it.then(|| source.of(number).parse::<u32>().ok()).flatten();
    let old = old.ok_or(NO_COUNTER)?;
    if n <= old {
        return Err(format!("it is done in one of {old} steps already"));
    }
    let token = &source.tokens[number];
    Ok(vec![Edit { at: token.start..token.end, new: n.to_string() }])
}

/// Gives `for x, y in batches:` a counter.
fn counted(source: &Source, head: Statement) -> Option<(String, Vec<Edit>)> {
    const NAME: &str = "step";
    let is_free = (0..source.tokens.len())
        .all(|it| !source.is(it, NAME) || it.checked_sub(1).is_some_and(|it| source.is(it, ".")));
    let first = source.next(head.first);
    let last = source.last_of(head.first, head.until);
    let mut at = first;
    let mut commas = 0;
    while !source.is(at, "in") {
        if at >= last || source.kind(at) == Some(TokenKind::Comment) {
            return None;
        }
        commas += usize::from(source.is(at, ","));
        at = if source.kind(at)? == TokenKind::Open { source.tokens[at].pair } else { at } + 1;
    }
    let over = source.next(at);
    // A tuple without brackets, or a body on the same line, cannot be put into brackets.
    let mut inner = over;
    while inner < last {
        if source.is(inner, ",") || source.is(inner, ":") {
            return None;
        }
        let is_open = source.kind(inner)? == TokenKind::Open;
        inner = if is_open { source.tokens[inner].pair } else { inner } + 1;
    }
    let is_plain = is_free && source.is(last, ":") && inner == last && over < last;
    if !is_plain || ["range", "enumerate"].contains(&source.of(over)) {
        return None;
    }
    let targets = &source.text[source.tokens[first].start..source.tokens[at - 1].end];
    let targets = if commas > 0 { format!("({targets})") } else { targets.to_owned() };
    let end = source.tokens[source.last_of(over, last)].end;
    Some((
        NAME.to_owned(),
        vec![
            Edit {
                at: source.tokens[first].start..source.tokens[at - 1].end,
                new: format!("{NAME}, {targets}"),
            },
            Edit::insert(source.tokens[over].start, "enumerate(".to_owned()),
            Edit::insert(end, ")".to_owned()),
        ],
    ))
}

/// Parts of names of what is only looked at.
const LOOKED_AT: &str = "checkpoint checkpointer checkpoints ckpt dashboard debug display draw dump evaluate \
    evaluation flush histogram histograms image info log logger logging logs metric metrics \
    monitor plot print progress record report save saver scalar show summary validate wandb \
    writer";
/// Methods that only wait for a result, where nobody takes it.
const WAITS: [&str; 4] = ["block_until_ready", "float", "item", "numpy"];
/// With these it learns, whatever else its name says.
const LEARNS: &str = "apply backward fit learn optimize optimizer restore train update zero";

/// Parts of names of what only makes a figure of results, as arguments of the others.
const MEASURES: &str = "abs accuracy area array asarray auc confusion copy counter curve dict dumps error \
    errors exp float format get histogram int item join len list loss max mean min norm \
    numpy percentile perf quantile rate ravel repr result round score sqrt std str sum \
    tolist";

/// Whether a call is one that training does not depend on, by the names of all that it calls.
fn is_looked_at(source: &Source, statement: Statement) -> Result<(), String> {
    let not_certain =
        |name: &str| Err(format!("whether training needs {name} in every step is not certain"));
    let names = callee(source, statement);
    let words_of = |it: &[&str]| it.iter().flat_map(|it| words(it)).collect::<Vec<_>>();
    let has =
        |words: &[String], of: &str| words.iter().any(|it| of.split(' ').any(|known| known == it));
    let of_callee = words_of(&names);
    let waits = names.last().is_some_and(|it| WAITS.contains(it));
    let is_it = waits || names.last() == Some(&"append") || has(&of_callee, LOOKED_AT);
    if !is_it || has(&of_callee, LEARNS) {
        return not_certain(&names.join("."));
    }
    let called = (statement.first..statement.until).filter(|&it| {
        source.kind(it) == Some(TokenKind::Name)
            && source.is(it + 1, "(")
            && it.checked_sub(1).is_none_or(|before| !source.is(before, "lambda"))
    });
    for it in called.map(|it| source.of(it)).filter(|it| !names.contains(it)) {
        let words = words(it);
        if has(&words, LEARNS) || !(has(&words, MEASURES) || has(&words, LOOKED_AT)) {
            return not_certain(it);
        }
    }
    // `f(x).numpy()` is more than a wait.
    let n_calls = names.len() - usize::from(waits);
    let chained = (statement.first..statement.until)
        .filter(|&it| names[..n_calls].contains(&source.of(it)) && source.is(it + 1, "("));
    match waits && chained.count() > 0 {
        true => not_certain(&names.join(".")),
        false => Ok(()),
    }
}

/// What a statement calls: `["tf", "summary", "scalar"]`.
fn callee(source: &Source, statement: Statement) -> Vec<&str> {
    let mut names = Vec::new();
    let mut at = statement.first;
    while at < statement.until {
        match source.kind(at) {
            Some(TokenKind::Name) => names.push(source.of(at)),
            Some(TokenKind::Open) => at = source.tokens[at].pair,
            _ => (),
        }
        at = source.next(at);
    }
    names
}

/// `addScalar` and `add_scalar` are of the same words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for it in name.chars() {
        if (it == '_' || it.is_uppercase()) && words.last().is_some_and(|it| !it.is_empty()) {
            words.push(String::new());
        }
        if it != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(it.to_lowercase());
        }
    }
    words
}

/// The same, where `losses.append(…)` only fills a list that the loop does not read.
fn may_be_left_out(
    source: &Source,
    statements: &[Statement],
    head: usize,
    at: usize,
) -> Result<(), String> {
    let statement = statements[at];
    let first = statement.first;
    if (first..statement.until).any(|it| source.is(it, ":") && source.is(it + 1, "=")) {
        return Err("it sets a name on the way".to_owned());
    }
    is_looked_at(source, statement)?;
    if callee(source, statement).last() != Some(&"append") {
        return Ok(());
    }
    if !(source.is(first + 1, ".") && source.is(first + 2, "append")) {
        return Err("what it appends to is not plain".to_owned());
    }
    let list = source.of(first);
    let mentions = |it: &Statement| {
        (it.first..it.until).any(|at| {
            source.is(at, list) && !at.checked_sub(1).is_some_and(|it| source.is(it, "."))
        })
    };
    let in_loop = body(source, statements, head);
    let in_loop = in_loop.iter().filter(|it| **it != statement).any(mentions);
    let elsewhere = (0..statements.len()).filter(|&it| source.is(statements[it].first, "def"));
    let elsewhere = elsewhere
        .map(|it| body(source, statements, it))
        .filter(|it| !it.contains(&statement))
        .any(|it| it.iter().any(mentions));
    if in_loop || elsewhere {
        return Err(format!("{list} is read elsewhere, maybe by what trains"));
    }
    Ok(())
}

/// `a.b(…)` or `a.b(…).c(…)`, and nothing else.
fn is_plain_call(source: &Source, statement: Statement) -> bool {
    const WORDS: [&str; 12] = [
        "assert", "await", "break", "continue", "del", "global", "import", "nonlocal", "raise",
        "return", "super", "yield",
    ];
    let mut at = statement.first;
    let mut calls = 0;
    if WORDS.contains(&source.of(at)) || source.kind(at) != Some(TokenKind::Name) {
        return false;
    }
    at = source.next(at);
    while at < statement.until {
        if source.is(at, ".") && source.kind(source.next(at)) == Some(TokenKind::Name) {
            at = source.next(source.next(at));
            calls &= !1;
        } else if source.is(at, "(") || source.is(at, "[") {
            calls = if source.is(at, "(") { calls | 1 } else { calls & !1 };
            at = source.next(source.tokens[at].pair);
        } else {
            return false;
        }
    }
    calls & 1 == 1
}

/// The counter of `for step in range(…)` or `for step, batch in enumerate(…)`.
fn counter(source: &Source, head: Statement) -> Result<String, String> {
    let name = source.next(head.first);
    let after = source.next(name);
    let is_pair = source.is(after, ",");
    let mut at = after;
    while at < head.until && !source.is(at, "in") {
        at = if source.kind(at) == Some(TokenKind::Open) {
            source.tokens[at].pair + 1
        } else {
            at + 1
        };
    }
    let called = source.next(at);
    let open = source.next(called);
    let fits = match source.of(called) {
        "range" => !is_pair && after == at,
        "enumerate" => is_pair,
        _ => false,
    };
    let is_whole = source.is(open, "(") && {
        let colon = source.next(source.tokens[open].pair);
        source.is(colon, ":") && source.next(colon) >= head.until
    };
    if fits && is_whole && source.kind(name) == Some(TokenKind::Name) {
        Ok(source.of(name).to_owned())
    } else {
        Err(NO_COUNTER.to_owned())
    }
}
