//! Mutated requests against the real program, over hand-written HTTP/2, so that no library repairs or hides anything. [`run`] drives workers
//! over the [`case`]s; [`judge`] checks answers.

pub mod call;
pub mod case;
pub mod judge;
pub mod message;
pub mod mutate;
pub mod random;
pub mod raw;
pub mod run;
pub mod sql;
