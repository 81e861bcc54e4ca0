//! Spans of calls, for traces. They are disabled without a collector (`traces.endpoint`).
//!
//! ```text
//! call (front end; its parent is the span that the header `traceparent` or a comment in the statement names)
//!   statement (session)
//!     admission · plan · authorise · execute · write · stream
//! ```
//!
//! SQL text is recorded only if the operator allows it ([`shows_statements`]); rows never are.

use std::sync::OnceLock;
use tracing::Span;
use tracing::field::Empty;

/// Target of all these spans, which are in no log.
pub const TRACES: &str = "traces";
/// The header in which callers name their span (<https://www.w3.org/TR/trace-context/>), and the field in which a call's span has
/// that name.
pub const TRACEPARENT: &str = "traceparent";

/// Process-wide settings of traces.
#[derive(Debug, Clone, Copy)]
pub struct TraceChoices {
    /// Whether spans may contain SQL text.
    pub statements: bool,
}

/// Process-wide, as the span collector is.
static CHOICES: OnceLock<TraceChoices> = OnceLock::new();

/// Enables traces. Only the first call has an effect.
pub fn set_trace_choices(choices: TraceChoices) {
    _ = CHOICES.set(choices);
}

/// Whether spans may contain SQL text.
pub fn shows_statements() -> bool {
    CHOICES.get().is_some_and(|choices| choices.statements)
}

/// The span of a call at a front end. The collector resolves `traceparent`.
pub fn call_span(protocol: &'static str, operation: &str, traceparent: Option<&str>) -> Span {
    tracing::info_span!(
        target: TRACES,
        "call",
        otel.name = operation,
        otel.kind = "server",
        network.protocol.name = protocol,
        traceparent,
    )
}

/// The caller's span from a comment at the end of the statement (<https://google.github.io/sqlcommenter/spec/>), for
/// protocols without headers. `None` without a collector.
pub fn commented_parent(sql: &str) -> Option<&str> {
    CHOICES.get().and_then(|_| parent_in(sql))
}

fn parent_in(sql: &str) -> Option<&str> {
    let text = sql.trim_end_matches(|letter: char| letter.is_whitespace() || letter == ';');
    let (_, comment) = text.strip_suffix("*/")?.rsplit_once("/*")?;
    let (before, value) = comment.split_once("traceparent='")?;
    let is_name = before.trim_end().is_empty() || before.trim_end().ends_with(',');
    value.split_once('\'').map(|(parent, _)| parent).filter(|_| is_name)
}

/// The span of a statement; its results are recorded later.
pub fn statement_span(user: &str, session: &dyn std::fmt::Display, query: &dyn std::fmt::Display) -> Span {
    tracing::info_span!(
        target: TRACES,
        "statement",
        db.system.name = "bowshot",
        user.name = user,
        session.id = %session,
        bowshot.query_id = %query,
        bowshot.query_tag = Empty,
        db.query.text = Empty,
        db.response.returned_rows = Empty,
        bowshot.bytes = Empty,
        bowshot.outcome = Empty,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

#[cfg(test)]
mod tests {
    use super::parent_in;

    #[test]
    fn parents_stand_in_the_last_comment() {
        for (sql, parent) in [
            ("SELECT 1 /*traceparent='00-a-b-01'*/", Some("00-a-b-01")),
            ("SELECT 1 /*db_driver='x',traceparent='00-a-b-01',tracestate='y'*/ ;\n", Some("00-a-b-01")),
            ("SELECT 1 /* traceparent='00-a-b-01' */", Some("00-a-b-01")),
            ("SELECT /*traceparent='00-a-b-01'*/ 1", None),
            ("SELECT 1 /*traceparent='00-a-b-01*/", None),
            ("SELECT 1 /*other_traceparent='00-a-b-01'*/", None),
            ("SELECT 1 */", None),
            ("", None),
        ] {
            assert_eq!(parent_in(sql), parent, "{sql}");
        }
    }
}
