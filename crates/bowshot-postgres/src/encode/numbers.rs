//! Numbers as PostgreSQL writes them: floating-point numbers with as few digits as tell them apart, numerics in groups of
//! four decimal digits (`numeric_send` in PostgreSQL's `numeric.c`).

use super::Written;
use crate::status::Failure;
use bowshot_rowwire::encode::float::put_float;
use bowshot_rowwire::encode::put_display;
use bytes::{Buf, BufMut, BytesMut};

/// Numbers with smaller or larger exponents have one in their text.
const LEAST_EXPONENT: i32 = -4;
const FLOAT4_EXPONENT: i32 = 6;
const FLOAT8_EXPONENT: i32 = 15;
const NEGATIVE: u16 = 0x4000;
/// Digits of a numeric that are accepted.
const MAX_DIGITS: usize = 1_000;

pub(super) fn put_float4(value: f32, out: &mut BytesMut) {
    put_float(&format!("{value:e}"), LEAST_EXPONENT..FLOAT4_EXPONENT, out, put_scientific);
}

pub(super) fn put_float8(value: f64, out: &mut BytesMut) {
    put_float(&format!("{value:e}"), LEAST_EXPONENT..FLOAT8_EXPONENT, out, put_scientific);
}

/// As PostgreSQL writes it: `1.5e+20`, `1.5e-05`.
fn put_scientific(mantissa: &str, exponent: i32, out: &mut BytesMut) {
    let sign = if exponent < 0 { '-' } else { '+' };
    put_display(out, format_args!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()));
}

/// The binary form of a numeric in decimal digits.
pub(super) fn numeric_binary(text: &str, out: &mut BytesMut) -> Written {
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut groups: Vec<u16> = Vec::new();
    let lead = (4 - whole.len() % 4) % 4;
    let padded = std::iter::repeat_n(b'0', lead).chain(whole.bytes());
    group(padded, &mut groups);
    let mut weight = groups.len() as i64 - 1;
    let tail = (4 - fraction.len() % 4) % 4;
    group(fraction.bytes().chain(std::iter::repeat_n(b'0', tail)), &mut groups);
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    weight -= zeros as i64;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    let short =
        |number: i64| i16::try_from(number).map_err(|_| Failure::new("22003", "a numeric is too long"));
    out.put_i16(short(groups.len() as i64)?);
    out.put_i16(short(weight)?);
    out.put_u16(if unsigned.len() < text.len() && !groups.is_empty() { NEGATIVE } else { 0 });
    out.put_i16(short(fraction.len() as i64)?);
    groups.iter().for_each(|group| out.put_u16(*group));
    Ok(())
}

fn group(digits: impl Iterator<Item = u8>, groups: &mut Vec<u16>) {
    for (index, digit) in digits.enumerate() {
        let digit = u16::from(digit.wrapping_sub(b'0'));
        match groups.last_mut() {
            Some(last) if index % 4 != 0 => *last = *last * 10 + digit,
            _ => groups.push(digit),
        }
    }
}

/// The decimal digits of a numeric in binary; `None` for NaN and malformed values.
pub(crate) fn binary_numeric(mut bytes: &[u8]) -> Option<String> {
    let count = usize::try_from(bytes.try_get_i16().ok()?).ok()?;
    let weight = i32::from(bytes.try_get_i16().ok()?);
    let sign = bytes.try_get_u16().ok()?;
    let scale = usize::try_from(bytes.try_get_i16().ok()?).ok()?;
    let whole_groups = usize::try_from(weight + 1).unwrap_or(0);
    let too_long = whole_groups > MAX_DIGITS / 4 || scale > MAX_DIGITS;
    if bytes.len() != count * 2 || too_long || !matches!(sign, 0 | NEGATIVE) {
        return None;
    }
    let groups: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    if groups.iter().any(|group| *group > 9_999) {
        return None;
    }
    // The group at a power of ten thousand; groups that were not sent are zero.
    let at = |power: i32| {
        usize::try_from(weight - power).ok().and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut text = String::from(if sign == NEGATIVE { "-" } else { "" });
    let whole: String = (0..=weight.max(0)).rev().map(|power| format!("{:04}", at(power))).collect();
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let groups = i32::try_from(scale.div_ceil(4)).ok()?;
        let fraction: String = (1..=groups).map(|power| format!("{:04}", at(-power))).collect();
        text.push('.');
        text.push_str(fraction.get(..scale)?);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_numbers_as_postgresql_writes_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-1234.5, "-1234.5"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.2345e-5, "1.2345e-05"),
            (0.0001, "0.0001"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = BytesMut::new();
            put_float8(value, &mut out);
            assert_eq!(out.as_ref(), expected.as_bytes(), "{value}");
        }
        for (value, expected) in
            [(1e6_f32, "1e+06"), (123_456.0, "123456"), (0.1, "0.1"), (1_234_567.0, "1.234567e+06")]
        {
            let mut out = BytesMut::new();
            put_float4(value, &mut out);
            assert_eq!(out.as_ref(), expected.as_bytes(), "{value}");
        }
    }

    #[test]
    fn numerics_there_and_back() {
        for text in [
            "0",
            "0.00",
            "1",
            "-1",
            "10000",
            "12345678",
            "0.0001",
            "-0.00012345",
            "1.5",
            "100000000.00000001",
            "9999.9999",
            "340282366920938463463374607431768211455",
        ] {
            let mut out = BytesMut::new();
            numeric_binary(text, &mut out).unwrap();
            assert_eq!(binary_numeric(&out).as_deref(), Some(text));
        }
        let mut out = BytesMut::new();
        numeric_binary("12345.678", &mut out).unwrap();
        assert_eq!(out.as_ref(), [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]);
    }

    #[test]
    fn malformed_numerics_are_none() {
        for bytes in [
            b"".as_ref(),
            &[0, 1, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0x7f, 0xff, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0x7f, 0xff],
            &[0, 0, 0, 0, 0xc0, 0, 0, 0],
            &[0xff, 0xff, 0, 0, 0, 0, 0, 0],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        ] {
            assert_eq!(binary_numeric(bytes), None, "{bytes:?}");
        }
    }
}
