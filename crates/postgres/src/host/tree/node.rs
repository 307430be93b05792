//! Nodes of the server's trees: expressions, plans, and what they are made of.
//!
//! Made once, where the server hands a tree over, by a constructor that is unsafe; from there on everybody
//! goes down the tree without a promise of his own. `Node` is of any kind, `Typed` of one. What a kind has
//! below it is in `expression` and `plan`, what the server knows of a node in `asked`.
//! Invariant: a cast from a node to a kind follows the node's tag, and happens here and in `expression` and
//! `plan` only. Both types are a pointer and nothing else.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use pgrx::pg_sys::{self, NodeTag};

use crate::host::error;

/// A node of any kind, whose tree lives for `'a`. Two are equal when they are the same node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Node<'a> {
    node: NonNull<pg_sys::Node>,
    tree: PhantomData<&'a pg_sys::Node>,
}

impl<'a> Node<'a> {
    /// The node at an address; None where it is null.
    ///
    /// # Safety
    /// The address is null or that of a whole tree of the server's, as its parser or planner makes them:
    /// every node is of the kind that its tag says, and what hangs below it is what the server's structs say.
    /// Nobody frees or changes a part of the tree for `'a`. Only the main thread asks.
    #[inline]
    pub const unsafe fn new(node: *mut pg_sys::Node) -> Option<Self> {
        match NonNull::new(node) {
            Some(node) => Some(Self { node, tree: PhantomData }),
            None => None,
        }
    }

    /// As `new`, for what the server never leaves out; an ERROR where somebody has.
    ///
    /// # Safety
    /// As `new`; a part of a tree that lives for `'a`.
    #[inline]
    pub(super) unsafe fn required(node: *mut pg_sys::Node) -> Self {
        // SAFETY: the caller's part of a tree.
        unsafe { Self::new(node) }.unwrap_or_else(|| missing())
    }

    /// For the server's functions.
    #[inline]
    pub const fn as_ptr(self) -> *mut pg_sys::Node {
        self.node.as_ptr()
    }

    /// Its kind.
    #[inline]
    pub fn tag(self) -> NodeTag {
        // SAFETY: every node begins with its tag.
        unsafe { (*self.node.as_ptr()).type_ }
    }

    /// The node as one of a kind; None where it is of another.
    #[inline]
    pub fn as_a<T: Tagged>(self) -> Option<Typed<'a, T>> {
        // SAFETY: the cast follows the tag.
        (self.tag() == T::TAG).then(|| unsafe { self.cast() })
    }

    /// The node as one of a kind.
    ///
    /// # Safety
    /// The tag is one of this kind, or of one that begins with it.
    #[inline]
    pub(super) const unsafe fn cast<T>(self) -> Typed<'a, T> {
        Typed { node: self.node.cast(), tree: PhantomData }
    }
}

/// The part is missing that every node of a kind has.
#[cold]
fn missing() -> ! {
    error::internal("a plan or expression without a part that each of its kind has")
}

/// A kind of node that is known by its tag.
///
/// # Safety
/// A node with this tag is such a struct.
pub unsafe trait Tagged {
    /// The tag.
    const TAG: NodeTag;
}

/// A node of one kind, whose tree lives for `'a`. Its own numbers are read as those of the server's struct;
/// for what hangs below it there are methods.
#[repr(transparent)]
pub struct Typed<'a, T> {
    node: NonNull<T>,
    tree: PhantomData<&'a T>,
}

impl<T> Clone for Typed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Typed<'_, T> {}

impl<T> PartialEq for Typed<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T> fmt::Debug for Typed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl<T> Deref for Typed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: nobody changes the node while its tree is looked at, as whoever made it promised.
        unsafe { self.node.as_ref() }
    }
}

impl<'a, T> Typed<'a, T> {
    /// The node at an address; None where it is null.
    ///
    /// # Safety
    /// As `Node::new`, for a node of this kind.
    #[inline]
    pub const unsafe fn new(node: *mut T) -> Option<Self> {
        match NonNull::new(node) {
            Some(node) => Some(Self { node, tree: PhantomData }),
            None => None,
        }
    }

    /// As `new`, for what the server never leaves out; an ERROR where somebody has.
    ///
    /// # Safety
    /// As `new`; a part of a tree that lives for `'a`.
    #[inline]
    pub(super) unsafe fn required(node: *mut T) -> Self {
        // SAFETY: the caller's part of a tree.
        unsafe { Self::new(node) }.unwrap_or_else(|| missing())
    }

    /// For the server's functions.
    #[inline]
    pub const fn as_ptr(self) -> *mut T {
        self.node.as_ptr()
    }

    /// Its kind.
    #[inline]
    pub fn tag(self) -> NodeTag {
        self.node().tag()
    }

    /// The node as one of any kind.
    #[inline]
    pub const fn node(self) -> Node<'a> {
        Node { node: self.node.cast(), tree: PhantomData }
    }
}

/// Names the kinds of nodes that are found by their tag, and makes methods for what hangs below them: a node,
/// a node or nothing (`Option`), a list, or a string or none (`Text`).
macro_rules! kinds {
    ($($kind:ident $tag:ident { $($method:ident: $field:ident $part:ident $(<$of:ty>)?),* $(,)? })*) => { $(
        // SAFETY: the server gives this tag to these structs only.
        unsafe impl Tagged for pg_sys::$kind {
            const TAG: NodeTag = NodeTag::$tag;
        }

        impl<'a> Typed<'a, pg_sys::$kind> {
            $($crate::host::tree::node::part!($kind $method: $field $part $(<$of>)?);)*
        }
    )* };
}

/// One method of `kinds`.
macro_rules! part {
    ($kind:ident $method:ident: $field:ident Node) => {
        #[doc = concat!("`", stringify!($field), "` of ", stringify!($kind), ".")]
        #[inline]
        pub fn $method(self) -> Node<'a> {
            // SAFETY: a part of the tree.
            unsafe { Node::required(self.$field.cast()) }
        }
    };
    ($kind:ident $method:ident: $field:ident Option) => {
        #[doc = concat!("`", stringify!($field), "` of ", stringify!($kind), ", if there is one.")]
        #[inline]
        pub fn $method(self) -> Option<Node<'a>> {
            // SAFETY: a part of the tree.
            unsafe { Node::new(self.$field.cast()) }
        }
    };
    ($kind:ident $method:ident: $field:ident List $(<$of:ty>)?) => {
        #[doc = concat!("`", stringify!($field), "` of ", stringify!($kind), ".")]
        #[inline]
        pub fn $method(self) -> List<'a $(, $of)?> {
            // SAFETY: a list of the tree, of what the server's struct says.
            unsafe { List::new(self.$field) }
        }
    };
    ($kind:ident $method:ident: $field:ident Text) => {
        #[doc = concat!("`", stringify!($field), "` of ", stringify!($kind), ", if it is said.")]
        #[inline]
        pub fn $method(self) -> Option<&'a std::ffi::CStr> {
            // SAFETY: a string of the tree.
            (!self.$field.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(self.$field) })
        }
    };
    ($kind:ident $method:ident: $field:ident Typed <$of:ty>) => {
        #[doc = concat!("`", stringify!($field), "` of ", stringify!($kind), ".")]
        #[inline]
        pub fn $method(self) -> Typed<'a, $of> {
            // SAFETY: a part of the tree.
            unsafe { Typed::required(self.$field.cast()) }
        }
    };
}

pub(super) use {kinds, part};
