//! Kept sides that are larger than the memory of a join.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use query::{JoinKind, Settings};

use crate::check::{begin, run};
use crate::keys::{Encoding, Key, Row, shown};
use crate::model::{Case, expected, plan_of};
use crate::source::TestHost;
use crate::support::Memory;

#[test]
fn a_kept_side_beyond_memory_is_declined() {
    let row = Row { keys: [Some(1), None], flag: None };
    let case = Case {
        left: vec![row.clone()],
        right: vec![row; 1000],
        types: [Key::Text, Key::Bool],
        keys: 1,
        condition: None,
        cuts: (1, 1),
        encodings: (Encoding::Flat, Encoding::Flat),
    };
    let settings = Settings { memory: 10_000, threads: 1, temp_files: None };
    let got = run(&plan_of(&case, JoinKind::Inner), &case, settings);
    assert!(matches!(got, Err(query::Error::Decline(_))), "{got:?}");
}

/// Files are spread again where a pair is too large, and joined as they are where that does not help.
#[test]
fn large_kept_sides_are_spread_again_and_again() {
    for (left, right) in [(300, 5000), (5000, 300)] {
        // Of 40 keys one has a third of all rows.
        let row = |at: usize| Row {
            keys: [
                Some(if at.is_multiple_of(3) { 2 } else { (at % 7) as u8 }),
                (at % 11 != 5).then_some((at / 7 % 6) as u8),
            ],
            flag: (at % 13 > 2).then_some(at.is_multiple_of(2)),
        };
        let case = Case {
            left: (0..left).map(row).collect(),
            right: (0..right).map(row).collect(),
            types: [Key::Numeric, Key::Long],
            keys: 2,
            condition: Some(2),
            cuts: (70, 50),
            encodings: (Encoding::Flat, Encoding::Dictionary),
        };
        for kind in [JoinKind::Anti, JoinKind::Full, JoinKind::RightSemi, JoinKind::RightAnti] {
            let files = Memory::default();
            let written = Arc::clone(&files.written);
            let settings = Settings { memory: 3_000, threads: 2, temp_files: Some(Arc::new(files)) };
            let plan = plan_of(&case, kind);
            let columns: &[usize] = if plan.types().len() == 4 { &[2, 3] } else { &[2, 3, 6, 7] };
            let got = run(&plan, &case, settings).unwrap();
            let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, columns)).collect();
            rows.sort();
            assert!(rows == expected(&case, kind), "{kind:?}");
            assert!(written.load(Ordering::Relaxed) > 100_000, "{written:?}");
        }
    }
}

/// A join that is left in the middle, by a limit or a cancelled query, takes its files with it.
#[test]
fn files_go_with_a_join_that_is_not_read_to_its_end() {
    let row = |at: usize| Row { keys: [Some((at % 200) as u8), None], flag: None };
    let case = Case {
        left: (0..30_000).map(row).collect(),
        right: (0..30_000).map(row).collect(),
        types: [Key::Numeric, Key::Long],
        keys: 1,
        condition: None,
        cuts: (70, 50),
        encodings: (Encoding::Flat, Encoding::Flat),
    };
    let files = Memory::default();
    let written = Arc::clone(&files.written);
    let settings = Settings { memory: 3_000, threads: 1, temp_files: Some(Arc::new(files)) };
    let mut execution = begin(&plan_of(&case, JoinKind::Inner), &case, settings).unwrap();
    assert!(execution.next(&mut TestHost).unwrap().is_some());
    // Each file holds the counter.
    assert!(Arc::strong_count(&written) > 10, "the join has spilled");
    drop(execution);
    assert_eq!(Arc::strong_count(&written), 1);
}
