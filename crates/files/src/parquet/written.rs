//! Columns of a file that is written: single values, lists and structs.
//!
//! The file has columns of single values alone (`nested` says how it tells lists and structs). So whoever has
//! the values takes them apart, in the order of `Written::leaves`, and says for each entry of such a column
//! what is there. The format is that of Dremel (Melnik et al., VLDB 2010). Every part may be NULL.
//!
//! | part, at definition level `d` | its entries |
//! | --- | --- |
//! | a value | NULL: `d`; there: `d + 1` |
//! | a struct | NULL: `d`; its parts are at `d + 1` |
//! | a list | NULL: `d`; empty: `d + 1`; its elements are at `d + 2` |

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition};
use parquet::schema::types::{ColumnPath, Type};
use vector::Vector;

use super::stored;
use crate::{Field, FieldKind, Result};

/// What the values of a column consist of.
#[derive(Debug, Clone)]
pub enum Written {
    /// Single values, of any kind but `Other`.
    Value(FieldKind),
    /// Lists of such elements.
    List(Box<Self>),
    /// Parts and their names. There is one at least.
    Struct(Vec<(String, Self)>),
}

/// A column of single values, with its place among those of the statement.
#[derive(Debug)]
pub(super) struct Leaf {
    pub column: usize,
    pub path: ColumnPath,
    pub field: Field,
}

/// The entries of a column of single values.
#[derive(Debug)]
pub struct Shredded {
    /// The values that are there, without gaps. Without levels: a flat vector, with its NULLs.
    pub values: Vector,
    /// Up to which part something is there, for each entry. Empty: it is part of no list or struct.
    pub definition: Vec<i16>,
    /// In which list the entry goes on: 0 for a new row, 1 for the outermost list.
    pub repetition: Vec<i16>,
}

impl Shredded {
    /// Definition and repetition levels.
    pub(super) fn levels(&self) -> Option<[&[i16]; 2]> {
        (!self.definition.is_empty()).then_some([&self.definition, &self.repetition])
    }
}

impl Written {
    /// The schema of a column.
    pub(super) fn schema(&self, name: &str) -> Result<Type> {
        let optional = |parts: Vec<Type>| {
            let parts = parts.into_iter().map(Arc::new).collect();
            Type::group_type_builder(name).with_repetition(Repetition::OPTIONAL).with_fields(parts)
        };
        Ok(match self {
            Self::Value(kind) => stored::column_type(&Field { name: name.to_owned(), kind: *kind })?,
            Self::List(element) => {
                let list = Type::group_type_builder(LIST)
                    .with_repetition(Repetition::REPEATED)
                    .with_fields(vec![Arc::new(element.schema(ELEMENT)?)])
                    .build()?;
                optional(vec![list]).with_logical_type(Some(LogicalType::List)).build()?
            }
            Self::Struct(parts) => {
                let parts = parts.iter().map(|(part, shape)| shape.schema(part));
                optional(parts.collect::<Result<_>>()?).build()?
            }
        })
    }

    /// Appends its columns of single values. Errors call each by the names of what it is in.
    pub(super) fn leaves(&self, column: usize, path: &[String], name: &str, out: &mut Vec<Leaf>) {
        let below =
            |names: &[&str]| [path, &names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>()].concat();
        match self {
            Self::Value(kind) => {
                let field = Field { name: name.to_owned(), kind: *kind };
                out.push(Leaf { column, path: ColumnPath::new(path.to_vec()), field });
            }
            Self::List(element) => element.leaves(column, &below(&[LIST, ELEMENT]), name, out),
            Self::Struct(parts) => {
                for (part, shape) in parts {
                    shape.leaves(column, &below(&[part]), &format!("{name}.{part}"), out);
                }
            }
        }
    }
}

/// What Parquet's document of logical types calls the groups of a list.
const LIST: &str = "list";
const ELEMENT: &str = "element";
