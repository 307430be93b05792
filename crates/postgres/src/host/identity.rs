//! The user whose rights count.
//!
//! The server asks whether a function may be called when a query begins; a cursor may be fetched from by
//! another user afterwards (SET ROLE, a SECURITY DEFINER function that opened it). What is made after the
//! beginning is therefore made as the user who began, and called as the one who fetches, as the server does
//! it. Maintenance runs as the owner.

use pgrx::pg_sys::{self, Oid};

/// A user and the restrictions put on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    user: Oid,
    context: i32,
}

impl Identity {
    /// The current one.
    pub fn current() -> Self {
        let (mut user, mut context) = (Oid::INVALID, 0);
        // SAFETY: two places to write to.
        unsafe { pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context) };
        Self { user, context }
    }

    /// A table's owner, where functions of theirs can do nothing that outlasts them, as the server runs index
    /// expressions and maintenance.
    pub fn of_owner(owner: Oid) -> Self {
        let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        Self { user: owner, context: Self::current().context | restricted }
    }

    /// Makes it the current one, as an abort does too.
    pub fn restore(self) {
        // SAFETY: it was the current one.
        unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) };
    }

    /// Does something as this user. An ERROR that unwinds puts the current one back, too.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        struct Before {
            identity: Identity,
            during: Identity,
        }
        impl Drop for Before {
            fn drop(&mut self) {
                // Who has been made another one meanwhile stays it.
                if Identity::current() == self.during {
                    self.identity.restore();
                }
            }
        }
        let _before = Before { identity: Self::current(), during: self };
        self.restore();
        work()
    }
}
