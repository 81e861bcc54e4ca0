//! A JSON document as a tree that borrows from its text, and how it is written.

use bowshot_api::variant::quote;
use std::borrow::Cow;

/// A value. Members keep their order and their repetitions; numbers are the text that they were written as.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// The member of that name: the last one, if there are several.
    pub(crate) fn member(&self, name: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(members) => {
                members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The element at that index, from the end if it is negative.
    pub(crate) fn element(&self, index: i64) -> Option<&Json<'a>> {
        match self {
            Json::Array(elements) => elements.get(place(index, elements.len())?),
            _ => None,
        }
    }

    /// What is directly inside.
    pub(crate) fn children(&self) -> Vec<&Json<'a>> {
        match self {
            Json::Array(elements) => elements.iter().collect(),
            Json::Object(members) => members.iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        }
    }

    /// Replaces the member of that name, or adds it.
    pub(crate) fn put(&mut self, name: Cow<'a, str>, value: Json<'a>) {
        if let Json::Object(members) = self {
            match members.iter_mut().rev().find(|(key, _)| *key == name) {
                Some((_, old)) => *old = value,
                None => members.push((name, value)),
            }
        }
    }

    /// The shortest text.
    pub(crate) fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    pub(crate) fn write(&self, out: &mut String) {
        self.write_with(out, (",", ":"));
    }

    fn write_with(&self, out: &mut String, (comma, colon): (&str, &str)) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Json::Number(digits) => out.push_str(digits),
            Json::Text(text) => quote(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    out.push_str(if index > 0 { comma } else { "" });
                    element.write_with(out, (comma, colon));
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { comma } else { "" });
                    quote(key, out);
                    out.push_str(colon);
                    value.write_with(out, (comma, colon));
                }
                out.push('}');
            }
        }
    }

    /// As PostgreSQL keeps JSONB: each key once, with its last value, shorter keys first; numbers without exponents.
    pub(crate) fn into_normal(self) -> Self {
        match self {
            Json::Array(elements) => Json::Array(elements.into_iter().map(Self::into_normal).collect()),
            Json::Object(mut members) => {
                members.reverse();
                members.sort_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
                members.dedup_by(|later, kept| later.0 == kept.0);
                Json::Object(members.into_iter().map(|(key, value)| (key, value.into_normal())).collect())
            }
            Json::Number(digits) => Json::Number(plain_number(digits)),
            other => other,
        }
    }

    /// As PostgreSQL writes JSONB.
    pub(crate) fn normal_text(self) -> String {
        let mut out = String::new();
        self.into_normal().write_with(&mut out, (", ", ": "));
        out
    }

    /// The text with a line for each value, four columns further in for each level.
    pub(crate) fn pretty(&self, level: usize, out: &mut String) {
        let line = |out: &mut String, level: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("    ", level));
        };
        match self {
            Json::Array(elements) if !elements.is_empty() => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    line(out, level + 1);
                    element.pretty(level + 1, out);
                }
                line(out, level);
                out.push(']');
            }
            Json::Object(members) if !members.is_empty() => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    line(out, level + 1);
                    quote(key, out);
                    out.push_str(": ");
                    value.pretty(level + 1, out);
                }
                line(out, level);
                out.push('}');
            }
            other => other.write(out),
        }
    }

    /// As SQL text: a string without its quotes, JSON's null as none.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Json::Null => None,
            Json::Text(text) => Some(text.clone().into_owned()),
            other => Some(other.compact()),
        }
    }

    /// PostgreSQL's `json_typeof`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// DuckDB's `json_type`.
    pub(crate) fn sql_kind(&self) -> &'static str {
        match self {
            Json::Null => "NULL",
            Json::Bool(_) => "BOOLEAN",
            Json::Text(_) => "VARCHAR",
            Json::Array(_) => "ARRAY",
            Json::Object(_) => "OBJECT",
            Json::Number(digits) if digits.parse::<u64>().is_ok() => "UBIGINT",
            Json::Number(digits) if digits.parse::<i64>().is_ok() => "BIGINT",
            Json::Number(_) => "DOUBLE",
        }
    }

    /// Whether both mean the same: numbers by value, members in any order.
    pub(crate) fn same(&self, other: &Json<'_>) -> bool {
        match (self, other) {
            (Json::Number(one), Json::Number(two)) => same_number(one, two),
            (Json::Text(one), Json::Text(two)) => one == two,
            (Json::Array(one), Json::Array(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.same(two))
            }
            (Json::Object(one), Json::Object(two)) => {
                let within = |one: &Json<'_>, two: &Json<'_>, keys: &[(Cow<'_, str>, Json<'_>)]| {
                    keys.iter().all(|(key, _)| match (one.member(key), two.member(key)) {
                        (Some(one), Some(two)) => one.same(two),
                        _ => false,
                    })
                };
                within(self, other, one) && within(self, other, two)
            }
            (Json::Null, Json::Null) => true,
            (Json::Bool(one), Json::Bool(two)) => one == two,
            _ => false,
        }
    }

    /// PostgreSQL's `@>`: the other one's members and elements are all here, each at its level.
    pub(crate) fn contains(&self, other: &Json<'_>) -> bool {
        match (self, other) {
            (Json::Object(_), Json::Object(members)) => members
                .iter()
                .all(|(key, value)| self.member(key).is_some_and(|here| here.level_contains(value))),
            (Json::Array(here), Json::Array(there)) => {
                there.iter().all(|wanted| here.iter().any(|one| one.level_contains(wanted)))
            }
            // An array contains a scalar that is not in one, but at the top only.
            (Json::Array(here), scalar) => here.iter().any(|one| one.same(scalar)),
            _ => self.same(other),
        }
    }

    fn level_contains(&self, other: &Json<'_>) -> bool {
        match (self, other) {
            (Json::Array(_), Json::Array(_)) | (Json::Object(_), Json::Object(_)) => self.contains(other),
            _ => self.same(other),
        }
    }
}

/// Digits that an exponent may add to a number.
const MOST_DIGITS: i64 = 1_000;

/// A number without its exponent, and zero without its sign, as PostgreSQL's NUMERIC writes it.
fn plain_number(digits: Cow<'_, str>) -> Cow<'_, str> {
    let (sign, rest) = digits.strip_prefix('-').map_or(("", digits.as_ref()), |rest| ("-", rest));
    let zero =
        rest.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if zero { "" } else { sign };
    let Some((mantissa, exponent)) = rest.split_once(['e', 'E']) else {
        return if zero { Cow::Owned(rest.to_owned()) } else { digits };
    };
    let Some(exponent) = exponent.parse::<i64>().ok().filter(|exponent| exponent.abs() <= MOST_DIGITS) else {
        return digits;
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut all = format!("{whole}{fraction}");
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    // Where the point comes to stand.
    let point = length(whole).saturating_add(exponent);
    let missing = usize::try_from(1_i64.saturating_sub(point)).unwrap_or(0);
    all.insert_str(0, &"0".repeat(missing));
    let point = usize::try_from(point.max(1)).unwrap_or(1);
    while all.len() < point {
        all.push('0');
    }
    let (whole, fraction) = all.split_at(point);
    let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
    let point = if fraction.is_empty() { "" } else { "." };
    Cow::Owned(format!("{sign}{whole}{point}{fraction}"))
}

/// Where an index points to in so many elements.
pub(crate) fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let place = if index < 0 { index.checked_add(length)? } else { index };
    usize::try_from(place).ok()
}

fn same_number(one: &str, two: &str) -> bool {
    if one == two {
        return true;
    }
    match (one.parse::<i128>(), two.parse::<i128>()) {
        (Ok(one), Ok(two)) => one == two,
        _ => one.parse::<f64>().ok() == two.parse::<f64>().ok(),
    }
}
