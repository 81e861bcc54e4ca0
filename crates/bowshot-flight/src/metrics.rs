//! The metrics of this front end.
//!
//! | name | kind | labels | meaning |
//! |---|---|---|---|
//! | `bowshot_flight_connections` | gauge | | open client connections |
//! | `bowshot_flight_requests_total` | counter | `method`, `code` | finished calls, by gRPC method and status code |
//! | `bowshot_flight_request_seconds` | histogram | `method` | time from a call's head to the last byte of its answer |
//! | `bowshot_flight_open_streams` | gauge | | answers to DoGet and DoExchange that are being sent |
//! | `bowshot_flight_sent_bytes_total` | counter | | bytes of those answers handed to the sockets |
//! | `bowshot_flight_sent_rows_total` | counter | | rows of those answers, and of those to clients on this machine |
//! | `bowshot_same_host_connections` | gauge | | open connections of clients on this machine over the Unix socket |
//! | `bowshot_same_host_held_bytes` | gauge | | shared memory that these clients have not given back, and that waits for other rows |
//! | `bowshot_same_host_bytes_total` | counter | `way` | bytes of rows for these clients, in shared `memory` or through the `socket` |

use metrics::{Counter, Gauge, counter, gauge, histogram};
use std::time::Duration;
use tonic::Code;

/// Registers the metrics that exist before the first call.
pub(crate) fn register() {
    connections().set(0.0);
    open_streams().set(0.0);
    sent_bytes().increment(0);
    sent_rows().increment(0);
}

pub(crate) fn connections() -> Gauge {
    gauge!("bowshot_flight_connections")
}

pub(crate) fn open_streams() -> Gauge {
    gauge!("bowshot_flight_open_streams")
}

pub(crate) fn sent_bytes() -> Counter {
    counter!("bowshot_flight_sent_bytes_total")
}

pub(crate) fn sent_rows() -> Counter {
    counter!("bowshot_flight_sent_rows_total")
}

#[cfg(target_os = "linux")]
pub(crate) fn local_connections() -> Gauge {
    gauge!("bowshot_same_host_connections")
}

#[cfg(target_os = "linux")]
pub(crate) fn shared_bytes() -> Gauge {
    gauge!("bowshot_same_host_held_bytes")
}

#[cfg(target_os = "linux")]
pub(crate) fn handed_over(way: &'static str) -> Counter {
    counter!("bowshot_same_host_bytes_total", "way" => way)
}

/// Counts in a gauge until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    pub(crate) fn new(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

pub(crate) fn finished(method: &'static str, code: Code, time: Duration) {
    counter!("bowshot_flight_requests_total", "method" => method, "code" => code_name(code)).increment(1);
    histogram!("bowshot_flight_request_seconds", "method" => method).record(time.as_secs_f64());
}

/// The code's name as the gRPC specification writes it.
pub(crate) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
