//! A JSON document as a tree that borrows from its text, and how it is written.

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
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Json::Number(digits) => out.push_str(digits),
            Json::Text(text) => quote(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    quote(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
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

/// Where an index points to in so many elements.
pub(crate) fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let place = if index < 0 { index.checked_add(length)? } else { index };
    usize::try_from(place).ok()
}

/// Writes a string with its quotes.
pub(crate) fn quote(text: &str, out: &mut String) {
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

fn same_number(one: &str, two: &str) -> bool {
    if one == two {
        return true;
    }
    match (one.parse::<i128>(), two.parse::<i128>()) {
        (Ok(one), Ok(two)) => one == two,
        _ => one.parse::<f64>().ok() == two.parse::<f64>().ok(),
    }
}
