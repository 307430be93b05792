//! Writes rows as Parquet.

use std::fs::File;
use std::io::BufWriter;

use files::parquet::{Codec, ParquetWriter, field, to_field};
use files::{Error, Field, FieldKind, Result};
use vector::{LogicalType, Values, Vector, concat};

use crate::source::Source;

/// Rows of a row group.
const GROUP_ROWS: usize = 122_880;

/// Writes all rows of a source.
pub fn run(mut source: Source, file: File, codec: Codec) -> Result<()> {
    let fields = source.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    let mut writer = ParquetWriter::new(BufWriter::new(file), &fields, codec)?;
    let (mut waiting, mut count): (Vec<Vec<Vector>>, usize) = (vec![Vec::new(); fields.len()], 0);
    loop {
        let rows = source.next()?;
        let is_end = rows.is_none();
        if let Some(rows) = rows {
            count += rows.first().map_or(0, Vector::len);
            for ((parts, column), field) in waiting.iter_mut().zip(rows).zip(&fields) {
                check_text(&column, field)?;
                parts.push(to_field(column, field)?);
            }
        }
        if count >= GROUP_ROWS || (is_end && count > 0) {
            let parts = waiting.iter_mut().map(std::mem::take);
            let joined = parts.map(|parts| {
                let logical = parts.first().map_or(LogicalType::Bytes, |column| column.logical);
                concat(logical, parts).map_err(|error| Error::Unsupported(error.to_string()))
            });
            writer.write(&joined.collect::<Result<Vec<_>>>()?)?;
            count = 0;
        }
        if is_end {
            writer.finish()?.into_inner().map_err(|error| Error::Io(error.into_error()))?;
            return Ok(());
        }
    }
}

/// Refuses text that Parquet has no place for. A database in another encoding leaves such in its column
/// files.
fn check_text(column: &Vector, field: &Field) -> Result<()> {
    let (FieldKind::Text | FieldKind::Json, Values::Bytes(values)) = (field.kind, &column.values) else {
        return Ok(());
    };
    let is_text = |(row, text)| !column.is_valid(row) || std::str::from_utf8(text).is_ok();
    match values.iter().enumerate().all(is_text) {
        true => Ok(()),
        false => Err(Error::Unsupported(format!("column {} has text that is not UTF-8", field.name))),
    }
}
