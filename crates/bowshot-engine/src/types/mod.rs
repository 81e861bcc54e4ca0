//! SQL's types: what their names mean, and what casts between them do.
//!
//! ```text
//! a name in the text ─► planner ─► an Arrow type, and what is declared beyond it (declared)
//! an Arrow type ─► names ─► its name in SQL
//! a plan ─► casts: what PostgreSQL rounds, cuts off and checks, and moved: instants on the session's clock ─► temporal:
//!           dates and times of different types meet in microseconds ─► DataFusion's own coercion ─► texts: shown and read
//! ```
//!
//! Time stamps have microseconds, so that the years 0001 to 9999 have a place. One with a time zone is an instant: it is
//! kept in UTC, whatever zone it was written in and is shown in.

pub(crate) mod casts;
mod custom;
pub(crate) mod declared;
pub(crate) mod enums;
pub(crate) mod functions;
mod moved;
pub(crate) mod names;
mod nested_texts;
mod now;
mod numerics;
mod planner;
mod read;
mod shown;
pub(crate) mod stored;
mod temporal;
mod texts;
mod uuids;
pub(crate) mod zone;

pub(crate) use nested_texts::{OIDS, VECTOR};
pub(crate) use planner::Types;
pub(crate) use read::reads_strictly;
pub(crate) use uuids::{are_lists_of_uuids, are_uuids, is_uuid, with_uuids};

use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// What casts mean, before anything else looks at them.
pub(crate) fn casts() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(casts::Casts)
}

/// Where times meet, before DataFusion settles their types.
pub(crate) fn times() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(temporal::Temporal)
}

/// How times are written as text and read from it, once DataFusion has settled where that happens.
pub(crate) fn texts() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(texts::Texts)
}

/// The functions whose results have other types than DataFusion gives them, and those that casts and operators become.
pub(crate) fn registered() -> Vec<datafusion::logical_expr::ScalarUDF> {
    let mut functions =
        vec![now::Now::default().into(), functions::rounded(), functions::cast_to(), shown::function()];
    functions.extend([false, true].map(nested_texts::function));
    functions.extend(read::functions());
    functions.extend(moved::functions());
    functions
}
