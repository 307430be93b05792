//! A CSV file from values, as RFC 4180 has it, with lines that end in a line feed.

use std::io::Write;

use super::Dialect;
use crate::{Error, Result};

/// A CSV file that is being written.
pub struct CsvWriter<W> {
    out: W,
    dialect: Dialect,
    /// What stands for NULL.
    null: Vec<u8>,
    /// Bytes and fields of the record.
    record: Vec<u8>,
    fields: usize,
}

impl<W: Write> CsvWriter<W> {
    /// Begins to write.
    pub const fn new(out: W, dialect: Dialect, null: Vec<u8>) -> Self {
        Self { out, dialect, null, record: Vec::new(), fields: 0 }
    }

    fn between(&mut self) {
        if self.fields > 0 {
            self.record.push(self.dialect.delimiter);
        }
        self.fields += 1;
    }

    /// Adds NULL.
    pub fn null(&mut self) {
        self.between();
        self.record.extend_from_slice(&self.null);
    }

    /// Adds a value. It is quoted where it would not be read as it is, or be taken for NULL.
    pub fn field(&mut self, text: &[u8]) {
        self.between();
        let Dialect { delimiter, quote } = self.dialect;
        let is_special = |byte: &u8| *byte == delimiter || *byte == quote || matches!(byte, b'\r' | b'\n');
        if text != self.null && !text.is_empty() && !text.iter().any(is_special) {
            return self.record.extend_from_slice(text);
        }
        self.record.push(quote);
        for (at, part) in text.split(|&byte| byte == quote).enumerate() {
            if at > 0 {
                self.record.extend_from_slice(&[quote, quote]);
            }
            self.record.extend_from_slice(part);
        }
        self.record.push(quote);
    }

    /// Ends the record. An error for an empty line, which would be read as no record.
    pub fn end(&mut self) -> Result<()> {
        if self.record.is_empty() {
            return Err(Error::Unsupported(
                "a NULL that is the only value of a line needs a text that stands for it".into(),
            ));
        }
        self.record.push(b'\n');
        self.out.write_all(&self.record)?;
        self.record.clear();
        self.fields = 0;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::CsvWriter;
    use crate::csv::Dialect;

    #[test]
    fn values_are_quoted_where_they_would_be_read_otherwise() {
        let mut writer = CsvWriter::new(Vec::new(), Dialect::default(), b"nil".to_vec());
        for value in ["a", "", "a,b", "say \"x\"", "two\nlines", "nil"] {
            writer.field(value.as_bytes());
        }
        writer.null();
        writer.end().unwrap();
        writer.null();
        writer.end().unwrap();
        let mut empty = CsvWriter::new(Vec::new(), Dialect::default(), Vec::new());
        empty.null();
        assert!(empty.end().is_err());
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(text, "a,\"\",\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\"nil\",nil\nnil\n");
    }
}
