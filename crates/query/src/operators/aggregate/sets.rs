//! Grouping sets: the sink of `Plan::GroupingSets`.
//!
//! Each set has a hash aggregation of its own, with its share of the memory. Every batch goes to all of them,
//! so the input is read once. The output is each set's groups in turn, with NULL for the keys that the set is
//! without.

use std::any::Any;
use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::AggregateSink;
use crate::row_container::nulls;
use crate::{Batch, Error, Host, Plan, Result, Settings, Sink, SinkLocal, Source, Step, Unit};

/// The data that all threads share.
pub struct SetsSink {
    sets: Vec<AggregateSink>,
    /// Each set's keys, by position.
    keys: Vec<Vec<usize>>,
    /// The types of all keys.
    types: Vec<LogicalType>,
}

impl SetsSink {
    /// The sink of a plan of grouping sets.
    pub fn new(plan: &Plan, settings: &Arc<Settings>) -> Result<Self> {
        let Plan::GroupingSets { input, keys, sets, aggregates } = plan else {
            return Err(Error::Decline("no grouping sets"));
        };
        let input = input.types();
        let settings = Settings { memory: settings.memory / sets.len().max(1), ..settings.as_ref().clone() };
        let sinks = sets.iter().map(|set| {
            let keys = set.iter().map(|&at| keys.get(at).cloned()).collect::<Option<Vec<_>>>();
            let keys = keys.ok_or(Error::Decline("grouping set of no key"))?;
            // How many groups each set has is not known.
            AggregateSink::over(input.clone(), keys, aggregates.clone(), 0.0, false, &settings)
        });
        Ok(Self {
            sets: sinks.collect::<Result<_>>()?,
            keys: sets.clone(),
            types: keys.iter().map(|key| key.logical(&input)).collect(),
        })
    }
}

impl Sink for SetsSink {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        Ok(Box::new(Local(self.sets.iter().map(Sink::make).collect::<Result<_>>()?)))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let outputs = self.sets.iter().zip(&self.keys).zip(0..).map(|((set, keys), number)| {
            let layout = Layout {
                types: self.types.clone(),
                keys: (0..self.types.len()).map(|at| keys.iter().position(|&key| key == at)).collect(),
                taken: keys.len(),
                number: Vector::new(LogicalType::Int32, Values::Int32(vec![number])),
            };
            Ok((set.complete()?, Arc::new(layout)))
        });
        // The reversed list is given out from its end, so that each set's memory is free before the next
        // one's groups.
        let mut outputs = outputs.collect::<Result<Vec<_>>>()?;
        outputs.reverse();
        Ok(Box::new(Output(outputs)))
    }

    fn needs_host(&self) -> bool {
        self.sets.iter().any(Sink::needs_host)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        let names = self.sets.iter().map(Sink::name).collect::<Vec<_>>();
        format!("Grouping sets: {}", names.join("; "))
    }
}

struct Local(Vec<Box<dyn SinkLocal>>);

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        for local in &mut self.0 {
            local.push(batch.clone())?;
        }
        Ok(true)
    }

    fn memory(&self) -> usize {
        self.0.iter().map(|local| local.memory()).sum()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.into_iter().try_for_each(SinkLocal::finish)
    }
}

/// How a set's columns become those of the plan.
struct Layout {
    /// Where each key is among the set's columns.
    keys: Vec<Option<usize>>,
    /// Each key's type.
    types: Vec<LogicalType>,
    /// How many keys the set has.
    taken: usize,
    /// The number of the set.
    number: Vector,
}

impl Layout {
    fn apply(&self, batch: Batch) -> Result<Batch> {
        let mut columns = Vec::with_capacity(batch.columns.len() + self.types.len() + 1);
        for (place, &logical) in self.keys.iter().zip(&self.types) {
            columns.push(match place {
                Some(at) => Arc::clone(batch.columns.get(*at).ok_or(Error::Decline("group without a key"))?),
                None => Arc::new(nulls(logical, batch.rows)),
            });
        }
        columns.extend(batch.columns.iter().skip(self.taken).cloned());
        let number = Values::Constant(Box::new(self.number.clone()), batch.rows);
        columns.push(Arc::new(Vector::new(self.number.logical, number)));
        Ok(Batch::new(batch.rows, columns))
    }
}

/// The sets whose groups are still to come, the next one last.
struct Output(Vec<(Box<dyn Source>, Arc<Layout>)>);

impl Source for Output {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        while let Some((groups, layout)) = self.0.last_mut() {
            if let Some(unit) = groups.next_unit(host)? {
                return Ok(Some(Box::new(SetUnit { unit, layout: Arc::clone(layout) })));
            }
            self.0.pop();
        }
        Ok(None)
    }
}

struct SetUnit {
    unit: Box<dyn Unit>,
    layout: Arc<Layout>,
}

impl Unit for SetUnit {
    fn next(&mut self) -> Result<Step> {
        Ok(match self.unit.next()? {
            Step::Batch(batch) if batch.rows > 0 => Step::Batch(self.layout.apply(batch)?),
            other => other,
        })
    }
}
