//! The stripe that a scan opened last, kept: `groups` and `others` are asked for the same one column by
//! column.

use std::cell::RefCell;
use std::rc::Rc;

use vector::Result;

/// The stripe that was opened last, by its position.
pub(super) struct Last<T>(RefCell<Option<(usize, Rc<T>)>>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<T> Last<T> {
    /// That stripe, if it is the one at this position, or else the one that `open` gives.
    pub(super) fn or_open(&self, at: usize, open: impl FnOnce() -> Result<T>) -> Result<Rc<T>> {
        if let Some((_, open)) = self.0.borrow().as_ref().filter(|(last, _)| *last == at) {
            return Ok(Rc::clone(open));
        }
        let open = Rc::new(open()?);
        *self.0.borrow_mut() = Some((at, Rc::clone(&open)));
        Ok(open)
    }
}
