//! Spans of the road of a call, for traces. Without a collector (`traces.endpoint`) nobody wants them, and each costs one look
//! at whether somebody does.
//!
//! ```text
//! call (front end; its parent is the caller's, by the header `traceparent` or a comment in the statement)
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
/// The header in which callers name their span (<https://www.w3.org/TR/trace-context/>), and the field in which a call's span has
/// that name.
pub const TRACEPARENT: &str = "traceparent";

/// What the program says of traces, once, before it serves.
#[derive(Debug, Clone, Copy)]
pub struct TraceChoices {
    /// Whether texts of statements may be in spans.
    pub statements: bool,
}

/// Belongs to the process, as what collects the spans does.
static CHOICES: OnceLock<TraceChoices> = OnceLock::new();

/// Says that there are traces, and how they are made. What is said a second time does not count.
pub fn set_trace_choices(choices: TraceChoices) {
    _ = CHOICES.set(choices);
}

/// Whether texts of statements may be in spans.
pub fn shows_statements() -> bool {
    CHOICES.get().is_some_and(|choices| choices.statements)
}

/// The span of a call at a front end. Whoever collects it finds out whether `traceparent` is the name of a span.
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

/// The span of the caller that a statement names, where the protocol has no room for it: in a comment at its end, as SQLCommenter
/// has it (<https://google.github.io/sqlcommenter/spec/>). None without a collector.
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
