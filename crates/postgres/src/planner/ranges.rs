//! Ranges whose ends the planner does not know: where the server guesses.
//!
//! It guesses that a third of a table's rows lie past an end that comes from another table's row, and so a
//! ninth between two. Who writes such a join mostly means far fewer: the last twenty orders of each district.
//!
//! Called by `columnstore_path`, of a query's conditions, and by the vectorised node's planner hook, of a
//! finished plan.

use pgrx::pg_sys;

use crate::host::tree::{Expression, Node, Plan, PlanNode};

/// Whether a condition tells less from more, by how the server estimates its operator.
pub fn compares_sizes(condition: Node<'_>) -> bool {
    let Expression::OpExpr(operator) = condition.expression() else { return false };
    let of = [pg_sys::F_SCALARLTSEL, pg_sys::F_SCALARLESEL, pg_sys::F_SCALARGTSEL, pg_sys::F_SCALARGESEL];
    // SAFETY: a look into the catalog's cache.
    of.contains(&unsafe { pg_sys::get_oprrest(operator.opno) }.to_u32())
}

/// Whether a plan node looks rows up in an index by a range with an end that comes only as it runs.
pub fn is_looked_up(plan: Plan<'_>) -> bool {
    let keys = match plan.kind() {
        PlanNode::IndexScan(scan) => scan.keys(),
        PlanNode::IndexOnlyScan(scan) => scan.keys(),
        PlanNode::BitmapIndexScan(scan) => scan.keys(),
        _ => return false,
    };
    keys.iter().any(|key| compares_sizes(key) && has_parameter(key))
}

fn has_parameter(node: Node<'_>) -> bool {
    match node.expression() {
        Expression::Param(_) => true,
        Expression::OpExpr(operator) => operator.args().iter().any(has_parameter),
        Expression::FuncExpr(function) => function.args().iter().any(has_parameter),
        Expression::RelabelType(cast) => has_parameter(cast.arg()),
        _ => false,
    }
}
