//! Table names in URLs: one to three parts separated by dots, optionally in double quotes.

use bowshot_api::{Error, OptionValue, Result, Session, TableName};

/// Parses `table`, `schema.table` or `catalog.schema.table`. Names are case-sensitive; parts with dots are in double
/// quotes, which are escaped by doubling.
pub(crate) fn table_name(text: &str) -> Result<TableName> {
    let mut names = parts(text)?;
    let Some(name) = names.pop() else { return Err(malformed(text)) };
    let (schema_name, catalog) = (names.pop(), names.pop());
    if !names.is_empty() {
        return Err(malformed(text));
    }
    Ok(TableName { catalog, schema_name, name })
}

fn parts(text: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted).ok_or_else(|| malformed(text))?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                (name.to_owned(), after)
            }
        };
        if name.is_empty() {
            return Err(malformed(text));
        }
        names.push(name);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(names),
            None => return Err(malformed(text)),
        }
    }
}

/// The name up to its closing quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        name.push_str(rest.get(..end)?);
        rest = rest.get(end + 1..)?;
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

fn malformed(text: &str) -> Error {
    let shown: String = text.chars().take(200).collect();
    Error::invalid(format!("`{shown}` is not a valid table name")).with_hint(
        "send `table`, `schema.table` or `catalog.schema.table`, with double quotes around names with dots",
    )
}

/// `SELECT * FROM` a table, in the session's dialect.
pub(crate) fn select_all(session: &dyn Session, table: &TableName) -> String {
    let quote = if option(session, "dialect").eq_ignore_ascii_case("mysql") { '`' } else { '"' };
    let names = [table.catalog.as_ref(), table.schema_name.as_ref(), Some(&table.name)];
    let names: Vec<String> = names.into_iter().flatten().map(|name| quoted(name, quote)).collect();
    format!("SELECT * FROM {}", names.join("."))
}

fn quoted(name: &str, quote: char) -> String {
    let twice = format!("{quote}{quote}");
    format!("{quote}{}{quote}", name.replace(quote, &twice))
}

pub(crate) fn option(session: &dyn Session, wanted: &str) -> String {
    if let Some(OptionValue::String(text)) = session.option(wanted) { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match table_name(text) {
            Ok(TableName { catalog, schema_name, name }) => {
                [catalog, schema_name, Some(name)].into_iter().flatten().collect::<Vec<_>>().join("|")
            }
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn names_of_tables() {
        for (text, expected) in [
            ("a", "a"),
            ("a.b", "a|b"),
            ("a.b.C d", "a|b|C d"),
            (r#""a.b"."c""d""#, "a.b|c\"d"),
            ("", "`` is not a valid table name"),
            ("a.", "`a.` is not a valid table name"),
            (".a", "`.a` is not a valid table name"),
            ("a.b.c.d", "`a.b.c.d` is not a valid table name"),
            (r#""a"b"#, "`\"a\"b` is not a valid table name"),
            (r#""a"#, "`\"a` is not a valid table name"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted(r#"a"; DROP TABLE b; --"#, '"'), r#""a""; DROP TABLE b; --""#);
        assert_eq!(quoted("a`b", '`'), "`a``b`");
    }
}
