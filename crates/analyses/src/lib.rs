//! Trace in, tables out: one file per table, each a row type and a pure function.
//!
//! Tables hold raw integers with units in their names; only outlets format. No analysis asks
//! which format a trace came from.

pub mod hlo;
pub mod pace;
pub mod replay;
pub mod span;
pub mod stream_sum;

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};

use hashbrown::HashMap;
use trace::Trace;

/// What stands in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Not known, which is not zero.
    Null,
    Int(i64),
    Float(f64),
    Text(&'a str),
    Bool(bool),
}

/// A column: its name carries the unit, its doc says what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: CellKind,
    /// Whether a cell can be null.
    pub nullable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    Int,
    Float,
    Text,
    Bool,
}

/// A row of a table. Written by `table!`.
pub trait Row: Sized + Send + Sync + 'static {
    const NAME: &'static str;
    const DOC: &'static str;
    const COLUMNS: &'static [Column];
    fn cell(&self, column: usize) -> Cell<'_>;
}

/// A table computed from a trace: a row type and a pure function.
pub trait Analysis: Row {
    fn run(tables: &Tables) -> Vec<Self>;
}

/// A field's type, as a cell.
pub trait Field {
    const KIND: CellKind;
    /// Whether the cell can be null.
    const NULLABLE: bool = false;
    fn cell(&self) -> Cell<'_>;
}

macro_rules! fields {
    ($($of:ty, $kind:ident, $it:ident => $cell:expr;)*) => { $(
        impl Field for $of {
            const KIND: CellKind = CellKind::$kind;
            fn cell(&self) -> Cell<'_> {
                let $it = self;
                $cell
            }
        }
    )* };
}

fields! {
    i64, Int, it => Cell::Int(*it);
    f64, Float, it => Cell::Float(*it);
    bool, Bool, it => Cell::Bool(*it);
    String, Text, it => Cell::Text(it);
    &'static str, Text, it => Cell::Text(it);
    Arc<str>, Text, it => Cell::Text(it);
}

/// A number that a program logged. It can be none (NaN), for which JSON and SQL have only null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logged(pub f64);

impl Field for Logged {
    const KIND: CellKind = CellKind::Float;
    const NULLABLE: bool = true;
    fn cell(&self) -> Cell<'_> {
        Cell::Float(self.0)
    }
}

/// A value that code asks and people read: a text column, made once of its [`Display`](fmt::Display).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worded<T> {
    value: T,
    words: String,
}

impl<T: fmt::Display> From<T> for Worded<T> {
    fn from(value: T) -> Worded<T> {
        Worded { words: value.to_string(), value }
    }
}

impl<T> Worded<T> {
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl<T> Deref for Worded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Field for Worded<T> {
    const KIND: CellKind = CellKind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(&self.words)
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: CellKind = T::KIND;
    const NULLABLE: bool = true;
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, Field::cell)
    }
}

/// Declares a row type, lifting the doc comments into data: `strobe explain`, the SQL schema and
/// the reference all say the same.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        pub struct $row:ident = $name:literal {
            $($(#[doc = $field_doc:literal])* $field:ident : $kind:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $row {
            $($(#[doc = $field_doc])* pub $field: $kind,)*
        }

        impl $crate::Row for $row {
            const NAME: &'static str = $name;
            const DOC: &'static str = concat!($($doc, "\n",)*);
            const COLUMNS: &'static [$crate::Column] = &[$($crate::Column {
                name: stringify!($field),
                doc: concat!($($field_doc, "\n",)*),
                kind: <$kind as $crate::Field>::KIND,
                nullable: <$kind as $crate::Field>::NULLABLE,
            },)*];

            fn cell(&self, column: usize) -> $crate::Cell<'_> {
                const CELLS: &[fn(&$row) -> $crate::Cell<'_>] =
                    &[$(|it| $crate::Field::cell(&it.$field),)*];
                CELLS.get(column).map_or($crate::Cell::Null, |it| it(self))
            }
        }
    };
}

/// A trace and the tables made of it so far: each computed on first use, and remembered.
pub struct Tables {
    trace: Arc<Trace>,
    made: Mutex<HashMap<TypeId, Slot>>,
}

/// What is computed from a trace once and is no table, as a model that several tables question.
pub trait Model: Send + Sync + 'static {
    fn build(tables: &Tables) -> Self;
}

/// One table's place: threads that ask at the same time wait for one computation.
type Slot = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

impl fmt::Debug for Tables {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tables({} events)", self.trace.events.len())
    }
}

impl Tables {
    pub fn new(trace: Arc<Trace>) -> Tables {
        Tables { trace, made: Mutex::default() }
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The table's rows. This is also how one analysis uses another.
    pub fn get<T: Analysis>(&self) -> Arc<Vec<T>> {
        self.remember(|| T::run(self))
    }

    /// A model that is no table, built on first use.
    pub fn model<T: Model>(&self) -> Arc<T> {
        self.remember(|| T::build(self))
    }

    fn remember<V: Send + Sync + 'static>(&self, make: impl Fn() -> V) -> Arc<V> {
        let slot = {
            let mut made = self.made.lock().unwrap_or_else(|it| it.into_inner());
            made.entry(TypeId::of::<V>()).or_default().clone()
        };
        let value = slot.get_or_init(|| Arc::new(make())).clone();
        value.downcast().unwrap_or_else(|_| Arc::new(make()))
    }
}

/// A table whose row type is not known here: for listing, printing and SQL.
pub trait AnyTable: Sync {
    fn name(&self) -> &'static str;
    fn doc(&self) -> &'static str;
    fn columns(&self) -> &'static [Column];
    fn rows(&self, tables: &Tables) -> Arc<dyn AnyRows>;
}

pub trait AnyRows: Send + Sync {
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn cell(&self, row: usize, column: usize) -> Cell<'_>;
}

impl<T: Row> AnyRows for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        self.get(row).map_or(Cell::Null, |it| it.cell(column))
    }
}

/// The table of one row type.
struct Of<T>(PhantomData<fn() -> T>);

const fn of<T: Analysis>() -> &'static dyn AnyTable {
    &Of::<T>(PhantomData)
}

impl<T: Analysis> AnyTable for Of<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn doc(&self) -> &'static str {
        T::DOC
    }

    fn columns(&self) -> &'static [Column] {
        T::COLUMNS
    }

    fn rows(&self, tables: &Tables) -> Arc<dyn AnyRows> {
        tables.get::<T>()
    }
}

pub mod batch_loader;
pub mod code_site;
pub mod compile;
pub mod copy;
pub mod critical_path;
pub mod device_use;
pub mod hardware;
pub mod host_call;
pub mod host_thread;
pub mod input_stage;
pub mod kernel_time;
pub mod mean_step;
pub mod memory;
pub mod memory_peak;
pub mod metric;
pub mod op_tensor;
pub mod op_time;
pub mod program_memory;
pub mod python_line;
pub mod python_stack;
pub mod python_time;
pub mod run_info;
pub mod run_step;
pub mod runtime_call;
pub mod scalar;
pub mod scope_step;
pub mod scope_time;
pub mod step;
pub mod step_outlier;
pub mod step_spread;
pub mod step_time;
pub mod what_if;

/// Every table.
pub static ALL: &[&dyn AnyTable] = &[
    of::<batch_loader::BatchLoader>(),
    of::<code_site::CodeSite>(),
    of::<compile::Compile>(),
    of::<copy::Copy>(),
    of::<critical_path::CriticalPath>(),
    of::<device_use::DeviceUse>(),
    of::<hardware::Hardware>(),
    of::<host_call::HostCall>(),
    of::<host_thread::HostThread>(),
    of::<input_stage::InputStage>(),
    of::<kernel_time::KernelTime>(),
    of::<mean_step::MeanStep>(),
    of::<memory::Memory>(),
    of::<memory_peak::MemoryPeak>(),
    of::<metric::Metric>(),
    of::<op_tensor::OpTensor>(),
    of::<op_time::OpTime>(),
    of::<program_memory::ProgramMemory>(),
    of::<python_line::PythonLine>(),
    of::<python_stack::PythonStack>(),
    of::<python_time::PythonTime>(),
    of::<run_info::RunInfo>(),
    of::<run_step::RunStep>(),
    of::<runtime_call::RuntimeCall>(),
    of::<scalar::Scalar>(),
    of::<scope_step::ScopeStep>(),
    of::<scope_time::ScopeTime>(),
    of::<step::Step>(),
    of::<step_outlier::StepOutlier>(),
    of::<step_spread::StepSpread>(),
    of::<step_time::StepTime>(),
    of::<what_if::WhatIf>(),
];

pub fn find(name: &str) -> Option<&'static dyn AnyTable> {
    ALL.iter().copied().find(|it| it.name() == name)
}

/// What to say where [`find`] finds nothing.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = ALL.iter().map(|it| it.name()).collect();
    unknown_name("table", name, &names)
}

/// What to say where nothing is called so: what may be meant, or what there is.
pub fn unknown_name(what: &str, name: &str, names: &[&str]) -> String {
    let likeness = |it: &&str| strsim::jaro_winkler(name, it);
    let nearest = names.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let hint = match nearest.filter(|it| likeness(it) >= ALIKE) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("there are: {}", names.join(", ")),
    };
    format!("no {what} is called {name:?}\n  hint: {hint}")
}

/// From here on a name may be a slip of the other.
/// Source: document, the limit that clap's own suggestions have is 0.7; names of tables are more
/// alike than those of options.
const ALIKE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn every_file_is_registered() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some())
            .map(|it| it.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|it| {
                !["hlo", "lib", "pace", "replay", "span", "stream_sum", "testing"]
                    .contains(&it.as_str())
            })
            .collect();
        files.sort();
        let mut names: Vec<&str> = ALL.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn every_table_and_column_is_documented() {
        for table in ALL {
            assert!(!table.doc().trim().is_empty(), "{}", table.name());
            for column in table.columns() {
                assert!(!column.doc.trim().is_empty(), "{}.{}", table.name(), column.name);
            }
        }
    }
}
