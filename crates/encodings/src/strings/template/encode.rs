//! Writing shredded columns: estimate on a sample, shred, encode every path column by itself.
//!
//! A chunk's payload is described in `node.rs`, the shared section in `stored.rs`.

use std::ops::Range;

use vector::{Bitmap, ByteViews, LogicalType, Result, Values, Vector};

use super::shape::{PathTable, shape_of};
use super::shred::{PathColumn, PathValues, Shredded, shred};
use super::stored;
use crate::chooser;
use crate::cursor::Writer;
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Sample};
use crate::integers;
use crate::options::{EncodeOptions, EncodingId};
use crate::shared::SharedColumn;
use crate::strings::profile;

/// Values looked at before anything costly is tried.
const LOOKS: usize = 32;
/// Shorter values are not worth a template.
const MIN_AVERAGE: usize = 12;

/// The encoding.
pub(crate) struct Template;

impl Encoding for Template {
    fn id(&self) -> EncodingId {
        EncodingId::Template
    }

    fn estimate(&self, sample: &Sample<'_>, options: &EncodeOptions<'_>) -> Option<Estimate> {
        if sample.column.logical != LogicalType::Bytes || !looks_shreddable(&sample.rows) {
            return None;
        }
        let lead = profile::lead(sample)?;
        let views: ByteViews = lead.values.iter().copied().collect();
        let mut shredded = shred(&views, std::slice::from_ref(&(0..views.len())))?;
        let children = Children::encode(&mut shredded, 1, &plain_options(options)).ok()?;
        let mut templates = Writer::new();
        write_templates(&shredded.templates, &mut templates);
        let per_row: usize = children.nodes.iter().flatten().flatten().map(Vec::len).sum();
        let once: usize = children.shared.iter().flatten().map(Vec::len).sum::<usize>()
            + shredded.programs.iter().map(|program| program.literals.len() + 64).sum::<usize>();
        let bytes = (per_row + templates.len()) as f64 * lead.factor + once as f64;
        // Rows are put together one by one, but then paths can be read alone.
        Some(Estimate { bytes, penalty: 1.1 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let Values::Bytes(views) = &column.values else { return Ok(None) };
        let chunks: Vec<Range<usize>> = (0..views.len())
            .step_by(options.chunk_rows.max(1))
            .map(|start| start..(start + options.chunk_rows).min(views.len()))
            .collect();
        let too_long = |rows: &Range<usize>| {
            rows.clone().map(|row| views.get(row).len()).sum::<usize>() > profile::MAX_CHUNK_BYTES
        };
        if column.logical != LogicalType::Bytes || chunks.iter().any(too_long) {
            return Ok(None);
        }
        let Some(mut shredded) = shred(views, &chunks) else { return Ok(None) };
        let children = Children::encode(&mut shredded, chunks.len(), &plain_options(options))?;
        let totals =
            chunks.iter().map(|rows| rows.clone().map(|row| views.get(row).len()).sum::<usize>()).collect();
        Ok(Some(Box::new(TemplateEncoder { shredded, children, chunks, totals })))
    }
}

/// Child columns choose for themselves.
const fn plain_options<'c>(options: &EncodeOptions<'c>) -> EncodeOptions<'c> {
    EncodeOptions { force: None, ..*options }
}

/// Whether most of a few values read as jsonb with something in it.
fn looks_shreddable(rows: &Vector) -> bool {
    let Values::Bytes(views) = &rows.values else { return false };
    if views.total_bytes() < views.len() * MIN_AVERAGE {
        return false;
    }
    let step = (views.len() / LOOKS).max(1);
    let (mut looked, mut read, mut holes) = (0, 0, 0);
    for row in (0..views.len()).step_by(step) {
        looked += 1;
        let mut paths = PathTable::default();
        read += usize::from(shape_of(views.get(row), &mut paths).is_some());
        holes += usize::from(!paths.paths().is_empty());
        if looked == 4 && read == 0 {
            return false;
        }
    }
    read * 4 > looked * 3 && holes * 2 > looked
}

/// The encoded child columns: shared sections by path and child, nodes by path, child and chunk.
struct Children {
    shared: Vec<Vec<Vec<u8>>>,
    nodes: Vec<Vec<Vec<Vec<u8>>>>,
}

impl Children {
    /// Encodes the path columns and leaves them empty.
    fn encode(shredded: &mut Shredded, chunks: usize, options: &EncodeOptions<'_>) -> Result<Self> {
        let mut children = Self { shared: Vec::new(), nodes: Vec::new() };
        for column in &mut shredded.columns {
            let ranges: Vec<Range<usize>> = (0..chunks).filter_map(|chunk| range(column, chunk)).collect();
            let vectors = match std::mem::replace(&mut column.values, PathValues::Flags(Bitmap::new())) {
                PathValues::Bytes(mut views) => {
                    views.seal();
                    vec![Vector::new(LogicalType::Text, Values::Bytes(views))]
                }
                PathValues::Numbers(values, scales) => vec![
                    Vector::new(LogicalType::Int64, Values::Int64(values)),
                    Vector::new(LogicalType::Int16, Values::Int16(scales)),
                ],
                PathValues::Flags(bits) => vec![Vector::new(LogicalType::Bool, Values::Bool(bits))],
            };
            let (mut shared, mut nodes) = (Vec::new(), Vec::new());
            for vector in vectors {
                let (section, own) = encode_column(&vector, &ranges, options)?;
                shared.push(section);
                nodes.push(own);
            }
            children.shared.push(shared);
            children.nodes.push(nodes);
        }
        Ok(children)
    }
}

fn range(column: &PathColumn, chunk: usize) -> Option<Range<usize>> {
    Some(*column.starts.get(chunk)?..*column.starts.get(chunk + 1)?)
}

/// The shared section and the values nodes of a child column; an empty range gives no node.
fn encode_column(
    column: &Vector,
    ranges: &[Range<usize>],
    options: &EncodeOptions<'_>,
) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
    if column.is_empty() {
        return Ok((Vec::new(), vec![Vec::new(); ranges.len()]));
    }
    let mut encoder = chooser::choose(column, options)?;
    let mut nodes = Vec::with_capacity(ranges.len());
    for rows in ranges {
        let mut out = Writer::new();
        if !rows.is_empty() {
            encoder.encode(rows.clone(), &mut out)?;
        }
        nodes.push(out.into_bytes());
    }
    let section = match (encoder.owner(), encoder.shared()?) {
        (Some(owner), Some(payload)) => SharedColumn::write(owner, &payload, options)?,
        _ => Vec::new(),
    };
    Ok((section, nodes))
}

struct TemplateEncoder {
    shredded: Shredded,
    children: Children,
    chunks: Vec<Range<usize>>,
    totals: Vec<usize>,
}

fn write_templates(templates: &[u32], out: &mut Writer) {
    let templates: Vec<i64> = templates.iter().map(|&template| i64::from(template)).collect();
    integers::write_child(&templates, integers::CHILD_DEPTH, out);
}

impl ColumnEncoder for TemplateEncoder {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let Some(chunk) = self.chunks.iter().position(|chunk| *chunk == rows) else { return Ok(false) };
        let (Some(templates), Some(&total)) = (self.shredded.templates.get(rows), self.totals.get(chunk))
        else {
            return Ok(false);
        };
        out.u8(EncodingId::Template.tag());
        out.count(total);
        write_templates(templates, out);
        for nodes in self.children.nodes.iter().flatten() {
            out.child(nodes.get(chunk).map_or(&[], Vec::as_slice));
        }
        Ok(true)
    }

    fn shared(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(Some(stored::write(&self.shredded.programs, &self.shredded.paths, &self.children.shared)))
    }
}
