//! The server's lists: of nodes, of numbers, of Oids.
//!
//! The server has one struct for all of them; what is in one is known from where it hangs. Invariant: a list
//! is read as what whoever made it promised; where its tag says otherwise it has no elements.

use std::marker::PhantomData;

use pgrx::pg_sys::{self, ListCell, NodeTag, Oid};

use super::node::{Node, Typed};

/// A list whose elements are of one kind, and live for `'a`. The server's empty list is null.
pub struct List<'a, E = Node<'a>> {
    list: *mut pg_sys::List,
    tree: PhantomData<(&'a pg_sys::List, E)>,
}

impl<E> Clone for List<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for List<'_, E> {}

/// What a list may hold.
pub trait Element: Copy {
    /// The tag of lists of it.
    const TAG: NodeTag;

    /// What a cell holds; None for null.
    ///
    /// # Safety
    /// A cell of such a list of a tree that lives as long as the element.
    unsafe fn of(cell: &ListCell) -> Option<Self>;
}

impl Element for Node<'_> {
    const TAG: NodeTag = NodeTag::T_List;

    #[inline]
    unsafe fn of(cell: &ListCell) -> Option<Self> {
        // SAFETY: a list of pointers to nodes.
        unsafe { Node::new(cell.ptr_value.cast()) }
    }
}

impl<T> Element for Typed<'_, T> {
    const TAG: NodeTag = NodeTag::T_List;

    #[inline]
    unsafe fn of(cell: &ListCell) -> Option<Self> {
        // SAFETY: a list of pointers to nodes of this kind.
        unsafe { Typed::new(cell.ptr_value.cast()) }
    }
}

impl<E> Element for List<'_, E> {
    const TAG: NodeTag = NodeTag::T_List;

    #[inline]
    unsafe fn of(cell: &ListCell) -> Option<Self> {
        // SAFETY: a list of lists, of which an empty one is null.
        Some(unsafe { List::new(cell.ptr_value.cast()) })
    }
}

impl Element for i32 {
    const TAG: NodeTag = NodeTag::T_IntList;

    #[inline]
    unsafe fn of(cell: &ListCell) -> Option<Self> {
        // SAFETY: a list of integers.
        Some(unsafe { cell.int_value })
    }
}

impl Element for Oid {
    const TAG: NodeTag = NodeTag::T_OidList;

    #[inline]
    unsafe fn of(cell: &ListCell) -> Option<Self> {
        // SAFETY: a list of Oids.
        Some(unsafe { cell.oid_value })
    }
}

impl<'a, E> List<'a, E> {
    /// The list at an address, which may be null.
    ///
    /// # Safety
    /// The address is null or that of a list whose elements are of this kind, or null. What `Node::new` asks
    /// for holds of the list and of all of them.
    #[inline]
    pub const unsafe fn new(list: *mut pg_sys::List) -> Self {
        Self { list, tree: PhantomData }
    }

    /// For the server's functions.
    #[inline]
    pub const fn as_ptr(self) -> *mut pg_sys::List {
        self.list
    }

    /// How many elements it has, those that are null included.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: a list of the server's, or null.
        unsafe { self.list.as_ref() }.map_or(0, |list| usize::try_from(list.length).unwrap_or(0))
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The list as a node; None for the empty one.
    #[inline]
    pub const fn node(self) -> Option<Node<'a>> {
        // SAFETY: a list is a node of the tree that it hangs in.
        unsafe { Node::new(self.list.cast()) }
    }
}

impl<'a, E: Element + 'a> List<'a, E> {
    fn cells(self) -> &'a [ListCell] {
        // SAFETY: a list has as many cells as it says, and nobody changes it.
        unsafe {
            match self.list.as_ref() {
                Some(list) if list.type_ == E::TAG => {
                    std::slice::from_raw_parts(list.elements, usize::try_from(list.length).unwrap_or(0))
                }
                _ => &[],
            }
        }
    }

    /// Its elements that are not null.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = E> + 'a {
        // SAFETY: cells of this list.
        self.cells().iter().filter_map(|cell| unsafe { E::of(cell) })
    }

    /// The element at a place, from 0; None where it is null, or there is none.
    #[inline]
    pub fn get(self, at: usize) -> Option<E> {
        // SAFETY: a cell of this list.
        self.cells().get(at).and_then(|cell| unsafe { E::of(cell) })
    }
}
