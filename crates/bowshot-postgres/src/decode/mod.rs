//! Values from PostgreSQL to Arrow, for parameters and COPY: in text as PostgreSQL's input functions read them, in binary as
//! the `recv` functions do. They are untrusted: a value that is malformed or does not fit is an error of its statement.

mod array;
mod binary;
mod column;
mod interval;
mod numeric;
mod text;

pub(crate) use column::Column;
pub(crate) use text::uuid_bytes;

use crate::encode::{Kind, PgType};
use crate::frontend_messages::Format;
use crate::status::Failure;
use arrow::array::ArrayRef;
use arrow::array::timezone::Tz;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::sync::Arc;

/// The first and the last supported day, in days since 1970-01-01. Infinity in binary means them, since asyncpg sends
/// `date.max` and `date.min` so.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;
/// The first and the last microsecond of these days.
const FIRST_MICRO: i64 = FIRST_DAY as i64 * DAY_MICROS;
const LAST_MICRO: i64 = (LAST_DAY as i64 + 1) * DAY_MICROS - 1;
const DAY_MICROS: i64 = 86_400_000_000;
/// The first OID of a type made by a user.
const FIRST_OF_USERS: u32 = 16_384;

/// One row of parameters: type, format and bytes of each. Instants whose text names no time zone are in that of the session.
pub(crate) fn row<'a>(
    values: impl Iterator<Item = (u32, Format, Option<&'a [u8]>)>,
    zone: Option<Tz>,
) -> Result<RecordBatch, Failure> {
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for (index, (oid, format, value)) in values.enumerate() {
        let mut column = Column::new(known(oid, (format, value))?, None).in_zone(zone);
        column.push(value, format).map_err(|failure| Failure {
            message: format!("parameter ${}: {}", index + 1, failure.message),
            ..failure
        })?;
        let array = column.finish()?;
        fields.push(Field::new(format!("${}", index + 1), array.data_type().clone(), true));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| Failure::new("XX000", format!("parameters make no row: {error}")))
}

/// Values of an unknown type in text go to the engine as text. So do labels of enumerated types in binary, which have no zero
/// bytes.
fn known(oid: u32, (format, value): (Format, Option<&[u8]>)) -> Result<PgType, Failure> {
    let may_be_label = || oid >= FIRST_OF_USERS && value.is_none_or(|bytes| !bytes.contains(&0));
    match (PgType::from_oid(oid), format) {
        (Some(kind), _) => Ok(kind),
        (None, Format::Text) => Ok(PgType::scalar(Kind::Text)),
        (None, Format::Binary) if may_be_label() => Ok(PgType::scalar(Kind::Text)),
        (None, Format::Binary) => {
            Err(Failure::new("42704", format!("values of the type with OID {oid} cannot be read in binary"))
                .with_hint("send it as text"))
        }
    }
}

/// The error for a text that is not a value of its type.
pub(crate) fn invalid(kind: &str, text: &str) -> Failure {
    let text_start: String = text.chars().take(100).collect();
    Failure::new("22P02", format!("invalid input syntax for type {kind}: \"{text_start}\""))
}

/// The error for bytes that are not a value of their type.
pub(crate) fn malformed(kind: &str) -> Failure {
    Failure::new("22P03", format!("incorrect binary data format for type {kind}"))
}

#[cfg(test)]
mod tests;
