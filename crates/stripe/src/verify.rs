//! Compares a stripe with itself: checksums, decoding, and what its statistics and filters claim about the
//! values.
//!
//! Called by a host that checks its storage. One call checks one chunk, or one column's footer. So it needs
//! memory for one chunk only, and the host can look for interrupts in between. Only claims of statistics are
//! checked. A statistic that is missing is no fault, so stripes of older writers pass.
//!
//! Invariant: an intact stripe gives no finding.

use std::cmp::Ordering;

use encodings::BlockCodecs;
use vector::{Error, Result, Scalar};

use crate::bloom;
use crate::collect::{bloom_hashes, collect};
use crate::distinct::Sketch;
use crate::reader::{StripeBytes, StripeReader};
use crate::statistics::{Bound, ColumnStatistics};
use crate::summary::Summary;

/// What kind of promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Bytes that cannot be read: checksum, frame, encoding.
    Bytes,
    /// Statistics that the values contradict.
    Statistics,
    /// A bloom filter that denies a value.
    Bloom,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub broken: Broken,
    /// What was found, and what was expected.
    pub detail: String,
}

impl Finding {
    fn of(broken: Broken) -> impl Fn(String) -> Self {
        move |detail| Self { broken, detail }
    }

    /// Bytes that cannot be read become a finding. Errors of memory and of the host stay errors.
    fn of_error(error: Error) -> Result<Self> {
        match error {
            Error::Corrupt { detail, .. } => Ok(Self { broken: Broken::Bytes, detail }),
            Error::Unsupported(what) => {
                Ok(Self { broken: Broken::Bytes, detail: format!("this build does not know: {what}") })
            }
            other => Err(other),
        }
    }
}

/// Reads one column chunk, and compares its values with its statistics and its bloom filter.
pub fn verify_chunk(
    reader: &StripeReader,
    column: usize,
    chunk: u32,
    bytes: &dyn StripeBytes,
    codecs: &dyn BlockCodecs,
) -> Result<Option<Finding>> {
    check_chunk(reader, column, chunk, bytes, codecs).or_else(|error| Finding::of_error(error).map(Some))
}

fn check_chunk(
    reader: &StripeReader,
    column: usize,
    chunk: u32,
    bytes: &dyn StripeBytes,
    codecs: &dyn BlockCodecs,
) -> Result<Option<Finding>> {
    let values = reader.read_chunk(column, chunk, bytes, codecs)?.decode(codecs)?.flatten();
    let actual = collect(&values, 0..values.len(), &mut Sketch::new())?;
    if let Some(detail) = contradiction(reader.statistics(column, chunk, bytes)?, &actual) {
        return Ok(Some(Finding { broken: Broken::Statistics, detail }));
    }
    let Some(filter) = reader.bloom(column, chunk, bytes)? else { return Ok(None) };
    let denied =
        bloom_hashes(&values, 0..values.len()).into_iter().filter(|&hash| !bloom::may_contain(&filter, hash));
    Ok(match denied.count() {
        0 => None,
        count => {
            Some(Finding::of(Broken::Bloom)(format!("the bloom filter denies {count} values of the chunk")))
        }
    })
}

/// Compares the statistics of a whole column with those of its chunks, and the directory's summary with both.
pub fn verify_column(
    reader: &StripeReader,
    column: usize,
    summary: &[u8],
    bytes: &dyn StripeBytes,
) -> Result<Option<Finding>> {
    check_column(reader, column, summary, bytes).or_else(|error| Finding::of_error(error).map(Some))
}

fn check_column(
    reader: &StripeReader,
    column: usize,
    summary: &[u8],
    bytes: &dyn StripeBytes,
) -> Result<Option<Finding>> {
    let mut together: Option<ColumnStatistics> = None;
    for chunk in 0..reader.chunk_count() {
        let statistics = reader.statistics(column, chunk, bytes)?;
        match &mut together {
            None => together = Some(statistics.clone()),
            Some(together) => together.merge(statistics),
        }
    }
    let actual = together.unwrap_or_else(|| ColumnStatistics::unknown(0, 0));
    let claim = |what: &str, stored: &ColumnStatistics| {
        contradiction(stored, &actual)
            .map(|detail| Finding::of(Broken::Statistics)(format!("{what}: {detail}")))
    };
    if let Some(found) = claim("the whole column", reader.column_statistics(column, bytes)?) {
        return Ok(Some(found));
    }
    let summary = Summary::open(summary)?;
    let wrong = |detail| Ok(Some(Finding { broken: Broken::Statistics, detail }));
    if summary.row_count() != reader.row_count() || summary.column_count() != reader.column_count() {
        return wrong(format!(
            "the directory's summary tells of {} rows and {} columns, the stripe of {} and {}",
            summary.row_count(),
            summary.column_count(),
            reader.row_count(),
            reader.column_count()
        ));
    }
    match summary.column(column)? {
        Some((logical, _)) if Some(logical) != reader.logical(column) => {
            wrong(format!("the directory's summary tells of another type, {logical:?}"))
        }
        Some((_, stored)) => Ok(claim("the directory's summary", &stored)),
        None => wrong("the directory's summary lacks the column".into()),
    }
}

/// What `stored` claims about the rows that is not so in `actual`, the statistics computed from them.
fn contradiction(stored: &ColumnStatistics, actual: &ColumnStatistics) -> Option<String> {
    let counts = [
        ("rows", stored.rows, actual.rows),
        ("NULLs", stored.null_count, actual.null_count),
        ("values aside", stored.side_rows, actual.side_rows),
    ];
    if let Some((what, says, are)) = counts.into_iter().find(|(_, says, are)| says != are) {
        return Some(format!("statistics count {says} {what}, there are {are}"));
    }
    let scale = |statistics: &ColumnStatistics| statistics.scales.map_or(0, |scales| scales.common);
    if let (Some(says), Some(is)) = (stored.sum, actual.sum) {
        let decimal = |unscaled, of: &ColumnStatistics| Scalar::Numeric { unscaled, scale: scale(of) };
        if decimal(says, stored).compare(&decimal(is, actual)) != Some(Ordering::Equal) {
            return Some(format!("statistics say that the sum is {says}, it is {is}"));
        }
    }
    if let (Some(says), Some(are)) = (stored.scales, actual.scales)
        && (says.display_min, says.display_max) != (are.display_min, are.display_max)
    {
        return Some(format!("statistics tell of {says:?}, there are {are:?}"));
    }
    // Finds a lower bound that is greater than a value, or an upper bound that is less.
    let ends = [
        ("lower", &stored.min, &actual.min, Ordering::Greater),
        ("upper", &stored.max, &actual.max, Ordering::Less),
    ];
    ends.into_iter().find_map(|(which, says, is, beyond)| {
        outside(says, is, actual, beyond).map(|what| format!("statistics have a {which} bound that {what}"))
    })
}

/// What is wrong with a stored bound, if anything. `inside` is how a bound that leaves values out compares
/// with the actual one.
fn outside(
    stored: &Option<Bound>,
    actual: &Option<Bound>,
    rows: &ColumnStatistics,
    inside: Ordering,
) -> Option<&'static str> {
    let stored = stored.as_ref()?;
    let Some(actual) = actual else {
        return (rows.value_count() == rows.side_rows).then_some("no value can have");
    };
    match stored.value.compare(&actual.value) {
        None => Some("is of another type"),
        Some(order) if order == inside => Some("a value is beyond"),
        Some(order) if stored.exact && (order != Ordering::Equal || !actual.exact) => {
            Some("no row has, though it says so")
        }
        _ => None,
    }
}
