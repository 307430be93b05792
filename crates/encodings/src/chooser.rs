//! Chooses an encoding for a column: every candidate is estimated on a sample, and the cheapest one that does
//! not give up is taken.

use std::ops::Range;

use vector::{Error, PhysicalType, Result, Vector};

use crate::column::Chosen;
use crate::cursor::Writer;
use crate::dictionary::NumberDictionary;
use crate::encoding::{Encoding, Sample};
use crate::floats::{Alp, AlpRd};
use crate::integers::Integers;
use crate::numerics::Numerics;
use crate::options::EncodeOptions;
use crate::runs::Runs;
use crate::{plain, strings};

/// Runs in a sample, and rows in each. Runs are long enough to show neighbours, and enough to show the whole
/// column.
const SAMPLE_RUNS: usize = 8;
const RUN_ROWS: usize = 256;

/// How many bytes a value an encoding of twice the cost must save.
const MIN_GAIN: f64 = 0.2;

/// If byte strings stand alone and are fewer than this, they are left plain.
const MIN_ALONE: usize = 64;

/// The encoder for a flat column whose NULL rows are filled.
pub(crate) fn choose<'c>(column: &'c Vector, options: &EncodeOptions<'c>) -> Result<Chosen<'c>> {
    let physical = column.logical.physical();
    let candidates = candidates(physical);
    let fallback = fallback(physical);
    let begin_fallback = || {
        fallback
            .begin(column, options)?
            .ok_or_else(|| Error::InvalidInput(format!("no encoding for {physical:?} values")))
    };
    let mut ranked: Vec<(f64, &'static dyn Encoding)> = Vec::new();
    if let Some(force) = options.force {
        ranked.extend(candidates.iter().filter(|e| e.id() == force).map(|e| (0.0, *e)));
        // Integer nodes choose among their own encodings, and use a forced one.
        if ranked.is_empty()
            && matches!(
                physical,
                PhysicalType::Numeric | PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64
            )
        {
            ranked.push((0.0, fallback));
        }
    }
    if ranked.is_empty() && !column.is_empty() {
        let sample = sample(column);
        for encoding in candidates {
            if let Some(estimate) = encoding.estimate(&sample, options) {
                // A slower decoder has to save a little in any case, not only in proportion.
                let floor = (estimate.penalty - 1.0) * MIN_GAIN * column.len() as f64;
                ranked.push((estimate.bytes * estimate.penalty + floor, encoding));
            }
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    for (_, encoding) in ranked {
        if let Some(encoder) = encoding.begin(column, options)? {
            return Ok(Chosen { column, owner: encoding.id(), encoder, fallback: begin_fallback()? });
        }
    }
    Ok(Chosen { column, owner: fallback.id(), encoder: begin_fallback()?, fallback: begin_fallback()? })
}

/// Appends a values node with all rows of a flat column that shares nothing, as dictionary entries and
/// children do.
pub(crate) fn write_alone(column: &Vector, options: &EncodeOptions<'_>, out: &mut Writer) -> Result<()> {
    let physical = column.logical.physical();
    // There is one chunk, so that nothing goes to a shared section. Bytes that a codec compresses next are
    // best left as they are.
    let options = EncodeOptions { chunk_rows: column.len().max(1), force: None, ..*options };
    let mut ranked: Vec<(f64, &'static dyn Encoding)> = Vec::new();
    if physical == PhysicalType::Bytes && column.len() >= MIN_ALONE {
        let sample = sample(column);
        for encoding in strings::candidates_alone(options.codec) {
            if let Some(estimate) = encoding.estimate(&sample, &options) {
                ranked.push((estimate.bytes * estimate.penalty, encoding));
            }
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let start = out.len();
    for encoding in ranked.into_iter().map(|(_, encoding)| encoding).chain([fallback(physical)]) {
        if let Some(mut encoder) = encoding.begin(column, &options)?
            && encoder.chunk(0..column.len(), out)?
        {
            return Ok(());
        }
        out.truncate(start);
    }
    Err(Error::InvalidInput(format!("no encoding for {physical:?} values")))
}

/// All encodings that may hold values of this physical type.
fn candidates(physical: PhysicalType) -> Vec<&'static dyn Encoding> {
    match physical {
        PhysicalType::Bytes | PhysicalType::Fixed(_) => strings::candidates(),
        PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64 => vec![&Integers, &NumberDictionary],
        PhysicalType::Numeric => vec![&Numerics, &NumberDictionary],
        PhysicalType::Bool => vec![&plain::Plain, &Runs],
        PhysicalType::Float32 | PhysicalType::Float64 => {
            vec![&plain::Plain, &Alp, &AlpRd, &Runs, &NumberDictionary]
        }
    }
}

/// The encoding that can always hold them.
fn fallback(physical: PhysicalType) -> &'static dyn Encoding {
    match physical {
        PhysicalType::Bytes | PhysicalType::Fixed(_) => strings::fallback(),
        PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64 => &Integers,
        PhysicalType::Numeric => &Numerics,
        PhysicalType::Bool | PhysicalType::Float32 | PhysicalType::Float64 => &plain::Plain,
    }
}

/// Contiguous runs, spread evenly, with the last one at the end. The whole column if it is small.
fn sample(column: &Vector) -> Sample<'_> {
    let rows = column.len();
    let runs: Vec<Range<usize>> = if rows <= SAMPLE_RUNS * RUN_ROWS {
        std::iter::once(0..rows).collect()
    } else {
        let gap = (rows - RUN_ROWS) / (SAMPLE_RUNS - 1);
        (0..SAMPLE_RUNS).map(|run| run * gap..run * gap + RUN_ROWS).collect()
    };
    let places: Vec<u32> =
        runs.iter().cloned().flatten().map(|row| u32::try_from(row).unwrap_or(u32::MAX)).collect();
    Sample { column, rows: column.take(&places) }
}
