//! `sleep` of MySQL and `pg_sleep` of PostgreSQL. The statement keeps its slot while it waits, and another thread does what waits
//! for this one; it ends with its statement: when that is cancelled, or has run for too long.

use crate::functions::{Call, FunctionSpec, LONG, TEXT, spec, text};
use crate::listing::external;
use bowshot_api::{Error, ErrorKind};
use bowshot_query_task::{QueryTask, run_blocking};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Threads that wait at once, of all statements: far fewer than there may be, so that sleepers never stop those who work.
const MOST_WAITING: usize = 128;
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// How long nobody looks whether the statement is over.
const LOOK_AFTER: Duration = Duration::from_millis(10);

pub(crate) static FUNCTIONS: &[FunctionSpec] =
    &[spec("pg_sleep", (1, 1), TEXT, pg_sleep), spec("sleep", (1, 1), LONG, sleep)];

fn pg_sleep(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(seconds) = seconds(call)? else { return Ok(ScalarValue::Utf8(None)) };
    wait(seconds.max(0.0))?;
    // A function without a value shows an empty text.
    text("")
}

fn sleep(call: &Call<'_>) -> Result<ScalarValue> {
    // As MariaDB does: no time, or one that is over, is no error.
    wait(seconds(call)?.unwrap_or(0.0).max(0.0))?;
    Ok(ScalarValue::Int64(Some(0)))
}

fn seconds(call: &Call<'_>) -> Result<Option<f64>> {
    match call.arguments.first().map(|seconds| seconds.cast_to(&DataType::Float64)).transpose()? {
        Some(ScalarValue::Float64(seconds)) => Ok(seconds),
        _ => Ok(None),
    }
}

fn wait(seconds: f64) -> Result<()> {
    let end = Duration::try_from_secs_f64(seconds).ok().and_then(|time| Instant::now().checked_add(time));
    wait_until(Some(end.ok_or_else(wrong)?), || Ok(false)).map(drop)
}

/// Waits until something is done, or for as long as there is time; whether it was done.
pub(super) fn wait_until(end: Option<Instant>, is_done: impl Fn() -> Result<bool>) -> Result<bool> {
    let _waiting = Waiting::begin()?;
    run_blocking(|| {
        loop {
            QueryTask::current().map_or(Ok(()), |job| job.check()).map_err(external)?;
            if is_done()? {
                return Ok(true);
            }
            let left = end.map_or(LOOK_AFTER, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(LOOK_AFTER));
        }
    })
}

fn wrong() -> datafusion::error::DataFusionError {
    external(Error::invalid("incorrect arguments to sleep").with_hint("give it a number of seconds"))
}

/// A thread that waits, for as long as this lives.
struct Waiting;

impl Waiting {
    fn begin() -> Result<Self> {
        let more = |now: usize| (now < MOST_WAITING).then_some(now + 1);
        match WAITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Self),
            Err(_) => Err(external(
                Error::new(ErrorKind::LimitReached, "too many statements wait").with_hint("try again later"),
            )),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}
