//! A plan as a tree that any host can show. Each operator has a title, the expressions it computes by and, if
//! the plan was measured, its figures.
//!
//! Called by a host's EXPLAIN. `operators` walks the plan, `expressions` writes what it computes as SQL, and
//! `text` puts the tree into lines. A host that shows structured formats goes over the tree itself. In the
//! tree an operator is a group with a title and properties, and it holds the groups of its inputs. A property
//! says what kind of value it has. `Spelling` writes the parts that only the host can write. Invariants:
//! nothing here runs the plan; the tree shows the plan that runs, after all simplification.

mod expressions;
mod operators;
mod text;

use std::fmt;
use std::sync::Arc;

use vector::Vector;

pub use operators::operators;
pub use text::lines;

use crate::{HostFunction, Profile};

/// Writes what only the host can write: names of its columns, and parts of the plan that it made itself.
pub trait Spelling {
    /// The columns of a source, by its number among those given to `Execution::new`.
    fn columns(&self, source: usize) -> Vec<String>;
    /// What a source is: the title of its scan, and what there is to say of it. None for one that is shown by
    /// its number.
    fn source(&self, _source: usize) -> Option<(String, Vec<Property>)> {
        None
    }
    /// A constant, known by its address; None for one that is shown by its value.
    fn constant(&self, _value: &Arc<Vector>) -> Option<String> {
        None
    }
    /// A call of a function of the host's with all its arguments; None for one that is shown by the
    /// function's name.
    fn function(&self, _function: &Arc<dyn HostFunction>) -> Option<String> {
        None
    }
}

/// An operator of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// What it is.
    pub title: String,
    /// What it computes by and from.
    pub properties: Vec<Property>,
    /// What it did, where that was measured.
    pub measured: Option<Measured>,
    /// The operators whose rows it takes.
    pub inputs: Vec<Operator>,
}

/// Something with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its name.
    pub label: &'static str,
    /// What it is.
    pub value: Value,
}

impl Property {
    /// A property.
    pub const fn new(label: &'static str, value: Value) -> Self {
        Self { label, value }
    }
}

/// What a property is. `Display` writes it for people.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A condition or another text.
    Text(String),
    /// Keys, calls or columns.
    List(Vec<String>),
    /// How many there are of something.
    Count(u64),
    /// A size.
    Bytes(u64),
    /// A time.
    Milliseconds(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(", ")),
            Self::Count(count) => write!(f, "{count}"),
            Self::Bytes(bytes) => write!(f, "{}kB", kilobytes(*bytes)),
            Self::Milliseconds(time) => write!(f, "{time:.3} ms"),
        }
    }
}

/// Kilobytes, as sizes are shown.
pub const fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}

/// The figures of an operator, of all executions of its plan together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperatorFigures {
    /// Rows that came out.
    pub rows: u64,
    /// Time of its own, of all threads together.
    pub nanoseconds: u64,
    /// Most bytes that it held in one execution.
    pub memory: u64,
    /// Temporary files that it made.
    pub files: u64,
    /// Bytes that it wrote to them.
    pub spilled: u64,
}

/// Adds what was measured of an execution to the figures of earlier ones of the same plan, in the order of
/// `Profile::nodes`.
pub fn add_figures(figures: &mut Vec<OperatorFigures>, profile: &Profile) {
    let nodes = profile.nodes();
    figures.resize(figures.len().max(nodes.len()), OperatorFigures::default());
    for (figures, now) in figures.iter_mut().zip(nodes) {
        figures.rows += now.rows();
        figures.nanoseconds += now.nanoseconds();
        figures.memory = figures.memory.max(now.memory());
        figures.files += now.files();
        figures.spilled += now.spilled_bytes();
    }
}

/// What is shown of an operator's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// All of them.
    pub figures: OperatorFigures,
    /// Rows that a filter left out, where it left out any.
    pub removed: Option<u64>,
    /// Whether time, memory and files are shown, which differ from one execution to the next.
    pub with_work: bool,
}

impl Measured {
    /// All that is shown, for structured formats.
    pub fn properties(&self) -> Vec<Property> {
        let OperatorFigures { rows, nanoseconds, memory, files, spilled } = self.figures;
        let mut properties = vec![Property::new("Rows", Value::Count(rows))];
        properties.extend(self.removed_property());
        if self.with_work {
            properties.extend([
                Property::new("Own Time", milliseconds(nanoseconds)),
                Property::new("Peak Memory Usage", Value::Bytes(memory)),
                Property::new("Disk Usage", Value::Bytes(spilled)),
                Property::new("Spill Files", Value::Count(files)),
            ]);
        }
        properties
    }

    fn removed_property(&self) -> Option<Property> {
        self.removed.map(|rows| Property::new("Rows Removed by Filter", Value::Count(rows)))
    }
}

fn milliseconds(nanoseconds: u64) -> Value {
    Value::Milliseconds(nanoseconds as f64 / 1e6)
}

/// What is to be shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The columns of each operator, too.
    pub verbose: bool,
    /// The figures of each operator, in the order of `Profile::nodes`. Empty if nothing was measured.
    pub figures: &'a [OperatorFigures],
    /// Whether to show time, memory and files, too.
    pub with_work: bool,
}
