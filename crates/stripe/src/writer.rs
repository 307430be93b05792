//! Writes a stripe: columns in memory become bytes, statistics and the directory's summary.
//!
//! Each column is encoded and appended, and its places and checksums are remembered. Then come the column
//! footers, and last the footer. Nothing is written twice and no column waits for another. So the most memory
//! that it takes is the input, the output and one column's encodings.

use std::ops::Range;

use encodings::{BlockCodecs, Codec, EncodeOptions, EncodingId, NoPglz, encode_column, never_cancelled};
use vector::{Error, LogicalType, Result, Values, Vector};

use crate::blocks;
use crate::bloom;
use crate::collect::{bloom_hashes, collect};
use crate::cursor::checksum;
use crate::distinct::Sketch;
use crate::footer::{ChunkEntry, ColumnEntry, ColumnFooter, Footer, MAX_COLUMNS, RowBlocks, Section};
use crate::statistics::ColumnStatistics;
use crate::summary::write_summary;

/// A chunk gets fewer rows if its values would take more than this, because one read must hold a whole chunk
/// decoded.
const CHUNK_BYTES: usize = 16 << 20;
/// Size alone does not cut a chunk below this many rows, so that a stripe does not get too many small chunks.
const FEWEST_CHUNK_ROWS: u32 = 16;

/// How the values of a stripe lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Each column apart, in chunks: for reading some columns of many rows.
    #[default]
    Columns,
    /// Rows in small blocks with all their columns: for reading whole rows, one here and one there.
    Blocks,
}

/// How to write a stripe.
#[derive(Clone, Copy)]
pub struct StripeOptions<'a> {
    /// How the values lie.
    pub layout: Layout,
    /// Rows of a chunk, at least 1. Chunks of large values have fewer. Where rows lie in blocks, a chunk has
    /// as many whole blocks as fit.
    pub chunk_rows: u32,
    /// The block codec to try if encodings leave something to gain.
    pub codec: Codec,
    /// The codec's level.
    pub level: i32,
    /// The encoding to use wherever it can hold the values.
    pub force: Option<EncodingId>,
    /// The host's codecs.
    pub codecs: &'a dyn BlockCodecs,
    /// Columns that get a bloom filter for each chunk, about 11 bits a distinct value. Types without filters
    /// are passed over.
    pub bloom_columns: &'a [usize],
    /// Called every few milliseconds. Its error ends the writing, so a host can let its user cancel.
    pub check: &'a dyn Fn() -> Result<()>,
}

impl Default for StripeOptions<'_> {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            chunk_rows: 10_000,
            codec: Codec::None,
            level: 3,
            force: None,
            codecs: &NoPglz,
            bloom_columns: &[],
            check: &never_cancelled,
        }
    }
}

impl std::fmt::Debug for StripeOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StripeOptions")
            .field("layout", &self.layout)
            .field("chunk_rows", &self.chunk_rows)
            .field("codec", &self.codec)
            .field("level", &self.level)
            .field("force", &self.force)
            .field("bloom_columns", &self.bloom_columns)
            .finish_non_exhaustive()
    }
}

/// What became of one column, for EXPLAIN, views and benchmarks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnReport {
    /// Stored bytes: shared section, chunks, bloom filters and footer.
    pub bytes: u64,
    /// Encodings of the chunks, in order of first use, each once.
    pub encodings: Vec<String>,
}

/// A written stripe.
#[derive(Debug, Clone)]
pub struct EncodedStripe {
    /// All bytes of the stripe.
    pub bytes: Vec<u8>,
    /// Where in `bytes` the footer begins.
    pub footer_offset: u64,
    /// The footer's length in bytes.
    pub footer_length: u32,
    /// Rows.
    pub row_count: u32,
    /// What the directory keeps: see `Summary`.
    pub summary: Vec<u8>,
    /// Column by column.
    pub report: Vec<ColumnReport>,
}

/// Writes `row_count` rows. All columns have that many rows. The number is given because a table may have no
/// column.
pub fn write_stripe(
    row_count: u32,
    columns: &[Vector],
    options: &StripeOptions<'_>,
) -> Result<EncodedStripe> {
    if columns.len() > MAX_COLUMNS {
        return Err(Error::InvalidInput(format!("{} columns in one stripe", columns.len())));
    }
    if options.chunk_rows == 0 {
        return Err(Error::InvalidInput("chunks of no row".into()));
    }
    for (index, column) in columns.iter().enumerate() {
        if column.len() != row_count as usize {
            let len = column.len();
            return Err(Error::InvalidInput(format!("column {} has {len} of {row_count} rows", index + 1)));
        }
    }
    let mut chunk_rows = fit_chunk_rows(columns, options.chunk_rows);
    let block_rows = (options.layout == Layout::Blocks).then(|| {
        let (block_rows, whole_blocks) = blocks::sizes(columns, chunk_rows);
        chunk_rows = whole_blocks;
        block_rows
    });
    let mut bytes = Vec::new();
    let mut footers = Vec::with_capacity(columns.len());
    let mut report = Vec::with_capacity(columns.len());
    let mut pieces = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let bloom = options.bloom_columns.contains(&index) && bloom::supports(column.logical);
        let data_offset = bytes.len() as u64;
        let how = ColumnOptions { chunk_rows, block_rows, bloom, options };
        let written = write_column(column, &how, &mut bytes)?;
        let in_blocks: usize = written.pieces.iter().map(Vec::len).sum();
        let stored = bytes.len() as u64 - data_offset + in_blocks as u64;
        report.push(ColumnReport { bytes: stored, encodings: written.encodings });
        footers.push((column.logical, data_offset, written.footer));
        pieces.push(written.pieces);
    }
    let index = match block_rows {
        Some(rows) => Some((rows, blocks::write(&pieces, row_count.div_ceil(rows), &mut bytes)?)),
        None => None,
    };
    drop(pieces);
    let data_length = bytes.len() as u64;
    let mut footer = Footer { row_count, chunk_rows, data_length, blocks: None, columns: Vec::new() };
    let mut statistics = Vec::with_capacity(footers.len());
    for ((logical, data_offset, column), report) in footers.into_iter().zip(&mut report) {
        let start = bytes.len() as u64;
        bytes.extend_from_slice(&column.write(logical));
        let end = bytes.len() as u64;
        report.bytes += end - start;
        footer.columns.push(ColumnEntry { logical, data_offset, footer: start..end });
        statistics.push((logical, column.statistics));
    }
    if let Some((rows, index)) = index {
        let start = bytes.len() as u64;
        bytes.extend_from_slice(&index);
        footer.blocks = Some(RowBlocks { rows, index: start..bytes.len() as u64 });
    }
    let footer_offset = bytes.len() as u64;
    let footer_bytes = footer.write()?;
    bytes.extend_from_slice(&footer_bytes);
    Ok(EncodedStripe {
        footer_offset,
        footer_length: u32::try_from(footer_bytes.len())
            .map_err(|_| Error::InvalidInput("stripe footer past 4 GiB".into()))?,
        row_count,
        summary: write_summary(row_count, &statistics)?,
        report,
        bytes,
    })
}

/// How to write a column.
struct ColumnOptions<'a> {
    chunk_rows: u32,
    /// Rows of a block, if rows lie in blocks.
    block_rows: Option<u32>,
    /// Chunks get bloom filters.
    bloom: bool,
    options: &'a StripeOptions<'a>,
}

/// A column that was written but for its footer and, if rows lie in blocks, its values.
struct WrittenColumn {
    footer: ColumnFooter,
    /// Its encodings, each once.
    encodings: Vec<String>,
    /// Encoded values that belong into blocks, one after the other.
    pieces: Vec<Vec<u8>>,
}

fn write_column(column: &Vector, how: &ColumnOptions<'_>, out: &mut Vec<u8>) -> Result<WrittenColumn> {
    let ColumnOptions { chunk_rows, block_rows, bloom, options } = *how;
    let flat;
    let column = match &column.values {
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {
            flat = column.clone().flatten();
            &flat
        }
        _ => column,
    };
    let encode = EncodeOptions {
        chunk_rows: block_rows.unwrap_or(chunk_rows) as usize,
        codec: options.codec,
        level: options.level,
        force: options.force,
        codecs: options.codecs,
        check: options.check,
    };
    let encoded = encode_column(column, &encode)?;
    if encoded.chunks.len() != column.len().div_ceil(encode.chunk_rows) {
        let (chunks, rows) = (encoded.chunks.len(), column.len());
        return Err(Error::InvalidInput(format!("{rows} rows were encoded in {chunks} chunks")));
    }
    let shared = append(&encoded.shared, out);
    let mut encodings: Vec<String> = Vec::new();
    let (mut pieces, mut sections) = (Vec::new(), Vec::new());
    for chunk in encoded.chunks {
        if !encodings.contains(&chunk.encoding) {
            encodings.push(chunk.encoding);
        }
        match block_rows {
            Some(_) => pieces.push(chunk.bytes),
            None => sections.push(append(&chunk.bytes, out)),
        }
    }
    let nothing = || Section { range: 0..0, checksum: 0 };
    let (mut sketch, mut whole_sketch) = (Sketch::new(), Sketch::new());
    let mut whole: Option<ColumnStatistics> = None;
    let mut chunks = Vec::new();
    let mut sections = sections.into_iter();
    for first in (0..column.len()).step_by(chunk_rows as usize) {
        (options.check)()?;
        let rows = first..column.len().min(first + chunk_rows as usize);
        let mut statistics = collect(column, rows, &mut sketch)?;
        statistics.distinct = Some(sketch.estimate().min(statistics.value_count()));
        whole_sketch.absorb(&mut sketch);
        match &mut whole {
            None => whole = Some(statistics.clone()),
            Some(whole) => whole.merge(&statistics),
        }
        let data = sections.next().unwrap_or_else(nothing);
        chunks.push(ChunkEntry { data, bloom: nothing(), statistics });
    }
    if bloom {
        let mut first = 0usize;
        for chunk in &mut chunks {
            let rows = first..first + chunk.statistics.rows as usize;
            first = rows.end;
            let distinct = chunk.statistics.distinct.unwrap_or(chunk.statistics.rows);
            // If there is one value or none, the bounds tell it.
            if distinct > 1 {
                let filter = bloom::build(bloom_hashes(column, rows).into_iter(), distinct);
                chunk.bloom = append(&filter, out);
            }
        }
    }
    let mut statistics = whole.unwrap_or_else(|| ColumnStatistics::unknown(0, 0));
    statistics.distinct = Some(whole_sketch.estimate().min(statistics.value_count()));
    Ok(WrittenColumn { footer: ColumnFooter { shared, statistics, chunks }, encodings, pieces })
}

fn append(section: &[u8], out: &mut Vec<u8>) -> Section {
    let start = out.len() as u64;
    out.extend_from_slice(section);
    Section {
        range: start..out.len() as u64,
        checksum: if section.is_empty() { 0 } else { checksum(section) },
    }
}

/// A number of rows for each chunk such that no chunk of a column of byte strings holds more than
/// `CHUNK_BYTES`, unless a few values alone do: `wanted`, or fewer. With what it gives for all columns of
/// some rows, stripes of some of the columns have chunks of the same sizes.
pub fn fit_chunk_rows(columns: &[Vector], wanted: u32) -> u32 {
    let mut rows = wanted;
    for column in columns {
        if !matches!(column.logical, LogicalType::Text | LogicalType::Bytes) {
            continue;
        }
        let Values::Bytes(views) = &column.values else { continue };
        if views.total_bytes() <= CHUNK_BYTES {
            continue;
        }
        let lengths: Vec<usize> = views.views().iter().map(|view| view.len()).collect();
        while rows > FEWEST_CHUNK_ROWS && largest_chunk(&lengths, rows) > CHUNK_BYTES {
            rows = (rows / 2).max(FEWEST_CHUNK_ROWS);
        }
    }
    rows
}

fn largest_chunk(lengths: &[usize], rows: u32) -> usize {
    lengths.chunks(rows as usize).map(|chunk| chunk.iter().sum()).max().unwrap_or(0)
}

/// The rows of chunk `chunk` in a stripe of `row_count` rows.
pub(crate) fn rows_of_chunk(row_count: u32, chunk_rows: u32, chunk: u32) -> Range<u32> {
    let start = chunk.saturating_mul(chunk_rows).min(row_count);
    start..start.saturating_add(chunk_rows).min(row_count)
}
