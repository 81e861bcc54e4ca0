//! From spans of `tracing` to those of OTLP: a span that has ended goes into the queue, on whatever thread it ends.
//!
//! Names of fields that say more than an attribute: `otel.name` is the span's name, `otel.kind` `server` its side of a call,
//! `otel.status_code` `ERROR` that it has failed, and [`TRACEPARENT`] the span of a caller.

use super::context::Context;
use super::delivery::Queue;
use super::messages::{KeyValue, Span, SpanKind, Status, StatusCode, Value};
use bowshot_api::TRACEPARENT;
use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as Tree;
use tracing_subscriber::registry::LookupSpan;

/// Of `Span.flags`: the trace is sent, it is known whether the parent is of another process, and it is.
const IS_SAMPLED: u32 = 0x01;
const IS_KNOWN: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

#[derive(Debug)]
pub(super) struct Spans {
    queue: Queue,
    /// Which share of the traces that no caller has decided about.
    ratio: f64,
}

/// What a span has with it while it runs.
#[derive(Debug)]
struct Running {
    context: Context,
    clock: Clock,
    /// What will be sent, unless nobody wants it.
    work: Option<Box<Work>>,
}

/// The clock of a trace: the time of day when its first span here began, and what has passed since. The spans below take it over,
/// so that their times compare with one another even if the time of day is set meanwhile.
#[derive(Debug, Clone, Copy)]
struct Clock {
    time_of_day: Duration,
    started: Instant,
}

#[derive(Debug)]
struct Work {
    span: Span,
    clock: Clock,
    begun: Instant,
    /// When somebody worked on it last.
    left: Instant,
}

impl Spans {
    pub(super) fn new(queue: Queue, ratio: f64) -> Self {
        Self { queue, ratio }
    }

    fn begin(&self, name: &'static str, above: Option<(Context, Clock)>, fields: Fields) -> Option<Running> {
        let parent = fields.caller.or(above.map(|(context, _)| context));
        let context = match parent {
            Some(parent) => parent.child(),
            None => Context::root(self.ratio),
        }?;
        let clock = above.map_or_else(Clock::start, |(_, clock)| clock);
        if !context.is_sampled {
            return Some(Running { context, clock, work: None });
        }
        let begun = Instant::now();
        let remote = if fields.caller.is_some() { IS_REMOTE } else { 0 };
        let mut span = Span {
            trace_id: context.trace.to_vec(),
            span_id: context.span.to_vec(),
            parent_span_id: parent.map(|parent| parent.span.to_vec()).unwrap_or_default(),
            flags: IS_SAMPLED | IS_KNOWN | remote,
            name: name.to_owned(),
            kind: SpanKind::Internal as i32,
            start_time_unix_nano: clock.nanoseconds_at(begun),
            ..Span::default()
        };
        fields.put_into(&mut span);
        Some(Running { context, clock, work: Some(Box::new(Work { span, clock, begun, left: begun })) })
    }
}

impl<S> Layer<S> for Spans
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, tree: Tree<'_, S>) {
        let Some(span) = tree.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let above = span.parent().and_then(|parent| {
            parent.extensions().get::<Running>().map(|running| (running.context, running.clock))
        });
        if let Some(running) = self.begin(span.name(), above, fields) {
            span.extensions_mut().insert(running);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, tree: Tree<'_, S>) {
        let Some(span) = tree.span(id) else { return };
        if let Some(Running { work: Some(work), .. }) = span.extensions_mut().get_mut() {
            let mut fields = Fields::default();
            values.record(&mut fields);
            fields.put_into(&mut work.span);
        }
    }

    fn on_exit(&self, id: &Id, tree: Tree<'_, S>) {
        let Some(span) = tree.span(id) else { return };
        if let Some(Running { work: Some(work), .. }) = span.extensions_mut().get_mut() {
            work.left = Instant::now();
        }
    }

    fn on_close(&self, id: Id, tree: Tree<'_, S>) {
        let running = tree.span(&id).and_then(|span| span.extensions_mut().remove::<Running>());
        if let Some(Running { work: Some(work), .. }) = running {
            self.queue.put(work.ended());
        }
    }
}

impl Work {
    fn ended(self: Box<Self>) -> Span {
        let Self { mut span, clock, begun, left } = *self;
        // A call ends with its answer, and is closed with the last statement below it, whose rows are on their way for longer.
        let is_answered = span.kind == SpanKind::Server as i32 && left > begun;
        span.end_time_unix_nano = clock.nanoseconds_at(if is_answered { left } else { Instant::now() });
        span
    }
}

impl Clock {
    fn start() -> Self {
        let time_of_day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { time_of_day, started: Instant::now() }
    }

    /// Since 1970, as OTLP has times.
    fn nanoseconds_at(self, instant: Instant) -> u64 {
        let time = self.time_of_day + instant.duration_since(self.started);
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// What the fields of a span say.
#[derive(Debug, Default)]
struct Fields {
    caller: Option<Context>,
    name: Option<String>,
    is_call: bool,
    has_failed: bool,
    attributes: Vec<KeyValue>,
}

impl Fields {
    fn put_into(self, span: &mut Span) {
        if let Some(name) = self.name {
            span.name = name;
        }
        if self.is_call {
            span.kind = SpanKind::Server as i32;
        }
        if self.has_failed {
            span.status = Some(Status { code: StatusCode::Error as i32, message: String::new() });
        }
        for attribute in self.attributes {
            // What is said last counts.
            match span.attributes.iter_mut().find(|known| known.key == attribute.key) {
                Some(known) => *known = attribute,
                None => span.attributes.push(attribute),
            }
        }
    }

    fn put(&mut self, field: &Field, value: Value) {
        self.attributes.push(KeyValue::new(field.name(), value));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            TRACEPARENT => self.caller = Context::parse(value),
            "otel.name" => self.name = Some(value.to_owned()),
            "otel.kind" => self.is_call = value == "server",
            "otel.status_code" => self.has_failed = value == "ERROR",
            _ => self.put(field, Value::String(value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // OTLP has no other whole numbers.
        self.put(field, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::Bool(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::Double(value));
    }
}

#[cfg(test)]
mod tests;
