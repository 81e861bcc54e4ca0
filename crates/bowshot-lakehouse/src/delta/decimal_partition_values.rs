//! Decimal numbers that the files of a Delta table are grouped by, as its log writes them. The library takes only those with as many
//! digits behind the point as their type has (`1.50`); the protocol says nothing of that, and other writers leave zeros out.

use memchr::memmem;
use serde_json::Value;
use std::collections::HashMap;

const VALUES: &str = "partitionValues";

/// Digits behind the point of each such column, by its name in the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decimals(pub(crate) HashMap<String, u8>);

impl Decimals {
    /// An entry of the log with such numbers in full; none if it has them so, or cannot be read.
    pub(crate) fn in_full(&self, entry: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() || memmem::find(entry, VALUES.as_bytes()).is_none() {
            return None;
        }
        let mut changed = false;
        let mut lines = Vec::with_capacity(entry.len());
        for line in entry.split_inclusive(|byte| *byte == b'\n') {
            match self.line(line) {
                Some(line) => {
                    lines.extend_from_slice(&line);
                    lines.push(b'\n');
                    changed = true;
                }
                None => lines.extend_from_slice(line),
            }
        }
        changed.then_some(lines)
    }

    fn line(&self, line: &[u8]) -> Option<Vec<u8>> {
        let mut action: Value = serde_json::from_slice(line).ok()?;
        let mut changed = false;
        for body in action.as_object_mut()?.values_mut() {
            let Some(values) = body.get_mut(VALUES).and_then(Value::as_object_mut) else { continue };
            for (name, scale) in &self.0 {
                let Some(Value::String(text)) = values.get_mut(name) else { continue };
                if let Some(full) = in_full(text, *scale).filter(|full| full != text) {
                    *text = full;
                    changed = true;
                }
            }
        }
        changed.then(|| serde_json::to_vec(&action).ok()).flatten()
    }
}

/// `1.5` as `1.50`, `1E+2` as `100.00`; none for what is no number, or has more digits.
fn in_full(text: &str, scale: u8) -> Option<String> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", text.get(1..)?),
        b'+' => ("", text.get(1..)?),
        _ => ("", text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    // Places by which the point moves to the right.
    let moved = i32::from(scale) - i32::try_from(fraction.len()).ok()? + exponent;
    let plain = !all.is_empty() && all.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || moved.abs() > MAX_MOVED {
        return None;
    }
    let shift = usize::try_from(moved.unsigned_abs()).ok()?;
    let units = match moved >= 0 {
        true => format!("{all}{}", "0".repeat(shift)),
        false => {
            let padded = format!("{}{all}", "0".repeat(shift));
            let (kept, lost) = padded.split_at(padded.len() - shift);
            lost.bytes().all(|byte| byte == b'0').then(|| kept.to_owned())?
        }
    };
    let (units, scale) = (units.trim_start_matches('0'), usize::from(scale));
    let units = format!("{}{units}", "0".repeat((scale + 1).saturating_sub(units.len())));
    let (whole, fraction) = units.split_at(units.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// More digits has no decimal number.
const MAX_MOVED: i32 = 80;

#[cfg(test)]
mod tests {
    use super::in_full;

    #[test]
    fn numbers_have_all_their_digits() {
        for (text, scale, expected) in [
            ("1.5", 2, Some("1.50")),
            ("-3", 2, Some("-3.00")),
            ("1E+2", 2, Some("100.00")),
            ("1.50", 2, Some("1.50")),
            (".5", 1, Some("0.5")),
            ("15e-1", 1, Some("1.5")),
            ("0.00", 2, Some("0.00")),
            ("0", 0, Some("0")),
            ("007", 0, Some("7")),
            ("1.500", 2, Some("1.50")),
            ("1.555", 2, None),
            ("1e999", 2, None),
            ("x", 2, None),
            ("", 2, None),
            ("-", 2, None),
        ] {
            assert_eq!(in_full(text, scale).as_deref(), expected, "{text}");
        }
    }
}
