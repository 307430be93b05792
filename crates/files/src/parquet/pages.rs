//! The values of a column in a row group, page after page.
//!
//! Called by `group`. The crate reads and decompresses pages. What most files have is decoded here: plain
//! values, and codes of a dictionary, which stay codes (`Values::Dictionary`) up to the operator that needs
//! values. Other encodings, booleans and old times are decoded by the crate's own readers.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::file::metadata::ColumnChunkMetaData;
use vector::{Bitmap, Dictionary, Values, Vector, VectorBuilder, concat_coded};

use super::file::ReadColumn;
use super::hybrid::Hybrid;
use super::plain::{self, Layout};
use super::{read, to_column};
use crate::{Error, FieldKind, Result, json};

/// Decodes a column from its first row on.
pub enum Decoder {
    /// By code of ours.
    Own(Box<Pages>),
    /// By the crate.
    Crate(Box<ColumnReader>),
}

impl Decoder {
    /// A decoder that is before the first row. The dictionary may be known.
    pub fn new(
        pages: Box<dyn PageReader>,
        column: &ReadColumn,
        metadata: &ColumnChunkMetaData,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Self {
        match layout(column, metadata) {
            Some(layout) => Self::Own(Box::new(Pages { pages, layout, dictionary, page: None })),
            None => Self::Crate(Box::new(get_column_reader(column.description.clone(), pages))),
        }
    }

    /// The dictionary, if it was read.
    pub fn into_dictionary(self) -> Option<Arc<Dictionary>> {
        match self {
            Self::Own(pages) => pages.dictionary,
            Self::Crate(_) => None,
        }
    }

    /// Passes over the next rows.
    pub fn skip(&mut self, column: &ReadColumn, rows: usize) -> Result<()> {
        match self {
            Self::Own(pages) => pages.skip(column, rows),
            Self::Crate(reader) => read::skip(reader, &column.field, rows),
        }
    }

    /// The next rows.
    pub fn read(&mut self, column: &ReadColumn, rows: usize) -> Result<Vector> {
        match self {
            Self::Own(pages) => pages.read(column, rows),
            Self::Crate(reader) => {
                let values = read::vector(reader, &column.description, &column.field, rows)?;
                match column.kind {
                    kind @ (FieldKind::Json | FieldKind::Jsonb | FieldKind::Text) => {
                        json::read_as(values, kind, column.logical, &column.field.name)
                    }
                    kind => to_column(values, kind),
                }
            }
        }
    }
}

/// How values of a column lie. None where the crate is to decode them.
fn layout(column: &ReadColumn, metadata: &ColumnChunkMetaData) -> Option<Layout> {
    let levels = column.description.max_def_level();
    let is_known = |encoding| match encoding {
        Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE => true,
        // Of levels, in old files.
        #[allow(deprecated)]
        Encoding::BIT_PACKED => levels == 0,
        _ => false,
    };
    if column.description.max_rep_level() > 0 || !metadata.encodings().all(is_known) {
        return None;
    }
    match column.description.physical_type() {
        Type::INT32 => Some(Layout::Int32),
        Type::INT64 => Some(Layout::Int64),
        Type::FLOAT => Some(Layout::Float),
        Type::DOUBLE => Some(Layout::Double),
        Type::BYTE_ARRAY => Some(Layout::Bytes),
        Type::FIXED_LEN_BYTE_ARRAY => {
            let width = usize::try_from(column.description.type_length()).ok()?;
            (width > 0).then_some(Layout::Fixed(width))
        }
        Type::BOOLEAN | Type::INT96 => None,
    }
}

/// The pages of a column.
pub struct Pages {
    pages: Box<dyn PageReader>,
    layout: Layout,
    dictionary: Option<Arc<Dictionary>>,
    page: Option<DataPage>,
}

/// A page that is being read.
struct DataPage {
    /// Rows that are left.
    left: usize,
    /// Which rows have a value. None: all.
    levels: Option<Hybrid>,
    values: Encoded,
}

enum Encoded {
    Plain { bytes: Bytes, at: usize },
    Codes(Hybrid),
}

impl Pages {
    fn skip(&mut self, column: &ReadColumn, mut rows: usize) -> Result<()> {
        let greatest = greatest(column);
        while rows > 0 {
            let Some(page) = self.page.as_mut().filter(|page| page.left > 0) else {
                // A page that is skipped as a whole is not decompressed.
                let next = self.pages.peek_next_page()?;
                let whole =
                    next.filter(|next| !next.is_dict).and_then(|next| next.num_levels.or(next.num_rows));
                match whole.filter(|whole| *whole <= rows) {
                    Some(whole) => {
                        self.pages.skip_next_page()?;
                        rows -= whole;
                    }
                    None => self.next_page(column)?,
                }
                continue;
            };
            let here = rows.min(page.left);
            let values = match &mut page.levels {
                None => here,
                Some(levels) => levels.count(here, greatest)?,
            };
            match &mut page.values {
                Encoded::Plain { bytes, at } => {
                    *at += self.layout.length(bytes.get(*at..).unwrap_or(&[]), values)?;
                }
                Encoded::Codes(codes) => codes.skip(values)?,
            }
            page.left -= here;
            rows -= here;
        }
        Ok(())
    }

    fn read(&mut self, column: &ReadColumn, mut rows: usize) -> Result<Vector> {
        let mut parts = Vec::new();
        while rows > 0 {
            let Some(page) = self.page.as_mut().filter(|page| page.left > 0) else {
                self.next_page(column)?;
                continue;
            };
            let here = rows.min(page.left);
            page.left -= here;
            rows -= here;
            parts.push(page.read(column, self.layout, self.dictionary.as_ref(), here)?);
        }
        concat_coded(column.logical, parts).map_err(|problem| Error::Malformed(problem.to_string()))
    }

    /// Goes to the next page.
    fn next_page(&mut self, column: &ReadColumn) -> Result<()> {
        if self.dictionary.is_some() && self.pages.peek_next_page()?.is_some_and(|page| page.is_dict) {
            return Ok(self.pages.skip_next_page()?);
        }
        let ended = || Error::Malformed(format!("column {} ends before its row group", column.field.name));
        match self.pages.get_next_page()?.ok_or_else(ended)? {
            Page::DictionaryPage { buf, num_values, .. } => {
                let (entries, _) = plain::vector(column, self.layout, &buf, num_values as usize)?;
                self.dictionary = Some(Arc::new(Dictionary { id: Dictionary::next_id(), entries }));
            }
            Page::DataPage { mut buf, num_values, encoding, def_level_encoding, .. } => {
                let levels = match greatest(column) {
                    0 => None,
                    greatest if def_level_encoding == Encoding::RLE => {
                        let length = cut(&mut buf, 4)?;
                        let length = length.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
                        Some(Hybrid::new(cut(&mut buf, length)?, bits(greatest))?)
                    }
                    _ => return Err(Error::Unsupported(format!("levels as {def_level_encoding}"))),
                };
                self.page = Some(DataPage::new(buf, num_values, levels, encoding)?);
            }
            Page::DataPageV2 {
                mut buf,
                num_values,
                encoding,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                cut(&mut buf, rep_levels_byte_len)?;
                let levels = cut(&mut buf, def_levels_byte_len)?;
                let levels = match greatest(column) {
                    0 => None,
                    _ if num_nulls == 0 => None,
                    greatest => Some(Hybrid::new(levels, bits(greatest))?),
                };
                self.page = Some(DataPage::new(buf, num_values, levels, encoding)?);
            }
        }
        Ok(())
    }
}

/// Cuts the first bytes of a page off.
fn cut(page: &mut Bytes, length: u32) -> Result<Bytes> {
    match usize::try_from(length) {
        Ok(length) if length <= page.len() => Ok(page.split_to(length)),
        _ => Err(Error::Malformed("a page that ends within its levels".into())),
    }
}

/// The level of rows that have a value.
fn greatest(column: &ReadColumn) -> u32 {
    u32::try_from(column.description.max_def_level()).unwrap_or(0)
}

/// Bits that hold numbers up to this one.
fn bits(greatest: u32) -> u8 {
    // At most 32.
    (u32::BITS - greatest.leading_zeros()) as u8
}

impl DataPage {
    fn new(mut buf: Bytes, rows: u32, levels: Option<Hybrid>, encoding: Encoding) -> Result<Self> {
        let values = match encoding {
            Encoding::PLAIN => Encoded::Plain { bytes: buf, at: 0 },
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                // A page of NULLs may have no byte.
                let width = buf.first().copied().unwrap_or(0);
                let codes = buf.split_off(buf.len().min(1));
                Encoded::Codes(Hybrid::new(codes, width)?)
            }
            other => return Err(Error::Unsupported(format!("a page of values as {other}"))),
        };
        Ok(Self { left: rows as usize, levels, values })
    }

    /// The next rows.
    fn read(
        &mut self,
        column: &ReadColumn,
        layout: Layout,
        dictionary: Option<&Arc<Dictionary>>,
        rows: usize,
    ) -> Result<Vector> {
        let validity = match &mut self.levels {
            None => None,
            Some(levels) => {
                let greatest = greatest(column);
                if levels.is_run(rows, greatest)? {
                    None
                } else {
                    let mut found = Vec::new();
                    levels.read(rows, &mut found)?;
                    Some(found.iter().map(|level| *level == greatest).collect::<Bitmap>())
                }
            }
        };
        let count = validity.as_ref().map_or(rows, Bitmap::count_ones);
        if count == 0 {
            let mut builder = VectorBuilder::new(column.logical);
            (0..rows).for_each(|_| builder.push_null());
            return Ok(builder.finish(&|_, _, _| Box::default()));
        }
        let values = match &mut self.values {
            Encoded::Plain { bytes, at } => {
                let (vector, length) = plain::vector(column, layout, bytes.get(*at..).unwrap_or(&[]), count)?;
                *at += length;
                vector.values
            }
            Encoded::Codes(codes) => {
                let mut found = Vec::new();
                codes.read(count, &mut found)?;
                let none = || Error::Malformed("codes without a dictionary".into());
                let dictionary = Arc::clone(dictionary.ok_or_else(none)?);
                let entries = dictionary.entries.len();
                if found.iter().max().is_some_and(|code| *code as usize >= entries) {
                    return Err(Error::Malformed(format!(
                        "a code past the {entries} entries of a dictionary"
                    )));
                }
                Values::Dictionary { codes: found, dictionary }
            }
        };
        let values = Vector::new(column.logical, values);
        Ok(match validity.filter(|_| count < rows) {
            Some(validity) => {
                let values = spread(&values, &validity);
                Vector { validity: Some(validity), ..values }
            }
            None => values,
        })
    }
}

/// Values at the rows that have one. Other rows get a value of another row: any will do.
fn spread(values: &Vector, validity: &Bitmap) -> Vector {
    let mut next = 0;
    let place = |has_value: bool| {
        let place = next;
        next += u32::from(has_value);
        place
    };
    let last = u32::try_from(values.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let places: Vec<u32> = validity.iter().map(place).map(|place| place.min(last)).collect();
    values.take(&places)
}
