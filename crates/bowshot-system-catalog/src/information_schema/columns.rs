//! `columns`: with the standard's names of types, and MySQL's additions (`column_type`, `column_key`, `extra`,
//! `column_comment`) at the end.

use crate::CatalogView;
use crate::client::Flavour;
use crate::information_schema::tables::{full, yes};
use crate::lazy_table::{Cell, Defined, Make, Rows, cells, tables};
use crate::listing::{About, Listed};
use crate::pg_catalog::attributes;
use bowshot_api::catalog_names::DEFAULT_CATALOG;
use bowshot_tables::IdentityKind;
use bowshot_types::enums::EnumType;
use bowshot_types::names;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use futures::future::BoxFuture;

pub(crate) static TABLES: &[Defined] = tables! {
    columns: table_catalog Text, table_schema Text, table_name Text, column_name Text,
        ordinal_position Count, column_default Text, is_nullable Text, data_type Text,
        character_maximum_length Count, character_octet_length Count, numeric_precision Count,
        numeric_precision_radix Int, numeric_scale Count, datetime_precision Count, interval_type Text,
        character_set_name Text, collation_name Text, udt_catalog Text, udt_schema Text, udt_name Text,
        is_identity Text, is_generated Text, generation_expression Text, is_updatable Text,
        column_type Text, column_key Text, extra Text, column_comment Text => Make::Later(made);
};

fn made<'a>(visible: &'a CatalogView, about: &'a About, rows: &'a mut Rows) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        for listed in visible.listed(about) {
            let Some(schema) = visible.columns_of(&listed).await else { continue };
            for (position, field) in schema.fields().iter().enumerate() {
                rows.add(row(visible, &listed, position, field));
            }
        }
        Ok(())
    })
}

fn row(visible: &CatalogView, listed: &Listed, position: usize, field: &Field) -> Vec<Cell> {
    let flavour = visible.flavour();
    let definition = listed.definition();
    let column = definition.and_then(|definition| definition.columns.get(position));
    let default = column.and_then(|column| match flavour {
        Flavour::Postgres => attributes::default(visible, listed, column),
        Flavour::Bowshot | Flavour::MySql => column.default.clone(),
    });
    let mut cells = Vec::with_capacity(28);
    cells.extend(full(listed));
    cells.extend([field.name().into(), (position + 1).into(), default.into(), yes(field.is_nullable())]);
    cells.extend(type_cells(field, flavour));
    let identity = definition.and_then(|definition| definition.identity(field.name()));
    let generated = definition.and_then(|definition| definition.generated(field.name()));
    let extra = match (identity, generated) {
        (Some(_), _) => "auto_increment",
        (None, Some(_)) => "STORED GENERATED",
        (None, None) => "",
    };
    cells.extend([
        yes(identity
            .is_some_and(|identity| flavour != Flavour::Postgres || identity.kind != IdentityKind::Serial)),
        if generated.is_some() { "ALWAYS" } else { "NEVER" }.into(),
        generated.map(|generated| generated.sql.clone()).into(),
        yes(definition.is_some_and(|definition| definition.materialized.is_none())),
        type_name(field, flavour).into(),
        key(listed, field.name()),
        extra.into(),
        comment(column.and_then(|column| column.comment.clone()), flavour),
    ]);
    cells
}

/// From `data_type` to `udt_name`.
fn type_cells(field: &Field, flavour: Flavour) -> impl Iterator<Item = Cell> {
    let data_type = field.data_type();
    let digits = match flavour {
        Flavour::MySql => names::decimal_digits(data_type),
        Flavour::Bowshot | Flavour::Postgres => names::number_digits(data_type),
    };
    let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let length = names::declared_length(field).or_else(|| of_blob(field, flavour));
    let seconds = names::declared_digits(field).and_then(|digits| i32::try_from(digits).ok());
    let postgres = names::postgres(field);
    let udt = if data_type.is_list() { format!("_{}", postgres.name) } else { postgres.name.to_owned() };
    let (udt_schema, udt) = match EnumType::declared(field).and_then(|of| of.name) {
        Some(name) => (name.schema, name.name),
        None => ("pg_catalog".to_owned(), udt),
    };
    let data_type_name = match flavour {
        Flavour::MySql => without_numbers(&names::mysql(field)),
        Flavour::Postgres => names::standard_of_postgres(field),
        Flavour::Bowshot => names::standard(field),
    };
    let bytes = length.and_then(|length| if is_text { length.checked_mul(4) } else { Some(length) });
    let [precision, base] = [digits.map(|(digits, _, _)| digits), digits.map(|(_, base, _)| base)];
    let scale = digits.and_then(|(_, _, scale)| scale);
    let seconds = seconds.or_else(|| names::second_digits(data_type));
    let [set, collation] = ["UTF8", "C"].map(|name| is_text.then_some(name));
    let first = cells![data_type_name, length, bytes, precision, base, scale, seconds, Cell::Null];
    first.into_iter().chain(cells![set, collation, DEFAULT_CATALOG, udt_schema, udt])
}

/// Bytes that MySQL says a column of type BLOB may have.
fn of_blob(field: &Field, flavour: Flavour) -> Option<i32> {
    (flavour == Flavour::MySql && names::mysql(field) == "blob").then_some(65_535)
}

/// What somebody says about a thing; in MySQL nothing is an empty text.
pub(super) fn comment(said: Option<String>, flavour: Flavour) -> Cell {
    match flavour {
        Flavour::MySql => said.unwrap_or_default().into(),
        Flavour::Bowshot | Flavour::Postgres => said.into(),
    }
}

fn without_numbers(name: &str) -> String {
    name.split(['(', ' ']).next().unwrap_or(name).to_owned()
}

/// The name of a column's type with its numbers.
pub(crate) fn type_name(field: &Field, flavour: Flavour) -> String {
    match flavour {
        Flavour::MySql => names::mysql(field),
        Flavour::Bowshot | Flavour::Postgres => names::sql(field),
    }
}

/// MySQL's: part of the primary key, or unique by itself.
fn key(listed: &Listed, column: &str) -> Cell {
    let Some(definition) = listed.definition() else { return "".into() };
    let primary = definition.primary_key.iter().flat_map(|key| &key.columns);
    if primary.into_iter().any(|part| part == column) {
        return "PRI".into();
    }
    let unique =
        definition.unique.iter().any(|key| matches!(key.columns.as_slice(), [only] if only == column));
    if unique { "UNI" } else { "" }.into()
}
