//! Traces: the spans of `bowshot_api::TRACES` to a collector, by OTLP over gRPC.
//!
//! ```text
//! span ends (any thread) ─▶ queue, bounded; what does not fit is dropped and counted ─▶ one task ─▶ collector
//! ```
//!
//! No statement waits for a collector, whether it is slow, gone or was never there.

use crate::config::TraceSettings;
use crate::usage::Usage;
use anyhow::{Context as _, Result};
use bowshot_api::{TRACES, TraceChoices, set_trace_choices};
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::tonic_types::metadata::MetadataMap;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SdkTracer, SdkTracerProvider, Span as SdkSpan, SpanData, SpanExporter as _, SpanProcessor,
};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::Span;
use tracing::level_filters::LevelFilter;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// Spans that wait for the collector.
const QUEUE: usize = 8_192;
/// Spans of one delivery.
const BATCH: usize = 512;
/// How long a delivery waits for more spans.
const PAUSE: Duration = Duration::from_millis(500);
/// What became of spans.
const SPANS: &str = "bowshot_trace_spans_total";

/// Spans that end go here; nobody takes them yet.
#[derive(Debug)]
pub(crate) struct Collected {
    tracer: SdkTracer,
    resource: Resource,
    spans: mpsc::Receiver<SpanData>,
    settings: TraceSettings,
    headers: MetadataMap,
}

impl Collected {
    /// Begins to collect spans, if the settings ask for it. To be called once.
    ///
    /// # Errors
    /// [`Usage`] for headers that cannot be read.
    pub(crate) fn begin(settings: &TraceSettings) -> Result<Option<Self>, Usage> {
        if !settings.are_on() {
            return Ok(None);
        }
        let headers = metadata(settings.headers()?)?;
        let (sender, spans) = mpsc::channel(QUEUE);
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", uuid::Uuid::new_v4().to_string()))
            .build();
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample_ratio)));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Queue(sender))
            .with_sampler(sampler)
            .with_resource(resource.clone())
            .build();
        set_trace_choices(TraceChoices { adopt, statements: settings.statements });
        let tracer = provider.tracer("bowshot");
        Ok(Some(Self { tracer, resource, spans, settings: settings.clone(), headers }))
    }

    /// What makes traces of spans, to be put beside the log.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(TRACES, LevelFilter::INFO))
    }

    /// Sends them to the collector from now on.
    ///
    /// # Errors
    /// When there can be no connection to its address at all; whether it answers does not matter.
    pub(crate) fn send(self) -> Result<Sending> {
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(self.settings.endpoint.clone())
            .with_timeout(self.settings.timeout)
            .with_metadata(self.headers)
            .build()
            .context("traces cannot be sent")?;
        exporter.set_resource(&self.resource);
        let (stop, stopped) = oneshot::channel();
        let delivery = Delivery { exporter, timeout: self.settings.timeout, is_down: false };
        Ok(Sending { stop, task: tokio::spawn(send_all(self.spans, delivery, stopped)), patience: self.settings.timeout })
    }
}

/// Spans are sent as long as this is there.
#[derive(Debug)]
pub(crate) struct Sending {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    patience: Duration,
}

impl Sending {
    /// Sends what is left, within the time of one delivery.
    pub(crate) async fn finish(self) {
        _ = self.stop.send(());
        let abort = self.task.abort_handle();
        if tokio::time::timeout(self.patience, self.task).await.is_err() {
            abort.abort();
        }
    }
}

/// Takes spans that have ended, on whatever thread.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut SdkSpan, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.0.try_send(span).is_err() {
            count("dropped", 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

async fn send_all(
    mut spans: mpsc::Receiver<SpanData>,
    mut delivery: Delivery,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_last = false;
    while !is_last {
        tokio::select! {
            taken = spans.recv_many(&mut batch, BATCH) => is_last = taken == 0,
            _ = &mut stopped => is_last = true,
        }
        if !is_last && batch.len() < BATCH {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = &mut stopped => is_last = true,
            }
        }
        loop {
            while batch.len() < BATCH
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
            delivery.send(&mut batch).await;
            if !is_last || spans.is_empty() {
                break;
            }
        }
    }
}

struct Delivery {
    exporter: SpanExporter,
    timeout: Duration,
    /// It is told once that the collector does not answer, and once that it does again.
    is_down: bool,
}

impl Delivery {
    async fn send(&mut self, batch: &mut Vec<SpanData>) {
        if batch.is_empty() {
            return;
        }
        let spans = std::mem::replace(batch, Vec::with_capacity(BATCH));
        let count_of = spans.len() as u64;
        let problem = match tokio::time::timeout(self.timeout, self.exporter.export(spans)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        match problem {
            None => {
                count("sent", count_of);
                if std::mem::take(&mut self.is_down) {
                    tracing::info!("the collector takes traces again");
                }
            }
            Some(problem) => {
                count("failed", count_of);
                if !std::mem::replace(&mut self.is_down, true) {
                    tracing::warn!(%problem, "the collector does not take traces: they are dropped, and nothing else changes");
                }
            }
        }
    }
}

fn count(outcome: &'static str, spans: u64) {
    metrics::counter!(SPANS, "outcome" => outcome).increment(spans);
}

/// Headers as the exporter takes them.
fn metadata(headers: Vec<(String, String)>) -> Result<MetadataMap, Usage> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let refuse = || Usage::new(format!("the header `{name}` of `traces.headers_file` cannot be sent"));
        let mut value = HeaderValue::from_str(&value).map_err(|_| refuse())?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?, value);
    }
    Ok(MetadataMap::from_headers(map))
}

/// Makes the span of a caller the parent of one that has just begun.
fn adopt(span: &Span, traceparent: &str) {
    if let Some(parent) = parent(traceparent) {
        // It has just begun, so that it can still have another parent.
        _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

/// `00-TRACE-SPAN-FLAGS`, as <https://www.w3.org/TR/trace-context/> has it; later versions may say more behind that.
fn parent(text: &str) -> Option<SpanContext> {
    let mut parts = text.trim().split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !is_hex(version, 2) || version == "ff" || version == "00" && parts.next().is_some() {
        return None;
    }
    if !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, flags, true, TraceState::default());
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_named_as_the_standard_says() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let found = parent(good).expect("a name");
        assert_eq!(found.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(found.is_remote() && found.is_sampled());
        assert!(!parent(&good.replace("-01", "-00")).expect("a name").is_sampled());
        assert!(parent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert!(parent(bad).is_none(), "{bad}");
        }
    }
}
