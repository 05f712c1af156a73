//! What rules know of each framework: how to write an edit in its words, and what its calls cost.
//!
//! ```text
//! rule ── Edit ──▶ Fix ── Words of the run ──▶ text and code, or the fix goes
//! ```
//!
//! A rule names an edit and no framework. Who has no words for it cannot make it: so nobody gets
//! another framework's advice. The printed code is listed in `bench/edits/printed.json`, and
//! `bench/edits/printed` runs each of them with today's frameworks. An edit that is known to fail
//! somewhere says when not to use it.

mod jax;
mod plain;
mod tensorflow;
mod tf_data;
mod torch;

use std::fmt::Display;

use analyses::Tables;
use analyses::host_call::HostCall;
use analyses::run_info::frameworks;

use crate::Fix;

/// Something to write, whatever a framework calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    ParallelMap,
    ParallelAndAhead,
    Prefetch,
    ParallelReads,
    ShuffleFirst,
    Cache,
    CacheAndRepeat,
    FromArrays,
    NativeInput,
    LessBuffering,
    /// As many examples as are given.
    BatchOf,
    /// So many times as many.
    TimesLargerBatch,
    Workers,
    MoreWorkers,
    StepsPerCall,
    CompileStep,
    /// Leave a switch alone that keeps a model from being compiled.
    CompileModel,
    /// Small ops made into larger ones by the compiler.
    Fuse,
    /// The same, of a model on a host whose ops a compiler has not met yet.
    FuseModel,
    Vectorize,
    SaveSeldom,
    SaveInBackground,
    SummarySeldom,
    ReadSeldom,
    KeepNumbers,
    Drop,
    Recompute,
    Float32,
    HalfPrecision,
    Bfloat16,
    Tf32,
    SparseUpdate,
    FewerThreads,
    ToDeviceAhead,
    SplitRequests,
    CallTheModel,
    /// The same, where nothing else is known of who builds pipelines.
    CallTheModelItself,
    PredictAll,
    FunctionOnce,
    CompileModelOnce,
    TensorArgument,
    /// Let one traced function take inputs of many shapes.
    AnyShape,
    /// The same of a compiled program.
    CompileAnyShape,
    DeclareShapes,
    EqualBatches,
    PadShapes,
    CompiledOnce,
    ArrayArgument,
    CaptureByStrobe,
    ProfileLess,
}

/// An edit, with a number or a name of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    edit: Edit,
    value: String,
}

impl Edit {
    /// With what is put in place of `{}`.
    pub fn with(self, value: impl Display) -> Advice {
        Advice { edit: self, value: value.to_string() }
    }
}

impl From<Edit> for Advice {
    fn from(edit: Edit) -> Advice {
        edit.with("")
    }
}

/// An edit in the words of one framework.
#[derive(Debug)]
pub struct Word {
    edit: Edit,
    /// The name of the code in `bench/edits`.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test writes the list that bench/edits runs")
    )]
    key: Option<&'static str>,
    /// In place of what the rule says.
    says: Option<&'static str>,
    /// With `{}` where a number or a name of the run comes in.
    code: Option<&'static str>,
    compiles: bool,
}

impl Word {
    const fn code(edit: Edit, key: &'static str, code: &'static str) -> Word {
        Word { edit, key: Some(key), says: None, code: Some(code), compiles: false }
    }

    /// Code that stands in the list under another edit.
    const fn again(edit: Edit, code: &'static str) -> Word {
        Word { edit, key: None, says: None, code: Some(code), compiles: false }
    }

    /// Nothing to write: a sentence.
    const fn text(edit: Edit, says: &'static str) -> Word {
        Word { edit, key: None, says: Some(says), code: None, compiles: false }
    }

    const fn says(self, says: &'static str) -> Word {
        Word { says: Some(says), ..self }
    }

    /// What is compiled already is not to be compiled again.
    const fn compiles(self) -> Word {
        Word { compiles: true, ..self }
    }
}

/// What calling single ops costs, and what is left of that when they are compiled. Of three numbers
/// the first is at worst, then likely, then at best.
#[derive(Debug)]
pub struct EagerCosts {
    /// Calling one compiled function.
    pub call_ps: i64,
    /// What an op's own work has too much when it is called on its own.
    pub on_its_own_ps: [i64; 3],
    /// What an op costs inside a compiled function beside its work.
    pub in_graph_ps: [i64; 3],
    /// What is left of larger ops' own work.
    pub large_ops: [f64; 3],
    /// A function of the user's is compiled, where it is written.
    pub compiles_function: bool,
    /// An event of an op holds its work, and a device may work through calls meanwhile.
    pub is_hidden_by_device: bool,
    /// Where the turns of a loop become one op instead of one compiled call: what each op of a turn
    /// then takes, called on its own.
    pub one_op_ps: Option<[i64; 3]>,
}

/// A framework, or a part of one that others use too.
#[derive(Debug)]
pub struct Dialect {
    name: &'static str,
    words: &'static [Word],
    /// Why a profile without memory events has none, and how to get some.
    no_memory_events: &'static str,
    pub eager: EagerCosts,
}

static ALL: &[&Dialect] = &[&tensorflow::DIALECT, &jax::DIALECT, &torch::DIALECT];

/// The framework that computes. Where several left their names, one only feeds the other: JAX's are
/// those of its compiled calls, TensorFlow's also those of its input pipelines.
pub fn dialect(tables: &Tables) -> Option<&'static Dialect> {
    let named = frameworks(tables.trace());
    let find = |name: &str| ALL.iter().copied().find(|it| it.name == name);
    let computes = [jax::DIALECT.name, tensorflow::DIALECT.name, torch::DIALECT.name];
    computes.into_iter().find(|it| named.contains(it)).and_then(find)
}

/// What calling single ops costs in this run.
pub fn eager_costs(tables: &Tables) -> &'static EagerCosts {
    &dialect(tables).unwrap_or(&tensorflow::DIALECT).eager
}

pub fn no_memory_events(tables: &Tables) -> String {
    let why = dialect(tables).map_or("", |it| it.no_memory_events);
    format!("this profile has no memory events{why}")
}

/// The words of a run.
#[derive(Debug)]
pub struct Words {
    /// None: who computes is not known.
    of: Option<Vec<&'static [Word]>>,
    is_compiled: bool,
}

impl Words {
    pub fn of(tables: &Tables) -> Words {
        let named = frameworks(tables.trace());
        let of = dialect(tables).map(|it| {
            let fed_by_tensorflow = named.contains(&tensorflow::DIALECT.name);
            let input = if fed_by_tensorflow { tf_data::WORDS } else { &[] };
            vec![it.words, input, plain::WORDS]
        });
        let is_compiled = tables.get::<HostCall>().iter().any(|it| it.kind == "function");
        Words { of, is_compiled }
    }

    fn find(&self, edit: Edit) -> Option<&'static Word> {
        let known = self.of.iter().flatten().copied();
        known.chain([plain::WORDS]).flatten().find(|it| it.edit == edit)
    }

    pub fn has(&self, edit: Edit) -> bool {
        self.find(edit).is_some_and(|it| !(it.compiles && self.is_compiled))
    }

    /// Says each fix in these words; those that have none go.
    pub fn put_into(&self, fixes: &mut Vec<Fix>) {
        let mut met: Vec<String> = Vec::new();
        fixes.retain_mut(|fix| {
            let Some(advice) = fix.advice.take() else { return true };
            let Some(word) = self.find(advice.edit) else {
                // Without code the advice itself is still right for who computes.
                return self.of.is_none();
            };
            if word.compiles && self.is_compiled {
                return false;
            }
            if let Some(says) = word.says {
                fix.text = says.replace("{}", &advice.value);
            }
            fix.edit = word.code.map(|it| it.replace("{}", &advice.value));
            // Several edits can be one and the same here.
            let is_new = fix.edit.as_ref().is_none_or(|it| !met.contains(it));
            met.extend(fix.edit.clone());
            is_new
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{ALL, Edit, Word, Words, jax, plain, tensorflow, tf_data, torch};
    use crate::{Change, Fix};

    fn all() -> impl Iterator<Item = &'static Word> {
        let of_all = ALL.iter().map(|it| it.words);
        of_all.chain([tf_data::WORDS, plain::WORDS]).flatten()
    }

    /// `UPDATE=1 cargo test` writes it anew; `bench/edits/printed` runs all of them.
    #[test]
    fn the_list_of_edits_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/edits/printed.json");
        let coded: Vec<_> = all().filter_map(|it| Some((it.key?, it.code?))).collect();
        let edits: BTreeMap<&str, &str> = coded.iter().copied().collect();
        assert_eq!(edits.len(), coded.len(), "a key is used twice");
        let lines: Vec<String> =
            edits.iter().map(|(key, text)| format!("{}: {}", quoted(key), quoted(text))).collect();
        let fresh = format!("{{\n{}\n}}\n", lines.join(",\n"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            kept, fresh,
            "run `UPDATE=1 cargo test -p rules dialect`, then bench/edits/printed"
        );
    }

    #[test]
    fn an_edit_has_one_word_in_a_dialect() {
        for words in ALL.iter().map(|it| it.words).chain([tf_data::WORDS, plain::WORDS]) {
            let mut edits: Vec<Edit> = words.iter().map(|it| it.edit).collect();
            let n = edits.len();
            edits.sort_unstable();
            edits.dedup();
            assert_eq!(edits.len(), n, "{edits:?}");
        }
    }

    fn said(of: Option<Vec<&'static [Word]>>, fixes: Vec<Fix>) -> Vec<(String, String)> {
        let mut fixes = fixes;
        Words { of, is_compiled: false }.put_into(&mut fixes);
        fixes.into_iter().map(|it| (it.text, it.edit.unwrap_or_default())).collect()
    }

    fn advice() -> Vec<Fix> {
        vec![
            Fix::new(Change::Prefetch, "Prefetch").edit(Edit::Prefetch),
            Fix::new(Change::ParallelMap, "Map in parallel").edit(Edit::ParallelAndAhead),
            Fix::new(Change::LargerBatch, "Larger").edit(Edit::TimesLargerBatch.with(4)),
            Fix::new(Change::LargerBatch, "A batch of 64").edit(Edit::BatchOf.with(64)),
            Fix::new(Change::StepsPerCall, "Run several").edit(Edit::StepsPerCall),
            Fix::new(Change::FillDevice, "Give each launch more work"),
        ]
    }

    #[test]
    fn a_run_gets_its_own_edits_or_none() {
        let word = |text: &str, code: &str| (text.to_owned(), code.to_owned());
        assert_eq!(
            said(Some(vec![torch::DIALECT.words, plain::WORDS]), advice()),
            [
                word(
                    "Make batches in worker processes, ahead of the step",
                    "loader = DataLoader(data, batch_size, num_workers=4, persistent_workers=True)"
                ),
                word("Larger", "batch_size = batch_size * 4"),
                word("A batch of 64", "loader = DataLoader(data, batch_size=64)"),
                word("Give each launch more work", ""),
            ]
        );
        // With its own input there is nothing of TensorFlow in it.
        let jax = said(Some(vec![jax::DIALECT.words, plain::WORDS]), advice());
        assert_eq!(
            jax.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
            ["Larger", "Run several", "Give each launch more work"]
        );
    }

    #[test]
    fn who_is_not_known_gets_advice_in_words() {
        let said = said(None, advice());
        assert_eq!(said.len(), 6);
        assert!(
            said.iter().all(|it| it.1.is_empty() || it.1.starts_with("batch_size")),
            "{said:?}"
        );
    }

    #[test]
    fn what_is_compiled_is_not_to_be_compiled_again() {
        let mut fixes = vec![Fix::new(Change::Fuse, "Compile").edit(Edit::Fuse)];
        let of = Some(vec![torch::DIALECT.words]);
        Words { of, is_compiled: true }.put_into(&mut fixes);
        assert_eq!(fixes, []);
    }

    /// Words of one framework in another's mouth.
    #[test]
    fn each_dialect_is_pure() {
        let check = |words: &[Word], foreign: &[&str]| {
            for word in words {
                let text = format!("{:?} {:?}", word.says, word.code);
                let found = foreign.iter().find(|it| text.contains(*it));
                assert_eq!(found, None, "{text}");
            }
        };
        check(torch::DIALECT.words, &["tf.", "keras", "jax", "jnp", "XLA"]);
        check(jax::DIALECT.words, &["tf.", "keras", "torch", "Keras"]);
        check(tensorflow::DIALECT.words, &["jax", "jnp", "torch"]);
        check(plain::WORDS, &["tf.", "keras", "jax", "jnp", "torch"]);
    }

    fn quoted(text: &str) -> String {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{text}\"")
    }
}
