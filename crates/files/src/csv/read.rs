//! Fields of a CSV file, a record at a time.
//!
//! `csv-core` finds the fields, as RFC 4180 has them. Whether a field was quoted is seen here, at its first
//! byte: an empty field may mean NULL where an empty text is written as two quotes.

use std::io::Read;
use std::ops::Range;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::Dialect;
use crate::{Error, Result};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 18;
/// Longest field. What is longer has most likely lost its closing quote.
const LONGEST: usize = 1 << 30;

/// The fields of a record.
#[derive(Debug, Default)]
pub struct Record {
    text: Vec<u8>,
    fields: Vec<(Range<usize>, bool)>,
}

impl Record {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field without its quotes, and whether it had some.
    pub fn field(&self, at: usize) -> Option<(&[u8], bool)> {
        let (range, quoted) = self.fields.get(at)?;
        Some((self.text.get(range.clone())?, *quoted))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        (0..self.len()).filter_map(|at| self.field(at))
    }
}

/// A CSV file that is being read.
pub struct CsvReader<R> {
    input: R,
    dialect: Dialect,
    parser: Reader,
    block: Vec<u8>,
    /// What of the block was not parsed.
    rest: Range<usize>,
    is_at_end: bool,
    bytes: u64,
    records: u64,
}

impl<R: Read> CsvReader<R> {
    /// Begins to read.
    pub fn new(input: R, dialect: Dialect) -> Self {
        let parser = ReaderBuilder::new().delimiter(dialect.delimiter).quote(dialect.quote).build();
        Self {
            input,
            dialect,
            parser,
            block: vec![0; BLOCK],
            rest: 0..0,
            is_at_end: false,
            bytes: 0,
            records: 0,
        }
    }

    /// Bytes that were parsed.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Records that were read.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Has something to parse, unless the file is at its end.
    fn fill(&mut self) -> Result<()> {
        while self.rest.is_empty() && !self.is_at_end {
            match self.input.read(&mut self.block) {
                Ok(0) => self.is_at_end = true,
                Ok(length) => self.rest = 0..length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            if self.bytes == 0
                && self.block.get(self.rest.clone()).is_some_and(|text| text.starts_with(b"\xef\xbb\xbf"))
            {
                // A byte order mark is no text.
                self.rest.start += 3;
                self.bytes += 3;
            }
        }
        Ok(())
    }

    /// As `next`, of a record that has so many fields.
    ///
    /// # Errors
    /// Where it has not.
    pub fn next_of(&mut self, width: usize, record: &mut Record) -> Result<bool> {
        let is_there = self.next(record)?;
        match is_there && record.len() != width {
            true => Err(Error::Malformed(format!(
                "record {} has {} fields where the first has {width}",
                self.records,
                record.len()
            ))),
            false => Ok(is_there),
        }
    }

    /// Reads the next record. False at the end. Empty lines are no records.
    pub fn next(&mut self, record: &mut Record) -> Result<bool> {
        record.fields.clear();
        let (mut start, mut end) = (0, 0);
        let mut quoted = None;
        // A field with quotes has an even number of them.
        let mut quotes = 0usize;
        loop {
            self.fill()?;
            if record.text.len() < end + 1024 {
                if end - start > LONGEST {
                    return Err(Error::Malformed(format!(
                        "record {} has a field past 1 GiB: a quote may be missing",
                        self.records + 1
                    )));
                }
                record.text.resize((record.text.len() * 2).max(4096), 0);
            }
            let input = self.block.get(self.rest.clone()).unwrap_or_default();
            // Between records there may be line ends, which belong to no field.
            let first =
                input.iter().find(|&&byte| !record.fields.is_empty() || !matches!(byte, b'\r' | b'\n'));
            let is_quoted = quoted.or_else(|| first.map(|&byte| byte == self.dialect.quote));
            let output = record.text.get_mut(end..).unwrap_or_default();
            let (result, read, written) = self.parser.read_field(input, output);
            if is_quoted == Some(true) {
                let parsed = input.get(..read).unwrap_or_default();
                quotes += parsed.iter().filter(|&&byte| byte == self.dialect.quote).count();
            }
            let is_open = self.is_at_end && !quotes.is_multiple_of(2);
            self.rest.start += read;
            self.bytes += read as u64;
            end += written;
            // A quote that was met belongs to the field, also where its text is to come.
            quoted = is_quoted;
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { .. } if is_open => {
                    return Err(Error::Malformed(format!(
                        "record {}: a quote is not closed",
                        self.records + 1
                    )));
                }
                ReadFieldResult::Field { record_end } => {
                    quotes = 0;
                    record.fields.push((start..end, quoted.take().unwrap_or(false)));
                    start = end;
                    if record_end {
                        self.records += 1;
                        return Ok(true);
                    }
                }
                ReadFieldResult::End => return Ok(false),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CsvReader, Record};
    use crate::csv::Dialect;
    use std::io::Read;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len()).min(out.len());
            out[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(text: &[u8], step: usize) -> Vec<Vec<(String, bool)>> {
        let mut reader = CsvReader::new(Slow(text, step), Dialect::default());
        let (mut record, mut out) = (Record::default(), Vec::new());
        while reader.next(&mut record).unwrap() {
            out.push(
                record
                    .iter()
                    .map(|(field, quoted)| (String::from_utf8_lossy(field).into_owned(), quoted))
                    .collect(),
            );
        }
        assert_eq!(reader.bytes() as usize, text.len());
        out
    }

    #[test]
    fn fields_come_with_their_quotes_seen_however_bytes_arrive() {
        let text = b"\xef\xbb\xbfa,\"b\"\"c\",\r\n\n\"\",,\"x\ny\"\r\n\"q\"\nlast,";
        let expected: Vec<Vec<(&str, bool)>> = vec![
            vec![("a", false), ("b\"c", true), ("", false)],
            vec![("", true), ("", false), ("x\ny", true)],
            vec![("q", true)],
            vec![("last", false), ("", false)],
        ];
        for step in [3, 4, 5, 7, 11, 1000] {
            let found = all(text, step);
            let found: Vec<Vec<(&str, bool)>> = found
                .iter()
                .map(|row| row.iter().map(|(field, quoted)| (field.as_str(), *quoted)).collect())
                .collect();
            assert_eq!(found, expected, "{step} bytes at a time");
        }
        let long = "x".repeat(100_000);
        assert_eq!(
            all(format!("{long},\"{long}\"").as_bytes(), 999),
            [[(long.clone(), false), (long, true)]]
        );
        for unclosed in [&b"a\n\"b"[..], b"\"", b"x,\"a\"\"\n1,2\n"] {
            let mut reader = CsvReader::new(Slow(unclosed, 3), Dialect::default());
            let mut record = Record::default();
            let found = std::iter::from_fn(|| {
                Some(reader.next(&mut record)).filter(|found| !matches!(found, Ok(false)))
            });
            assert!(found.last().is_some_and(|last| last.is_err()), "{unclosed:?}");
        }
        assert!(all(b"", 1).is_empty() && all(b"\n\n", 3).is_empty());
    }
}
