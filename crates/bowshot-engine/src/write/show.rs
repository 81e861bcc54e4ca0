//! `SHOW CREATE TABLE t`, `SHOW CREATE VIEW v`: the statement that would make it again.

use crate::write::names::{Names, last};
use bowshot_api::{Error, Result};
use bowshot_storage::tables::{Column, Definition, Entry, EntryName, Storage, View};
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowCreateObject, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// A query that gives the text, in the place of the statement; other statements as they are.
///
/// # Errors
/// `NotFound` without the table or view.
pub(crate) fn expanded(statement: Parsed, names: &Names) -> Result<Parsed> {
    let Parsed::Statement(inner) = &statement else { return Ok(statement) };
    let Statement::ShowCreate { obj_type: ShowCreateObject::Table | ShowCreateObject::View, obj_name } =
        inner.as_ref()
    else {
        return Ok(statement);
    };
    let text = text_of(obj_name, names)?;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let sql = format!(
        "SELECT {} AS table_name, {} AS create_statement",
        quoted(&last(obj_name)?.value),
        quoted(&text)
    );
    let mut parsed = Parser::parse_sql(&GenericDialect {}, &sql)
        .map_err(|error| Error::internal(format!("a query was not parsed: {error}")))?;
    match parsed.pop() {
        Some(query) => Ok(Parsed::Statement(Box::new(query))),
        None => Err(Error::internal("a query was parsed as nothing")),
    }
}

fn text_of(name: &ObjectName, names: &Names) -> Result<String> {
    let full = names.resolve(name)?;
    match names.pinned.entry(&full) {
        Some(Entry::Table(table)) => Ok(table_text(&full, table.definition(), names)),
        Some(Entry::View(view)) => Ok(view_text(&full, view)),
        None => Err(names.not_there(&full)),
    }
}

fn table_text(name: &EntryName, definition: &Definition, names: &Names) -> String {
    let mut parts: Vec<String> = definition.columns.iter().map(column_text).collect();
    if let Some(key) = &definition.primary_key {
        let columns: Vec<String> = key.columns.iter().map(|column| quoted(column)).collect();
        let named = key.name.as_ref().map(|name| format!("CONSTRAINT {} ", quoted(name))).unwrap_or_default();
        parts.push(format!("{named}PRIMARY KEY ({})", columns.join(", ")));
    }
    let checks = definition.checks.iter();
    parts.extend(checks.map(|check| format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.sql)));
    let comment = definition.comment.as_ref();
    let comment = comment.map(|text| format!(" COMMENT '{}'", text.replace('\'', "''"))).unwrap_or_default();
    let expected = if names.parts.tables.has_folder() { Storage::Durable } else { Storage::Memory };
    let storage = if definition.storage == expected { "" } else { " WITH (storage = 'memory')" };
    format!("CREATE TABLE {} (\n  {}\n){storage}{comment}", full(name), parts.join(",\n  "))
}

fn column_text(column: &Column) -> String {
    let mut text = format!("{} {}", quoted(column.field.name()), type_text(column.field.data_type()));
    if !column.field.is_nullable() {
        text.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        text.push_str(&format!(" DEFAULT {default}"));
    }
    if let Some(comment) = &column.comment {
        text.push_str(&format!(" COMMENT '{}'", comment.replace('\'', "''")));
    }
    text
}

/// The SQL name of a type; Arrow's own for those that SQL has no name for.
fn type_text(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INTEGER UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::Time64(_) => "TIME".to_owned(),
        DataType::Interval(_) => "INTERVAL".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::List(item) => format!("{}[]", type_text(item.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> =
                fields.map(|field| format!("{} {}", field.name(), type_text(field.data_type()))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn view_text(name: &EntryName, view: &View) -> String {
    let columns: Vec<String> = view.columns.iter().map(|column| quoted(column)).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("CREATE VIEW {}{columns} AS {}", full(name), view.sql)
}

fn full(name: &EntryName) -> String {
    [&name.catalog, &name.schema, &name.name].map(|part| quoted(part)).join(".")
}

/// A name as it must be written: quotes only where they are needed.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_keyword(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn is_keyword(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    datafusion::sql::sqlparser::keywords::ALL_KEYWORDS.binary_search(&upper.as_str()).is_ok()
}
