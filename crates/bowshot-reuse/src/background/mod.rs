//! Work that nobody waits for, beside queries that somebody does: threads of the lowest priority ([`threads`]), waits while
//! queries run ([`throttle`], which [`rule`] puts into plans), and what is done when such a thread gets no processor
//! ([`handoff`]).

mod handoff;
mod rule;
mod threads;
mod throttle;

pub(crate) use handoff::Handoff;
pub(crate) use rule::ThrottleRule;
pub(crate) use threads::{background, beside};
pub(crate) use throttle::Throttle;
