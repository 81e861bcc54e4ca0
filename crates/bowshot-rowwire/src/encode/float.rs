//! Texts of floating-point numbers: with as few digits as tell them apart.

use bytes::{BufMut, BytesMut};
use std::ops::Range;

/// Writes a number that Rust has formatted with an exponent (`1.5e20`): in plain digits if the exponent is in `plain`, else
/// `put_scientific` writes the mantissa without its sign and the exponent.
pub fn put_float(
    formatted: &str,
    plain: Range<i32>,
    out: &mut BytesMut,
    put_scientific: impl FnOnce(&str, i32, &mut BytesMut),
) {
    let Some((mantissa, exponent)) = formatted.split_once('e') else {
        out.put_slice(match formatted {
            "inf" => b"Infinity",
            "-inf" => b"-Infinity",
            _ => b"NaN",
        });
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let unsigned = mantissa.trim_start_matches('-');
    if unsigned.len() < mantissa.len() {
        out.put_u8(b'-');
    }
    if plain.contains(&exponent) {
        put_plain(unsigned, exponent, out);
    } else {
        put_scientific(unsigned, exponent, out);
    }
}

fn put_plain(mantissa: &str, exponent: i32, out: &mut BytesMut) {
    let digits = mantissa.replace('.', "");
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    if whole == 0 {
        out.put_slice(b"0.");
        out.put_bytes(b'0', usize::try_from(-exponent - 1).unwrap_or(0));
        out.put_slice(digits.as_bytes());
        return;
    }
    let (before, after) = digits.split_at(whole.min(digits.len()));
    out.put_slice(before.as_bytes());
    out.put_bytes(b'0', whole - before.len());
    if !after.is_empty() {
        out.put_u8(b'.');
        out.put_slice(after.as_bytes());
    }
}
