//! What a scan costs, in the planner's units.
//!
//! Called by `path_hook` for each path. Owns three estimates for rows in stripes:
//! - the share of them that pruning leaves, found in the directory's outline with the constants known now
//! - the share of the pages that the wanted columns take, by their average widths. It is all pages where rows
//!   lie in blocks
//! - the processor time for each value. It is a fraction of what the server charges for an operator, because
//!   whole chunks are decoded at once.
//!
//! Hot rows cost what they cost in the server's sequential scan. The server's own selectivity is used.

use pgrx::pg_sys::{self, Relation};
use stripe::Layout;
use vector::Predicate;

use super::resolve::{self, Value};
use super::template::{self, Template};
use crate::columnstore::estimate::Shares;
use crate::compat;
use crate::host::relation::{Open, has_attribute};
use crate::host::tree::{List, Node, Typed};
use crate::options;
use crate::storage::directory::outline::Outline;
use crate::storage::file::pages::BlockRun;

/// Cost of decoding a value, or of comparing it as it is encoded, in units of cpu_operator_cost. The measure
/// is that of an index, whose pages the server prices as if they came from disk: there a unit of cost is
/// about a microsecond.
const VALUE: f64 = 0.6;
/// The same where rows lie in blocks: each block is opened for each column. On a million events a column
/// takes 15 to 20 milliseconds where it takes 3 to 5 in chunks.
const VALUE_IN_BLOCK: f64 = 2.4;
/// Cost of handing a row to the executor, in units of cpu_tuple_cost.
const ROW: f64 = 0.4;
/// Cost of looking at one stripe's summary, in units of cpu_tuple_cost.
const STRIPE: f64 = 1.0;
/// Cost of finding out that a row is dead, in values.
const DEAD: f64 = 1.0;
/// Cost of finding out whether a row of a checked block is seen, in values.
const CHECKED: f64 = 1.0;
/// Average width assumed for a column without statistics, in bytes.
const WIDTH: i32 = 8;

/// The cost of a scan of one relation, however many processes share it.
pub struct Estimate {
    startup: f64,
    /// Reading pages.
    disk: f64,
    /// Decoding, filtering and handing out all rows, without the target list.
    processor: f64,
}

/// What of a table is in stripes, and what in heap pages.
pub struct Stored<'a> {
    /// Rows in stripes, dead ones included.
    rows: f64,
    stripes: f64,
    /// Their pages.
    pages: f64,
    /// The pages of the other rows, and those that say which rows of stripes are seen.
    heap_pages: f64,
    /// Rows of stripes of which a heap page says whether they are seen.
    checked_rows: f64,
    layout: Layout,
    /// Their statistics, if they are known.
    outline: Option<&'a Outline>,
}

impl<'a> Stored<'a> {
    /// Of a table with stripes of its own.
    ///
    /// # Safety
    /// The planner's struct.
    pub unsafe fn of_table(rel: *mut pg_sys::RelOptInfo, table: Open, outline: Option<&'a Outline>) -> Self {
        let (stripes, pages, all_runs) = outline.map_or((0, 0.0, 0.0), pages_of);
        Self {
            rows: outline.map_or(0.0, |outline| outline.rows),
            stripes: stripes as f64,
            pages,
            // SAFETY: the caller's promise.
            heap_pages: (f64::from(unsafe { (*rel).pages }) - all_runs - 1.0).max(0.0),
            checked_rows: 0.0,
            layout: options::layout(table),
            outline,
        }
    }

    /// Of files of others. Their wrapper has said how many rows and pages they have.
    ///
    /// # Safety
    /// The planner's struct.
    pub unsafe fn of_groups(rel: *mut pg_sys::RelOptInfo) -> Self {
        // SAFETY: the caller's promise.
        let (rows, pages) = unsafe { ((*rel).tuples.max(0.0), f64::from((*rel).pages)) };
        Self {
            rows,
            stripes: (rows / ROWS_OF_GROUP).ceil(),
            pages,
            heap_pages: 0.0,
            checked_rows: 0.0,
            layout: Layout::Columns,
            outline: None,
        }
    }

    /// Of a heap table of which columnstore indexes have copies of some blocks.
    ///
    /// # Safety
    /// The planner's struct.
    pub unsafe fn of_copies(rel: *mut pg_sys::RelOptInfo, shares: &Shares) -> Self {
        let Shares { clean, checked, pages } = *shares;
        // SAFETY: the caller's promise.
        let (rows, blocks) = unsafe { ((*rel).tuples.max(0.0), f64::from((*rel).pages)) };
        let copied = clean + checked;
        Self {
            rows: rows * copied,
            stripes: (blocks * copied / BLOCKS_OF_COPY).ceil(),
            pages,
            heap_pages: blocks * (1.0 - clean),
            checked_rows: rows * checked,
            layout: Layout::Columns,
            outline: None,
        }
    }
}

/// Rows of a row group, as most writers have it.
const ROWS_OF_GROUP: f64 = 122_880.0;
/// Heap blocks of a copy in a columnstore index.
const BLOCKS_OF_COPY: f64 = 2048.0;

/// Estimates a scan of `rel` that looks at `attributes`.
///
/// # Safety
/// The planner's structs are valid and `relation` is open.
pub unsafe fn estimate(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    relation: Relation,
    of: &Stored<'_>,
    attributes: *mut pg_sys::Bitmapset,
) -> Estimate {
    // SAFETY: the caller's structs; settings of costs are plain globals.
    unsafe {
        let (mut random_page, mut page) = (0.0, 0.0);
        pg_sys::get_tablespace_page_costs((*rel).reltablespace, &raw mut random_page, &raw mut page);
        let (columns, share) = width_share(relation, attributes);
        // Where rows lie in blocks, all pages are read.
        let (share, value) = match of.layout {
            Layout::Columns => (share, VALUE),
            Layout::Blocks => (1.0, VALUE_IN_BLOCK),
        };
        let tuples = (*rel).tuples.max(0.0);
        let Clauses { native, residual, exact } = clauses(rel);
        // Dead rows count: they are decoded with the others, or have to be looked up before their chunk is
        // left out.
        let stored = of.rows;
        let cold = stored.min(tuples);
        let hot = tuples - cold;
        let left = of.outline.map_or(1.0, |outline| remaining_share(root, outline, &native));
        let read = stored * left;
        let filtered = match exact.is_null() {
            true => cold * left,
            false => {
                let inner = pg_sys::JoinType::JOIN_INNER;
                let selectivity = pg_sys::clauselist_selectivity(root, exact, 0, inner, std::ptr::null_mut());
                (cold * selectivity).min(cold * left)
            }
        };
        let (mut residual_cost, mut exact_cost) = (pg_sys::QualCost::default(), pg_sys::QualCost::default());
        pg_sys::cost_qual_eval(&raw mut residual_cost, residual, root);
        pg_sys::cost_qual_eval(&raw mut exact_cost, exact, root);
        let values = read * native.len() as f64
            + filtered * columns
            + (read - cold * left) * DEAD
            + of.checked_rows * CHECKED;
        Estimate {
            startup: residual_cost.startup
                + exact_cost.startup
                + of.stripes * STRIPE * pg_sys::cpu_tuple_cost,
            disk: (of.pages * share * left + of.heap_pages) * page,
            processor: values * value * pg_sys::cpu_operator_cost
                + filtered * (ROW * pg_sys::cpu_tuple_cost + residual_cost.per_tuple)
                + hot * (pg_sys::cpu_tuple_cost + exact_cost.per_tuple + residual_cost.per_tuple),
        }
    }
}

/// How many stripes there are, the pages that they take, and those that all runs of pages take.
fn pages_of(outline: &Outline) -> (usize, f64, f64) {
    let pages =
        |runs: &mut dyn Iterator<Item = BlockRun>| runs.map(|run| f64::from(run.block_count)).sum::<f64>();
    let of_stripes = pages(&mut outline.stripes.iter().map(|entry| entry.run));
    (outline.stripes.len(), of_stripes, pages(&mut outline.runs.iter().copied()))
}

/// The restrictions of a relation.
struct Clauses {
    /// What filters or prunes.
    native: Vec<Template>,
    /// Those that are checked row by row,
    residual: *mut pg_sys::List,
    /// and those that are not.
    exact: *mut pg_sys::List,
}

/// What each restriction is for a scan of ours.
///
/// # Safety
/// The planner's own struct, of a base relation.
unsafe fn clauses(rel: *mut pg_sys::RelOptInfo) -> Clauses {
    let mut found =
        Clauses { native: Vec::new(), residual: std::ptr::null_mut(), exact: std::ptr::null_mut() };
    // SAFETY: the relation's own list; the lists made here hold the same restrictions.
    unsafe {
        for restriction in List::<Typed<'_, pg_sys::RestrictInfo>>::new((*rel).baserestrictinfo).iter() {
            let template = template::translate(restriction.clause().as_ptr(), (*rel).relid);
            let promotable = pg_sys::restriction_is_securely_promotable(restriction.as_ptr(), rel);
            let is_exact = promotable && template.is_exact();
            let list = if is_exact { &mut found.exact } else { &mut found.residual };
            *list = pg_sys::lappend(*list, restriction.as_ptr().cast());
            if promotable && template.is_useful() {
                found.native.push(template);
            }
        }
    }
    found
}

/// Sets the costs and rows of a path that `workers` share (0: serial), whatever is switched off.
///
/// # Safety
/// The path is a new one of ours.
pub unsafe fn price(path: *mut pg_sys::CustomPath, estimate: &Estimate, workers: i32) {
    // SAFETY: the caller's path; cost settings are plain globals.
    unsafe {
        let path = &mut (*path).path;
        let mut participants = 1.0;
        if workers > 0 {
            // The more workers the leader has to serve, the less it helps. This is the server's own rule.
            let leader =
                if pg_sys::parallel_leader_participation { 1.0 - 0.3 * f64::from(workers) } else { 0.0 };
            participants = f64::from(workers) + leader.max(0.0);
            path.rows = (path.rows / participants).round().max(1.0);
        }
        let target = &(*path.pathtarget).cost;
        path.startup_cost = estimate.startup + target.startup;
        path.total_cost = path.startup_cost
            + estimate.disk
            + estimate.processor / participants
            + path.rows * target.per_tuple;
    }
}

/// How many columns are wanted, and their share of the table's width.
///
/// # Safety
/// The relation is open.
unsafe fn width_share(relation: Relation, attributes: *mut pg_sys::Bitmapset) -> (f64, f64) {
    let (mut columns, mut wanted, mut all) = (0.0, 0.0, 0.0);
    // SAFETY: the descriptor belongs to the open relation.
    unsafe {
        let desc = (*relation).rd_att;
        let whole_row = has_attribute(attributes, 0);
        for i in 0..(*desc).natts {
            let attr = &compat::attributes(desc)[usize::try_from(i).unwrap_or(0)];
            if attr.attisdropped {
                continue;
            }
            let mut width = pg_sys::get_attavgwidth((*relation).rd_id, attr.attnum);
            if width <= 0 {
                width = pg_sys::get_typavgwidth(attr.atttypid, attr.atttypmod);
            }
            let width = f64::from(if width > 0 { width } else { WIDTH });
            all += width;
            if whole_row || has_attribute(attributes, attr.attnum.into()) {
                wanted += width;
                columns += 1.0;
            }
        }
    }
    (columns, if all > 0.0 { wanted / all } else { 1.0 })
}

/// The share of the rows in stripes that is left after pruning whole stripes by the constants known now.
///
/// # Safety
/// The planner's own struct, and templates of its query.
unsafe fn remaining_share(root: *mut pg_sys::PlannerInfo, outline: &Outline, templates: &[Template]) -> f64 {
    // SAFETY: the planner runs inside a transaction.
    unsafe {
        let resolved = templates
            .iter()
            .map(|template| resolve::resolve(template, &mut |node| known(root, node)).predicate)
            .filter(|predicate| *predicate != Predicate::Always(true))
            .collect::<Vec<_>>();
        if resolved.is_empty() || outline.rows <= 0.0 {
            return 1.0;
        }
        // The executor reports a summary that cannot be read.
        let kept = outline.stripes.iter().filter(|entry| entry.may_match(resolved.iter()).unwrap_or(true));
        kept.map(|entry| f64::from(entry.row_count)).sum::<f64>() / outline.rows
    }
}

/// A cost without what the planner adds for nodes whose kind is switched off.
pub fn enabled(cost: f64) -> f64 {
    // SAFETY: a plain global.
    cost % unsafe { pg_sys::disable_cost }
}

/// The value of an expression as the planner would estimate it.
///
/// # Safety
/// The planner's own struct, and an expression of its query.
unsafe fn known(root: *mut pg_sys::PlannerInfo, node: *mut pg_sys::Node) -> Value {
    // SAFETY: the caller's expression; what is made of it is a tree of its own.
    let folded = unsafe { Node::new(pg_sys::estimate_expression_value(root, node)) };
    folded.and_then(Node::as_a::<pg_sys::Const>).map_or(Value::Unknown, |value| Value::of_const(&value))
}
