//! Collects and renders the metrics that all crates record through the `metrics` facade.

use anyhow::{Context, Result};
use bowshot_http::RenderMetrics;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use std::sync::Arc;

/// Upper bounds of the buckets of durations in seconds, from less than a round trip to a long export.
const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0];

/// Lines of the log that could not be written to its file (`logging/log_file.rs`).
pub(crate) const LOG_LINES_DROPPED: &str = "bowshot_log_lines_dropped_total";

/// The collector belongs to the process, like the facade, and is shared by consecutive servers.
static COLLECTOR: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Starts collecting once, and returns the renderer of Prometheus text.
pub(crate) fn start() -> Result<RenderMetrics> {
    let mut collector = COLLECTOR.lock();
    let handle = match &*collector {
        Some(handle) => handle.clone(),
        None => {
            let handle = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
                .and_then(PrometheusBuilder::install_recorder)
                .context("cannot collect metrics")?;
            // Known before the first one, so that its increase can be seen.
            metrics::describe_counter!(LOG_LINES_DROPPED, "Lines that could not be written to the log file.");
            metrics::counter!(LOG_LINES_DROPPED).increment(0);
            collector.insert(handle).clone()
        }
    };
    Ok(Arc::new(move || {
        handle.run_upkeep();
        handle.render()
    }))
}
