//! Btrees that packing has left half empty are built anew, in tables that nobody writes to.
//!
//! A row that is packed gets index entries at its new place while the old ones are still there. Pages that
//! were split for the new entries stay half empty once VACUUM has taken the old ones away, because a btree
//! never joins pages.
//!
//! Called by the worker where a table is idle and packing and `tidy` have nothing left to do. It has the
//! server do what REINDEX INDEX CONCURRENTLY does, so readers and writers go on. Whether this is worth while
//! shows in the index itself: a sample of its pages tells how full they are. The pages of a new index are
//! full, so the same index has no second turn soon.
//!
//! It does not begin while older transactions stay, and it does not wait long for one. Whoever wants a lock
//! that has to wait for it has its way at once (`host::give_way`).
//!
//! Invariants: the table keeps its indexes whatever happens. What a failed attempt leaves is invalid, and is
//! dropped later.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys::{self, NodeTag, Oid};

use super::process::{attempt, in_transaction, report, sleep};
use super::worker::{Table, on_table};
use super::{settings, statistics};
use crate::compat;
use crate::host::buffer;
use crate::host::catalogs;
use crate::host::give_way;
use crate::host::relation::Open;

/// Fewer blocks are not worth while: 4 MB.
const FEWEST: u32 = 512;
/// Pages that are looked at.
const SAMPLE: u32 = 64;
/// A btree is built anew if its pages are filled to less than this part of a new one's. Two half empty pages
/// then become one.
const FILLED: f64 = 0.62;
/// Milliseconds between two looks at who is there.
const MOMENT: i64 = 1000;
/// How long each wait for older transactions may take.
const PATIENCE: &std::ffi::CStr = c"5s";

/// An index that is worth building anew.
struct Candidate {
    schema: String,
    name: String,
}

/// Builds one of the table's btrees anew, and returns whether there was one that is worth it. None after an
/// ERROR.
pub(super) unsafe fn one(table: &Table) -> Option<bool> {
    // SAFETY: each step has transactions of its own.
    unsafe {
        if !settings::rebuilds_indexes() {
            return Some(false);
        }
        let Some((found, one_is_invalid)) = on_table(table, look)? else { return Some(false) };
        if one_is_invalid {
            drop_leftovers(table.oid);
        }
        let Some(found) = found else { return Some(false) };
        if others_stay() {
            return Some(false);
        }
        report(&format!("building index {}.{} anew", found.schema, found.name));
        let lock = pg_sys::ShareUpdateExclusiveLock;
        let done = give_way::while_nobody_waits(table.oid, lock, || rebuild(&found));
        drop_leftovers(table.oid);
        let Some(done) = done else { return Some(false) };
        done.map_err(|message| statistics::failed(table.oid, &message)).ok()?;
        Some(true)
    }
}

/// Whether a transaction with a snapshot goes on for longer than a moment. Building would have to wait for
/// it.
unsafe fn others_stay() -> bool {
    // SAFETY: a list of the server's, of as many entries as it says.
    unsafe {
        let list = || {
            let ignored = pg_sys::PROC_IS_AUTOVACUUM | pg_sys::PROC_IN_VACUUM | pg_sys::PROC_IN_SAFE_IC;
            let mut count = 0;
            let found = pg_sys::GetCurrentVirtualXIDs(
                pg_sys::InvalidTransactionId,
                true,
                false,
                ignored as c_int,
                &raw mut count,
            );
            let all = (0..usize::try_from(count).unwrap_or(0)).map(|at| *found.add(at));
            let all: Vec<_> = all.map(|other| compat::virtual_transaction(&other)).collect();
            pg_sys::pfree(found.cast());
            all
        };
        let before = list();
        if before.is_empty() {
            return false;
        }
        sleep(MOMENT);
        let after = list();
        before.iter().any(|other| after.contains(other))
    }
}

/// The btree to build anew, if there is one, and whether one of the table's indexes is invalid.
fn look(rel: Open) -> (Option<Candidate>, bool) {
    // SAFETY: catalog look-ups.
    let indexes = unsafe { catalogs::indexes_of(rel.oid()) };
    (candidate(rel), indexes.iter().any(|(_, is_valid)| !is_valid))
}

/// The first of the table's btrees whose pages are mostly empty.
fn candidate(rel: Open) -> Option<Candidate> {
    // SAFETY: indexes are closed here, or by the server's abort.
    unsafe {
        let mut found = None;
        for index in rel.open_indexes(pg_sys::AccessShareLock) {
            let (class, form) = (&*index.form(), &*(*index.as_ptr()).rd_index);
            let is_whole = form.indisvalid && form.indisready && form.indislive && !form.indisexclusion;
            if found.is_none()
                && !rel.is_temporary()
                && is_whole
                && class.relam == pg_sys::BTREE_AM_OID
                && index.block_count() >= FEWEST
                && filled(index) < FILLED * fill_factor(index)
            {
                found = Some(Candidate {
                    schema: text(pg_sys::get_namespace_name(class.relnamespace)),
                    name: text(class.relname.data.as_ptr()),
                });
            }
            pg_sys::index_close(index.as_ptr(), pg_sys::AccessShareLock as c_int);
        }
        found
    }
}

unsafe fn text(name: *const std::ffi::c_char) -> String {
    // SAFETY: a terminated string.
    unsafe { std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned() }
}

/// What part of a leaf page the server fills when it builds the index.
fn fill_factor(index: Open) -> f64 {
    /// BTREE_DEFAULT_FILLFACTOR.
    const DEFAULT: c_int = 90;
    // SAFETY: options, or null; all kinds of relations have this one at the same place.
    unsafe {
        let options = (*index.as_ptr()).rd_options.cast::<pg_sys::StdRdOptions>();
        let percent = if options.is_null() { DEFAULT } else { (*options).fillfactor };
        f64::from(percent) / 100.0
    }
}

/// What part of the index's pages is in use, estimated from a sample spread evenly over it.
fn filled(index: Open) -> f64 {
    // SAFETY: pages are read under their locks.
    unsafe {
        let blocks = index.block_count();
        let pages = SAMPLE.min(blocks - 1);
        let mut free = 0.0;
        let whole = f64::from(pg_sys::BLCKSZ);
        for at in 0..pages {
            let block = 1 + (u64::from(at) * u64::from(blocks - 1) / u64::from(pages)) as u32;
            let buf = buffer::read(index, block, std::ptr::null_mut());
            buffer::lock_shared(buf);
            let page = buffer::page(buf);
            // A new page is free, and so is one whose only entry is the bound that it begins with.
            let is_empty = pg_sys::PageIsNew(page) || pg_sys::PageGetMaxOffsetNumber(page) <= 1;
            free += if is_empty { whole } else { pg_sys::PageGetExactFreeSpace(page) as f64 };
            buffer::unlock(buf);
            pg_sys::ReleaseBuffer(buf);
        }
        1.0 - free / (whole * f64::from(pages.max(1)))
    }
}

/// REINDEX INDEX CONCURRENTLY, as the server runs it for a statement.
unsafe fn rebuild(found: &Candidate) -> Result<(), String> {
    // SAFETY: the server's own command; what it is given lives in a context of its own, and outlives its
    // transactions.
    unsafe {
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"colonnade rebuild".as_ptr(),
            0,
            8 * 1024,
            8 * 1024 * 1024,
        );
        set_lock_timeout(PATIENCE);
        let done = attempt(&format!("packing of index {}.{}", found.schema, found.name), false, || {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            pg_sys::PortalContext = context;
            let before = pg_sys::MemoryContextSwitchTo(context);
            let word = |text: &str| {
                std::ffi::CString::new(text)
                    .map_or(std::ptr::null_mut(), |text| pg_sys::pstrdup(text.as_ptr()))
            };
            let option = pg_sys::makeDefElem(word("concurrently"), std::ptr::null_mut(), -1);
            let statement = pg_sys::palloc0(size_of::<pg_sys::ReindexStmt>()).cast::<pg_sys::ReindexStmt>();
            (*statement).type_ = NodeTag::T_ReindexStmt;
            (*statement).kind = pg_sys::ReindexObjectType::REINDEX_OBJECT_INDEX;
            (*statement).relation = pg_sys::makeRangeVar(word(&found.schema), word(&found.name), -1);
            (*statement).params = pg_sys::lappend(std::ptr::null_mut(), option.cast::<c_void>());
            let state = pg_sys::make_parsestate(std::ptr::null_mut());
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::ExecReindex(state, statement, true);
            pg_sys::CommitTransactionCommand();
        });
        set_lock_timeout(c"0");
        pg_sys::PortalContext = std::ptr::null_mut();
        pg_sys::MemoryContextDelete(context);
        done
    }
}

unsafe fn set_lock_timeout(value: &std::ffi::CStr) {
    // SAFETY: the server copies both.
    unsafe {
        let context = pg_sys::GucContext::PGC_SUSET;
        pg_sys::SetConfigOption(
            c"lock_timeout".as_ptr(),
            value.as_ptr(),
            context,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

/// Drops what an earlier attempt has left: an unfinished new index or the old one, both invalid and named by
/// the server after an index that the table has. The old one is left where the attempt ended after the new
/// one had taken its place. Leaves it for later if somebody is at work on the table.
unsafe fn drop_leftovers(table: Oid) {
    // SAFETY: a transaction of its own; locks are kept to its end.
    unsafe {
        let work = || {
            if leftovers(table).is_empty()
                || !pg_sys::ConditionalLockRelationOid(table, pg_sys::AccessExclusiveLock as c_int)
            {
                return;
            }
            // Looks again under the lock: an index that a session was building may have become the table's
            // own meanwhile.
            for index in leftovers(table) {
                let address = pg_sys::ObjectAddress {
                    classId: pg_sys::RelationRelationId,
                    objectId: index,
                    objectSubId: 0,
                };
                let flags = pg_sys::PERFORM_DELETION_INTERNAL as c_int;
                pg_sys::performDeletion(&raw const address, pg_sys::DropBehavior::DROP_RESTRICT, flags);
            }
        };
        // A failure is in the log, and the next attempt tries again.
        drop(attempt("packing of what is left of building an index anew", true, || in_transaction(work)));
    }
}

/// Invalid indexes of a table that the server has called after a valid one for building that one anew.
unsafe fn leftovers(table: Oid) -> Vec<Oid> {
    // SAFETY: catalog look-ups about a table that may be gone.
    unsafe {
        let named = catalogs::indexes_of(table).into_iter().filter_map(|(index, is_valid)| {
            let name = pg_sys::get_rel_name(index);
            (!name.is_null()).then(|| (index, is_valid, text(name)))
        });
        let (valid, invalid): (Vec<_>, Vec<_>) = named.partition(|(_, is_valid, _)| *is_valid);
        let is_left = |name: &str| valid.iter().any(|(_, _, of)| is_called_after(name, of));
        invalid.into_iter().filter(|(_, _, name)| is_left(name)).map(|(index, _, _)| index).collect()
    }
}

/// Whether `other` is a name that the server makes up from `name` for an index that is built concurrently.
/// The server cuts `name` where the result would be too long.
fn is_called_after(other: &str, name: &str) -> bool {
    ["_ccnew", "_ccold"].iter().any(|mark| {
        let Some((stem, number)) = other.rsplit_once(mark) else { return false };
        number.bytes().all(|byte| byte.is_ascii_digit())
            && !stem.is_empty()
            && name.starts_with(stem)
            && (stem.len() == name.len() || other.len() >= 60)
    })
}

#[cfg(test)]
mod tests {
    use super::is_called_after;

    #[test]
    fn leftovers_are_known_by_their_names() {
        assert!(is_called_after("t_pkey_ccnew", "t_pkey") && is_called_after("t_pkey_ccold12", "t_pkey"));
        assert!(!is_called_after("t_pkey_ccnewer", "t_pkey") && !is_called_after("t_ccnew", "t_pkey"));
        assert!(!is_called_after("t_pkey", "t_pkey") && !is_called_after("_ccnew", "t_pkey"));
        let long = "x".repeat(63);
        assert!(is_called_after(&format!("{}_ccnew", "x".repeat(57)), &long));
    }
}
