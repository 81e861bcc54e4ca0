//! Background work beside queries: threads of the lowest priority ([`threads`]), pauses while queries run ([`throttle`], inserted into plans
//! by [`rule`]), and the handover of work to ordinary threads ([`handoff`]).

mod handoff;
mod rule;
mod threads;
mod throttle;

pub(crate) use handoff::Handoff;
pub(crate) use rule::ThrottleRule;
pub(crate) use threads::{background, beside};
pub(crate) use throttle::Throttle;
