//! Texts and names as they stand in SQL.

use crate::define::{Function, functions};
use crate::values::Kind::{Bool as Truth, Shown, Text as Words};
use crate::values::{Arguments, Bool, Str, StrList, Text, fill, get_or, map1};
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_err};

/// Words that cannot be names without quotes, of PostgreSQL's reserved ones.
const RESERVED: &[&str] = bowshot_api::words! {
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
    create current_catalog current_date current_role current_time current_timestamp current_user default
    deferrable desc distinct do else end except false fetch for foreign from grant group having in
    initially intersect into lateral leading limit localtime localtimestamp not null offset on only or
    order placing primary references returning select session_user some symmetric system_user table then
    to trailing true union unique user using variadic when where with
};

pub(super) fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !RESERVED.contains(&name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// MySQL's `quote`: with backslashes, and NULL without quotes.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// `null` for a value that is none.
fn or_null(arguments: &Arguments, quoted: fn(&str) -> String) -> Result<ArrayRef> {
    let texts = arguments.read::<Text>(0)?;
    fill::<Str, Result<String>>(arguments, |row| {
        Ok(texts.get(row)?.map_or_else(|| "NULL".to_owned(), quoted))
    })
}

/// The parts of a qualified name; those without quotes in small letters.
fn parts_of(name: &str, strict: bool) -> Result<Vec<Option<String>>> {
    let complaint = || exec_err!("`{name}` is not a valid name; write `schema.table` or quote its parts");
    let (mut parts, mut rest) = (Vec::new(), name.trim());
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let Some(end) = quoted.find('"') else { return complaint() };
            parts.push(Some(quoted.get(..end).unwrap_or_default().to_owned()));
            rest = quoted.get(end + 1..).unwrap_or_default().trim_start();
        } else {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if part.is_empty() || part.starts_with(|c: char| c.is_ascii_digit()) {
                return complaint();
            }
            parts.push(Some(part.to_lowercase()));
            rest = after.trim_start();
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() || !strict => return Ok(parts),
            None => return complaint(),
        }
    }
}

fn parse_ident(arguments: &Arguments) -> Result<ArrayRef> {
    let (names, strict) = (arguments.read::<Text>(0)?, arguments.read_if_given::<Bool>(1)?);
    fill::<StrList, Result<Option<Vec<Option<String>>>>>(arguments, |row| {
        let strict = get_or(strict.as_ref(), row, true)?.unwrap_or(true);
        names.get(row)?.map(|name| parts_of(name, strict)).transpose()
    })
}

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "quote_literal": &[&[Shown]], Text, |a| map1::<Text, Str, _>(a, literal) => "a value as it stands in SQL";
    "quote_ident": &[&[Words]], Text, |a| map1::<Text, Str, _>(a, identifier) => "a name as it stands in SQL";
    "quote_nullable": &[&[Shown]], Text, |a| or_null(a, literal) =>
        "a value as it stands in SQL, NULL for null";
    "quote": &[&[Shown]], Text, |a| or_null(a, quote) => "a value as it stands in MySQL's SQL";
    "parse_ident": &[&[Words], &[Words, Truth]], Texts, parse_ident =>
        "the parts of a qualified name, as a list";
};
