//! The scalars that a document must hold to contain an object, each with the keys that lead to it.

use vector::Result;

use super::{Container, Item, damaged, is_deep};

/// A scalar that a document has to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// This text.
    Text(Vec<u8>),
    /// This truth value.
    Bool(bool),
    /// Some number.
    Number,
}

/// A scalar and the keys that lead to it.
pub type Placed = (Vec<Vec<u8>>, Leaf);

/// The scalars of an object, each with the keys that lead to it. None if these are not all that a document
/// must hold to contain the object, or if the object is too deep. They are all if the object has nested
/// objects, but no arrays, NULLs and empty objects.
pub fn leaves(value: &[u8]) -> Result<Option<Vec<Placed>>> {
    if is_deep(value)? {
        return Ok(None);
    }
    let mut found = Vec::new();
    let plain = gather(Container::root(value)?, &mut Vec::new(), &mut found)?;
    Ok(plain.then_some(found))
}

fn gather(container: Container<'_>, keys: &mut Vec<Vec<u8>>, found: &mut Vec<Placed>) -> Result<bool> {
    if !container.is_object() || container.count == 0 {
        return Ok(false);
    }
    let mut names = container.children();
    for _ in 0..container.count {
        let Some(Item::String(key)) = names.next()? else { return Err(damaged()) };
        keys.push(key.to_vec());
        let leaf = match container.field(key)?.ok_or_else(damaged)? {
            Item::String(text) => Some(Leaf::Text(text.to_vec())),
            Item::Bool(truth) => Some(Leaf::Bool(truth)),
            Item::Numeric(_) => Some(Leaf::Number),
            Item::Null => return Ok(false),
            Item::Container(inner) => {
                if !gather(inner, keys, found)? {
                    return Ok(false);
                }
                None
            }
        };
        if let Some(leaf) = leaf {
            found.push((keys.clone(), leaf));
        }
        keys.pop();
    }
    Ok(true)
}
