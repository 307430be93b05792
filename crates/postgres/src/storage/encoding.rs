//! A stripe that a worker encodes while the backend goes on with the next rows.
//!
//! Used by bulk loads (`pending_rows`) and for copies of columnstore indexes. The backend encodes rows itself
//! where a worker is not worth while, or none is to be had. So whoever has the rows keeps them until then.

use std::sync::Arc;

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use stripe::{Background, EncodedStripe, StripeOptions, encode_in_background};
use vector::{Result, Values, Vector};

use crate::host::{error, memory, worker};

/// Encoding fewer bytes of values takes so little time that a thread is not worth while.
const WORTH_A_THREAD: usize = 1 << 20;

static IN_BACKGROUND: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Defines the setting.
pub fn register_settings() {
    GucRegistry::define_bool_guc(
        c"colonnade.encode_in_background",
        c"Encodes full stripes of loads, and copies of columnstore indexes, in a thread while the next rows are read.",
        c"It helps where a processor is idle. What is compressed with pglz is encoded without it.",
        &IN_BACKGROUND,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Has a worker encode rows that take this many bytes. None where that is not worth while or not possible.
pub fn start(
    rows: usize,
    bytes: usize,
    columns: &Arc<Vec<Vector>>,
    options: &StripeOptions<'_>,
) -> Option<Background<EncodedStripe>> {
    if bytes < WORTH_A_THREAD || !IN_BACKGROUND.get() {
        return None;
    }
    expect_memory(columns);
    encode_in_background(u32::try_from(rows).ok()?, columns, options, |work| {
        worker::spawn("colonnade encode", work)
    })
}

/// The encoded rows: what the worker makes, which is waited for, or made here where there is none. Errors
/// become ERRORs.
pub fn finish(
    worker: Option<Background<EncodedStripe>>,
    rows: u32,
    columns: &[Vector],
    options: StripeOptions<'_>,
) -> EncodedStripe {
    let made = match worker {
        Some(worker) => worker.wait(&look_for_interrupts),
        None => {
            expect_memory(columns);
            let options = StripeOptions { check: &look_for_interrupts, ..options };
            stripe::write_stripe(rows, columns, &options)
        }
    };
    made.unwrap_or_else(|problem| error::raise_plain(problem))
}

/// Raises "out of memory" if there is less memory than encoding these columns takes. While encodings are
/// tried, each value is in its chunk, the chunk in its column and the column in the stripe.
fn expect_memory(columns: &[Vector]) {
    let bytes_of = |column: &Vector| match &column.values {
        Values::Bytes(views) => views.total_bytes(),
        _ => 0,
    };
    memory::expect(columns.iter().map(bytes_of).sum::<usize>().saturating_mul(4));
}

/// Raises the ERROR of a cancelled statement out of the middle of an encoding, which holds nothing but
/// memory and perhaps a thread that ends with it.
fn look_for_interrupts() -> Result<()> {
    pgrx::check_for_interrupts!();
    Ok(())
}
