//! The statement that would make a table, a view or an external table again.

use crate::pg_catalog::constraints::{actions, seen_referred};
use bowshot_formats::read_options::OptionValue;
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{
    Column, Definition, EntryName, External, Identity, IdentityKind, Materialized, Storage, View,
};
use bowshot_types::names::{self, quoted};
use datafusion::arrow::datatypes::DataType;
use std::time::Duration;

/// An interval in the largest unit of which it has a whole number.
pub(crate) fn refresh_interval(every: Duration) -> String {
    let seconds = every.as_secs();
    let units = [(24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute"), (1, "second")];
    let whole =
        units.into_iter().find(|(unit, _)| every.subsec_micros() == 0 && seconds.is_multiple_of(*unit));
    let (count, unit) = match whole {
        Some((unit, name)) => (u128::from(seconds / unit), name),
        None => (every.as_micros(), "microsecond"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// When a materialized view is refreshed, as its owner reads it.
pub(crate) fn refresh_mode(view: &Materialized) -> String {
    match view.every {
        _ if view.on_commit => "on commit".to_owned(),
        Some(every) => format!("every {}", refresh_interval(every)),
        None => "manual".to_owned(),
    }
}

/// The statement that makes a table, without the references to what is not seen; `durable` tells whether tables are kept on
/// disk where nobody says otherwise.
pub fn table_text(
    name: &EntryName,
    definition: &Definition,
    durable: bool,
    seen: (&Pinned, &Access),
) -> String {
    if let Some(view) = &definition.materialized {
        let refresh = match view.every {
            _ if view.on_commit => "REFRESH ON COMMIT ".to_owned(),
            Some(every) => format!("REFRESH EVERY '{}' ", refresh_interval(every)),
            None => String::new(),
        };
        return format!("CREATE MATERIALIZED VIEW {} {refresh}AS {}", full(name), view.sql);
    }
    if let Some(Identity { start, step, .. }) = definition.sequence() {
        return format!("CREATE SEQUENCE {} INCREMENT BY {step} START WITH {start}", full(name));
    }
    let mut parts: Vec<String> =
        definition.columns.iter().map(|column| column_text(column, definition)).collect();
    let named = |name: &Option<String>| {
        name.as_ref().map(|name| format!("CONSTRAINT {} ", quoted(name))).unwrap_or_default()
    };
    if let Some(key) = &definition.primary_key {
        parts.push(format!("{}PRIMARY KEY ({})", named(&key.name), list(&key.columns)));
    }
    let unique = definition.unique.iter();
    parts.extend(unique.map(|key| format!("{}UNIQUE ({})", named(&key.name), list(&key.columns))));
    let checks = definition.checks.iter();
    parts.extend(checks.map(|check| format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.sql)));
    let references = definition.references.iter();
    let references = references.filter(|reference| seen_referred(name, reference, seen).is_some());
    parts.extend(references.map(|reference| {
        let referred = if reference.referred.is_empty() {
            String::new()
        } else {
            format!(" ({})", list(&reference.referred))
        };
        format!(
            "{}FOREIGN KEY ({}) REFERENCES {}{referred}{} NOT ENFORCED",
            named(&reference.name),
            list(&reference.columns),
            reference.table,
            actions(reference)
        )
    }));
    let comment = definition.comment.as_ref().map(|text| format!("'{}'", text.replace('\'', "''")));
    let expected = if durable { Storage::Durable } else { Storage::Memory };
    // The parser takes a comment of its own only where there are no options.
    let options = match (definition.storage == expected, comment) {
        (true, None) => String::new(),
        (true, Some(comment)) => format!(" COMMENT {comment}"),
        (false, None) => " WITH (storage = 'memory')".to_owned(),
        (false, Some(comment)) => format!(" WITH (storage = 'memory', comment = {comment})"),
    };
    let clauses = definition.clauses.as_ref().map(|text| format!("\n{text}")).unwrap_or_default();
    format!("CREATE TABLE {} (\n  {}\n){options}{clauses}", full(name), parts.join(",\n  "))
}

fn list(columns: &[String]) -> String {
    columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
}

fn column_text(column: &Column, definition: &Definition) -> String {
    let name = column.field.name();
    let identity = definition.identity(name);
    let serial = identity.filter(|identity| identity.kind == IdentityKind::Serial);
    let serial = serial.and_then(|_| serial_type(column.field.data_type()));
    let mut text =
        format!("{} {}", quoted(name), serial.map_or_else(|| names::sql(&column.field), ToOwned::to_owned));
    if let Some(identity) = identity.filter(|_| serial.is_none()) {
        let kind = if identity.is_always() { "ALWAYS" } else { "BY DEFAULT" };
        text.push_str(&format!(" GENERATED {kind} AS IDENTITY"));
        if (identity.start, identity.step) != (1, 1) {
            text.push_str(&format!(" (START WITH {} INCREMENT BY {})", identity.start, identity.step));
        }
    }
    if let Some(generated) = definition.generated(name) {
        text.push_str(&format!(" GENERATED ALWAYS AS ({}) STORED", generated.sql));
    }
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

/// The word for a column that numbers itself and was made by such a word, unless its type has been changed since.
fn serial_type(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Int16 => Some("SMALLSERIAL"),
        DataType::Int32 => Some("SERIAL"),
        DataType::Int64 => Some("BIGSERIAL"),
        _ => None,
    }
}

/// The statement that makes a view.
pub fn view_text(name: &EntryName, view: &View) -> String {
    let columns: Vec<String> = view.columns.iter().map(|column| quoted(column)).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!("CREATE VIEW {}{columns} AS {}", full(name), view.sql)
}

/// The statement that makes an external table.
pub fn external_text(name: &EntryName, external: &External) -> String {
    let mut options: Vec<&(String, OptionValue)> = external.options.iter().collect();
    let mut columns = String::new();
    if let Some((_, OptionValue::Map(pairs))) = options.first().filter(|(name, _)| name == "columns")
        && pairs.iter().all(|(_, data_type)| is_type(data_type))
    {
        let columns_text = pairs.iter().map(|(name, data_type)| format!("{} {data_type}", quoted(name)));
        columns = format!(" (\n  {}\n)", columns_text.collect::<Vec<_>>().join(",\n  "));
        options.remove(0);
    }
    let folders = folder_columns(&mut options);
    let options =
        options.into_iter().map(|(name, value)| format!("{} {}", literal(name), option_text(value)));
    let options: Vec<String> = options.collect();
    let options =
        if options.is_empty() { String::new() } else { format!(" OPTIONS ({})", options.join(", ")) };
    let format = match external.format.as_str() {
        "" => String::new(),
        format => format!(" STORED AS {}", format.to_uppercase()),
    };
    let comment = external.comment.as_ref().map(|text| format!(" COMMENT {}", literal(text)));
    format!(
        "CREATE EXTERNAL TABLE {}{columns}{format}{folders} LOCATION {}{options}{}",
        full(name),
        literal(&external.location),
        comment.unwrap_or_default()
    )
}

/// The clause for the columns that folders give, which is taken from the options.
fn folder_columns(options: &mut Vec<&(String, OptionValue)>) -> String {
    let Some(place) = options.iter().position(|(name, _)| name == "hive_types") else { return String::new() };
    let (_, OptionValue::Map(pairs)) = options[place] else { return String::new() };
    let column = |(name, data_type): &(String, String)| match data_type.as_str() {
        "auto" => Some(quoted(name)),
        data_type => is_type(data_type).then(|| format!("{} {data_type}", quoted(name))),
    };
    let Some(columns) = pairs.iter().map(column).collect::<Option<Vec<_>>>() else { return String::new() };
    options.remove(place);
    format!(" PARTITIONED BY ({})", columns.join(", "))
}

/// Whether a text is a type as a column of a statement has it.
fn is_type(text: &str) -> bool {
    bowshot_sql::read_type(text).is_some_and(|data_type| data_type.to_string().eq_ignore_ascii_case(text))
}

fn option_text(value: &OptionValue) -> String {
    match value {
        OptionValue::Text(text) => literal(text),
        OptionValue::List(list) => {
            format!("[{}]", list.iter().map(|text| literal(text)).collect::<Vec<_>>().join(", "))
        }
        OptionValue::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}: {}", literal(key), literal(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn full(name: &EntryName) -> String {
    [&name.catalog, &name.schema, &name.name].map(|part| quoted(part)).join(".")
}
