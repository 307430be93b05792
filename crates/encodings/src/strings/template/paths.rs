//! Single paths of shredded JSON: their names, and their values without the documents around them.
//!
//! Called by readers of a chunk that want one path only ([`crate::SharedColumn::paths`],
//! [`crate::Chunk::path`]). A path has no value in rows whose document lacks it, holds NULL there, or holds a
//! value of another kind there. A value of another kind belongs to a path of its own with the same name.
//! Documents kept whole are a path without components. They hide their values, so a reader must look at them
//! too.

use vector::{Error, Result, Vector};

use super::program::PathKind;
use super::shape::{ELEMENT_COMPONENT, KEY_COMPONENT};
use super::stored::Templates;
use crate::cursor::Reader;

/// One step from a document into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathComponent {
    /// The value of this key of an object.
    Key(Vec<u8>),
    /// Any element of an array.
    Element,
}

/// A path of a shredded column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Steps from the document to the value; none for documents that are kept whole.
    pub components: Vec<PathComponent>,
    /// What its values are.
    pub kind: PathKind,
}

/// The values of one path in one chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct PathColumn {
    /// The row of each value, ascending; a row has several values of a path through an array.
    pub rows: Vec<u32>,
    /// Text and aligned: the bytes. Numbers: unscaled integers, and digits after the point. Flags: truth
    /// values. Empty without values.
    pub columns: Vec<Vector>,
}

/// The paths of a column in the order of their numbers.
pub(crate) fn paths(templates: &Templates) -> Result<Vec<Path>> {
    templates
        .paths
        .iter()
        .map(|path| Ok(Path { components: components(&path.name)?, kind: path.kind }))
        .collect()
}

fn components(name: &[u8]) -> Result<Vec<PathComponent>> {
    let mut reader = Reader::new(name);
    let mut components = Vec::new();
    while reader.remaining() > 0 {
        components.push(match reader.u8()? {
            KEY_COMPONENT => {
                let length = reader.u32()? as usize;
                PathComponent::Key(reader.take(length)?.to_vec())
            }
            ELEMENT_COMPONENT => PathComponent::Element,
            tag => return Err(Error::corrupt(format!("path component {tag}"))),
        });
    }
    Ok(components)
}
