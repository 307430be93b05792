//! Batches in temporary files: written one after the other, read back in that order.
//!
//! A page is one batch, its columns flat: validity, then the values end to end, little-endian. Rows of small
//! batches are put together to one page, and pages are gathered up to `BUFFER` bytes before they go to the
//! file. The file is made only then. The reason: an operator of many partitions has a few rows for each. A
//! page of a few rows costs as much to write, read and work on as a page of hundreds. The file is this
//! process's own; still, a page that is too short is an error and not a panic.

use std::sync::Arc;

use vector::{
    Bitmap, ByteViews, DisplayScales, FixedBytes, LogicalType, NumericInts, NumericValues, PhysicalType,
    Values, Vector,
};

use super::{ValueColumn, flat};
use crate::pipeline::count_spilled;
use crate::{Batch, Error, Result, SharedTempFiles, TempFile, hash, interrupt};

/// Bytes gathered before they are written.
const BUFFER: usize = 32 << 10;
/// Bytes for which no file is made: it would take more memory itself.
const FEW: usize = 512;
/// A batch with at least this many rows makes a page of its own.
const PAGE_ROWS: usize = 512;
/// A page of fewer rows is complete if it has at least this many bytes.
const PAGE_BYTES: usize = 16 << 10;
/// Bytes, about, that one of many rows has at most, where its maker does not say: rows may share long values.
const MOST_BYTES: usize = 4 << 20;

/// A file of batches.
pub struct BatchFile {
    types: Vec<LogicalType>,
    files: SharedTempFiles,
    /// Bytes, about, that a page of many rows has at most.
    page_bytes: usize,
    /// None: nothing was written yet, all pages are in the buffer.
    file: Option<Box<dyn TempFile>>,
    pages: Vec<Page>,
    written: u64,
    buffer: Vec<u8>,
    /// Rows that are not in a page yet. Empty while there are none.
    open: Vec<ValueColumn>,
    next: usize,
    rows: usize,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    offset: u64,
    length: usize,
    rows: usize,
}

fn failed(error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::QuotaExceeded {
        return Error::Data(vector::Error::LimitExceeded(error.to_string()));
    }
    Error::Data(vector::Error::Host(format!("temporary file: {error}")))
}

fn short() -> Error {
    Error::Data(vector::Error::corrupt("a page of a temporary file is too short"))
}

impl BatchFile {
    /// An empty file for batches of these columns.
    pub fn new(types: &[LogicalType], files: &SharedTempFiles) -> Result<Self> {
        Ok(Self {
            types: types.to_vec(),
            files: Arc::clone(files),
            page_bytes: MOST_BYTES,
            file: None,
            pages: Vec::new(),
            written: 0,
            buffer: Vec::new(),
            open: Vec::new(),
            next: 0,
            rows: 0,
        })
    }

    /// The same with pages of about this many bytes.
    pub fn with_pages(self, bytes: usize) -> Self {
        Self { page_bytes: bytes, ..self }
    }

    /// Rows written.
    pub fn rows(&self) -> usize {
        self.rows + self.open.first().map_or(0, ValueColumn::len)
    }

    /// Appends a batch.
    pub fn write(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        let columns: Vec<_> = columns.iter().map(flat).collect();
        let most = rows_of_a_page(&columns, rows, self.page_bytes);
        if (PAGE_ROWS..=most).contains(&rows) {
            self.close_page()?;
            return self.write_page(&columns, rows);
        }
        let all: Vec<u32> = (0..rows as u32).collect();
        all.chunks(most).try_for_each(|rows| self.write_rows(&columns, rows))
    }

    /// Appends these rows, few enough for a page, of flat columns.
    fn write_rows(&mut self, columns: &[Arc<Vector>], rows: &[u32]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let goes = |(open, column): (&ValueColumn, &Arc<Vector>)| open.takes(column);
        if !self.open.iter().zip(columns).all(goes) {
            self.close_page()?;
        }
        if self.open.is_empty() {
            self.open.extend(self.types.iter().map(|&logical| ValueColumn::new(logical)));
            let alone = rows.len() >= PAGE_ROWS || columns.is_empty();
            if alone || !self.open.iter().zip(columns).all(goes) {
                self.open.clear();
                let taken: Vec<_> = columns.iter().map(|column| Arc::new(column.take(rows))).collect();
                return self.write_page(&taken, rows.len());
            }
        }
        self.open.iter_mut().zip(columns).try_for_each(|(open, column)| open.append(column, rows))?;
        let open = self.open.first().map_or(0, ValueColumn::len);
        let bytes = self.open.iter().map(ValueColumn::bytes).sum::<usize>();
        if open >= PAGE_ROWS || bytes >= PAGE_BYTES.min(self.page_bytes) {
            self.close_page()?;
        }
        Ok(())
    }

    /// The rows that are in no page become one.
    fn close_page(&mut self) -> Result<()> {
        let mut open = std::mem::take(&mut self.open);
        let Some(rows) = open.first().map(ValueColumn::len) else { return Ok(()) };
        open.iter_mut().for_each(ValueColumn::seal);
        let columns: Vec<_> = open.iter().map(|column| Arc::new(column.slice(0, rows))).collect();
        self.write_page(&columns, rows)
    }

    /// Appends flat columns as a page. This is an interrupt point, as is `read`, so callers that write or
    /// read much of a file need none.
    fn write_page(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        interrupt::check()?;
        let start = self.buffer.len();
        columns.iter().for_each(|column| encode(column, &mut self.buffer));
        let offset = self.written + start as u64;
        self.pages.push(Page { offset, length: self.buffer.len() - start, rows });
        self.rows += rows;
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            let file = match &mut self.file {
                Some(file) => file,
                none => {
                    count_spilled(1, 0);
                    none.insert(self.files.create()?)
                }
            };
            file.append(&self.buffer).map_err(|error| failed(&error))?;
            count_spilled(0, self.buffer.len() as u64);
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Nothing more is written for now. Until it is read it holds no buffer, or only a few bytes that are not
    /// worth a file.
    pub fn rest(&mut self) -> Result<()> {
        self.close_page()?;
        if self.file.is_none() && self.buffer.len() <= FEW {
            self.buffer.shrink_to_fit();
            return Ok(());
        }
        self.flush()?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// Bytes that it holds in memory.
    pub fn buffered(&self) -> usize {
        self.buffer.capacity() + self.open.iter().map(ValueColumn::bytes).sum::<usize>()
    }

    /// The next rows, in the order they were written.
    pub fn read(&mut self) -> Result<Option<Batch>> {
        interrupt::check()?;
        self.close_page()?;
        if self.file.is_some() {
            self.rest()?;
        }
        if self.next == self.pages.len() {
            self.buffer = Vec::new();
            return Ok(None);
        }
        self.next += 1;
        self.page(self.next - 1).map(Some)
    }

    /// How many rows each page has, where nothing more is written (`rest`).
    pub fn pages(&self) -> impl Iterator<Item = usize> + '_ {
        self.pages.iter().map(|page| page.rows)
    }

    /// The rows of a page, by its number, where nothing more is written.
    pub fn page(&mut self, number: usize) -> Result<Batch> {
        let page = *self.pages.get(number).ok_or_else(short)?;
        let mut bytes = Vec::new();
        let mut rest = match &mut self.file {
            Some(file) => {
                bytes.try_reserve_exact(page.length).map_err(|_| Error::out_of_memory(page.length))?;
                bytes.resize(page.length, 0);
                file.read(page.offset, &mut bytes).map_err(|error| failed(&error))?;
                bytes.as_slice()
            }
            None => {
                let start = usize::try_from(page.offset).ok();
                let place = start.and_then(|start| self.buffer.get(start..start.checked_add(page.length)?));
                place.ok_or_else(short)?
            }
        };
        let columns = self.types.iter().map(|&logical| Ok(Arc::new(decode(logical, page.rows, &mut rest)?)));
        Ok(Batch::new(page.rows, columns.collect::<Result<Vec<_>>>()?))
    }
}

/// How many of the rows of these columns a page takes.
fn rows_of_a_page(columns: &[Arc<Vector>], rows: usize, page_bytes: usize) -> usize {
    let bytes: usize = columns.iter().map(|column| column.bytes()).sum();
    (page_bytes / (bytes / rows.max(1)).max(1)).max(1)
}

macro_rules! put {
    ($out:expr, $values:expr) => {
        for value in $values {
            $out.extend_from_slice(&value.to_le_bytes());
        }
    };
}

fn encode(vector: &Vector, out: &mut Vec<u8>) {
    out.push(u8::from(vector.validity.is_some()));
    if let Some(validity) = &vector.validity {
        put!(out, validity.words());
    }
    match &vector.values {
        Values::Bool(bits) => put!(out, bits.words()),
        Values::Int16(values) => put!(out, values),
        Values::Int32(values) => put!(out, values),
        Values::Int64(values) => put!(out, values),
        Values::Float32(values) => put!(out, values),
        Values::Float64(values) => put!(out, values),
        Values::Fixed(fixed) => out.extend_from_slice(&fixed.bytes),
        Values::Bytes(views) => {
            put!(out, views.views().iter().map(|view| view.len() as u32));
            views.iter().for_each(|value| out.extend_from_slice(value));
        }
        Values::Numeric(numeric) => encode_numeric(numeric, out),
        // `flat` leaves none of these.
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {}
    }
}

fn encode_numeric(numeric: &NumericValues, out: &mut Vec<u8>) {
    out.extend_from_slice(&numeric.scale.to_le_bytes());
    match &numeric.display {
        DisplayScales::Constant(display) => {
            out.push(0);
            out.extend_from_slice(&display.to_le_bytes());
        }
        DisplayScales::PerValue(display) => {
            out.push(1);
            put!(out, display);
        }
    }
    match &numeric.ints {
        NumericInts::Int32(values) => {
            out.push(4);
            put!(out, values);
        }
        NumericInts::Int64(values) => {
            out.push(8);
            put!(out, values);
        }
        NumericInts::Int128(values) => {
            out.push(16);
            put!(out, values);
        }
    }
    out.extend_from_slice(&(numeric.side.len() as u32).to_le_bytes());
    for (row, bytes) in &numeric.side {
        out.extend_from_slice(&row.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or_else(short)?;
    *bytes = rest;
    Ok(taken)
}

macro_rules! get {
    ($bytes:expr, $count:expr, $type:ty) => {
        take($bytes, $count * size_of::<$type>())?
            .as_chunks::<{ size_of::<$type>() }>()
            .0
            .iter()
            .map(|chunk| <$type>::from_le_bytes(*chunk))
    };
}

fn one<T>(mut values: impl Iterator<Item = T>) -> Result<T> {
    values.next().ok_or_else(short)
}

fn decode(logical: LogicalType, rows: usize, bytes: &mut &[u8]) -> Result<Vector> {
    let words = rows.div_ceil(64);
    let validity = match one(get!(bytes, 1, u8))? {
        0 => None,
        _ => Some(Bitmap::from_words(get!(bytes, words, u64).collect(), rows)),
    };
    let values = match logical.physical() {
        PhysicalType::Bool => Values::Bool(Bitmap::from_words(get!(bytes, words, u64).collect(), rows)),
        PhysicalType::Int16 => Values::Int16(get!(bytes, rows, i16).collect()),
        PhysicalType::Int32 => Values::Int32(get!(bytes, rows, i32).collect()),
        PhysicalType::Int64 => Values::Int64(get!(bytes, rows, i64).collect()),
        PhysicalType::Float32 => Values::Float32(get!(bytes, rows, f32).collect()),
        PhysicalType::Float64 => Values::Float64(get!(bytes, rows, f64).collect()),
        PhysicalType::Fixed(width) => {
            let width = usize::from(width).max(1);
            Values::Fixed(FixedBytes { width, bytes: take(bytes, rows * width)?.to_vec() })
        }
        PhysicalType::Bytes => {
            let mut offsets = Vec::with_capacity(rows + 1);
            offsets.push(0u32);
            let mut end = 0u32;
            for length in get!(bytes, rows, u32) {
                end = end.checked_add(length).ok_or_else(short)?;
                offsets.push(end);
            }
            let data = take(bytes, end as usize)?.to_vec();
            Values::Bytes(ByteViews::from_offsets(&offsets, data).ok_or_else(short)?)
        }
        PhysicalType::Numeric => Values::Numeric(decode_numeric(rows, bytes)?),
    };
    Ok(Vector { logical, validity, values })
}

fn decode_numeric(rows: usize, bytes: &mut &[u8]) -> Result<NumericValues> {
    let scale = one(get!(bytes, 1, u16))?;
    let display = match one(get!(bytes, 1, u8))? {
        0 => DisplayScales::Constant(one(get!(bytes, 1, u16))?),
        _ => DisplayScales::PerValue(get!(bytes, rows, u16).collect()),
    };
    let ints = match one(get!(bytes, 1, u8))? {
        4 => NumericInts::Int32(get!(bytes, rows, i32).collect()),
        8 => NumericInts::Int64(get!(bytes, rows, i64).collect()),
        _ => NumericInts::Int128(get!(bytes, rows, i128).collect()),
    };
    let mut side = Vec::new();
    for _ in 0..one(get!(bytes, 1, u32))? {
        let row = one(get!(bytes, 1, u32))?;
        let length = one(get!(bytes, 1, u32))?;
        side.push((row, take(bytes, length as usize)?.into()));
    }
    Ok(NumericValues { ints, scale, display, side })
}

/// Rows spread over files by the hash of some of their columns, sixteen files a level.
pub struct Partitions {
    files: Vec<Option<BatchFile>>,
    level: u32,
    hashes: Vec<u64>,
}

const FAN_OUT: usize = 16;

impl Partitions {
    /// No rows. Rows of one file of level n are spread again by level n + 1.
    pub fn new(level: u32) -> Self {
        Self { files: (0..FAN_OUT).map(|_| None).collect(), level, hashes: Vec::new() }
    }

    /// No rows, and one file for all of them, whose rows are spread by the next level.
    pub fn whole(level: u32) -> Self {
        Self { files: vec![None], ..Self::new(level) }
    }

    /// Writes these rows, spread by the hash of `keys`.
    pub fn write(
        &mut self,
        keys: &[Arc<Vector>],
        columns: &[Arc<Vector>],
        rows: usize,
        files: &SharedTempFiles,
    ) -> Result<()> {
        hash::hash_rows(keys, rows, &mut self.hashes)?;
        let fan_out = self.files.len();
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); fan_out];
        // Past level 14 there are no bits left and nothing gets spread any more.
        let shift = 60u32.saturating_sub(4 * self.level);
        for (&hash, row) in self.hashes.iter().zip(0u32..) {
            places[(hash::spread(hash) >> shift) as usize % fan_out].push(row);
        }
        let types: Vec<_> = columns.iter().map(|column| column.logical).collect();
        let columns: Vec<_> = columns.iter().map(flat).collect();
        let most = rows_of_a_page(&columns, rows, MOST_BYTES);
        for (file, rows) in self.files.iter_mut().zip(places).filter(|(_, rows)| !rows.is_empty()) {
            let file = match file {
                Some(file) => file,
                None => file.insert(BatchFile::new(&types, files)?),
            };
            rows.chunks(most).try_for_each(|rows| file.write_rows(&columns, rows))?;
        }
        Ok(())
    }

    /// The file of each partition, None where it has no row: for two inputs that are spread alike.
    pub fn into_slots(self) -> Vec<Option<BatchFile>> {
        self.files
    }

    /// The files, each with the level of its rows' next spreading.
    pub fn into_files(self) -> impl Iterator<Item = (BatchFile, u32)> {
        self.files.into_iter().flatten().map(move |file| (file, self.level + 1))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::TempFiles;
    use vector::VectorBuilder;

    struct Files;
    struct File(Vec<u8>);

    impl TempFiles for Files {
        fn create(&self) -> Result<Box<dyn TempFile>> {
            Ok(Box::new(File(Vec::new())))
        }
    }

    impl TempFile for File {
        fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
            self.0.extend_from_slice(bytes);
            Ok((self.0.len() - bytes.len()) as u64)
        }
        fn read(&mut self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
            out.copy_from_slice(&self.0[offset as usize..offset as usize + out.len()]);
            Ok(())
        }
    }

    fn column(
        logical: LogicalType,
        rows: usize,
        put: impl Fn(&mut VectorBuilder, usize) -> bool,
    ) -> Arc<Vector> {
        let mut builder = VectorBuilder::new(logical);
        for row in 0..rows {
            if row % 7 == 3 {
                builder.push_null();
            } else {
                assert!(put(&mut builder, row));
            }
        }
        Arc::new(builder.finish(&|_, _, _| Box::default()))
    }

    #[test]
    fn every_type_comes_back() {
        let columns = |rows: usize| {
            vec![
                column(LogicalType::Bool, rows, |b, row| b.push_bool(row % 3 == 0)),
                column(LogicalType::Int16, rows, |b, row| b.push_i16(row as i16)),
                column(LogicalType::Date, rows, |b, row| b.push_i32(-(row as i32))),
                column(LogicalType::Timestamp, rows, |b, row| b.push_i64(row as i64 * i64::from(i32::MAX))),
                column(LogicalType::Float32, rows, |b, row| b.push_f32(row as f32 / 3.0)),
                column(LogicalType::Float64, rows, |b, row| b.push_f64(1.0 / row as f64)),
                column(LogicalType::Uuid, rows, |b, row| b.push_bytes(&(row as u128).to_be_bytes())),
                column(LogicalType::Text, rows, |b, row| b.push_bytes("é".repeat(row % 40).as_bytes())),
                column(LogicalType::Numeric, rows, |b, row| {
                    if row % 5 == 1 {
                        b.push_numeric_side(b"NaN")
                    } else {
                        b.push_numeric(row as i128 * 10i128.pow(20), 2, (row % 4) as u16 + 2)
                    }
                }),
            ]
        };
        let types: Vec<_> = columns(1).iter().map(|column| column.logical).collect();
        let files: SharedTempFiles = Arc::new(Files);
        let mut file = BatchFile::new(&types, &files).unwrap();
        for rows in [1, 64, 0, 1_000, 3] {
            file.write(&columns(rows), rows).unwrap();
        }
        for rows in [1, 64, 1_000, 3] {
            let batch = file.read().unwrap().unwrap();
            assert_eq!(batch.rows, rows);
            assert_eq!(batch.columns, columns(rows));
        }
        assert!(file.read().unwrap().is_none());
    }

    /// A few rows, such as a sort has left in the end, make no file, and come back all the same.
    #[test]
    fn few_bytes_make_no_file() {
        struct NoFiles;
        impl TempFiles for NoFiles {
            fn create(&self) -> Result<Box<dyn TempFile>> {
                Err(Error::Decline("a file"))
            }
        }
        let files: SharedTempFiles = Arc::new(NoFiles);
        let rows = |rows| vec![column(LogicalType::Int64, rows, |b, row| b.push_i64(row as i64))];
        let mut file = BatchFile::new(&[LogicalType::Int64], &files).unwrap();
        file.write(&rows(3), 3).unwrap();
        file.rest().unwrap();
        file.write(&rows(5), 5).unwrap();
        file.rest().unwrap();
        assert_eq!(file.read().unwrap().unwrap().columns, rows(3));
        assert_eq!(file.read().unwrap().unwrap().columns, rows(5));
        assert!(file.read().unwrap().is_none());
        file.write(&rows(100), 100).unwrap();
        assert!(file.rest().is_err());
    }

    /// Rows of small batches come back in few pages, also where numerics of another scale, wide ones and NaN
    /// are among them.
    #[test]
    fn small_batches_become_pages() {
        let number = |row: usize, b: &mut VectorBuilder| match row % 1_000 {
            997 => b.push_numeric_side(b"NaN"),
            998 => b.push_numeric(row as i128 * 10i128.pow(30), 4, 4),
            _ => b.push_numeric(row as i128, (row / 1_000) as u16, 1),
        };
        let types = [LogicalType::Numeric, LogicalType::Text, LogicalType::Int32];
        let files: SharedTempFiles = Arc::new(Files);
        let mut file = BatchFile::new(&types, &files).unwrap();
        let mut none = BatchFile::new(&[], &files).unwrap();
        let mut next = 0;
        let mut expected: Vec<Vec<String>> = Vec::new();
        let shown = |batch: &Batch| {
            let value = |column: &Arc<Vector>, row: usize| match &column.values {
                _ if !column.is_valid(row) => "NULL".to_owned(),
                Values::Numeric(n) => {
                    let (value, special) = (n.ints.get(row), n.side_value(row));
                    format!("{value} {special:?} {} {}", n.scale, n.display.get(row))
                }
                Values::Bytes(texts) => format!("{:?}", texts.get(row)),
                Values::Int32(values) => values[row].to_string(),
                _ => String::new(),
            };
            let row = |row| batch.columns.iter().map(|column| value(column, row)).collect();
            (0..batch.rows).map(row).collect::<Vec<Vec<String>>>()
        };
        for batch in 0..2_000usize {
            let rows = 1 + batch % 4;
            let first = next;
            next += rows;
            let columns = [
                column(types[0], rows, |b, row| number(first + row, b)),
                column(types[1], rows, |b, row| {
                    b.push_bytes(format!("{}", first + row).repeat(4).as_bytes())
                }),
                column(types[2], rows, |b, row| b.push_i32((first + row) as i32)),
            ];
            expected.extend(shown(&Batch::new(rows, columns.to_vec())));
            file.write(&columns, rows).unwrap();
            none.write(&[], rows).unwrap();
        }
        assert_eq!((file.rows(), none.rows()), (next, next));
        let (mut pages, mut found) = (0, Vec::new());
        while let Some(batch) = file.read().unwrap() {
            pages += 1;
            found.extend(shown(&batch));
        }
        assert!(found == expected);
        assert!(pages < 60, "{pages} pages");
        let mut rows = 0;
        while let Some(batch) = none.read().unwrap() {
            rows += batch.rows;
        }
        assert_eq!(rows, next);
    }
}
