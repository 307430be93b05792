//! Which calls become derived columns of a scan, and which columns nobody reads any more.
#![allow(clippy::unwrap_used)]

mod support;

use std::any::Any;
use std::sync::Arc;

use query::*;
use support::*;
use vector::{LogicalType as T, Vector};

/// A field of a document; only short names can be derived.
#[derive(Debug, Clone, PartialEq)]
struct Field(&'static str);

impl HostFunction for Field {
    fn call(&self, _arguments: &[Arc<Vector>], _rows: usize) -> Result<Vector> {
        Err(Error::Decline("not to be called"))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn name(&self) -> &str {
        self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn known(function: &Arc<dyn HostFunction>) -> Option<Arc<Field>> {
    let field = function.as_any().downcast_ref::<Field>()?;
    (field.0.len() < 5).then(|| Arc::new(field.clone()))
}

fn column(at: usize) -> Expression {
    Expression::Column(at)
}

fn field(name: &'static str, of: Expression) -> Expression {
    Expression::Host { function: Arc::new(Field(name)), arguments: vec![of], result: T::Text }
}

fn derived(of: usize, name: &'static str) -> DerivedColumn<Field> {
    DerivedColumn { column: of, function: Arc::new(Field(name)), result: T::Text }
}

fn project(input: Box<Plan>, expressions: Vec<Expression>) -> Plan {
    Plan::Project { input, expressions }
}

const TYPES: [T; 3] = [T::Int64, T::Bytes, T::Bytes];

#[test]
fn calls_above_filters_share_columns_behind_the_scans_own() {
    let condition = Expression::IsNull(Box::new(field("b", column(2))));
    let filter = Box::new(Plan::Filter { input: scan(&TYPES), condition });
    let both = Expression::Coalesce(vec![field("a", column(1)), field("b", column(2))]);
    let mut plan = project(filter, vec![column(0), field("a", column(1)), both]);
    let types = plan.types();
    let found = derive_columns(&mut plan, [true], known);
    assert_eq!(
        found,
        [DerivedColumns { columns: vec![derived(1, "a"), derived(2, "b")], unread: vec![1, 2] }]
    );
    assert_eq!(plan.types(), types);
    let Plan::Project { input, expressions } = plan else { unreachable!() };
    assert_eq!(expressions, [column(0), column(3), Expression::Coalesce(vec![column(3), column(4)])]);
    let Plan::Filter { input, condition } = *input else { unreachable!() };
    assert_eq!(condition, Expression::IsNull(Box::new(column(4))));
    assert_eq!(input.types(), [T::Int64, T::Bytes, T::Bytes, T::Text, T::Text]);
}

#[test]
fn all_parts_of_an_aggregation_are_looked_at() {
    let mut sum = aggregate(AggregateFunction::Max, Some(0), T::Int64);
    sum.filter = Some(Expression::IsNull(Box::new(field("b", column(1)))));
    let by = field("c", column(1));
    sum.order_by =
        vec![SortKey { expression: by, descending: false, nulls_first: false, order: TextOrder::Bytes }];
    let keys = vec![field("a", column(1))];
    let mut plan = Plan::Aggregate { input: scan(&TYPES), keys, aggregates: vec![sum], groups: 1.0 };
    let found = derive_columns(&mut plan, [true], known);
    let columns = vec![derived(1, "a"), derived(1, "b"), derived(1, "c")];
    assert_eq!(found, [DerivedColumns { columns, unread: vec![1, 2] }]);
}

#[test]
fn a_column_that_is_read_otherwise_stays() {
    let mut plan = project(scan(&TYPES), vec![field("a", column(1)), column(1), field("longer", column(2))]);
    let found = derive_columns(&mut plan, [true], known);
    assert_eq!(found, [DerivedColumns { columns: vec![derived(1, "a")], unread: vec![0] }]);
    let Plan::Project { expressions, .. } = plan else { unreachable!() };
    assert_eq!(expressions[..2], [column(3), column(1)]);
    assert!(matches!(expressions[2], Expression::Host { .. }));
}

/// A plan that is to stay as it is, over sources that compute columns or do not.
fn stays(mut plan: Plan, derives: bool) {
    let before = format!("{plan:?}");
    let found = derive_columns(&mut plan, [derives, derives], known);
    assert_eq!(found, [DerivedColumns::default(), DerivedColumns::default()]);
    assert_eq!(format!("{plan:?}"), before);
}

#[test]
fn what_cannot_be_derived_stays() {
    // The source computes nothing.
    stays(project(scan(&TYPES), vec![field("a", column(1))]), false);
    // The function is not known, or not of a column.
    stays(project(scan(&TYPES), vec![field("longer", column(1))]), true);
    stays(project(scan(&TYPES), vec![field("a", field("longer", column(1)))]), true);
    // Another operator stands between.
    let sorted = Plan::Limit { input: scan(&TYPES), offset: 0, limit: Some(1) };
    stays(project(Box::new(sorted), vec![field("a", column(1))]), true);
    // Nothing above the scan says which columns are read.
    stays(Plan::Filter { input: scan(&TYPES), condition: field("a", column(1)) }, true);
}

#[test]
fn each_source_has_its_own_columns() {
    let side = |source: usize, name| {
        Box::new(project(
            Box::new(Plan::Scan { source, types: TYPES.to_vec() }),
            vec![field(name, column(1))],
        ))
    };
    let mut plan = Plan::Join {
        kind: JoinKind::Inner,
        left: side(0, "a"),
        right: side(1, "b"),
        keys: vec![(column(0), column(0))],
        condition: None,
    };
    let found = derive_columns(&mut plan, [false, true], known);
    let right = DerivedColumns { columns: vec![derived(1, "b")], unread: vec![0, 1, 2] };
    assert_eq!(found, [DerivedColumns::default(), right]);
}
