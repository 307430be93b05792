//! Runs joins and compares them with the model: in memory, spilled, with few columns wanted.

use std::sync::Arc;

use query::{Batch, Error, Execution, Expression, JoinKind, Plan, Result, Settings, SharedTempFiles, Source};

use crate::keys::{batches, shown};
use crate::model::{Case, expected, plan_of};
use crate::source::{Batches, TestHost};
use crate::support::Memory;

pub fn begin(plan: &Plan, case: &Case, settings: Settings) -> Result<Execution> {
    let left = batches(&case.left, case.types, true, case.cuts.0, case.encodings.0);
    let right = batches(&case.right, case.types, false, case.cuts.1, case.encodings.1);
    let sources: Vec<Box<dyn Source>> = vec![Batches::new(left), Batches::new(right)];
    Execution::new(plan, sources, settings)
}

pub fn run(plan: &Plan, case: &Case, settings: Settings) -> Result<Vec<Batch>> {
    let mut execution = begin(plan, case, settings)?;
    let mut batches = Vec::new();
    while let Some(batch) = execution.next(&mut TestHost)? {
        assert!(batch.rows > 0 && batch.columns.len() == plan.types().len());
        for (column, logical) in batch.columns.iter().zip(plan.types()) {
            assert_eq!(column.logical, logical);
        }
        batches.push(batch);
    }
    Ok(batches)
}

pub const KINDS: [JoinKind; 9] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::Semi,
    JoinKind::Anti,
    JoinKind::NullAwareAnti,
    JoinKind::RightSemi,
    JoinKind::RightAnti,
];

pub fn settings() -> Settings {
    Settings { memory: 1 << 30, threads: 1, temp_files: None }
}

pub fn check(case: &Case) {
    for kind in KINDS {
        let plan = plan_of(case, kind);
        let columns: &[usize] = if plan.types().len() == 4 { &[2, 3] } else { &[2, 3, 6, 7] };
        let got = run(&plan, case, settings()).unwrap();
        let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, columns)).collect();
        rows.sort();
        assert_eq!(rows, expected(case, kind), "{kind:?} {case:?}");

        // Kept rows that do not fit go to files, where they can be spread by keys.
        let memory = Memory::default();
        let files: SharedTempFiles = Arc::new(memory);
        let threads = 1 + case.left.len() % 3;
        let tiny = Settings { memory: case.cuts.0 * 50, threads, temp_files: Some(files) };
        match run(&plan, case, tiny) {
            Err(Error::Decline(_)) if case.keys == 0 => {}
            Err(Error::Decline(_)) if kind == JoinKind::NullAwareAnti => {
                assert!(case.keys > 1 || case.condition.is_some());
            }
            got => {
                let got = got.unwrap();
                let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, columns)).collect();
                rows.sort();
                assert_eq!(rows, expected(case, kind), "spilled {kind:?} {case:?}");
            }
        }

        // The same with only the last columns wanted.
        let narrow: Vec<usize> = columns.iter().copied().skip(1).step_by(2).collect();
        let project = Plan::Project {
            input: Box::new(plan),
            expressions: narrow.iter().map(|&at| Expression::Column(at)).collect(),
        };
        let got = run(&project, case, Settings { threads: 3, ..settings() }).unwrap();
        let all: Vec<usize> = (0..narrow.len()).collect();
        let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, &all)).collect();
        rows.sort();
        let mut names: Vec<String> = expected(case, kind)
            .iter()
            .map(|row| row.split('|').skip(1).step_by(2).collect::<Vec<_>>().join("|"))
            .collect();
        names.sort();
        assert_eq!(rows, names, "projected {kind:?} {case:?}");
    }
}
