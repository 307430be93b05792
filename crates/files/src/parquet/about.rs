//! What the footer of a Parquet file says of its columns, for whoever looks into it. No page is read.

use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::ColumnChunkMetaData;

use super::file::{Place, ReadColumn};
use super::{ParquetFile, columns};
use crate::column::Column;
use crate::{About, Field, FieldKind};

impl ParquetFile {
    /// The program that wrote the file, if it says so.
    pub fn writer(&self) -> Option<&str> {
        self.metadata.file_metadata().created_by()
    }

    /// Its columns of single values, with the types that these are read as. Values of other types are not
    /// read.
    pub fn columns(&self) -> Vec<Column> {
        let column = |field: &Field| {
            let read = columns(std::slice::from_ref(field)).ok().and_then(|mut all| all.pop());
            read.unwrap_or_else(|| {
                let what = if let FieldKind::Other(what) = field.kind { what } else { "" };
                let logical = vector::LogicalType::Bytes;
                Column { number: 0, name: field.name.clone(), declared: what.into(), logical }
            })
        };
        self.leaves.iter().map(column).collect()
    }

    /// What is known of a column in a row group, by their positions. None where there is no such.
    pub fn about(&self, group: usize, at: usize) -> Option<About> {
        let metadata = self.metadata.row_groups().get(group)?;
        let chunk = metadata.columns().get(at)?;
        let mut about =
            About::of(u64::try_from(metadata.num_rows()).unwrap_or(0), self.known(group, at, chunk).as_ref());
        about.bytes = u64::try_from(chunk.compressed_size()).unwrap_or(0);
        chunk.encodings().for_each(|encoding: Encoding| about.add_chunk(&encoding.to_string()));
        if chunk.compression() != Compression::UNCOMPRESSED {
            // The level that some codecs have is that of who reads.
            let name = chunk.compression().to_string().to_ascii_lowercase();
            about.add_codec(name.split('(').next().unwrap_or_default());
        }
        Some(about)
    }

    fn known(
        &self,
        group: usize,
        at: usize,
        chunk: &ColumnChunkMetaData,
    ) -> Option<stripe::ColumnStatistics> {
        let field = self.leaves.get(at)?;
        let logical = columns(std::slice::from_ref(field)).ok()?.first()?.logical;
        let description = self.metadata.file_metadata().schema_descr().columns().get(at)?.clone();
        let column = ReadColumn { at, description, field: field.clone(), kind: field.kind, logical };
        let known = self.statistics(group, &Place::Read(column.into()))?;
        let distinct = chunk.statistics().and_then(|known| known.distinct_count_opt());
        Some(stripe::ColumnStatistics {
            distinct: distinct.and_then(|count| u32::try_from(count).ok()),
            ..known
        })
    }
}
