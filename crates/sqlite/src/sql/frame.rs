//! What one SELECT is made of while it is bound.

use query::{Aggregate, Expression};
use sqlite3_parser::ast::Select;

use super::from::Relation;
use super::planner::{Id, Node};
use super::windows::WindowTerm;

/// A relation that keeps the rows of all before it: LEFT JOIN, or a subquery for each row.
pub struct Outer {
    /// What is joined.
    pub relation: Relation,
    /// What has to hold of pairs.
    pub on: Vec<Expression>,
}

/// Which rows a subquery keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// Those that have a match.
    Matched,
    /// Those that have none.
    Unmatched,
    /// Those of NOT IN: NULL on either side makes it unknown.
    NotIn,
}

/// EXISTS or IN with a subquery, as a condition of rows.
pub struct Semi<'b> {
    /// The subquery's rows.
    pub node: Node,
    /// The subquery, if it knows nothing of the rows around it.
    pub select: Option<&'b Select<'b>>,
    /// Pairs of expressions that have to be equal, the outer one first.
    pub keys: Vec<(Expression, Expression)>,
    /// What else has to hold of a pair.
    pub others: Vec<Expression>,
    /// Which rows stay.
    pub keeps: Keeps,
}

/// Groups of rows.
#[derive(Default)]
pub struct Groups {
    /// What makes a group, and the column that has it.
    pub keys: Vec<(Expression, Id)>,
    /// Texts of which a key is made by another collation than BINARY, and the column that has one of each
    /// group.
    pub texts: Vec<(Expression, Id)>,
    /// What is computed of each, and the column that has it.
    pub aggregates: Vec<(Aggregate, Id)>,
}

/// One SELECT.
#[derive(Default)]
pub struct Frame<'b> {
    /// Relations whose rows are combined.
    pub relations: Vec<Relation>,
    /// What has to hold of the combinations.
    pub conjuncts: Vec<Expression>,
    /// Relations that are joined afterwards.
    pub outers: Vec<Outer>,
    /// Conditions that are subqueries.
    pub semis: Vec<Semi<'b>>,
    /// Once rows were grouped: expressions are over groups.
    pub groups: Option<Groups>,
    /// Window functions that were met. None: they may not stand here.
    pub windows: Option<Vec<WindowTerm>>,
    /// A condition of WHERE is being bound, all of it: subqueries in it may choose rows.
    pub is_whole_condition: bool,
}
