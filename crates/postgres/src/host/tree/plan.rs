//! The kinds of plan nodes, what hangs below each, and the columns that a node groups or sorts by.
//!
//! `Plan::kind` tells them apart for whoever goes through a finished plan. A kind that nobody here looks into
//! is `Other`. Invariant: one line of `plans` for each kind, so a cast cannot name another one.

use std::marker::PhantomData;

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::list::List;
use super::node::{Node, Tagged, Typed, kinds};
use crate::compat::{self, Partitioned};

/// A plan node of any kind.
pub type Plan<'a> = Typed<'a, pg_sys::Plan>;

/// A statement that the planner has finished.
#[derive(Clone, Copy)]
pub struct FinishedStatement<'a> {
    stmt: *mut pg_sys::PlannedStmt,
    life: PhantomData<&'a ()>,
}

impl<'a> FinishedStatement<'a> {
    /// A statement.
    ///
    /// # Safety
    /// It is valid for `'a`. Nobody changes a plan that was taken from here.
    pub const unsafe fn of(stmt: *mut pg_sys::PlannedStmt) -> Self {
        Self { stmt, life: PhantomData }
    }

    /// Its sub-plans. Those that were optimised away are null.
    pub fn subplans(self) -> List<'a, Plan<'a>> {
        // SAFETY: as `of` was promised.
        unsafe { List::new((*self.stmt).subplans) }
    }

    /// The server's pointer.
    pub const fn as_ptr(self) -> *mut pg_sys::PlannedStmt {
        self.stmt
    }
}

/// Entries of a target list.
pub type Targets<'a> = List<'a, Typed<'a, pg_sys::TargetEntry>>;

/// Makes `PlanNode`: a variant for each kind, named as its tag.
macro_rules! plans {
    ($($variant:ident($kind:ident) $tag:ident),* $(,)?) => {
        /// A plan node, by its kind. The variants are called as the server calls the kinds.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub enum PlanNode<'a> {
            $($variant(Typed<'a, pg_sys::$kind>),)*
            /// Of another kind.
            Other(NodeTag),
        }

        impl<'a> Plan<'a> {
            /// The node as one of its kind.
            #[inline]
            pub fn kind(self) -> PlanNode<'a> {
                // SAFETY: each cast follows the tag.
                unsafe {
                    match self.tag() {
                        $(NodeTag::$tag => PlanNode::$variant(self.node().cast()),)*
                        tag => PlanNode::Other(tag),
                    }
                }
            }
        }
    };
}

plans! {
    Agg(Agg) T_Agg,
    Group(Group) T_Group,
    Unique(Unique) T_Unique,
    SetOp(SetOp) T_SetOp,
    Sort(Sort) T_Sort,
    // It begins with a Sort.
    IncrementalSort(Sort) T_IncrementalSort,
    Limit(Limit) T_Limit,
    Hash(Hash) T_Hash,
    HashJoin(HashJoin) T_HashJoin,
    MergeJoin(MergeJoin) T_MergeJoin,
    NestLoop(NestLoop) T_NestLoop,
    WindowAgg(WindowAgg) T_WindowAgg,
    Append(Append) T_Append,
    MergeAppend(MergeAppend) T_MergeAppend,
    Material(Material) T_Material,
    Result(Result) T_Result,
    SubqueryScan(SubqueryScan) T_SubqueryScan,
    CteScan(CteScan) T_CteScan,
    FunctionScan(FunctionScan) T_FunctionScan,
    TableFuncScan(TableFuncScan) T_TableFuncScan,
    ValuesScan(ValuesScan) T_ValuesScan,
    SampleScan(SampleScan) T_SampleScan,
    IndexScan(IndexScan) T_IndexScan,
    IndexOnlyScan(IndexOnlyScan) T_IndexOnlyScan,
    BitmapIndexScan(BitmapIndexScan) T_BitmapIndexScan,
    ForeignScan(ForeignScan) T_ForeignScan,
    CustomScan(CustomScan) T_CustomScan,
}

kinds! {
    Agg T_Agg {
        chain: chain List<Typed<'a, pg_sys::Agg>>,
        sets: groupingSets List<List<'a, i32>>,
    }
    Group T_Group {}
    Unique T_Unique {}
    SetOp T_SetOp {}
    Sort T_Sort {}
    Limit T_Limit { offset: limitOffset Option, count: limitCount Option }
    HashJoin T_HashJoin { hash_clauses: hashclauses List }
    MergeJoin T_MergeJoin { merge_clauses: mergeclauses List }
    NestLoop T_NestLoop { parameters: nestParams List<Typed<'a, pg_sys::NestLoopParam>> }
    NestLoopParam T_NestLoopParam { value: paramval Node }
    WindowAgg T_WindowAgg {
        start_offset: startOffset Option,
        end_offset: endOffset Option,
        run_condition: runCondition List,
    }
    Append T_Append { inputs: appendplans List<Plan<'a>> }
    MergeAppend T_MergeAppend { inputs: mergeplans List<Plan<'a>> }
    Result T_Result { condition: resconstantqual Option }
    SubqueryScan T_SubqueryScan { subquery: subplan Typed<pg_sys::Plan> }
    FunctionScan T_FunctionScan { functions: functions List }
    TableFuncScan T_TableFuncScan { function: tablefunc Option }
    ValuesScan T_ValuesScan { rows: values_lists List }
    SampleScan T_SampleScan { sample: tablesample Option }
    IndexScan T_IndexScan { keys: indexqualorig List }
    BitmapIndexScan T_BitmapIndexScan { keys: indexqualorig List }
    IndexOnlyScan T_IndexOnlyScan { keys: indexqual List, columns: indextlist List<Typed<'a, pg_sys::TargetEntry>> }
    ForeignScan T_ForeignScan { columns: fdw_scan_tlist List<Typed<'a, pg_sys::TargetEntry>> }
    CustomScan T_CustomScan {
        children: custom_plans List<Plan<'a>>,
        columns: custom_scan_tlist List<Typed<'a, pg_sys::TargetEntry>>,
    }
    PartitionPruneInfo T_PartitionPruneInfo {
        hierarchies: prune_infos List<List<'a, Typed<'a, pg_sys::PartitionedRelPruneInfo>>>,
    }
    PartitionedRelPruneInfo T_PartitionedRelPruneInfo {
        initial_steps: initial_pruning_steps List,
        steps_of_each_start: exec_pruning_steps List,
    }
    PartitionPruneStepOp T_PartitionPruneStepOp { values: exprs List, functions: cmpfns List<Oid> }
    PartitionPruneStepCombine T_PartitionPruneStepCombine {}
}

/// Makes `plan` for kinds whose struct begins with a plan node, and `join` for those that begin with a join.
macro_rules! begins {
    (plan: $($kind:ident),*) => { $(
        impl<'a> Typed<'a, pg_sys::$kind> {
            /// What it has in common with all plan nodes.
            #[inline]
            pub const fn plan(self) -> Plan<'a> {
                // SAFETY: the struct begins with one.
                unsafe { self.node().cast() }
            }
        }
    )* };
    (join: $($kind:ident),*) => { $(
        impl<'a> Typed<'a, pg_sys::$kind> {
            /// What it has in common with all joins.
            #[inline]
            pub const fn join(self) -> Typed<'a, pg_sys::Join> {
                // SAFETY: the struct begins with one.
                unsafe { self.node().cast() }
            }
        }
    )* };
}

begins!(plan: Agg, Group, Unique, SetOp, Sort, Limit, Hash, Join, WindowAgg, Append, MergeAppend, Material);
begins!(plan: Result, SubqueryScan, CustomScan);
begins!(join: HashJoin, MergeJoin, NestLoop);

impl<'a> Typed<'a, pg_sys::Join> {
    /// The conditions of pairs that are no keys.
    #[inline]
    pub fn conditions(self) -> List<'a> {
        // SAFETY: a list of expressions of the tree.
        unsafe { List::new(self.joinqual) }
    }
}

impl<'a> Plan<'a> {
    /// The outer input, if there is one.
    #[inline]
    pub fn outer(self) -> Option<Self> {
        // SAFETY: a part of the tree.
        unsafe { Self::new(self.lefttree) }
    }

    /// The inner input, if there is one.
    #[inline]
    pub fn inner(self) -> Option<Self> {
        // SAFETY: a part of the tree.
        unsafe { Self::new(self.righttree) }
    }

    /// The only or outer input of a node that has one.
    #[inline]
    pub fn input(self) -> Self {
        // SAFETY: a part of the tree.
        unsafe { Self::required(self.lefttree) }
    }

    /// The inner input of a node that has two.
    #[inline]
    pub fn second_input(self) -> Self {
        // SAFETY: a part of the tree.
        unsafe { Self::required(self.righttree) }
    }

    /// The target list.
    #[inline]
    pub fn targets(self) -> Targets<'a> {
        // SAFETY: a list of target entries of the tree.
        unsafe { List::new(self.targetlist) }
    }

    /// The conditions.
    #[inline]
    pub fn conditions(self) -> List<'a> {
        // SAFETY: a list of expressions of the tree.
        unsafe { List::new(self.qual) }
    }
}

/// A column of the input that a node tells rows apart by.
#[derive(Clone, Copy)]
pub struct EqualColumn {
    /// Its number in the input's target list, from 1.
    pub attno: i16,
    /// The equality.
    pub operator: Oid,
    /// The equality's collation.
    pub collation: Oid,
}

impl EqualColumn {
    /// Its place in the input's target list, from 0; past the end of any where the number is none.
    pub fn place(self) -> usize {
        place_of(self.attno)
    }
}

/// A column that a node's rows are sorted by.
#[derive(Clone, Copy)]
pub struct OrderColumn {
    /// Its number in the node's target list, from 1.
    pub attno: i16,
    /// `<` or `>`.
    pub operator: Oid,
    /// Its collation.
    pub collation: Oid,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

impl OrderColumn {
    /// Its place in the target list, from 0; past the end of any where the number is none.
    pub fn place(self) -> usize {
        place_of(self.attno)
    }
}

fn place_of(attno: i16) -> usize {
    usize::try_from(attno).unwrap_or(0).wrapping_sub(1)
}

/// The columns that three arrays of a node name.
///
/// # Safety
/// The arrays have `count` entries, for `'a`.
unsafe fn equal_columns<'a>(
    count: i32,
    columns: *mut i16,
    operators: *mut Oid,
    collations: *mut Oid,
) -> impl Iterator<Item = EqualColumn> + 'a {
    (0..usize::try_from(count).unwrap_or(0)).map(move |at| {
        // SAFETY: the caller's arrays have so many entries.
        unsafe {
            let (attno, operator, collation) = (*columns.add(at), *operators.add(at), *collations.add(at));
            EqualColumn { attno, operator, collation }
        }
    })
}

/// Makes a method that gives the columns a node tells rows apart by.
macro_rules! equal_columns {
    ($($kind:ident $method:ident: $count:ident $columns:ident $operators:ident $collations:ident)*) => { $(
        impl<'a> Typed<'a, pg_sys::$kind> {
            #[doc = concat!("The columns of `", stringify!($columns), "`.")]
            pub fn $method(self) -> impl Iterator<Item = EqualColumn> + 'a {
                // SAFETY: the arrays of a node have as many entries as it says.
                unsafe { equal_columns(self.$count, self.$columns, self.$operators, self.$collations) }
            }
        }
    )* };
}

equal_columns! {
    Agg columns: numCols grpColIdx grpOperators grpCollations
    Group columns: numCols grpColIdx grpOperators grpCollations
    Unique columns: numCols uniqColIdx uniqOperators uniqCollations
    WindowAgg partition: partNumCols partColIdx partOperators partCollations
    WindowAgg order: ordNumCols ordColIdx ordOperators ordCollations
}

impl Typed<'_, pg_sys::SetOp> {
    /// The columns that it tells rows apart by.
    pub fn columns(self) -> impl Iterator<Item = EqualColumn> {
        // SAFETY: a part of a valid tree.
        let columns = unsafe { compat::compared_columns(&self) }.into_iter();
        columns.map(|(attno, operator, collation)| EqualColumn { attno, operator, collation })
    }

    /// The place of the column of its one input that says from which side a row is. None: each side is an
    /// input.
    pub fn side_column(self) -> Option<usize> {
        compat::side_column(&self).map(place_of)
    }
}

/// Makes a method that gives the columns a node's rows are sorted by.
macro_rules! order_columns {
    ($($kind:ident)*) => { $(
        impl<'a> Typed<'a, pg_sys::$kind> {
            /// The columns that its rows are sorted by.
            pub fn order(self) -> impl Iterator<Item = OrderColumn> + 'a {
                // SAFETY: the arrays of a node have as many entries as it says.
                (0..usize::try_from(self.numCols).unwrap_or(0)).map(move |at| unsafe {
                    OrderColumn {
                        attno: *self.sortColIdx.add(at),
                        operator: *self.sortOperators.add(at),
                        collation: *self.collations.add(at),
                        nulls_first: *self.nullsFirst.add(at),
                    }
                })
            }
        }
    )* };
}

order_columns! { Sort MergeAppend }

/// Makes a method for what is known of the inputs of a node that are partitions.
macro_rules! partitions {
    ($($kind:ident)*) => { $(
        impl<'a> Typed<'a, pg_sys::$kind> {
            /// How values tell which of the inputs can have rows, where they do.
            pub fn partitions(self, statement: FinishedStatement<'a>) -> Option<Typed<'a, pg_sys::PartitionPruneInfo>> {
                // SAFETY: a part of the tree.
                unsafe { Typed::new((*self).partitions(statement.as_ptr())) }
            }
        }
    )* };
}

partitions! { Append MergeAppend }

impl Typed<'_, pg_sys::PartitionedRelPruneInfo> {
    /// For each partition of the table the place of its input; None where it is not one itself.
    pub fn places(self) -> impl Iterator<Item = Option<usize>> {
        // SAFETY: the array has nparts entries.
        (0..usize::try_from(self.nparts).unwrap_or(0))
            .map(move |at| usize::try_from(unsafe { *self.subplan_map.add(at) }).ok())
    }

    /// One of its partitions that are tables of this statement.
    pub fn any_partition(self) -> Option<Oid> {
        // SAFETY: the array has nparts entries.
        (0..usize::try_from(self.nparts).unwrap_or(0))
            .map(|at| unsafe { *self.relid_map.add(at) })
            .find(|&oid| oid != Oid::INVALID)
    }
}
