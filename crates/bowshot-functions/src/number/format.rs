//! Numbers as text: with separators, as sizes, in other bases.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Number, Int as Whole, Shown, Text as Words};
use crate::values::{Arguments, Float, Int, Str, Text, fill, get_or, map1, map2, map3};
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_err};

/// With commas between thousands: `1,234.50`.
pub(crate) fn with_commas(number: f64, places: usize) -> String {
    let text = format!("{:.places$}", number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if number < 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) { "-" } else { "" };
    let point = if places == 0 { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

fn format_number(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Float, Int, Str, _>(arguments, |number: f64, places: i64| {
        let places = usize::try_from(places.clamp(0, 30)).unwrap_or(0);
        // Half away from zero, as MySQL rounds.
        let unit = 10_f64.powi(i32::try_from(places).unwrap_or(0));
        let rounded = (number * unit).round() / unit;
        with_commas(if rounded.is_finite() { rounded } else { number }, places)
    })
}

/// A size in the units of 1024 or 1000 bytes, as DuckDB shows it.
fn size(bytes: i64, base: f64, units: [&str; 6]) -> String {
    let mut amount = (bytes as f64).abs();
    let sign = if bytes < 0 { "-" } else { "" };
    if amount < base {
        return format!("{sign}{amount} byte{}", if amount == 1.0 { "" } else { "s" });
    }
    let mut chosen = "";
    for unit in units {
        chosen = unit;
        amount /= base;
        if amount < base {
            break;
        }
    }
    // Cut, not rounded: what is shown is never more than there is.
    format!("{sign}{:.1} {chosen}", (amount * 10.0).trunc() / 10.0)
}

const BINARY: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// PostgreSQL's sizes: whole numbers below 10240 of a unit.
fn pretty(bytes: i64) -> String {
    const UNITS: [(&str, u32); 6] =
        [("bytes", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50)];
    let magnitude = bytes.unsigned_abs();
    for (unit, shift) in UNITS {
        let half = if shift == 0 { 0 } else { 1_u64 << (shift - 1) };
        let amount = magnitude.saturating_add(half) >> shift;
        if amount < 10_240 || unit == "PB" {
            return format!("{}{amount} {unit}", if bytes < 0 { "-" } else { "" });
        }
    }
    String::new()
}

pub(crate) fn in_base(mut number: u128, base: u32) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % u128::from(base)).unwrap_or(0);
        digits.push(char::from_digit(digit, base).unwrap_or('0').to_ascii_uppercase());
        number /= u128::from(base);
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

fn converted(text: &str, from: i64, to: i64) -> Result<Option<String>> {
    let valid = |base: i64| u32::try_from(base.unsigned_abs()).ok().filter(|base| (2..=36).contains(base));
    let (Some(from_base), Some(to_base)) = (valid(from), valid(to)) else { return Ok(None) };
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let mut value = 0_u64;
    for digit in digits.chars().map_while(|digit| digit.to_digit(from_base)) {
        value = value.saturating_mul(u64::from(from_base)).saturating_add(u64::from(digit));
    }
    // As MySQL: negative numbers are those of 64 bits, unless the base to convert to is negative.
    let bits = if negative { value.wrapping_neg() } else { value };
    if to < 0 && (bits as i64) < 0 {
        return Ok(Some(format!("-{}", in_base(u128::from(bits.wrapping_neg()), to_base))));
    }
    Ok(Some(in_base(u128::from(bits), to_base)))
}

fn to_base(arguments: &Arguments) -> Result<ArrayRef> {
    let least = arguments.read_if_given::<Int>(2)?;
    let (numbers, bases) = (arguments.read::<Int>(0)?, arguments.read::<Int>(1)?);
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let (Some(number), Some(base)) = (numbers.get(row)?, bases.get(row)?) else { return Ok(None) };
        let width = get_or(least.as_ref(), row, 0)?.unwrap_or(0).clamp(0, 64);
        let (Ok(number), Ok(base)) = (u128::try_from(number), u32::try_from(base)) else {
            return exec_err!("`to_base` takes a number that is not negative and a base from 2 to 36");
        };
        if !(2..=36).contains(&base) {
            return exec_err!("the base must lie between 2 and 36");
        }
        let digits = in_base(number, base);
        let missing = usize::try_from(width).unwrap_or(0).saturating_sub(digits.len());
        Ok(Some(format!("{}{digits}", "0".repeat(missing))))
    })
}

const ONE: &[&[Kind]] = &[&[Whole]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "format_number": &[&[Number, Whole]], Text, format_number =>
        "with commas between thousands and so many decimal places";
    "format_bytes" "formatreadablesize": ONE, Text,
        |a| map1::<Int, Str, _>(a, |bytes: i64| size(bytes, 1024.0, BINARY)) =>
        "a size in units of 1024 bytes";
    "formatreadabledecimalsize": ONE, Text,
        |a| map1::<Int, Str, _>(a, |bytes: i64| size(bytes, 1000.0, DECIMAL)) =>
        "a size in units of 1000 bytes";
    "pg_size_pretty": ONE, Text, |a| map1::<Int, Str, _>(a, pretty) => "a size as PostgreSQL shows it";
    "conv": &[&[Shown, Whole, Whole]], Text,
        |a| map3::<Text, Int, Int, Str, Result<Option<String>>>(a, converted) =>
        "a number from one base in another one";
    "bin" "to_binary" "to_bin": &[&[Whole], &[Words]], Text, |a| match a.data_type(0)? {
        arrow::datatypes::DataType::Utf8 => map1::<Text, Str, _>(a, |text: &str| {
            text.bytes().map(|byte| format!("{byte:08b}")).collect::<String>()
        }),
        _ => map1::<Int, Str, _>(a, |number: i64| format!("{number:b}")),
    } => "the binary digits";
    "oct" "to_oct": ONE, Text, |a| {
        map1::<Int, Str, _>(a, |number: i64| format!("{number:o}"))
    } => "the octal digits";
    "to_base": &[&[Whole, Whole], &[Whole, Whole, Whole]], Text, to_base =>
        "the digits in a base from 2 to 36";
};
