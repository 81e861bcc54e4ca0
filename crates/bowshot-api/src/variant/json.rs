//! VARIANT values as JSON: what JSON has no form for is text, as `to_json` writes it; bytes are text in base64.

use super::{Values, is_variant_type};
use arrow::array::{Array, StringArray, StringBuilder};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, Decimal128Type, DecimalType, FieldRef};
use arrow::error::ArrowError;
use arrow::json::writer::NullableEncoder;
use arrow::json::{Encoder, EncoderFactory, EncoderOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet_variant::Variant;
use std::fmt::{Display, Write};

/// The values of a column as JSON texts.
///
/// # Errors
/// For an array of another type, for bytes that are no value, and for more text than one array holds.
pub fn json_texts(values: &dyn Array) -> Result<StringArray, ArrowError> {
    let values = Values::of(values)?;
    let mut out = StringBuilder::with_capacity(values.rows(), 0);
    let (mut text, mut bytes) = (String::new(), 0_usize);
    for row in 0..values.rows() {
        let Some(value) = values.at(row)? else {
            out.append_null();
            continue;
        };
        text.clear();
        write_json(&value, &mut text);
        bytes += text.len();
        if i32::try_from(bytes).is_err() {
            return Err(ArrowError::OffsetOverflowError(bytes));
        }
        out.append_value(&text);
    }
    Ok(out.finish())
}

/// What writes the values of a column into JSON.
///
/// # Errors
/// As [`json_texts`].
pub fn json_encoder(values: &dyn Array) -> Result<NullableEncoder<'static>, ArrowError> {
    let texts = json_texts(values)?;
    let nulls = texts.nulls().cloned();
    Ok(NullableEncoder::new(Box::new(Texts(texts)), nulls))
}

/// Encoders of VARIANT values for Arrow's writer of JSON.
#[derive(Debug)]
pub struct JsonEncoders;

impl EncoderFactory for JsonEncoders {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        is_variant_type(array.data_type()).then(|| json_encoder(array)).transpose()
    }
}

struct Texts(StringArray);

impl Encoder for Texts {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.value(row).as_bytes());
    }
}

/// Writes one value.
pub fn write_json(value: &Variant<'_, '_>, out: &mut String) {
    match value {
        Variant::Null => out.push_str("null"),
        Variant::BooleanTrue => out.push_str("true"),
        Variant::BooleanFalse => out.push_str("false"),
        Variant::Int8(number) => plain(number, out),
        Variant::Int16(number) => plain(number, out),
        Variant::Int32(number) => plain(number, out),
        Variant::Int64(number) => plain(number, out),
        Variant::Float(number) => float(&format!("{number}"), &format!("{number:?}"), out),
        Variant::Double(number) => float(&format!("{number}"), &format!("{number:?}"), out),
        Variant::Decimal4(number) => decimal(i128::from(number.integer()), number.scale(), out),
        Variant::Decimal8(number) => decimal(i128::from(number.integer()), number.scale(), out),
        Variant::Decimal16(number) => decimal(number.integer(), number.scale(), out),
        Variant::Object(object) => {
            for (index, (name, value)) in object.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                quote(name, out);
                out.push(':');
                write_json(&value, out);
            }
            out.push_str(if object.is_empty() { "{}" } else { "}" });
        }
        Variant::List(list) => {
            for (index, value) in list.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_json(&value, out);
            }
            out.push_str(if list.is_empty() { "[]" } else { "]" });
        }
        Variant::String(text) => quote(text, out),
        Variant::ShortString(text) => quote(text.as_str(), out),
        other => quote(&scalar_text(other), out),
    }
}

/// The text of a scalar that JSON has no form for.
fn scalar_text(value: &Variant<'_, '_>) -> String {
    match value {
        Variant::Date(day) => day.format("%Y-%m-%d").to_string(),
        Variant::TimestampMicros(time) | Variant::TimestampNanos(time) => {
            time.format("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
        }
        Variant::TimestampNtzMicros(time) | Variant::TimestampNtzNanos(time) => {
            time.format("%Y-%m-%dT%H:%M:%S%.f").to_string()
        }
        Variant::Time(time) => time.format("%H:%M:%S%.f").to_string(),
        Variant::Binary(bytes) => STANDARD.encode(bytes),
        Variant::Uuid(uuid) => uuid.to_string(),
        _ => String::new(),
    }
}

fn plain(number: impl Display, out: &mut String) {
    // Writing to a string does not fail.
    _ = write!(out, "{number}");
}

/// All digits, also zeros at the end, as other decimals have them.
fn decimal(unscaled: i128, scale: u8, out: &mut String) {
    // A value of more digits than its type has is none, so the scale fits.
    let scale = i8::try_from(scale).unwrap_or_default();
    out.push_str(&Decimal128Type::format_decimal(unscaled, DECIMAL128_MAX_PRECISION, scale));
}

/// JSON has no infinite numbers; they are text. The other form has an exponent where the plain one would be long.
fn float(text: &str, with_exponent: &str, out: &mut String) {
    match text {
        "NaN" => out.push_str("\"NaN\""),
        "inf" => out.push_str("\"Infinity\""),
        "-inf" => out.push_str("\"-Infinity\""),
        long if long.len() > 21 => out.push_str(with_exponent),
        short => out.push_str(short),
    }
}

/// Writes a text in quotes.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(run..at).unwrap_or_default());
        run = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x8 => out.push_str("\\b"),
            0xc => out.push_str("\\f"),
            other => out.push_str(&format!("\\u{other:04x}")),
        }
    }
    out.push_str(text.get(run..).unwrap_or_default());
    out.push('"');
}
