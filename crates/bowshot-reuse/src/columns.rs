//! Columns of system tables about caches.

use bowshot_api::Result;
use bowshot_engine::internals::classify;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::error::DataFusionError;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) fn batch(columns: Vec<(&'static str, ArrayRef)>) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(columns).map_err(|error| classify(DataFusionError::from(error)))
}

pub(crate) fn text<T>(rows: &[T], value: impl Fn(&T) -> String) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<StringArray>())
}

pub(crate) fn whole<T>(rows: &[T], value: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(rows.iter().map(|row| value(row).cast_signed()).collect::<Int64Array>())
}

pub(crate) fn real<T>(rows: &[T], value: impl Fn(&T) -> f64) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<Float64Array>())
}

pub(crate) fn truth<T>(rows: &[T], value: impl Fn(&T) -> bool) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<BooleanArray>())
}

pub(crate) fn time<T>(rows: &[T], value: impl Fn(&T) -> SystemTime) -> ArrayRef {
    let micros = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    };
    let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| micros(value(row))));
    Arc::new(times.with_timezone("UTC"))
}
