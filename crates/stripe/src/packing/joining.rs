//! Which stripes to join: small ones, and those of which many rows are dead.
//!
//! Candidates are worn stripes, of which at most a share of the rows is alive, and small ones, of less than
//! half a stripe's rows. The oldest that make one stripe together are taken. The cost of rewriting a row is
//! paid for by the dead rows that are left out, or by the growth of its stripe. For growth, small stripes are
//! joined only where there are several of one size class (a power of four), or where the new stripe is not
//! small any more. So a row is rewritten for size about once a class, as in log-structured merging by size
//! tiers. Wide rows fill a stripe by their bytes. How many these are, the host estimates from a few rows.
//! Invariant: the stripes that are chosen fit one stripe together, as far as the estimate is right, or there
//! is only one of them, which is worn.

/// At most this share of a stripe's rows is alive where it is worth rewriting, unless somebody says
/// otherwise.
pub const MIN_FILL: f64 = 0.8;
/// Stripes of one batch at most: as many as a host locks one by one.
const MOST: usize = 64;
/// A stripe that takes so many bytes in the file is not small, whatever its rows; and no batch reads more.
const MOST_BYTES: u64 = 8 << 20;
/// Rows of a stripe that are looked at to estimate its bytes.
const SAMPLE: u32 = 32;

/// How much there is in a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeSize {
    /// Its rows.
    pub rows: u32,
    /// Those that are not dead.
    pub live: u32,
    /// Bytes that it takes in the file.
    pub stored_bytes: u64,
}

impl StripeSize {
    /// Whether it is worth rewriting by itself: rows are dead, and at most the share `min_fill` is alive.
    pub fn is_worn(&self, min_fill: f64) -> bool {
        self.live < self.rows && f64::from(self.live) <= f64::from(self.rows) * min_fill
    }

    /// Whether every row of it is dead.
    pub const fn is_dead(&self) -> bool {
        self.live == 0
    }

    /// The class of its size.
    const fn class(&self) -> u32 {
        (if self.live == 0 { 0 } else { self.live.ilog2() }) / 2
    }
}

/// When to join.
#[derive(Debug, Clone, Copy)]
pub struct Joining {
    /// Rows of a full stripe.
    pub rows: u32,
    /// Bytes in memory of the values of a full stripe.
    pub bytes: usize,
    /// How many small stripes have to be of one class.
    pub fewest: usize,
    /// Share of living rows, 0 to 1, up to which a stripe is worn.
    pub min_fill: f64,
}

/// A batch that is being put together.
#[derive(Default)]
struct Batch {
    /// Which stripes.
    members: Vec<usize>,
    rows: u32,
    bytes: usize,
    has_worn: bool,
}

impl Joining {
    /// The stripes to join, ascending; none where it is not worth while. `stripes` are all of the table, the
    /// oldest first. `bytes_of` is asked about those that come into question: how many bytes the rows of one
    /// take in memory, about. None: it is not to be had now.
    pub fn choose(
        &self,
        stripes: &[StripeSize],
        mut bytes_of: impl FnMut(usize) -> Option<usize>,
    ) -> Vec<usize> {
        let is_worn = |stripe: &StripeSize| stripe.is_worn(self.min_fill);
        let candidates = || {
            let all = stripes.iter().enumerate();
            all.filter(|(_, stripe)| is_worn(stripe) || stripe.live < self.rows / 2)
        };
        let largest = (0..=u32::BITS / 2).rev().find(|&class| {
            let of_class = |stripe: &StripeSize| !is_worn(stripe) && stripe.class() == class;
            candidates().filter(|(_, stripe)| of_class(stripe)).count() >= self.fewest
        });
        let mut batch = Batch::default();
        for (at, stripe) in candidates() {
            let is_of_class = largest.is_some_and(|class| stripe.class() <= class);
            if !is_worn(stripe) && (!is_of_class || stripe.stored_bytes >= MOST_BYTES) {
                continue;
            }
            let Some(bytes) = bytes_of(at) else { continue };
            if bytes >= self.bytes / 2 && !is_worn(stripe) {
                continue;
            }
            // Half of what fits, as it is an estimate.
            let is_full = batch.rows.saturating_add(stripe.live) > self.rows
                || batch.bytes.saturating_add(bytes) > self.bytes / 2;
            if is_full || batch.members.len() == MOST {
                if self.is_worth_while(&batch) {
                    break;
                }
                batch = Batch::default();
            }
            batch.rows = batch.rows.saturating_add(stripe.live);
            batch.bytes = batch.bytes.saturating_add(bytes);
            batch.has_worn |= is_worn(stripe);
            batch.members.push(at);
        }
        if self.is_worth_while(&batch) { batch.members } else { Vec::new() }
    }

    fn is_worth_while(&self, batch: &Batch) -> bool {
        let count = batch.members.len();
        batch.has_worn || (count > 1 && (count >= self.fewest || batch.rows >= self.rows / 2))
    }
}

/// Whether a stripe with few rows is small in bytes, too: `bytes` are those of its rows in memory, about,
/// `full` those of a full stripe.
pub fn is_small(stored_bytes: u64, full: usize, bytes: impl FnOnce() -> usize) -> bool {
    stored_bytes < MOST_BYTES && bytes() < full / 4
}

/// Positions of the rows of a stripe that its bytes are estimated from, ascending.
pub fn sample(rows: u32) -> impl ExactSizeIterator<Item = u64> {
    let count = rows.min(SAMPLE);
    (0..count).map(move |at| u64::from(at) * u64::from(rows) / u64::from(count))
}

/// Bytes of all rows of a stripe, about, where those of its `sample` take `bytes`.
pub fn estimate(rows: u32, bytes: usize) -> usize {
    bytes.saturating_mul(rows as usize) / rows.clamp(1, SAMPLE) as usize
}

#[cfg(test)]
mod tests {
    use super::{Joining, MIN_FILL, MOST, StripeSize, estimate, is_small, sample};

    const NARROW: Joining = Joining { rows: 10_000, bytes: 64 << 20, fewest: 4, min_fill: MIN_FILL };

    fn size(rows: u32, live: u32) -> StripeSize {
        StripeSize { rows, live, stored_bytes: 1 }
    }

    fn whole(rows: u32) -> StripeSize {
        size(rows, rows)
    }

    /// What is chosen where a row takes one byte.
    fn chosen(joining: &Joining, stripes: &[StripeSize]) -> Vec<usize> {
        joining.choose(stripes, |at| Some(stripes[at].rows as usize))
    }

    #[test]
    fn a_fifth_dead_is_worn() {
        let is_worn = |rows, live| size(rows, live).is_worn(MIN_FILL);
        assert!(is_worn(100, 80) && !is_worn(100, 81));
        assert!(is_worn(1, 0) && size(1, 0).is_dead() && !is_worn(3, 3));
        assert!(
            (1..100_000).all(|fifth| is_worn(5 * fifth, 4 * fifth) && !is_worn(5 * fifth, 4 * fifth + 1))
        );
        assert_eq!(chosen(&NARROW, &[whole(9_000), size(9_000, 7_000), whole(9_000)]), [1]);
        // Nothing is small, and nothing is worn enough.
        assert_eq!(chosen(&NARROW, &[whole(5_000), size(9_000, 8_000), whole(9_000)]), []);
    }

    #[test]
    fn what_is_worn_may_be_asked_for() {
        let one = [size(9_000, 8_500)];
        let at = |min_fill| chosen(&Joining { min_fill, ..NARROW }, &one);
        assert_eq!((at(0.9), at(0.95), at(1.0)), (vec![], vec![0], vec![0]));
        // A stripe without dead rows is as full as it gets.
        assert_eq!(chosen(&Joining { min_fill: 1.0, ..NARROW }, &[whole(9_000)]), []);
        assert_eq!(chosen(&Joining { min_fill: 0.0, ..NARROW }, &[size(9_000, 1), size(9_000, 0)]), [1]);
    }

    #[test]
    fn small_ones_are_joined_when_there_are_several_of_a_class() {
        assert_eq!(chosen(&NARROW, &[whole(20), whole(30), whole(60)]), []);
        assert_eq!(chosen(&NARROW, &[whole(20), whole(30), whole(60), whole(16)]), [0, 1, 2, 3]);
        // Those of a smaller class go with them, those of a larger one do not.
        assert_eq!(
            chosen(&NARROW, &[whole(1), whole(64), whole(20), whole(30), whole(60), whole(16)]),
            [0, 2, 3, 4, 5]
        );
        // Asked for by a user: whatever there is.
        let all = Joining { fewest: 1, ..NARROW };
        assert_eq!(chosen(&all, &[whole(20), whole(9_999), whole(3_000)]), [0, 2]);
        assert_eq!(chosen(&all, &[whole(20)]), []);
    }

    #[test]
    fn the_oldest_that_fit_one_stripe_are_taken() {
        let stripes = [4_000; 8].map(whole);
        assert_eq!(chosen(&NARROW, &stripes), [0, 1]);
        // The first is not to be had.
        let later = NARROW.choose(&stripes, |at| (at > 0).then_some(1));
        assert_eq!(later, [1, 2]);
        assert_eq!(chosen(&NARROW, &[10; 200].map(whole)), (0..MOST).collect::<Vec<_>>());
    }

    #[test]
    fn stripes_of_wide_rows_are_not_small() {
        let stripes = [10; 6].map(whole);
        let by_bytes = |bytes: [usize; 6]| NARROW.choose(&stripes, |at| Some(bytes[at] << 20));
        assert_eq!(by_bytes([32; 6]), []);
        assert_eq!(by_bytes([32, 1, 1, 1, 1, 40]), [1, 2, 3, 4]);
        // Three fill a stripe by their bytes, but are too few; the next ones are enough.
        assert_eq!(by_bytes([10, 10, 10, 8, 8, 8]), []);
        assert_eq!(by_bytes([10, 31, 5, 5, 5, 5]), [2, 3, 4, 5]);
        let stored = stripes.map(|stripe| StripeSize { stored_bytes: 8 << 20, ..stripe });
        assert_eq!(NARROW.choose(&stored, |_| panic!("asked")), []);
        assert!(is_small(1, 64 << 20, || 1) && !is_small(1, 64 << 20, || 16 << 20));
        assert!(!is_small(8 << 20, 64 << 20, || panic!("asked")));
    }

    #[test]
    fn bytes_are_estimated_from_rows_everywhere() {
        for rows in [0, 1, 31, 32, 33, 150_000, u32::MAX] {
            let places: Vec<u64> = sample(rows).collect();
            assert_eq!(places.len(), rows.min(32) as usize);
            assert!(places.is_sorted_by(|a, b| a < b) && places.iter().all(|&at| at < rows.into()));
            assert_eq!(estimate(rows, places.len() * 7), rows as usize * 7);
        }
    }

    /// A stripe, and how many rewrites its rows have behind them.
    struct Stripe {
        size: StripeSize,
        rewritten: Vec<(u32, u32)>,
    }

    /// Joins until there is nothing to join.
    fn join_all(joining: &Joining, stripes: &mut Vec<Stripe>, row_bytes: usize) {
        for round in 0.. {
            assert!(round < 1_000, "no end");
            let sizes: Vec<StripeSize> = stripes.iter().map(|stripe| stripe.size).collect();
            let bytes_of = |at: usize| sizes[at].rows as usize * row_bytes;
            let chosen = joining.choose(&sizes, |at| Some(bytes_of(at)));
            if chosen.is_empty() {
                return;
            }
            assert!(chosen.is_sorted_by(|a, b| a < b) && chosen.len() <= MOST);
            let rows: u32 = chosen.iter().map(|&at| sizes[at].live).sum();
            if chosen.len() > 1 {
                let bytes: usize = chosen.iter().map(|&at| bytes_of(at)).sum();
                assert!(rows <= joining.rows && bytes <= joining.bytes / 2);
            }
            let mut rewritten = Vec::new();
            for &at in &chosen {
                rewritten.extend(stripes[at].rewritten.iter().map(|&(rows, times)| (rows, times + 1)));
            }
            let before = stripes.len();
            let mut at = 0..;
            stripes.retain(|_| at.next().is_some_and(|at| !chosen.contains(&at)));
            if rows > 0 {
                stripes.push(Stripe { size: whole(rows), rewritten });
            }
            assert!(stripes.len() < before || chosen.iter().any(|&at| sizes[at].is_worn(MIN_FILL)));
        }
    }

    /// Joining after each load ends, leaves few small stripes, and rewrites a row about once a class.
    #[test]
    fn it_ends() {
        let mut seed = 1_u64;
        let mut random = move |below: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u32 % below
        };
        let classes = NARROW.rows.ilog2() / 2 + 1;
        for (row_bytes, most_rows) in [(1, 2), (1, 300), (1, 3_000), (20_000, 300)] {
            let mut stripes = Vec::new();
            for _ in 0..1_000 {
                let rows = 1 + random(most_rows);
                stripes.push(Stripe { size: whole(rows), rewritten: vec![(rows, 0)] });
                join_all(&NARROW, &mut stripes, row_bytes);
            }
            let all = || stripes.iter().flat_map(|stripe| &stripe.rewritten);
            let rows: u32 = all().map(|&(rows, _)| rows).sum();
            let rewritten: u32 = all().map(|&(rows, times)| rows * times).sum();
            assert!(rewritten <= rows * classes, "{rewritten} times {rows}");
            let small: Vec<u32> =
                stripes.iter().filter(|at| at.size.live < 5_000).map(|at| at.size.class()).collect();
            for class in 0..classes {
                let count = small.iter().filter(|&&at| at == class).count();
                assert!(row_bytes > 1 || count < NARROW.fewest, "{count} of class {class}");
            }
            // Rows die everywhere.
            for stripe in &mut stripes {
                stripe.size.live -= random(stripe.size.live + 1);
            }
            join_all(&NARROW, &mut stripes, row_bytes);
            assert!(!stripes.iter().any(|stripe| stripe.size.is_worn(MIN_FILL)));
        }
    }
}
