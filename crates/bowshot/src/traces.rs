//! Traces: the spans of `bowshot_api::TRACES` to a collector, by OTLP over gRPC.
//!
//! ```text
//! span ends (any thread) ─▶ queue, bounded; what does not fit is dropped and counted ─▶ one task ─▶ collector
//!       layer.rs                        delivery.rs                                                client.rs
//! ```
//!
//! No statement waits for a collector, whether it is slow, gone or was never there. Why there is no library for all this:
//! `docs/contributing/decisions/0019-traces-without-a-library.md`.

mod client;
mod context;
mod delivery;
mod layer;
mod messages;

pub(crate) use delivery::Sending;

use crate::config::TraceSettings;
use crate::usage::Usage;
use anyhow::{Context, Result};
use bowshot_api::{TRACES, TraceChoices, set_trace_choices};
use client::{Client, metadata};
use delivery::Queue;
use layer::Spans;
use messages::Span;
use tokio::sync::mpsc;
use tonic::metadata::MetadataMap;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// Spans that end go into a queue; nobody takes them yet.
#[derive(Debug)]
pub(crate) struct Collected {
    queue: Queue,
    spans: mpsc::Receiver<Span>,
    settings: TraceSettings,
    headers: MetadataMap,
}

impl Collected {
    /// Begins to collect spans, if the settings ask for it. To be called once.
    pub(crate) fn begin(settings: &TraceSettings) -> Result<Option<Self>, Usage> {
        if !settings.are_on() {
            return Ok(None);
        }
        let headers = metadata(settings.headers()?)?;
        let (queue, spans) = Queue::new();
        set_trace_choices(TraceChoices { statements: settings.statements });
        Ok(Some(Self { queue, spans, settings: settings.clone(), headers }))
    }

    /// What makes traces of spans, to be put beside the log.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        let spans = Spans::new(self.queue.clone(), self.settings.sample_ratio);
        spans.with_filter(Targets::new().with_target(TRACES, LevelFilter::INFO))
    }

    /// Sends them to the collector from now on.
    ///
    /// # Errors
    /// When there can be no connection to its address at all; whether it answers does not matter.
    pub(crate) fn send(self) -> Result<Sending> {
        let client = Client::new(&self.settings, self.headers).context("traces cannot be sent")?;
        Ok(Sending::begin(self.spans, client, self.settings.timeout))
    }
}
