//! `@tf.function` or `@jax.jit` above a function, where nothing in it speaks against that.

use std::collections::BTreeSet;

use analyses::code_site::Site;

use super::call::{Call, Edit};
use super::change::module;
use super::source::{Source, Statement, TokenKind};

pub(super) fn jit(source: &Source, site: &Site) -> Result<Vec<Edit>, String> {
    let line = usize::try_from(site.line).unwrap_or(0);
    let statements = source.statements();
    let on_line = source.statement_at(line).ok_or("there is nothing on this line")?;
    let mut at =
        statements.iter().position(|it| *it == on_line).ok_or("there is nothing on this line")?;
    while statements.get(at).is_some_and(|it| source.is(it.first, "@")) {
        at += 1;
    }
    let def = statements.get(at).filter(|it| source.is(it.first, "def"));
    let def = *def.ok_or("no function begins on this line")?;
    let above = statements[..at].iter().rev().take_while(|it| source.is(it.first, "@"));
    let is_static =
        |it: &Statement| source.is(it.first + 1, "staticmethod") && it.until == it.first + 2;
    if !above.into_iter().all(is_static) {
        return Err("the function already has a decorator".to_owned());
    }
    if site.name.as_deref().is_some_and(|it| it != source.of(def.first + 1)) {
        return Err("another function begins on this line".to_owned());
    }
    let depth = source.depth(def);
    let body: Vec<Statement> =
        statements[at + 1..].iter().copied().take_while(|it| source.depth(*it) > depth).collect();
    let until = body.last().map_or(def.until, |it| it.until);
    let uses = |name: &str| (def.first..until).any(|it| source.is(it, name));
    if uses("yield") || uses("await") {
        return Err("a generator cannot be compiled".to_owned());
    }
    let tensorflow = module(source, "tensorflow").ok().filter(|it| uses(it));
    let jax = module(source, "jax").ok();
    let numpy = jax.as_ref().and_then(|_| module_of_numpy(source));
    let is_jax = jax.as_ref().is_some_and(|it| uses(it)) || numpy.is_some_and(|it| uses(&it));
    let decorator = match (tensorflow, jax.filter(|_| is_jax)) {
        (Some(it), None) => format!("{it}.function"),
        (None, Some(it)) => format!("{it}.jit"),
        (Some(_), Some(_)) => return Err("the function uses both TensorFlow and JAX".to_owned()),
        (None, None) => {
            return Err("the function uses neither TensorFlow nor JAX by name".to_owned());
        }
    };
    let first = source.of(def.first + 3);
    if decorator.ends_with(".jit") && matches!(first, "self" | "cls") {
        return Err("jax.jit cannot take a method's self".to_owned());
    }
    let is_jax = decorator.ends_with(".jit");
    if let Some(why) = (Body { source, statements: &statements, is_jax }).why_not(at) {
        return Err(format!("{} cannot be compiled as it is: {why}", source.of(def.first + 1)));
    }
    let line = source.line_of(source.tokens[def.first].start);
    let new = format!("{}@{decorator}{}", source.indent(line), source.newline());
    Ok(vec![Edit::insert(source.lines[line - 1], new)])
}

/// `jnp`, of `import jax.numpy as jnp`.
fn module_of_numpy(source: &Source) -> Option<String> {
    let tokens = 0..source.tokens.len();
    let is_it = |it: &usize| {
        source.is(*it, "jax")
            && source.is(it + 1, ".")
            && source.is(it + 2, "numpy")
            && source.is(it + 3, "as")
            && it.checked_sub(1).is_some_and(|it| source.is(it, "import") || source.is(it, ","))
    };
    tokens.into_iter().find(is_it).map(|it| source.of(it + 4).to_owned())
}

/// The functions of a file, and what in them only works where every call runs the Python again.
struct Body<'a> {
    source: &'a Source,
    statements: &'a [Statement],
    is_jax: bool,
}

/// Methods that change what they are called on.
const CHANGES_IT: [&str; 6] = ["append", "extend", "insert", "pop", "write", "writelines"];
/// What an array, or a state of Flax', can be asked for inside of a compiled function.
const OF_ARRAYS: &str = "all any apply_fn apply_gradients argmax argmin astype at clip copy cumsum dot flatten \
    items keys max mean min replace reshape sum transpose values var";

impl Body<'_> {
    /// Why the function of this statement cannot be compiled; with the functions that it calls.
    fn why_not(&self, def: usize) -> Option<String> {
        let mut open = vec![def];
        let mut looked_at = BTreeSet::from([def]);
        while let Some(def) = open.pop() {
            let why = self.why_not_alone(def, &mut |called| {
                if looked_at.insert(called) {
                    open.push(called);
                }
            });
            if why.is_some() {
                return why;
            }
        }
        self.numbers_it_is_called_with(self.source.of(self.statements[def].first + 1))
    }

    /// The statements of a function.
    fn of(&self, def: usize) -> &[Statement] {
        let depth = self.source.depth(self.statements[def]);
        let rest = &self.statements[def + 1..];
        let n = rest.iter().take_while(|it| self.source.depth(**it) > depth).count();
        &self.statements[def..=def + n]
    }

    fn why_not_alone(&self, def: usize, calls: &mut dyn FnMut(usize)) -> Option<String> {
        let source = self.source;
        let all = self.of(def);
        let head = all.first()?;
        let open = head.first + 2;
        let parameters = Call { open, close: source.tokens.get(open)?.pair };
        let parameters: Vec<String> = match parameters.arguments(source) {
            Some(it) => it.iter().map(|it| source.of(it.first).to_owned()).collect(),
            None => return Some("its parameters are not plain".to_owned()),
        };
        let first = all.get(1).map_or(head.until, |it| it.first);
        let until = all.last()?.until;
        let own: BTreeSet<&str> = (first..until)
            .filter(|&it| source.kind(it) == Some(TokenKind::Name) && source.is(it + 1, "="))
            .map(|it| source.of(it))
            .collect();
        let numpy = module(source, "numpy").ok();
        if self.is_jax {
            let decides =
                |it: &&Statement| ["if", "elif", "while", "assert"].contains(&source.of(it.first));
            if let Some(it) = all[1..].iter().find(decides) {
                return Some(format!(
                    "line {} decides by a value",
                    source.line_of(source.tokens[it.first].start)
                ));
            }
        }
        for at in first..until {
            if source.kind(at) != Some(TokenKind::Name) {
                continue;
            }
            let name = source.of(at);
            let is_called = source.is(at + 1, "(");
            let owner = at.checked_sub(2).filter(|it| source.is(it + 1, "."));
            let why = match owner {
                None if is_called && matches!(name, "print" | "open" | "input") => {
                    Some(format!("it calls {name}"))
                }
                None if is_called && matches!(name, "float" | "int" | "bool") => {
                    Some(format!("{name}(…) needs the value of a result"))
                }
                None if matches!(name, "global" | "nonlocal") => {
                    Some("it sets what is not its own".to_owned())
                }
                None if source.is(at + 1, ".") && matches!(name, "time" | "random" | "os") => {
                    Some(format!("it uses {name}"))
                }
                None if source.is(at + 1, ".") && numpy.as_deref() == Some(name) => {
                    Some("it computes with NumPy".to_owned())
                }
                None if is_called && name == "range" && self.is_jax => parameters
                    .iter()
                    .find(|it| source.is(at + 2, it) && source.is(at + 3, ")"))
                    .map(|it| format!("range({it}) needs a number")),
                Some(_) if is_called && matches!(name, "numpy" | "item" | "tolist") => {
                    Some(format!(".{name}() needs the value of a result"))
                }
                Some(_) if is_called && name == "Variable" => Some("it makes variables".to_owned()),
                Some(owner) if is_called && CHANGES_IT.contains(&name) => {
                    let owner = source.of(owner);
                    (!own.contains(owner)).then(|| format!("it changes {owner}"))
                }
                Some(owner)
                    if is_called && self.is_jax && !OF_ARRAYS.split(' ').any(|it| it == name) =>
                {
                    parameters
                        .iter()
                        .find(|it| source.is(owner, it) && !source.is(owner.wrapping_sub(1), "."))
                        .map(|it| format!("its argument {it} is more than an array"))
                }
                _ => None,
            };
            if why.is_some() {
                return why;
            }
            if owner.is_none() {
                let named = |it: &&usize| {
                    let def = self.statements[**it];
                    source.is(def.first, "def") && source.is(def.first + 1, name)
                };
                let defs: Vec<usize> = (0..self.statements.len()).collect();
                if let Some(&it) = defs.iter().find(named) {
                    calls(it);
                }
            }
        }
        None
    }

    /// TensorFlow traces a function again for every Python number that it is called with.
    fn numbers_it_is_called_with(&self, name: &str) -> Option<String> {
        if self.is_jax {
            return None;
        }
        let source = self.source;
        let counters: BTreeSet<&str> = (0..source.tokens.len())
            .filter(|&it| source.is(it, "for") && source.kind(it + 1) == Some(TokenKind::Name))
            .filter(|&it| {
                let is_range = source.is(it + 2, "in") && source.is(it + 3, "range");
                is_range || source.is(it + 2, ",")
            })
            .map(|it| source.of(it + 1))
            .collect();
        let calls = Call::named(source, name, 0..source.lines.len() + 1);
        let given = calls.iter().filter_map(|it| it.arguments(source)).flatten();
        let mut alone = given.filter(|it| it.value == it.last).map(|it| source.of(it.value));
        let counter = alone.find(|it| counters.contains(it))?;
        Some(format!("it is called with {counter}, and each number would be traced again"))
    }
}
