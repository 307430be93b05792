//! Ranks of byte strings in a column that has few different ones.
//!
//! Called by `order`. To compare two strings by the host costs more than to find equal ones. So equal byte
//! strings get one number (`RowSet`), and only one string of each number is compared with the others. Every
//! row gets the rank of its string. The rank is a small integer, which `order` packs with the other keys.
//! Invariant: byte strings that differ and compare equal have one rank.

use std::sync::Arc;

use super::pieces::{self, SLOW};
use crate::row_container::{RowSet, ValueColumn};
use crate::{BATCH_ROWS, Result, TextOrder, interrupt};

/// Rows below which comparing them all takes no time.
const FEW: usize = 64;
/// The column has at least this many rows for each different value, and at least this many bytes for each
/// byte of the different values. The limit in bytes is there because different values are copied.
const SHARING: usize = 4;
/// Rows after which `ranks` checks `SHARING` for the first time.
const TRIED: usize = 4 * BATCH_ROWS;

/// The rank of each row; None if too many strings differ. Ranks of NULLs are unspecified.
pub fn ranks(column: &ValueColumn, order: &TextOrder) -> Result<Option<Vec<u32>>> {
    let rows = column.len();
    if rows < FEW {
        return Ok(None);
    }
    let mut set = RowSet::new(&[column.logical()]);
    let (mut ranks, mut numbers) = (Vec::with_capacity(rows), Vec::new());
    for start in (0..rows).step_by(BATCH_ROWS) {
        interrupt::check()?;
        let length = BATCH_ROWS.min(rows - start);
        set.number(&[Arc::new(column.slice(start, length))], length, &mut numbers)?;
        ranks.extend_from_slice(&numbers);
        let seen = if rows < TRIED { rows } else { ranks.len().max(TRIED) };
        let copied = set.columns().first().map_or(0, ValueColumn::bytes);
        if set.len() * SHARING > seen || copied * SHARING > column.bytes() {
            return Ok(None);
        }
    }
    let Some(values) = set.columns().first() else { return Ok(None) };
    let mut different: Vec<u32> = (0..set.len() as u32).filter(|&at| !values.is_null(at as usize)).collect();
    let wanted = different.len();
    let by_value = |a: &u32, b: &u32| values.order(*a as usize, *b as usize, order).then_with(|| a.cmp(b));
    pieces::sort(&mut different, wanted, SLOW, &by_value)?;
    let mut rank_of = vec![0; set.len()];
    let mut rank = 0;
    for (at, &value) in different.iter().enumerate() {
        // The host's comparisons of long texts take long.
        if at % 256 == 0 {
            interrupt::check()?;
        }
        let before = at.checked_sub(1).and_then(|before| different.get(before));
        if before.is_some_and(|&before| values.order(before as usize, value as usize, order).is_ne()) {
            rank += 1;
        }
        rank_of[value as usize] = rank;
    }
    ranks.iter_mut().for_each(|number| *number = rank_of[*number as usize]);
    Ok(Some(ranks))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cmp::Ordering;

    use vector::{LogicalType, VectorBuilder};

    use super::*;

    fn column(rows: usize, text: impl Fn(usize) -> Option<String>) -> ValueColumn {
        let mut builder = VectorBuilder::new(LogicalType::Text);
        for row in 0..rows {
            match text(row) {
                Some(text) => assert!(builder.push_bytes(text.as_bytes())),
                None => builder.push_null(),
            }
        }
        let mut column = ValueColumn::new(LogicalType::Text);
        column.append_all(&builder.finish(&|_, _, _| Box::default())).unwrap();
        column.seal();
        column
    }

    #[test]
    fn ranks_order_as_values_do() {
        let words =
            ["b", "A", "a longer text than a view holds", "a", "B", "", "A longer text than a view holds"];
        let column = column(5_000, |row| words.get(row * 7 % 8).map(|word| (*word).to_owned()));
        let fold = |a: &[u8], b: &[u8]| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
        for order in [TextOrder::Bytes, TextOrder::Host(Arc::new(fold))] {
            let ranks = ranks(&column, &order).unwrap().unwrap();
            for (a, b) in (0..5_000).zip((0..5_000).map(|row| row * 13 % 5_000)) {
                if !column.is_null(a) && !column.is_null(b) {
                    assert_eq!(ranks[a].cmp(&ranks[b]), column.order(a, b, &order), "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn many_different_values_have_none() {
        let asked = |_: &[u8], _: &[u8]| -> Ordering { unreachable!() };
        let order = TextOrder::Host(Arc::new(asked));
        assert_eq!(ranks(&column(20_000, |row| Some(row.to_string())), &order).unwrap(), None);
        assert_eq!(ranks(&column(10, |_| Some(String::new())), &order).unwrap(), None);
    }
}
