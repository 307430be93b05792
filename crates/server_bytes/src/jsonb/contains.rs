//! Questions about documents whose answer is yes or no: `?` and `@>`, and whether a document is too deep for
//! them.

use vector::Result;

use super::{Container, Item, damaged};
use crate::numeric;

/// `value ? key`.
pub fn exists(value: &[u8], key: &[u8]) -> Result<bool> {
    let root = Container::root(value)?;
    let mut children = root.children();
    for _ in 0..root.count {
        if let Some(Item::String(text)) = children.next()?
            && text == key
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `value @> other`.
pub fn contains(value: &[u8], other: &[u8]) -> Result<bool> {
    within(Container::root(value)?, Container::root(other)?)
}

/// Whether a document has more levels than `contains` and `leaves` go down, each in a frame of the stack.
pub fn is_deep(value: &[u8]) -> Result<bool> {
    const DEEPEST: usize = 500;
    fn goes_below(container: Container<'_>, levels: usize) -> Result<bool> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(true) };
        let mut children = container.children();
        while let Some(child) = children.next()? {
            if let Item::Container(inner) = child
                && goes_below(inner, levels)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    goes_below(Container::root(value)?, DEEPEST)
}

fn within(value: Container<'_>, other: Container<'_>) -> Result<bool> {
    if value.is_object() != other.is_object() {
        return Ok(false);
    }
    if value.is_object() {
        if value.count < other.count {
            return Ok(false);
        }
        let mut keys = other.children();
        let mut wanted = other.values()?;
        for _ in 0..other.count {
            let (Some(Item::String(key)), Some(wanted)) = (keys.next()?, wanted.next()?) else {
                return Err(damaged());
            };
            match value.field(key)? {
                Some(found) if matches(&found, &wanted)? => {}
                _ => return Ok(false),
            }
        }
        return Ok(true);
    }
    // A scalar contains only a scalar; an array may contain one.
    if value.is_scalar() && !other.is_scalar() {
        return Ok(false);
    }
    let mut wanted = other.children();
    while let Some(wanted) = wanted.next()? {
        let mut found = false;
        let mut elements = value.children();
        while !found && let Some(element) = elements.next()? {
            found = matches(&element, &wanted)?;
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Equal scalars, or a container that contains the other.
fn matches(found: &Item<'_>, wanted: &Item<'_>) -> Result<bool> {
    Ok(match (found, wanted) {
        (Item::Null, Item::Null) => true,
        (Item::Bool(a), Item::Bool(b)) => a == b,
        (Item::String(a), Item::String(b)) => a == b,
        (Item::Numeric(a), Item::Numeric(b)) => numeric::is_same(a, b)?,
        (Item::Container(a), Item::Container(b)) => within(*a, *b)?,
        _ => false,
    })
}
