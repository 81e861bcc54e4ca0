//! Spans of the road of a call, for traces. Without a collector (`traces.endpoint`) nobody wants them, and each costs one look
//! at whether somebody does.
//!
//! ```text
//! call (front end; its parent is the caller's, by the header `traceparent`)
//!   statement (session)
//!     admission · plan · authorise · execute · write · stream
//! ```
//!
//! What a user has written is in none of them unless the operator wants it ([`shows_statements`]), and rows never are.

use std::sync::OnceLock;
use tracing::Span;
use tracing::field::Empty;

/// Target of all these spans, which are in no log.
pub const TRACES: &str = "traces";
/// The header in which callers name their span (<https://www.w3.org/TR/trace-context/>).
pub const TRACEPARENT: &str = "traceparent";

/// What the program says of traces, once, before it serves.
#[derive(Debug, Clone, Copy)]
pub struct TraceChoices {
    /// Makes the span of a caller, as `traceparent` names it, the parent of one that has just begun. What is no such name
    /// changes nothing.
    pub adopt: fn(&Span, &str),
    /// Whether texts of statements may be in spans.
    pub statements: bool,
}

/// Belongs to the process, as what collects the spans does.
static CHOICES: OnceLock<TraceChoices> = OnceLock::new();

/// Says how traces are made. What is said a second time does not count.
pub fn set_trace_choices(choices: TraceChoices) {
    _ = CHOICES.set(choices);
}

/// Whether texts of statements may be in spans.
pub fn shows_statements() -> bool {
    CHOICES.get().is_some_and(|choices| choices.statements)
}

/// The span of a call at a front end.
pub fn call_span(protocol: &'static str, operation: &str, traceparent: Option<&str>) -> Span {
    let span = tracing::info_span!(
        target: TRACES,
        "call",
        otel.name = operation,
        otel.kind = "server",
        network.protocol.name = protocol,
    );
    if let (false, Some(parent), Some(choices)) = (span.is_disabled(), traceparent, CHOICES.get()) {
        (choices.adopt)(&span, parent);
    }
    span
}

/// The span of a piece of work of a session; what it has in the end is recorded later.
pub fn statement_span(user: &str, session: &dyn std::fmt::Display, query: &dyn std::fmt::Display) -> Span {
    tracing::info_span!(
        target: TRACES,
        "statement",
        db.system.name = "bowshot",
        user.name = user,
        session.id = %session,
        bowshot.query_id = %query,
        db.query.text = Empty,
        db.response.returned_rows = Empty,
        bowshot.bytes = Empty,
        bowshot.outcome = Empty,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}
