//! Patterns of C's printf, and of the braces that DuckDB and Python have.

use super::format::Values;
use crate::number::{in_base, with_commas};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

/// The most characters that a value is filled up to.
const MOST_WIDTH: usize = 1 << 20;

/// What stands between `%` and the letter.
#[derive(Debug, Default)]
struct Spec {
    left: bool,
    zeros: bool,
    plus: bool,
    blank: bool,
    alternate: bool,
    commas: bool,
    width: usize,
    places: Option<usize>,
}

fn limited(digits: &str) -> Result<usize> {
    match digits.parse::<usize>() {
        Ok(width) if width <= MOST_WIDTH => Ok(width),
        _ => exec_err!("a width of `{digits}` is too large, at most {MOST_WIDTH}"),
    }
}

impl Spec {
    fn read(text: &str) -> Result<Self> {
        let mut found = Self::default();
        let rest = text.trim_start_matches(|flag: char| {
            match flag {
                '-' | '<' => found.left = true,
                '0' => found.zeros = true,
                '+' => found.plus = true,
                ' ' => found.blank = true,
                '#' => found.alternate = true,
                ',' => found.commas = true,
                '>' => {}
                _ => return false,
            }
            true
        });
        // The letters of C's integer sizes say nothing here.
        let rest = rest.trim_end_matches(['l', 'h', 'z']);
        let (width, places) = match rest.split_once('.') {
            Some((width, places)) => (width, Some(if places.is_empty() { "0" } else { places })),
            None => (rest, None),
        };
        let (width, commas) = match width.strip_suffix(',') {
            Some(width) => (width, true),
            None => (width, false),
        };
        found.commas |= commas;
        found.width = if width.is_empty() { 0 } else { limited(width)? };
        found.places = places.map(limited).transpose()?;
        Ok(found)
    }

    fn fit(&self, sign: &str, digits: &str) -> String {
        let missing = self.width.saturating_sub(sign.len() + digits.chars().count());
        if self.left {
            format!("{sign}{digits}{}", " ".repeat(missing))
        } else if self.zeros {
            format!("{sign}{}{digits}", "0".repeat(missing))
        } else {
            format!("{}{sign}{digits}", " ".repeat(missing))
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.blank) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        }
    }
}

/// A text filled up to a width, at the left unless it is negative.
pub(super) fn in_width(text: &str, width: &str) -> Result<String> {
    if width.is_empty() {
        return Ok(text.to_owned());
    }
    Ok(Spec { zeros: false, ..Spec::read(width)? }.fit("", text))
}

pub(super) fn write(pattern: &str, values: &Values<'_>, row: usize) -> Result<String> {
    let (mut text, mut rest, mut next) = (String::new(), pattern, 0_usize);
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let spec = after.get(1..).unwrap_or_default();
        if let Some(after) = spec.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let ends = |c: char| c.is_ascii_alphabetic() && !matches!(c, 'l' | 'h' | 'z');
        let Some(end) = spec.find(ends) else { return exec_err!("the pattern `{pattern}` ends within `%`") };
        let (between, kind_and_rest) = spec.split_at(end);
        let (position, flags) = match between.split_once('$') {
            Some((position, flags)) => (position.parse::<usize>().ok().and_then(|n| n.checked_sub(1)), flags),
            None => (Some(next), between),
        };
        let position = position.ok_or_else(|| exec_datafusion_err!("arguments are numbered from 1"))?;
        next = position + 1;
        let kind = kind_and_rest.chars().next().unwrap_or_default();
        rest = kind_and_rest.get(1..).unwrap_or_default();
        if kind == 'n' {
            text.push('\n');
            continue;
        }
        let value = values.get(position, row)?.unwrap_or("null");
        text.push_str(&shown(kind, &Spec::read(flags)?, value)?);
    }
    text.push_str(rest);
    Ok(text)
}

fn integer(value: &str) -> Result<i128> {
    let whole = value.parse::<i128>().ok().or_else(|| {
        value
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && number.abs() < 1e30)
            .map(|number| number as i128)
    });
    whole.ok_or_else(|| exec_datafusion_err!("`{value}` is not an integer"))
}

fn shown(kind: char, spec: &Spec, value: &str) -> Result<String> {
    Ok(match kind {
        'd' | 'i' | 'u' => {
            let number = integer(value)?;
            let digits = if spec.commas {
                with_commas(number.unsigned_abs() as f64, 0)
            } else {
                number.unsigned_abs().to_string()
            };
            spec.fit(spec.sign(number < 0), &digits)
        }
        'x' | 'X' | 'o' | 'b' => {
            let base = match kind {
                'o' => 8,
                'b' => 2,
                _ => 16,
            };
            let number = integer(value)?;
            let bits = u128::try_from(number).unwrap_or_else(|_| u128::from(number as i64 as u64));
            let digits = in_base(bits, base);
            let digits = if kind == 'X' { digits } else { digits.to_lowercase() };
            let prefix = if spec.alternate && base == 16 { "0x" } else { "" };
            spec.fit(prefix, &digits)
        }
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            let number: f64 = value.parse().map_err(|_| exec_datafusion_err!("`{value}` is not a number"))?;
            spec.fit(spec.sign(number.is_sign_negative()), &real(kind, spec, number.abs()))
        }
        'c' => {
            let character = match value.parse::<u32>().ok().and_then(char::from_u32) {
                Some(character) => character.to_string(),
                None => value.chars().take(1).collect(),
            };
            spec.fit("", &character)
        }
        's' | 'S' => {
            let cut: String = value.chars().take(spec.places.unwrap_or(usize::MAX)).collect();
            let cut = if kind == 'S' { cut.to_uppercase() } else { cut };
            Spec { zeros: false, left: spec.left, width: spec.width, ..Spec::default() }.fit("", &cut)
        }
        other => return exec_err!("`%{other}` is not known in a pattern"),
    })
}

fn real(kind: char, spec: &Spec, number: f64) -> String {
    let places = spec.places.unwrap_or(6).min(1000);
    let scientific = |places: usize| {
        let text = format!("{number:.places$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        (mantissa.to_owned(), exponent)
    };
    let joined = |mantissa: &str, exponent: i32| {
        format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
    };
    let text = match kind {
        'e' | 'E' => {
            let (mantissa, exponent) = scientific(places);
            joined(&mantissa, exponent)
        }
        'g' | 'G' => {
            let significant = places.max(1);
            let (mantissa, exponent) = scientific(significant - 1);
            let trimmed = |text: &str| {
                if text.contains('.') {
                    text.trim_end_matches('0').trim_end_matches('.').to_owned()
                } else {
                    text.to_owned()
                }
            };
            let digits = i32::try_from(significant).unwrap_or(i32::MAX);
            if exponent < -4 || exponent >= digits {
                joined(&trimmed(&mantissa), exponent)
            } else {
                let behind = usize::try_from(digits - 1 - exponent).unwrap_or(0);
                trimmed(&format!("{number:.behind$}"))
            }
        }
        _ if spec.commas => with_commas(number, places),
        _ => format!("{number:.places$}"),
    };
    if kind.is_ascii_uppercase() { text.to_uppercase() } else { text }
}

/// `{}`, `{0}`, `{:05.2f}`, `{:,}`; `{{` and `}}` are braces.
pub(super) fn write_braces(pattern: &str, values: &Values<'_>, row: usize) -> Result<String> {
    let (mut text, mut rest, mut next) = (String::new(), pattern, 0_usize);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        if after.starts_with("{{") || after.starts_with("}}") {
            text.push_str(after.get(..1).unwrap_or_default());
            rest = after.get(2..).unwrap_or_default();
            continue;
        }
        let Some(end) = after.find('}') else {
            return exec_err!("the pattern `{pattern}` has an open brace");
        };
        let inside = after.get(1..end).unwrap_or_default();
        rest = after.get(end + 1..).unwrap_or_default();
        let (position, spec) = inside.split_once(':').unwrap_or((inside, ""));
        let position = if position.is_empty() {
            next
        } else {
            position.parse().map_err(|_| exec_datafusion_err!("`{{{inside}}}` names no argument"))?
        };
        next = position + 1;
        let value = values.get(position, row)?.unwrap_or("NULL");
        let kind = spec.chars().next_back().filter(char::is_ascii_alphabetic);
        let flags = if kind.is_some() { spec.get(..spec.len() - 1).unwrap_or_default() } else { spec };
        let kind = kind.unwrap_or(if flags.contains(',') {
            if value.contains('.') { 'f' } else { 'd' }
        } else if flags.starts_with('0') && value.parse::<i128>().is_ok() {
            'd'
        } else {
            's'
        });
        text.push_str(&shown(kind, &Spec::read(flags)?, value)?);
    }
    text.push_str(rest);
    Ok(text)
}
