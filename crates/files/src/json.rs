//! JSON of files that somebody else wrote: checked, and as the server's jsonb.

use server_bytes::jsonb::{check_text, from_text};
use vector::{LogicalType, Values, Vector, VectorBuilder};

use crate::{Error, FieldKind, Result};

/// Bytes of documents that are made at once.
const MOST_BYTES: usize = 1 << 30;

/// Checks that text is JSON. Errors name the column.
///
/// # Errors
/// `Malformed` where it is none.
pub fn check(text: &[u8], name: &str) -> Result<()> {
    of_text(text, name, check_text)
}

fn of_text<T>(
    text: &[u8],
    name: &str,
    read: impl FnOnce(&str) -> std::result::Result<T, &'static str>,
) -> Result<T> {
    let is = std::str::from_utf8(text).map_err(|_| "is not UTF-8").and_then(read);
    is.map_err(|why| Error::Malformed(format!("column {name} has JSON that {why}")))
}

/// Byte strings as what a column of a table has of them: JSON that was checked, documents, or the same.
///
/// # Errors
/// Those of `check` and `to_jsonb`.
pub fn read_as(values: Vector, kind: FieldKind, logical: LogicalType, name: &str) -> Result<Vector> {
    match kind {
        FieldKind::Jsonb => return to_jsonb(byte_strings(&values), name),
        FieldKind::Json => byte_strings(&values).flatten().try_for_each(|value| check(value, name))?,
        _ => {}
    }
    Ok(Vector { logical, ..values })
}

/// The byte strings of a flat vector. None: NULL.
pub fn byte_strings(vector: &Vector) -> impl Iterator<Item = Option<&[u8]>> {
    let values = match &vector.values {
        Values::Bytes(values) => Some(values),
        _ => None,
    };
    (0..vector.len()).map(move |row| Some(values?.get(row)).filter(|_| vector.is_valid(row)))
}

/// Values of JSON as documents of the server.
///
/// # Errors
/// `Malformed` where they are no JSON, or have what jsonb has not; `Unsupported` for too much at once.
pub fn to_jsonb<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, name: &str) -> Result<Vector> {
    let mut builder = VectorBuilder::new(LogicalType::Bytes);
    let (mut document, mut all) = (Vec::new(), 0);
    for value in values {
        let Some(text) = value else {
            builder.push_null();
            continue;
        };
        document.clear();
        of_text(text, name, |text| from_text(text, &mut document))?;
        all += document.len();
        if all > MOST_BYTES || !builder.push_bytes(&document) {
            return Err(Error::Unsupported(format!(
                "column {name} has more than 1 GB of jsonb in some rows"
            )));
        }
    }
    Ok(builder.finish(&|_, _, _| Box::default()))
}
