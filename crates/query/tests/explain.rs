//! Plans as a host shows them: the tree, and the same in lines of text.
#![allow(clippy::unwrap_used)]

mod support;

use std::any::Any;
use std::sync::Arc;

use query::explain::{self, Operator, OperatorFigures, Options, Property, Spelling, Value};
use query::*;
use support::*;
use vector::{CompareOp, LogicalType as T, Vector};

/// A host with names for the columns of its tables, and nothing else to say.
struct Tables(Vec<Vec<&'static str>>);

impl Spelling for Tables {
    fn columns(&self, source: usize) -> Vec<String> {
        self.0[source].iter().map(ToString::to_string).collect()
    }
}

fn column(at: usize) -> Expression {
    Expression::Column(at)
}

fn number(value: i64) -> Expression {
    Expression::Constant(Arc::new(vector(T::Int64, &[V::Int(value)])))
}

fn call(function: Function, arguments: Vec<Expression>, result: T) -> Expression {
    Expression::Call { function, arguments, result }
}

fn compare(op: CompareOp, left: Expression, right: Expression) -> Expression {
    call(Function::Compare(op), vec![left, right], T::Bool)
}

fn key(expression: Expression, descending: bool) -> SortKey {
    SortKey { expression, descending, nulls_first: descending, order: TextOrder::Bytes }
}

fn lines(plan: &Plan, host: &dyn Spelling, options: Options<'_>) -> Vec<String> {
    explain::lines(&explain::operators(plan, host, options), "Plan: ", 1)
}

/// The sales of some days by shop: the greatest first.
fn sales() -> Plan {
    let condition = compare(CompareOp::Greater, column(1), number(10));
    let filtered = Plan::Filter { input: scan(&[T::Int64, T::Int64]), condition };
    let shops = Plan::Scan { source: 1, types: vec![T::Int64, T::Text] };
    let joined = Plan::Join {
        kind: JoinKind::Inner,
        left: Box::new(filtered),
        right: Box::new(shops),
        keys: vec![(column(0), column(0))],
        condition: Some(compare(CompareOp::NotEqual, column(0), column(1))),
    };
    let aggregates = vec![
        aggregate(AggregateFunction::CountRows, None, T::Int64),
        aggregate(AggregateFunction::Sum, Some(1), T::Numeric),
    ];
    let groups = Plan::Aggregate { input: Box::new(joined), keys: vec![column(3)], aggregates, groups: 10.0 };
    Plan::Sort {
        input: Box::new(groups),
        keys: vec![key(column(2), true), key(column(0), false)],
        limit: Some(3),
    }
}

fn shops() -> Tables {
    Tables(vec![vec!["shop", "amount"], vec!["id", "name"]])
}

#[test]
fn a_plan_is_an_indented_tree_with_its_properties() {
    let expected = [
        "Plan: Top-N Sort (3)",
        "        Sort Key: sum(amount) DESC, name",
        "      ->  Hash Aggregate",
        "            Group Key: name",
        "            Aggregates: count(*), sum(amount)",
        "         ->  Hash Join (Inner)",
        "               Hash Cond: (shop = id)",
        "               Join Filter: (shop <> amount)",
        "            ->  Filter",
        "                  Filter: (amount > 10)",
        "               ->  Scan 1",
        "            ->  Scan 2",
    ];
    assert_eq!(lines(&sales(), &shops(), Options::default()), expected);
}

#[test]
fn columns_are_shown_where_they_are_asked_for() {
    let plan = Plan::Project {
        input: scan(&[T::Int64, T::Int64]),
        expressions: vec![column(1), call(Function::Add, vec![column(0), number(1)], T::Int64)],
    };
    let expected = [
        "Plan: Project",
        "        Output: amount, (shop + 1)",
        "      ->  Scan 1",
        "            Output: shop, amount",
    ];
    assert_eq!(lines(&plan, &shops(), Options { verbose: true, ..Options::default() }), expected);
}

#[test]
fn a_tree_has_values_of_their_kinds() {
    let plan = Plan::Append { inputs: vec![*scan(&[T::Int64])], removed: 2 };
    let root = explain::operators(&plan, &Tables(vec![vec!["a"]]), Options::default());
    assert_eq!(root.title, "Append");
    assert_eq!(root.properties, [Property { label: "Subplans Removed", value: Value::Count(2) }]);
    let input =
        Operator { title: "Scan 1".into(), properties: Vec::new(), measured: None, inputs: Vec::new() };
    assert_eq!(root.inputs, [input]);
}

#[test]
fn what_was_measured_stands_behind_the_title() {
    let condition = compare(CompareOp::Less, column(0), number(3));
    let plan = Plan::Filter { input: scan(&[T::Int64]), condition };
    let figures = [
        OperatorFigures { rows: 3, nanoseconds: 1_500_000, ..OperatorFigures::default() },
        OperatorFigures { rows: 10, memory: 1025, files: 1, spilled: 2048, ..OperatorFigures::default() },
    ];
    let host = Tables(vec![vec!["a"]]);
    let options = Options { figures: &figures, ..Options::default() };
    let expected = [
        "Plan: Filter (rows=3)",
        "        Filter: (a < 3)",
        "        Rows Removed by Filter: 7",
        "      ->  Scan 1 (rows=10)",
    ];
    assert_eq!(lines(&plan, &host, options), expected);
    let root = explain::operators(&plan, &host, Options { with_work: true, ..options });
    let expected = [
        "Filter (rows=3 own time=1.500 ms of all threads)",
        "  Filter: (a < 3)",
        "  Rows Removed by Filter: 7",
        "->  Scan 1 (rows=10 own time=0.000 ms of all threads memory=2kB spilled=2kB files=1)",
    ];
    assert_eq!(explain::lines(&root, "", 4), expected);
    let labels = |operator: &Operator| -> Vec<_> {
        operator.measured.unwrap().properties().iter().map(|own| own.label).collect()
    };
    let work = ["Own Time", "Peak Memory Usage", "Disk Usage", "Spill Files"];
    assert_eq!(labels(&root), [&["Rows", "Rows Removed by Filter"][..], &work].concat());
    assert_eq!(labels(&root.inputs[0]), [&["Rows"][..], &work].concat());
}

#[test]
fn executions_add_up_in_the_order_of_the_tree() {
    let condition = compare(CompareOp::Less, column(0), number(3));
    let plan = Plan::Filter { input: scan(&[T::Int64]), condition };
    let values: Vec<V> = (0..10).map(V::Int).collect();
    let batch = Batch::new(10, vec![Arc::new(vector(T::Int64, &values))]);
    let mut figures = Vec::new();
    for _ in 0..2 {
        let profile = Profile::of(&plan);
        let sources = vec![Steps::batches(std::slice::from_ref(&batch))];
        let mut execution = Execution::measured(&plan, sources, roomy(), Some(Arc::clone(&profile))).unwrap();
        while execution.next(&mut Calm).unwrap().is_some() {}
        explain::add_figures(&mut figures, &profile);
    }
    let root = explain::operators(
        &plan,
        &Tables(vec![vec!["a"]]),
        Options { figures: &figures, ..Options::default() },
    );
    assert_eq!(root.measured.map(|measured| (measured.figures.rows, measured.removed)), Some((6, Some(14))));
}

/// A function of the host's.
#[derive(Debug)]
struct Soundex;

impl HostFunction for Soundex {
    fn call(&self, _arguments: &[Arc<Vector>], _rows: usize) -> Result<Vector> {
        Err(Error::Decline("not to be called"))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn name(&self) -> &str {
        "soundex"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A host that knows one constant and one function.
struct Knowing(Arc<Vector>, Arc<dyn HostFunction>);

impl Spelling for Knowing {
    fn columns(&self, _source: usize) -> Vec<String> {
        vec!["a".into()]
    }

    fn constant(&self, value: &Arc<Vector>) -> Option<String> {
        Arc::ptr_eq(value, &self.0).then(|| "$1".into())
    }

    fn function(&self, function: &Arc<dyn HostFunction>) -> Option<String> {
        (function == &self.1).then(|| "public.soundex(a)".into())
    }
}

#[test]
fn the_host_writes_what_it_knows() {
    let (five, known) =
        (Arc::new(vector(T::Int64, &[V::Int(5)])), Arc::new(Soundex) as Arc<dyn HostFunction>);
    let soundex = |function: &Arc<dyn HostFunction>| Expression::Host {
        function: Arc::clone(function),
        arguments: vec![column(0), number(2)],
        result: T::Text,
    };
    let (parameter, null) = (
        Expression::Constant(Arc::clone(&five)),
        Expression::Constant(Arc::new(vector(T::Bool, &[V::Null]))),
    );
    let expressions = vec![
        parameter.clone(),
        number(5),
        soundex(&known),
        Expression::Coalesce(vec![parameter, null.clone()]),
        Expression::Coalesce(vec![number(5), null]),
    ];
    let plan = Plan::Project { input: scan(&[T::Int64]), expressions };
    let host = Knowing(five, known);
    let output = "Output: $1, 5, public.soundex(a), $1, COALESCE(5, NULL::boolean)";
    let shown = lines(&plan, &host, Options { verbose: true, ..Options::default() });
    assert_eq!(shown[1].trim_start(), output);
    let other: Arc<dyn HostFunction> = Arc::new(Soundex);
    let plan =
        Plan::Filter { input: scan(&[T::Int64]), condition: Expression::IsNull(Box::new(soundex(&other))) };
    assert_eq!(lines(&plan, &host, Options::default())[1].trim_start(), "Filter: (soundex(a, 2) IS NULL)");
}

#[test]
fn long_expressions_are_cut() {
    let many = Expression::And(vec![compare(CompareOp::Equal, column(0), number(1)); 1_000]);
    let plan = Plan::Filter { input: scan(&[T::Int64]), condition: many };
    let shown = lines(&plan, &Tables(vec![vec!["ä"]]), Options::default());
    let text = shown[1].trim_start();
    assert!(text.ends_with("...") && text.len() <= "Filter: ...".len() + 4_000, "{}", text.len());
}
