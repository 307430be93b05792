//! The user whose rights count.
//!
//! The server checks when a query begins whether its functions may be called. Another user may fetch from a
//! cursor afterwards (SET ROLE, or a SECURITY DEFINER function that opened it). So functions that are looked
//! up later are looked up as the user who began the query. They are called as the user who fetches, as the
//! server does it. Maintenance runs as the table's owner.

use pgrx::pg_sys::{self, Oid};

/// A user and the restrictions put on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    user: Oid,
    context: i32,
}

impl Identity {
    /// The current user and restrictions.
    pub fn current() -> Self {
        let (mut user, mut context) = (Oid::INVALID, 0);
        // SAFETY: two places to write to.
        unsafe { pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context) };
        Self { user, context }
    }

    /// A table's owner, restricted as the server does it for index expressions and maintenance: the owner's
    /// functions can do nothing that outlasts them.
    pub fn of_owner(owner: Oid) -> Self {
        let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        Self { user: owner, context: Self::current().context | restricted }
    }

    /// Makes this the current user, as an abort does, too.
    pub fn restore(self) {
        // SAFETY: it was the current one.
        unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) };
    }

    /// Does something as this user. The current user is put back afterwards, also by an ERROR that unwinds.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        struct Before {
            identity: Identity,
            during: Identity,
        }
        impl Drop for Before {
            fn drop(&mut self) {
                // If the work has made another user the current one, that stays so.
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
