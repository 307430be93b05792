//! Interrupt points: places at which long work on one batch checks whether the query is to end.
//!
//! Sorts, merges, spilled files, growing tables and frames call `check`, every `OFTEN` steps of a loop or so.
//! Each thread has a question that `check` asks. `Execution::next`, and a worker that begins a task, set it
//! for the time that they run (`ask`), so operators need not hand it down. Both ask the host's flag
//! (`Host::interrupted`). A worker also asks whether its job was told to stop. The flag says that the query
//! is to end, but not why. So the error is `Cancelled`, and the host finds its own words. Invariant: without
//! a question there is no error.

use std::cell::RefCell;
use std::rc::Rc;

use crate::{Error, Result};

/// Steps of a quick loop between two looks: some hundred microseconds.
pub const OFTEN: usize = 1 << 16;

type Question = Rc<dyn Fn() -> bool>;

thread_local! {
    static QUESTION: RefCell<Option<Question>> = const { RefCell::new(None) };
}

/// Keeps a question set for this thread. When it is dropped, the question before it is set again.
pub struct Asking(Option<Question>);

/// Sets what this thread asks.
pub fn ask(question: impl Fn() -> bool + 'static) -> Asking {
    Asking(QUESTION.replace(Some(Rc::new(question))))
}

impl Drop for Asking {
    fn drop(&mut self) {
        QUESTION.replace(self.0.take());
    }
}

/// An error if the query is to end.
///
/// # Errors
/// `Cancelled`.
#[inline]
pub fn check() -> Result<()> {
    match QUESTION.with_borrow(|question| question.as_ref().is_some_and(|stopped| stopped())) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    }
}

/// The same once in `OFTEN` steps of a loop.
///
/// # Errors
/// As `check`.
#[inline]
pub fn check_at(step: usize) -> Result<()> {
    if step.is_multiple_of(OFTEN) { check() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_nest_and_end() {
        assert_eq!(check(), Ok(()));
        {
            let _outer = ask(|| true);
            {
                let _inner = ask(|| false);
                assert_eq!(check(), Ok(()));
            }
            assert_eq!(
                (check(), check_at(1), check_at(OFTEN)),
                (Err(Error::Cancelled), Ok(()), Err(Error::Cancelled))
            );
        }
        assert_eq!(check(), Ok(()));
    }
}
