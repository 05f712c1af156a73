//! Which lines of the user's code made what a profile shows.
//!
//! ```text
//! profile   Root ◀ Prefetch (inject/…) ◀ MapAndBatch (fused(MapDataset:1,BatchDatasetV2:2)) ◀ TensorSlice
//! code             keras.fit ─▶ .batch(32) ─▶ ds.map(augment) ─▶ from_tensor_slices(…)
//! ```
//!
//! Both are walked from the consumer down. TensorFlow drops, fuses and adds stages on the way; what
//! can be explained by two different lines is not explained at all.

mod pipeline;
mod step_loop;

use trace::dialect::{self, SiteRole};
use trace::{Process, Site as Noted};

pub use step_loop::{Doing, LoopLine, loop_lines};

use crate::input_stage::pipeline::Stage;
use crate::{Analysis, Tables};

table! {
    /// Lines of the user's own code that make datasets, compiled functions, optimizers and the like,
    /// as the program reached them. Known where the run was started by `strobe run`.
    pub struct CodeSite = "code_site" {
        /// The row: 0 is what the program reached first.
        site: i64,
        /// What the line makes: `dataset.map`, `dataset.iter` (a loop over a dataset), `tf.function`,
        /// `jax.jit`, `jax.pmap`, `optimizer`, `keras.compile`, `keras.fit`, `keras.callback`,
        /// `keras.PyDataset`, `torch.DataLoader`, `loop` (around the steps).
        kind: String,
        /// The function that is passed or decorated, or the class; of a loop, the function that it
        /// calls for a step.
        name: Option<String>,
        /// The file.
        file: String,
        /// The line of the call.
        line: i64,
        /// The last line of the call; of a loop, of its body.
        end_line: i64,
        /// Bytes of that line up to the end of the call, where Python says so (from 3.11 on).
        end_col: Option<i64>,
        /// The call in short: `ds.map(augment)`.
        call: Option<String>,
        /// The whole statement; of a function or loop its head. Empty where the file could not be read.
        text: String,
        /// The line on which the text begins.
        text_line: i64,
        /// Arguments that matter for speed, where they are given: `num_parallel_calls=AUTOTUNE`.
        args: String,
        /// Rows of what it takes: the datasets and callbacks, separated by spaces.
        inputs: String,
        /// The row whose function makes it, such as the `interleave` around it.
        inside: Option<i64>,
        /// The file of the function that is passed, where that is the user's own.
        defined_file: Option<String>,
        /// The line on which it begins, decorators included.
        defined_line: Option<i64>,
    }
}

/// A line of the user's code: a row of the table.
pub type Site = CodeSite;

impl Analysis for CodeSite {
    fn run(tables: &Tables) -> Vec<CodeSite> {
        process(tables).map_or_else(Vec::new, |it| {
            it.sites.iter().enumerate().map(|(row, it)| CodeSite::of(row, it)).collect()
        })
    }
}

impl CodeSite {
    fn of(row: usize, site: &Noted) -> CodeSite {
        let args: Vec<String> = site.args.iter().map(|(name, it)| format!("{name}={it}")).collect();
        let inputs: Vec<String> = site.inputs.iter().map(u32::to_string).collect();
        CodeSite {
            site: row as i64,
            kind: site.kind.clone(),
            name: site.name.clone(),
            file: site.file.clone(),
            line: i64::from(site.line),
            end_line: i64::from(site.end_line),
            end_col: site.end_col.map(i64::from),
            call: site.call.clone(),
            text: site.text.clone(),
            text_line: i64::from(site.text_line),
            args: args.join(", "),
            inputs: inputs.join(" "),
            inside: site.inside.map(i64::from),
            defined_file: site.defined.as_ref().map(|it| it.0.clone()),
            defined_line: site.defined.as_ref().map(|it| i64::from(it.1)),
        }
    }

    /// A line of which nothing else is known, such as one that sampled stacks show.
    pub fn at_line(kind: &str, file: &str, line: i64) -> CodeSite {
        CodeSite {
            site: -1,
            kind: kind.to_owned(),
            name: None,
            file: file.to_owned(),
            line,
            end_line: line,
            end_col: None,
            call: None,
            text: String::new(),
            text_line: line,
            args: String::new(),
            inputs: String::new(),
            inside: None,
            defined_file: None,
            defined_line: None,
        }
    }

    /// `train.py:42`. The path before it is the user's own business.
    pub fn place(&self) -> String {
        let mut parts = self.file.rsplit(['/', '\\']);
        let name = parts.next().unwrap_or(&self.file);
        match parts.next() {
            // Jupyter's kernel names a cell by a hash of its text, which says nothing to anybody.
            Some(folder) if folder.starts_with("ipykernel_") => {
                format!("line {} of a notebook cell", self.line)
            }
            _ => format!("{name}:{}", self.line),
        }
    }

    /// The call in short: `ds.map(augment)`. Of a decorated function its name.
    pub fn call(&self) -> String {
        let method = self.kind.rsplit('.').next().unwrap_or(&self.kind);
        match (&self.call, &self.name) {
            _ if self.is_decorator() => self.name.clone().unwrap_or_else(|| self.kind.clone()),
            (Some(call), _) => call.clone(),
            (None, Some(name)) if self.kind.starts_with("dataset.") => format!("{method}({name})"),
            (None, Some(name)) => name.clone(),
            (None, None) => method.to_owned(),
        }
    }

    /// Whether it stands above a function.
    pub fn is_decorator(&self) -> bool {
        self.text.trim_start().starts_with('@')
    }

    /// What was given for an argument that matters for speed.
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args.split(", ").find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    /// The same call, whatever led to it.
    fn is_same_call(&self, other: &CodeSite) -> bool {
        (&self.kind, &self.file, self.line, self.end_line, self.end_col)
            == (&other.kind, &other.file, other.line, other.end_line, other.end_col)
    }
}

/// Whose sites count: those of the process that takes the steps, not those of its helpers.
fn process(tables: &Tables) -> Option<&Process> {
    let processes = tables.trace().processes.iter().filter(|it| !it.sites.is_empty());
    // Of equal ones the first.
    processes.rev().max_by_key(|it| it.steps.last().map_or(0, |it| it.count))
}

/// The one call among these, or none where they differ.
fn only(sites: impl IntoIterator<Item = CodeSite>) -> Option<CodeSite> {
    let mut sites = sites.into_iter();
    let first = sites.next()?;
    sites.all(|it| it.is_same_call(&first)).then_some(first)
}

/// The call that made a stage of the input pipeline. `None` where there is none of the user's, or
/// where it could be one of several.
pub fn site_of_stage(tables: &Tables, stage: &Stage) -> Option<Site> {
    pipeline::site_of_stage(tables, process(tables)?, stage)
}

/// The last call of the user's on the dataset that is trained on: what comes after it is the loop.
pub fn last_stage_site(tables: &Tables) -> Option<Site> {
    pipeline::last_site(process(tables)?)
}

/// Where a function was compiled or decorated, by a name as tables of compilations have it:
/// `train_step`, `PjitFunction(update)`, `jit(update)`, `__inference_train_step_123`.
pub fn site_of_function(tables: &Tables, name: &str) -> Option<Site> {
    let rows = tables.get::<CodeSite>();
    let of_name = |name: &str| {
        let is_it = |it: &&CodeSite| is_function(&it.kind) && it.name.as_deref() == Some(name);
        rows.iter().filter(is_it).cloned().collect::<Vec<_>>()
    };
    let exact = of_name(name);
    if !exact.is_empty() {
        return only(exact);
    }
    only(of_name(plain_function(name)))
}

fn is_function(kind: &str) -> bool {
    dialect::site(kind) == Some(SiteRole::Function)
}

/// A function's name as its author wrote it.
fn plain_function(name: &str) -> &str {
    let name = name.trim();
    let name = dialect::function_of(name).unwrap_or(name);
    name.rsplit(['.', ' ']).next().unwrap_or(name)
}

fn of_role(tables: &Tables, role: SiteRole) -> Vec<Site> {
    let rows = tables.get::<CodeSite>();
    rows.iter().filter(|it| dialect::site(&it.kind) == Some(role)).cloned().collect()
}

/// The one place that makes an optimizer.
pub fn optimizer_site(tables: &Tables) -> Option<Site> {
    let rows = tables.get::<CodeSite>();
    let made: Vec<Site> = rows.iter().filter(|it| it.kind == "optimizer").cloned().collect();
    only(made)
}

/// The one call of `model.fit`.
pub fn fit_site(tables: &Tables) -> Option<Site> {
    only(of_role(tables, SiteRole::Fit))
}

/// The one call of `model.compile`.
pub fn compile_site(tables: &Tables) -> Option<Site> {
    only(of_role(tables, SiteRole::CompileModel))
}

/// The one data loader that makes batches in Python.
pub fn loader_site(tables: &Tables) -> Option<Site> {
    only(of_role(tables, SiteRole::Loader))
}

/// Where the callbacks were made that `model.fit` was given.
pub fn callback_sites(tables: &Tables) -> Vec<Site> {
    let rows = tables.get::<CodeSite>();
    let mut found: Vec<Site> = Vec::new();
    for fit in rows.iter().filter(|it| dialect::site(&it.kind) == Some(SiteRole::Fit)) {
        for input in fit.inputs.split(' ').filter_map(|it| it.parse::<usize>().ok()) {
            let is_callback = |it: &&CodeSite| dialect::site(&it.kind) == Some(SiteRole::Callback);
            let Some(site) = rows.get(input).filter(is_callback) else {
                continue;
            };
            if !found.iter().any(|it| it.site == site.site) {
                found.push(site.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
