//! Server hooks that the access method needs.
//!
//! What is done, and when:
//! - A plan starts: bitmap scans of our tables must not prefetch, as virtual blocks are not in the file.
//!   Slots of scans whose plan reads xmin, cmin, xmax or cmax are marked, so that cold rows come with a tuple
//!   header. For other slots it is noted which columns are read.
//! - A table is dropped: its directory rows are deleted.
//! - A table is created: packing has done nothing to it.
//! - A function that makes replication slots is about to run: `slot_creation` looks what comes of it.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys::{self, NodeTag, ObjectAccessType, Oid, PlanState, QueryDesc, ScanState};
use pgrx::{PgList, pg_guard};

use super::packing;
use super::read::cold_rows::SLOT_WANTS_SYSTEM_COLUMNS;
use super::read::wanted;
use super::statements::{files, slot_creation};
use crate::compat;
use crate::host::hooks::Chain;
use crate::host::relation;
use crate::host::relation::Open;
use crate::host::unguarded::{self, guarded};
use crate::options;

static NEXT_START: Chain<pg_sys::ExecutorStart_hook_type> = Chain::new();
static NEXT_ACCESS: Chain<pg_sys::object_access_hook_type> = Chain::new();

/// Puts the hooks in place, keeping those of others. `after` is called after statements that change which
/// rows everybody sees, or indexes.
pub unsafe fn install(after: super::utility_hook::After) {
    // SAFETY: called once, from _PG_init.
    unsafe {
        NEXT_START.put_in_front(&raw mut pg_sys::ExecutorStart_hook, Some(executor_start));
        NEXT_ACCESS.put_in_front(&raw mut pg_sys::object_access_hook, Some(object_access));
        super::utility_hook::install(after);
        slot_creation::install();
        super::read::bitmap_paths::install();
        super::index::uses::install();
    }
}

unsafe extern "C-unwind" fn executor_start(query: *mut QueryDesc, flags: c_int) {
    // SAFETY: the chain is called as the server would call it, from a frame without destructors.
    unsafe {
        let next = NEXT_START.next().unwrap_or(unguarded::standard_ExecutorStart);
        next(query, flags);
        guarded(|| {
            if !(*query).planstate.is_null() {
                visit((*query).planstate, std::ptr::null_mut());
            }
        });
    }
}

/// Adjusts a plan that is initialised after the statement has started.
///
/// # Safety
/// Called under guard with a plan state that has not run yet.
pub unsafe fn adjust(node: *mut PlanState) {
    // SAFETY: the caller's promise.
    unsafe { visit(node, std::ptr::null_mut()) };
}

/// Adjusts one node of a plan and goes on to its children.
#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut PlanState, context: *mut c_void) -> bool {
    // SAFETY: a node of a plan that has just been initialised.
    unsafe {
        if node.is_null() {
            return false;
        }
        let tag = (*node).type_;
        if tag == NodeTag::T_NestLoopState {
            let inner = (*node).righttree;
            if !inner.is_null()
                && matches!((*inner).type_, NodeTag::T_IndexScanState | NodeTag::T_BitmapHeapScanState)
            {
                prepare_scan(inner, read_of_inner((*node).plan.cast()));
            }
        } else if tag == NodeTag::T_AggState
            && !(*node).lefttree.is_null()
            && (*(*node).lefttree).type_ == NodeTag::T_SampleScanState
        {
            prepare_scan((*node).lefttree, read_by_aggregate((*node).plan.cast()));
        } else if matches!(
            tag,
            NodeTag::T_SeqScanState
                | NodeTag::T_SampleScanState
                | NodeTag::T_IndexScanState
                | NodeTag::T_IndexOnlyScanState
                | NodeTag::T_BitmapHeapScanState
                | NodeTag::T_TidScanState
                | NodeTag::T_TidRangeScanState
        ) {
            prepare_scan(node, std::ptr::null_mut());
        }
        pg_sys::planstate_tree_walker(node, Some(visit), context)
    }
}

/// The columns that a nested loop reads of the rows of its inner side, as the server's shifted set. The key
/// that it hands to an index is not among them, although the server's plan has it in the inner rows.
unsafe fn read_of_inner(join: *mut pg_sys::Join) -> *mut pg_sys::Bitmapset {
    // SAFETY: a nested loop is a join; the expressions of a finished plan. Some member that is no column
    // keeps the set from being null.
    unsafe {
        let mut read = pg_sys::bms_make_singleton(0);
        let varno = pg_sys::INNER_VAR.cast_unsigned();
        for list in [(*join).plan.targetlist, (*join).plan.qual, (*join).joinqual] {
            pg_sys::pull_varattnos(list.cast(), varno, &raw mut read);
        }
        read
    }
}

/// The columns that an aggregation reads of its input, as the server's shifted set. The server's plan may
/// hand up more. Null: all columns.
unsafe fn read_by_aggregate(aggregate: *mut pg_sys::Agg) -> *mut pg_sys::Bitmapset {
    // SAFETY: the expressions and the keys of a finished plan.
    unsafe {
        if !(*aggregate).chain.is_null() {
            return std::ptr::null_mut();
        }
        let shift = |column: i32| column - pg_sys::FirstLowInvalidHeapAttributeNumber;
        // A member that is no column keeps the set from being null.
        let mut read = pg_sys::bms_make_singleton(0);
        for at in 0..usize::try_from((*aggregate).numCols).unwrap_or(0) {
            read = pg_sys::bms_add_member(read, shift((*(*aggregate).grpColIdx.add(at)).into()));
        }
        for list in [(*aggregate).plan.targetlist, (*aggregate).plan.qual] {
            pg_sys::pull_varattnos(list.cast(), pg_sys::OUTER_VAR.cast_unsigned(), &raw mut read);
        }
        read
    }
}

/// Adjusts a scan if it is one of our tables'. `read_above` is null if all of its target list may be read.
unsafe fn prepare_scan(node: *mut PlanState, read_above: *mut pg_sys::Bitmapset) {
    // SAFETY: the node is a scan.
    unsafe {
        let scan = node.cast::<ScanState>();
        let rel = (*scan).ss_currentRelation;
        // A nested loop or an aggregation has prepared the scan below it already, which is visited after it.
        if !rel.is_null()
            && options::is_our_relation(Open::of(rel))
            && !wanted::is_noted((*scan).ss_ScanTupleSlot)
        {
            prepare(scan, (*node).type_, read_above);
        }
    }
}

/// Adds the columns that the conditions of a bitmap or index scan read where they are looked at again: of a
/// bitmap scan to `rechecked`, as not all of its blocks need it.
unsafe fn rechecks(
    scan: *mut ScanState,
    tag: NodeTag,
    varno: pg_sys::Index,
    read: &mut *mut pg_sys::Bitmapset,
    rechecked: &mut *mut pg_sys::Bitmapset,
) {
    // SAFETY: as `prepare`.
    unsafe {
        let plan = (*scan).ps.plan;
        let mut add = |list: *mut pg_sys::List| pg_sys::pull_varattnos(list.cast(), varno, read);
        match tag {
            NodeTag::T_BitmapHeapScanState => {
                let bitmap = scan.cast::<pg_sys::BitmapHeapScanState>();
                compat::read_each_block(&mut *bitmap);
                let condition = (*plan.cast::<pg_sys::BitmapHeapScan>()).bitmapqualorig;
                pg_sys::pull_varattnos(condition.cast(), varno, rechecked);
            }
            NodeTag::T_IndexScanState => {
                let index = (*scan.cast::<pg_sys::IndexScanState>()).iss_RelationDesc;
                // A btree never asks for its condition to be rechecked.
                if index.is_null() || (*(*index).rd_rel).relam != pg_sys::BTREE_AM_OID {
                    add((*plan.cast::<pg_sys::IndexScan>()).indexqualorig);
                }
                add((*plan.cast::<pg_sys::IndexScan>()).indexorderbyorig);
            }
            _ => {}
        }
    }
}

/// Notes with the slot which columns are read of the rows that it is to hold, or that their headers are.
unsafe fn note_read(
    slot: *mut pg_sys::TupleTableSlot,
    tag: NodeTag,
    read: *mut pg_sys::Bitmapset,
    rechecked: *mut pg_sys::Bitmapset,
) {
    // SAFETY: the slot is the scan's, the sets are the server's.
    unsafe {
        let header = [
            pg_sys::MinTransactionIdAttributeNumber,
            pg_sys::MaxTransactionIdAttributeNumber,
            pg_sys::MinCommandIdAttributeNumber,
            pg_sys::MaxCommandIdAttributeNumber,
        ];
        if header.iter().any(|&number| relation::has_attribute(read, number)) {
            (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
        } else if matches!(
            tag,
            NodeTag::T_IndexScanState
                | NodeTag::T_BitmapHeapScanState
                | NodeTag::T_SeqScanState
                | NodeTag::T_SampleScanState
        ) {
            wanted::note(slot, read, rechecked);
        }
    }
}

/// Adjusts a scan of one of our tables to what its plan reads.
unsafe fn prepare(scan: *mut ScanState, tag: NodeTag, read_above: *mut pg_sys::Bitmapset) {
    // SAFETY: the casts follow the tag; plan nodes of scans begin with a Scan.
    unsafe {
        let plan = (*scan).ps.plan;
        let varno = (*plan.cast::<pg_sys::Scan>()).scanrelid;
        let mut read: *mut pg_sys::Bitmapset = std::ptr::null_mut();
        let mut rechecked: *mut pg_sys::Bitmapset = std::ptr::null_mut();
        match tag {
            NodeTag::T_IndexOnlyScanState => {
                let slot = (*scan.cast::<pg_sys::IndexOnlyScanState>()).ioss_TableSlot;
                if !slot.is_null() {
                    wanted::note(slot, std::ptr::null_mut(), std::ptr::null_mut());
                }
                return;
            }
            _ => rechecks(scan, tag, varno, &mut read, &mut rechecked),
        }
        // Without a projection the scan gives the rows of the table as they are: all columns, and no header.
        if read_above.is_null() && (*scan).ps.ps_ProjInfo.is_null() && (*plan).qual.is_null() {
            return;
        }
        let mut add = |node: *mut pg_sys::Node| pg_sys::pull_varattnos(node, varno, &raw mut read);
        if read_above.is_null() {
            add((*plan).targetlist.cast());
        } else {
            for entry in PgList::<pg_sys::TargetEntry>::from_pg((*plan).targetlist).iter_ptr() {
                // Columns that nobody reads may be NULL; what is computed of them might fail then.
                let is_column = (*(*entry).expr).type_ == NodeTag::T_Var;
                if !is_column || relation::has_attribute(read_above, (*entry).resno.into()) {
                    add((*entry).expr.cast());
                }
            }
        }
        add((*plan).qual.cast());
        note_read((*scan).ss_ScanTupleSlot, tag, read, rechecked);
    }
}

unsafe extern "C-unwind" fn object_access(
    access: ObjectAccessType::Type,
    class: Oid,
    object: Oid,
    sub_object: c_int,
    arg: *mut c_void,
) {
    // SAFETY: a hook of the server's; this frame owns nothing.
    unsafe {
        if let Some(next) = NEXT_ACCESS.next() {
            next(access, class, object, sub_object, arg);
        }
        if access == ObjectAccessType::OAT_DROP && class == pg_sys::RelationRelationId && sub_object == 0 {
            guarded(|| files::before_drop(object));
        }
        if access == ObjectAccessType::OAT_POST_CREATE && sub_object == 0 {
            guarded(|| packing::created(class, object));
        }
        if access == ObjectAccessType::OAT_FUNCTION_EXECUTE && slot_creation::makes_slots(object) {
            guarded(|| slot_creation::expect());
        }
    }
}
