//! Spans as the code makes them, and what is sent of them.

use super::*;
use crate::traces::delivery::Queue;
use bowshot_api::{TRACES, call_span, statement_span};
use std::collections::HashMap;
use tokio::sync::mpsc;
use tracing::Instrument;
use tracing::info_span;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;

fn sent(work: impl FnOnce()) -> HashMap<String, Span> {
    let (queue, mut spans) = Queue::new();
    let layer = Spans::new(queue, 1.0).with_filter(Targets::new().with_target(TRACES, LevelFilter::INFO));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
    taken(&mut spans)
}

fn taken(spans: &mut mpsc::Receiver<Span>) -> HashMap<String, Span> {
    std::iter::from_fn(|| spans.try_recv().ok()).map(|span| (span.name.clone(), span)).collect()
}

fn value<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[test]
fn what_is_recorded_later_counts() {
    let spans = sent(|| {
        let statement = statement_span("ada", &1, &2);
        statement.record("bowshot.bytes", 7_i64);
        statement.record("bowshot.bytes", 8_i64);
        statement.record("bowshot.outcome", "failed");
        statement.record("error.type", tracing::field::debug(Some(1)));
        statement.record("otel.status_code", "ERROR");
    });
    let statement = &spans["statement"];
    assert_eq!(value(statement, "bowshot.bytes"), Some(&Value::Int(8)));
    assert_eq!(value(statement, "bowshot.outcome"), Some(&text("failed")));
    assert_eq!(value(statement, "error.type"), Some(&text("Some(1)")));
    assert_eq!(statement.status.as_ref().map(|status| status.code), Some(StatusCode::Error as i32));
    assert_eq!(value(statement, "db.query.text"), None);
    assert!(statement.parent_span_id.is_empty(), "nobody is above it");
    assert!(statement.start_time_unix_nano <= statement.end_time_unix_nano);
}

#[test]
fn values_keep_their_kinds() {
    let spans = sent(|| {
        drop(info_span!(target: TRACES, "kinds", a = true, b = 1.5, c = 3_u64, d = u64::MAX, e = -1));
    });
    let of = |key| value(&spans["kinds"], key).cloned();
    assert_eq!((of("a"), of("b")), (Some(Value::Bool(true)), Some(Value::Double(1.5))));
    assert_eq!(
        (of("c"), of("d"), of("e")),
        (Some(Value::Int(3)), Some(Value::Int(i64::MAX)), Some(Value::Int(-1)))
    );
}

#[tokio::test]
async fn a_call_ends_with_its_answer_and_a_statement_with_its_last_row() {
    let (queue, mut spans) = Queue::new();
    let layer = Spans::new(queue, 1.0);
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let answer = async { statement_span("ada", &1, &2) };
    let statement = answer.instrument(call_span("http", "/v1/sql", None)).await;
    assert!(taken(&mut spans).is_empty(), "the call has a statement below it");
    let pause = std::time::Duration::from_millis(50);
    std::thread::sleep(pause);
    drop(statement);
    let spans = taken(&mut spans);
    let ended = |name: &str| spans[name].end_time_unix_nano;
    assert!(ended("statement") - ended("/v1/sql") >= pause.as_nanos() as u64);
    assert!(spans["statement"].start_time_unix_nano <= ended("/v1/sql"), "it begins within its call");
}
