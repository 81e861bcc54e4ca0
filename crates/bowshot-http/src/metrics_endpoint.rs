//! `/metrics` in Prometheus text format: counters of the process, the state of the server, and process statistics of
//! the operating system.

use crate::Context;
use crate::process::Process;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bowshot_api::ServerStatus;
use std::fmt::Write as _;

type Gauge = (&'static str, &'static str, fn(&ServerStatus) -> u64);

/// Name, description and value of every gauge of the server.
const GAUGES: &[Gauge] = &[
    ("bowshot_sessions", "Open sessions.", |status| status.sessions as u64),
    ("bowshot_running_queries", "Queries that hold a slot.", |status| status.running_queries as u64),
    ("bowshot_queued_queries", "Queries that wait for a slot.", |status| status.queued_queries as u64),
    ("bowshot_open_results", "Results that run or wait to be read.", |status| status.open_results as u64),
    ("bowshot_result_buffer_bytes", "Bytes of results in memory.", |status| status.result_buffer_bytes),
    ("bowshot_result_spill_bytes", "Bytes of results on disk.", |status| status.result_spill_bytes),
    ("bowshot_query_memory_bytes", "Bytes that running queries have reserved.", |status| {
        status.query_memory_bytes
    }),
    ("bowshot_prepared_statements", "Open prepared statements.", |status| status.prepared_statements as u64),
    ("bowshot_open_transactions", "Open transactions.", |status| status.open_transactions as u64),
    ("bowshot_table_bytes", "Bytes of the rows in tables that are kept in memory.", |status| {
        status.table_bytes
    }),
    ("bowshot_planning_statements", "Statements that are being planned.", |status| status.planning as u64),
    ("bowshot_abandoned_plannings", "Abandoned statements that are still being planned.", |status| {
        status.burning as u64
    }),
    ("bowshot_memory_bytes", "Bytes of memory that the process has taken.", |status| status.memory_bytes),
];

pub(crate) async fn metrics(State(context): State<Context>) -> Response {
    let mut text = (context.choices.render_metrics)();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let status = context.server.status();
    for (name, description, value) in GAUGES {
        sample(&mut text, ("gauge", name, description), value(&status));
    }
    let about = context.server.about();
    let version = about.version.replace(['"', '\\', '\n'], "_");
    _ = write!(
        text,
        "# HELP bowshot_build_info Version of the server.\n# TYPE bowshot_build_info gauge\n\
         bowshot_build_info{{version=\"{version}\"}} 1\n"
    );
    process(&mut text, Process::now());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

fn process(text: &mut String, process: Process) {
    if let Some(value) = process.open_fds {
        sample(text, ("gauge", "process_open_fds", "Open file descriptors."), value);
    }
    if let Some(value) = process.resident_bytes {
        sample(text, ("gauge", "process_resident_memory_bytes", "Resident memory in bytes."), value);
    }
    if let Some(value) = process.cpu_seconds {
        sample(text, ("counter", "process_cpu_seconds_total", "CPU time used, in seconds."), value);
    }
}

fn sample(text: &mut String, (kind, name, description): (&str, &str, &str), value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    _ = write!(text, "# HELP {name} {description}\n# TYPE {name} {kind}\n{name} {value}\n");
}
