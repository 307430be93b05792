//! The kinds of expressions, and what hangs below each.
//!
//! `Node::expression` tells them apart for whoever goes through an expression. A kind that nobody here looks
//! into is `Other`. Invariant: one line of `expressions` for each kind, so a cast cannot name another one.

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::list::List;
use super::node::{Node, Tagged, Typed, kinds};

/// Makes `Expression`: a variant for each kind, named as its tag.
macro_rules! expressions {
    ($($variant:ident($kind:ident) $tag:ident),* $(,)?) => {
        /// An expression, by its kind. The variants are called as the server calls the kinds.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub enum Expression<'a> {
            $($variant(Typed<'a, pg_sys::$kind>),)*
            /// Of another kind.
            Other(NodeTag),
        }

        impl<'a> Node<'a> {
            /// The node as an expression.
            #[inline]
            pub fn expression(self) -> Expression<'a> {
                // SAFETY: each cast follows the tag.
                unsafe {
                    match self.tag() {
                        $(NodeTag::$tag => Expression::$variant(self.cast()),)*
                        tag => Expression::Other(tag),
                    }
                }
            }
        }
    };
}

expressions! {
    Const(Const) T_Const,
    Var(Var) T_Var,
    Param(Param) T_Param,
    Aggref(Aggref) T_Aggref,
    WindowFunc(WindowFunc) T_WindowFunc,
    GroupingFunc(GroupingFunc) T_GroupingFunc,
    CaseTestExpr(CaseTestExpr) T_CaseTestExpr,
    RelabelType(RelabelType) T_RelabelType,
    OpExpr(OpExpr) T_OpExpr,
    FuncExpr(FuncExpr) T_FuncExpr,
    // Both are as an operator that tells equal values.
    DistinctExpr(OpExpr) T_DistinctExpr,
    NullIfExpr(OpExpr) T_NullIfExpr,
    ScalarArrayOpExpr(ScalarArrayOpExpr) T_ScalarArrayOpExpr,
    RowCompareExpr(RowCompareExpr) T_RowCompareExpr,
    BoolExpr(BoolExpr) T_BoolExpr,
    NullTest(NullTest) T_NullTest,
    BooleanTest(BooleanTest) T_BooleanTest,
    CaseExpr(CaseExpr) T_CaseExpr,
    CoalesceExpr(CoalesceExpr) T_CoalesceExpr,
    MinMaxExpr(MinMaxExpr) T_MinMaxExpr,
    ArrayExpr(ArrayExpr) T_ArrayExpr,
    SQLValueFunction(SQLValueFunction) T_SQLValueFunction,
    SubPlan(SubPlan) T_SubPlan,
    SubLink(SubLink) T_SubLink,
    RestrictInfo(RestrictInfo) T_RestrictInfo,
}

kinds! {
    Const T_Const {}
    Var T_Var {}
    Param T_Param {}
    CaseTestExpr T_CaseTestExpr {}
    SQLValueFunction T_SQLValueFunction {}
    Aggref T_Aggref {
        args: args List<Typed<'a, pg_sys::TargetEntry>>,
        direct_args: aggdirectargs List,
        argument_types: aggargtypes List<Oid>,
        filter: aggfilter Option,
        order: aggorder List<Typed<'a, pg_sys::SortGroupClause>>,
        distinct: aggdistinct List<Typed<'a, pg_sys::SortGroupClause>>,
    }
    WindowFunc T_WindowFunc { args: args List, filter: aggfilter Option }
    GroupingFunc T_GroupingFunc { columns: cols List<i32> }
    RelabelType T_RelabelType { arg: arg Node }
    OpExpr T_OpExpr { args: args List }
    FuncExpr T_FuncExpr { args: args List }
    ScalarArrayOpExpr T_ScalarArrayOpExpr { args: args List }
    RowCompareExpr T_RowCompareExpr { families: opfamilies List<Oid> }
    BoolExpr T_BoolExpr { args: args List }
    NullTest T_NullTest { arg: arg Node }
    BooleanTest T_BooleanTest { arg: arg Node }
    CaseExpr T_CaseExpr {
        arg: arg Option,
        branches: args List<Typed<'a, pg_sys::CaseWhen>>,
        otherwise: defresult Option,
    }
    CaseWhen T_CaseWhen { condition: expr Node, result: result Node }
    CoalesceExpr T_CoalesceExpr { args: args List }
    MinMaxExpr T_MinMaxExpr { args: args List }
    ArrayExpr T_ArrayExpr { elements: elements List }
    SubPlan T_SubPlan { test: testexpr Node, parameters: paramIds List<i32> }
    SubLink T_SubLink { test: testexpr Option }
    RestrictInfo T_RestrictInfo { clause: clause Node }
    TargetEntry T_TargetEntry { expr: expr Node }
    SortGroupClause T_SortGroupClause {}
    ArrayCoerceExpr T_ArrayCoerceExpr {}
    RangeTblRef T_RangeTblRef {}
    JoinExpr T_JoinExpr { left: larg Node, right: rarg Node }
}

impl<'a> Node<'a> {
    /// The elements of a node that is a list of expressions; None for any other.
    pub fn as_list(self) -> Option<List<'a>> {
        // SAFETY: the tag says that it is a list of pointers, and in an expression those are expressions.
        (self.tag() == NodeTag::T_List).then(|| unsafe { List::new(self.as_ptr().cast()) })
    }
}

impl<'a> Typed<'a, pg_sys::SortGroupClause> {
    /// The expression of a target list that the clause is about; an ERROR where it is about none.
    pub fn target(self, list: List<'a, Typed<'a, pg_sys::TargetEntry>>) -> Node<'a> {
        // SAFETY: a clause and a list of one tree; what is found is an entry of the list.
        unsafe { Typed::required(pg_sys::get_sortgroupclause_tle(self.as_ptr(), list.as_ptr())) }.expr()
    }
}
