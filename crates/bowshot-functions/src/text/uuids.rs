//! UUIDs, which are text: made by time, and what they tell.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Text as Words};
use crate::values::{Arguments, Int64, Moments, Str, Text, fill, map1};
use arrow::array::ArrayRef;
use chrono::Utc;
use datafusion::common::{Result, exec_datafusion_err};
use uuid::{Builder, Uuid};

/// Version 7: milliseconds since 1970 first, then random bits.
fn by_time(arguments: &Arguments) -> Result<ArrayRef> {
    fill::<Str, _>(arguments, |_| {
        let millis = u64::try_from(Utc::now().timestamp_millis()).unwrap_or(0).to_be_bytes();
        let mut bytes = Uuid::new_v4().into_bytes();
        for (byte, of_time) in bytes.iter_mut().zip(millis.iter().skip(2)) {
            *byte = *of_time;
        }
        let made = Builder::from_bytes(bytes).with_version(uuid::Version::SortRand);
        made.with_variant(uuid::Variant::RFC4122).into_uuid().to_string()
    })
}

fn parsed(text: &str) -> Result<Uuid> {
    text.parse().map_err(|_| exec_datafusion_err!("invalid input syntax for type uuid: `{text}`"))
}

/// Microseconds since 1970 of a UUID by time; none for random ones.
fn moment_of(text: &str) -> Result<Option<i64>> {
    let uuid = parsed(text)?;
    let bits = uuid.as_u128();
    Ok(match uuid.get_version_num() {
        7 => i64::try_from(bits >> 80).ok().and_then(|millis| millis.checked_mul(1000)),
        1 => {
            // Tenths of microseconds since 1582-10-15.
            let (low, mid, high) = (bits >> 96, bits >> 80 & 0xFFFF, bits >> 64 & 0x0FFF);
            let ticks = i64::try_from(high << 48 | mid << 32 | low).ok();
            ticks.map(|ticks| (ticks - 122_192_928_000_000_000) / 10)
        }
        _ => None,
    })
}

const TEXT: &[&[Kind]] = &[&[Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "uuidv7": &[&[]], Text, by_time => "a UUID that begins with the time", volatile();
    "uuid_extract_version": TEXT, Int, |a| {
        map1::<Text, Int64, Result<i64>>(a, |text| {
            Ok(i64::try_from(parsed(text)?.get_version_num()).unwrap_or(0))
        })
    } => "the version of a UUID";
    "uuid_extract_timestamp": TEXT, Moment, |a| map1::<Text, Moments, Result<Option<i64>>>(a, moment_of) =>
        "the time of a UUID of version 1 or 7";
};
