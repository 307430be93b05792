//! Hash joins: the right input is kept in memory and found by its keys, the left one is probed batch by
//! batch.
//!
//! The files:
//! - `build` gathers the kept side;
//! - `keys` brings keys to comparable forms;
//! - `table` finds keys;
//! - `probe` makes the rows;
//! - `spill` joins piece by piece if the kept side is larger than the memory it may use;
//! - `null_aware` is `NOT IN` over several columns, with tables for the keys that are not NULL.
//!
//! Joins without keys list every pair. `NOT IN` with a further condition does so too, because NULLs make keys
//! neither equal nor different. A semi or anti join may keep either side. If it keeps the side that comes out
//! (`RightSemi`, `RightAnti`), a row is marked when it matches and is not compared again. The rows come out
//! at the end.

mod build;
mod keys;
mod members;
mod narrow;
mod null_aware;
mod probe;
mod spill;
mod table;

use std::sync::{Arc, Mutex};

use vector::LogicalType;

use self::build::{BuildSink, SharedSink, Spec};
use self::members::KeyMembers;
use self::probe::Probe;
use self::spill::{Joining, Spilled};
use crate::{
    Batch, Build, Error, Expression, JoinKind, Members, Pipeline, Plan, Result, Runner, Settings, Source,
    Transform, TransformFactory,
};

/// The data that all threads of a join share.
struct Shared {
    kind: JoinKind,
    /// The left side's keys.
    keys: Vec<Expression>,
    /// Whether the table finds rows by the keys.
    keyed: bool,
    condition: Option<Expression>,
    condition_columns: Vec<bool>,
    /// Types of both sides' columns.
    types: Vec<LogicalType>,
    /// Columns of the left side.
    width: usize,
    /// Which columns of both sides are needed above.
    wanted: Vec<bool>,
    sink: Arc<BuildSink>,
    spilled: Spilled,
    /// Where `rest` goes on.
    rest: Mutex<usize>,
}

struct Join {
    shared: Arc<Shared>,
    joining: Joining,
    /// Whether left rows without a match are dropped.
    drops: bool,
    /// Whether the join must see every left row, because each may end the query.
    raises: bool,
}

/// Adds the join to the left pipeline. `wanted` says which columns of both sides are read above; the others
/// may hold anything.
pub fn join(
    plan: &Plan,
    right: Pipeline,
    left: &mut Pipeline,
    wanted: Vec<bool>,
    settings: &Arc<Settings>,
) -> Result<()> {
    let Plan::Join { kind, left: left_plan, right: right_plan, keys, condition } = plan else {
        return Err(Error::Decline("not a join"));
    };
    let mut types = left_plan.types();
    let width = types.len();
    let right_types = right_plan.types();
    types.extend(&right_types);
    let mut condition_columns = vec![false; types.len()];
    if let Some(condition) = condition {
        condition.mark_columns(&mut condition_columns);
    }
    let null_aware = *kind == JoinKind::NullAwareAnti;
    let keyed = !keys.is_empty() && (!null_aware || condition.is_none());
    let of_right = wanted.iter().zip(&condition_columns).skip(width);
    let (left_keys, right_keys): (Vec<_>, _) = keys.iter().cloned().unzip();
    let raises = condition.as_ref().is_some_and(|condition| condition.can_raise(&types))
        || left_keys.iter().any(|key| key.can_raise(&types));
    let drops = kind.drops_left();
    let probed = left_keys.iter().map(|key| match key {
        Expression::Column(at) if drops => left.source_column(*at),
        _ => None,
    });
    let probed: Vec<Option<usize>> = probed.collect();
    let sink = Arc::new(BuildSink::new(Spec {
        keys: right_keys,
        keyed,
        null_aware: null_aware && keyed && keys.len() > 1,
        probed,
        duplicates: kind.gives_right() || condition.is_some() || !keyed && !keys.is_empty(),
        types: right_types,
        wanted: of_right.map(|(above, here)| *above || *here).collect(),
        marks: kind.marks_right(),
        memory: settings.memory,
        temp_files: settings.temp_files.clone(),
    }));
    left.builds.push(Build { pipeline: right, sink: Arc::new(SharedSink(Arc::clone(&sink))) });
    left.transforms.push(Arc::new(Join {
        shared: Arc::new(Shared {
            kind: *kind,
            keys: left_keys,
            keyed,
            condition: condition.clone(),
            condition_columns,
            types,
            width,
            wanted,
            sink,
            spilled: Spilled::default(),
            rest: Mutex::new(0),
        }),
        joining: Joining::default(),
        drops,
        raises,
    }));
    Ok(())
}

impl TransformFactory for Join {
    fn prepare(&self, _runner: &mut Runner<'_>, source: &mut dyn Source) -> Result<bool> {
        if self.shared.sink.has_spilled() {
            return Ok(true);
        }
        let built = self.shared.sink.built()?;
        built.narrowing.iter().for_each(|predicate| source.narrow(predicate.clone()));
        for (at, (column, _)) in built.members.iter().enumerate() {
            let members: Arc<dyn Members> = Arc::new(KeyMembers::new(Arc::clone(&self.shared.sink), at));
            source.narrow_members(*column, &members);
        }
        Ok(!self.drops || built.rows > 0)
    }

    fn make(&self) -> Result<Box<dyn Transform>> {
        Ok(Box::new(Probe::new(&self.shared)))
    }

    fn rest(&self) -> Result<Option<Batch>> {
        if self.shared.sink.has_spilled() {
            return self.joining.next(&self.shared);
        }
        let mut at = self.shared.rest.lock().map_err(|_| build::POISONED)?;
        let (batch, next) = self.shared.kept_rows(*at, self.shared.sink.built()?);
        *at = next;
        Ok(batch)
    }

    fn has_rest(&self) -> bool {
        self.shared.kind.marks_right() || self.shared.sink.has_spilled()
    }

    fn needs_host(&self) -> bool {
        self.shared.keys.iter().chain(&self.shared.condition).any(Expression::needs_host)
    }

    fn input_column(&self, column: usize) -> Option<usize> {
        (!self.raises && self.shared.kind.gives_left() && column < self.shared.width).then_some(column)
    }

    fn name(&self) -> String {
        format!("{:?} Join: {:?}", self.shared.kind, self.shared.keys)
    }
}
