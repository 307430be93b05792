//! Finding, making and changing the pages that say which blocks have copies.
//!
//! Places never change within one file, so a backend remembers the regions that it found (`Known`). It also
//! remembers which region has no page, with the number of regions that had one then: the metapage counts
//! them, and a region is linked and counted in one record. So the look before each row that is inserted goes
//! to one page, whether its block was ever copied or not.

use pgrx::pg_sys::{self, BlockNumber, Buffer};

use super::layout::{self, Kind, PLACES, PageBytes};
use crate::host::relation::Open;
use crate::host::relation_file;
use crate::host::{buffer, error, generic_wal};
use crate::storage::file::metapage;

/// The metapage.
const META: BlockNumber = 0;

/// How many regions a backend remembers of an index.
const REMEMBERED: usize = 32;

/// What the relation cache keeps for us of an index. It is freed with the cache's entry.
#[repr(C)]
struct Known {
    file_number: u32,
    /// How many regions had a page when those without one were looked for.
    count: u64,
    /// Regions with the places of their pages, at their number modulo `REMEMBERED`. Place 0: it has no page.
    places: [(u32, BlockNumber); REMEMBERED],
}

/// What is remembered of an index. None: nothing.
fn known<'a>(index: Open) -> Option<&'a Known> {
    // SAFETY: an index of ours has there null or what `remember` has put there. The backend has one thread
    // that comes here, and no reference outlives the look.
    unsafe {
        let known = (*index.as_ptr()).rd_amcache.cast::<Known>().as_ref()?;
        (known.file_number == relation_file::file_number(&relation_file::locator(index))).then_some(known)
    }
}

fn remember(index: Open, remember: impl FnOnce(&mut Known)) {
    // SAFETY: the server frees rd_amcache, one chunk in CacheMemoryContext, when it rebuilds the entry.
    unsafe {
        if (*index.as_ptr()).rd_amcache.is_null() {
            (*index.as_ptr()).rd_amcache =
                pg_sys::MemoryContextAlloc(pg_sys::CacheMemoryContext, size_of::<Known>());
            (*index.as_ptr()).rd_amcache.cast::<Known>().write(Known::empty(0));
        }
        let file_number = relation_file::file_number(&relation_file::locator(index));
        if let Some(known) = (*index.as_ptr()).rd_amcache.cast::<Known>().as_mut() {
            if known.file_number != file_number {
                *known = Known::empty(file_number);
            }
            remember(known);
        }
    }
}

impl Known {
    const fn empty(file_number: u32) -> Self {
        Self { file_number, count: 0, places: [(u32::MAX, 0); REMEMBERED] }
    }

    fn place(&self, region: u32) -> Option<BlockNumber> {
        let &(found, block) = self.places.get(region as usize % REMEMBERED)?;
        (found == region).then_some(block)
    }

    fn set_place(&mut self, region: u32, block: BlockNumber) {
        if let Some(place) = self.places.get_mut(region as usize % REMEMBERED) {
            *place = (region, block);
        }
    }

    fn set_absent(&mut self, region: u32, count: u64) {
        if self.count != count {
            self.count = count;
            self.places.iter_mut().filter(|(_, block)| *block == 0).for_each(|place| *place = (u32::MAX, 0));
        }
        self.set_place(region, 0);
    }
}

/// Forgets what is remembered: the file was emptied in place.
pub fn forget(index: Open) {
    // SAFETY: see `remember`.
    unsafe {
        if !(*index.as_ptr()).rd_amcache.is_null() {
            pg_sys::pfree((*index.as_ptr()).rd_amcache);
            (*index.as_ptr()).rd_amcache = std::ptr::null_mut();
        }
    }
}

/// A region as it was at one moment.
pub struct Region {
    /// The file's storage id.
    pub storage_id: u64,
    page: Box<PageBytes>,
}

impl Region {
    /// The entries of its blocks.
    pub fn entries(&self) -> &[u8] {
        layout::entries(self.page.as_slice())
    }

    /// The copy in a slot.
    pub fn slot(&self, number: u8) -> layout::Slot {
        layout::slot(self.page.as_slice(), number)
    }
}

/// Makes the metapage, block 0 of an empty file.
///
/// # Safety
/// The file is empty, and nobody else writes to it.
pub unsafe fn create(index: Open) {
    let id = metapage::new_storage_id();
    // SAFETY: the caller's promise.
    let block = unsafe { generic_wal::add_page(index, |page| layout::begin(page, Kind::Meta, id)) };
    if block != META {
        error::internal("the first block of an index is not block 0");
    }
}

/// Raises the ERROR for a page that is not what it has to be.
fn broken(index: Open, block: BlockNumber) -> ! {
    error::raise(
        error::PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!("invalid page in block {block} of index {}", index.quoted_name()),
        "The page is not one that a columnstore index has there.",
        "REINDEX the index.",
    )
}

/// Looks at a page of this kind under its shared lock.
fn look<T>(index: Open, block: BlockNumber, kind: Kind, look: impl FnOnce(&PageBytes) -> T) -> T {
    // SAFETY: the page is looked at under pin and lock; `look` calls no server.
    unsafe {
        let buf = buffer::read(index, block, std::ptr::null_mut());
        buffer::lock_shared(buf);
        let page = &*buffer::page(buf).cast::<PageBytes>();
        let found = layout::storage_id(page, kind).map(|_| look(page));
        buffer::unlock_release(buf);
        found.unwrap_or_else(|| broken(index, block))
    }
}

/// Changes a page of this kind under its exclusive lock.
///
/// # Safety
/// Whoever may change it holds what it takes to do so.
unsafe fn edit(index: Open, block: BlockNumber, kind: Kind, edit: impl FnOnce(&mut PageBytes)) {
    // SAFETY: the page is locked; `edit` calls no server.
    unsafe {
        let buf = buffer::read(index, block, std::ptr::null_mut());
        buffer::lock_exclusive(buf);
        if layout::storage_id(&*buffer::page(buf).cast::<PageBytes>(), kind).is_none() {
            broken(index, block);
        }
        generic_wal::change(index, buf, edit);
        buffer::unlock_release(buf);
    }
}

/// Where a region's page is. None: none of its blocks was ever copied.
pub fn place(index: Open, region: u32) -> Option<BlockNumber> {
    let known = known(index).and_then(|known| Some((known.place(region)?, known.count)));
    if let Some((block, _)) = known.filter(|&(block, _)| block != 0) {
        return Some(block);
    }
    let (count, root) = look(index, META, Kind::Meta, |page| {
        (layout::region_count(page), layout::place(page, region / PLACES))
    });
    if known.is_some_and(|(_, then)| then == count) {
        return None;
    }
    let block =
        root.and_then(|root| look(index, root, Kind::Root, |page| layout::place(page, region % PLACES)));
    remember(index, |known| match block {
        Some(block) => known.set_place(region, block),
        None => known.set_absent(region, count),
    });
    block
}

/// A region as it is now. None: none of its blocks was ever copied.
pub fn load(index: Open, region: u32) -> Option<Region> {
    let block = place(index, region)?;
    let (found, storage_id, page) = look(index, block, Kind::Region, |page| {
        let storage_id = layout::storage_id(page, Kind::Region).unwrap_or(0);
        (layout::region(page), storage_id, Box::new(*page))
    });
    if found != region {
        broken(index, block);
    }
    Some(Region { storage_id, page })
}

/// Makes a region's page if there is none. Returns its place.
///
/// # Safety
/// No other session makes copies in this index.
pub unsafe fn ensure(index: Open, region: u32) -> BlockNumber {
    if let Some(block) = place(index, region) {
        return block;
    }
    let at = region / PLACES;
    // SAFETY: the caller's promise. A page is linked once it is there: a crash in between leaves it unused.
    unsafe {
        let (storage_id, root) = look(index, META, Kind::Meta, |page| {
            (layout::storage_id(page, Kind::Meta), layout::place(page, at))
        });
        let storage_id = storage_id.unwrap_or(0);
        let root = root.unwrap_or_else(|| {
            let root = generic_wal::add_page(index, |page| layout::begin(page, Kind::Root, storage_id));
            edit(index, META, Kind::Meta, |page| layout::set_place(page, at, root));
            root
        });
        let block = generic_wal::add_page(index, |page| {
            layout::begin(page, Kind::Region, storage_id);
            layout::set_region(page, region);
        });
        link(index, root, region, block);
        remember(index, |known| known.set_place(region, block));
        block
    }
}

/// Names a region's page on its root page, and counts it, in one record: who remembers that there is no page
/// trusts the count.
unsafe fn link(index: Open, root: BlockNumber, region: u32, block: BlockNumber) {
    // SAFETY: as `ensure`. Both pages are locked; nobody else holds two locks.
    unsafe {
        let bufs = [META, root].map(|page| buffer::read(index, page, std::ptr::null_mut()));
        bufs.iter().for_each(|&buf| buffer::lock_exclusive(buf));
        generic_wal::change_both(index, bufs, |meta, root| {
            let count = layout::region_count(meta);
            layout::set_region_count(meta, count.saturating_add(1));
            layout::set_place(root, region % PLACES, block);
        });
        bufs.iter().for_each(|&buf| buffer::unlock_release(buf));
    }
}

/// All runs that pages of ours name, as first block and number of blocks, the pages themselves among them. A
/// slot that no entry names has none: nobody looks at it.
pub fn named_runs(index: Open) -> Vec<(BlockNumber, u32)> {
    let places = |page: &PageBytes| -> Vec<BlockNumber> {
        (0..PLACES).filter_map(|at| layout::place(page, at)).collect()
    };
    let mut named = vec![(META, 1)];
    named.extend(free_page(index).map(|page| (page, 1)));
    for root in look(index, META, Kind::Meta, places) {
        named.push((root, 1));
        for place in look(index, root, Kind::Root, places) {
            pgrx::check_for_interrupts!();
            named.push((place, 1));
            look(index, place, Kind::Region, |page| {
                for slot in (1..=layout::SLOTS).filter(|&slot| layout::is_named(layout::entries(page), slot))
                {
                    let run = layout::slot(page, slot).run();
                    named.push((run.first_block, run.block_count));
                }
            });
        }
    }
    named
}

/// Where the page of free runs is.
pub fn free_page(index: Open) -> Option<BlockNumber> {
    look(index, META, Kind::Meta, |page| layout::place(page, layout::FREE_PAGE))
}

/// Makes the page of free runs if there is none.
///
/// # Safety
/// As `ensure`.
pub unsafe fn ensure_free_page(index: Open) -> BlockNumber {
    free_page(index).unwrap_or_else(|| {
        let storage_id = storage_id(index);
        // SAFETY: the caller's promise.
        unsafe {
            let block = generic_wal::add_page(index, |page| layout::begin(page, Kind::Free, storage_id));
            edit(index, META, Kind::Meta, |page| layout::set_place(page, layout::FREE_PAGE, block));
            block
        }
    })
}

/// The list of free runs.
pub fn free_runs(index: Open, page: BlockNumber) -> Vec<layout::FreeRun> {
    look(index, page, Kind::Free, |page| layout::free_runs(page))
}

/// Sets it.
///
/// # Safety
/// As `ensure`.
pub unsafe fn set_free_runs(index: Open, page: BlockNumber, runs: &[layout::FreeRun]) {
    // SAFETY: the caller's promise.
    unsafe { edit(index, page, Kind::Free, |page| layout::set_free_runs(page, runs)) }
}

/// Changes a region under its page's exclusive lock.
///
/// # Safety
/// `place` is that of a region. The change is one that the rules of `columnstore` allow.
pub unsafe fn change(index: Open, place: BlockNumber, change: impl FnOnce(&mut PageBytes)) {
    // SAFETY: the caller's promise.
    unsafe { edit(index, place, Kind::Region, change) }
}

/// A block of the heap is not what its copy says any more. Costs a look at a shared page where it has none.
///
/// # Safety
/// The index is open and locked as for an insertion.
pub unsafe fn clear(index: Open, block: BlockNumber) {
    let (region, at) = (block / layout::REGION_BLOCKS, (block % layout::REGION_BLOCKS) as usize);
    let Some(place) = place(index, region) else { return };
    // SAFETY: the page is looked at and changed under its locks. Between the two somebody else may have
    // cleared the entry, which is the same.
    unsafe {
        let buf: Buffer = buffer::read(index, place, std::ptr::null_mut());
        buffer::lock_shared(buf);
        let page = &*buffer::page(buf).cast::<PageBytes>();
        let entry = layout::entry(page, at);
        let is_right = layout::storage_id(page, Kind::Region).is_some() && layout::region(page) == region;
        if entry == 0 || !is_right {
            buffer::unlock_release(buf);
            if !is_right {
                broken(index, place);
            }
            return;
        }
        buffer::unlock(buf);
        buffer::lock_exclusive(buf);
        generic_wal::change(index, buf, |page| {
            if let Some(entry) = layout::entries_mut(page).get_mut(at) {
                *entry = 0;
            }
        });
        buffer::unlock_release(buf);
    }
}

/// The file's storage id.
pub fn storage_id(index: Open) -> u64 {
    look(index, META, Kind::Meta, |page| layout::storage_id(page, Kind::Meta)).unwrap_or(0)
}

/// Takes the number of a new copy.
///
/// # Safety
/// As `ensure`.
pub unsafe fn take_copy_number(index: Open) -> u64 {
    let mut number = 0;
    // SAFETY: the caller's promise.
    unsafe {
        edit(index, META, Kind::Meta, |page| {
            number = layout::next_copy(page);
            layout::set_next_copy(page, number.saturating_add(1));
        });
    }
    number
}

/// Notes how far a refresh is: the region where the next one goes on.
///
/// # Safety
/// As `ensure`.
pub unsafe fn note_progress(index: Open, next_region: u32) {
    // A round of the background that finds nothing to do logs nothing.
    if next_region != self::next_region(index) {
        // SAFETY: the caller's promise.
        unsafe { edit(index, META, Kind::Meta, |page| layout::set_next_region(page, next_region)) };
    }
}

/// The region where a refresh goes on.
pub fn next_region(index: Open) -> u32 {
    look(index, META, Kind::Meta, |page| layout::next_region(page))
}
