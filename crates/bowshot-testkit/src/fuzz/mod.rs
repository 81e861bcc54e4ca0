//! Mutated requests against the real program: HTTP/2 by hand, so that nothing between us and the server repairs or
//! hides anything.
//!
//! [`random`] is the seeded source of all choices; [`sql`], [`message`] and [`mutate`] make requests; [`call`] sends
//! one and reads the answer; [`judge`] says whether the answer may be; [`case`] has the kinds of cases, some of them
//! several calls long; [`run`] drives workers and counts.

pub mod call;
pub mod case;
pub mod judge;
pub mod message;
pub mod mutate;
pub mod random;
pub mod raw;
pub mod run;
pub mod sql;
