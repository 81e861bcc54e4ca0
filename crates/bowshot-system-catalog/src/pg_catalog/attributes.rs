//! Columns, their defaults, and what is said about them.

use crate::CatalogView;
use crate::functions::relations::quoted;
use crate::information_schema::keys_of;
use crate::lazy_table::Make::{Later, Now};
use crate::lazy_table::{Cell, Defined, Rows, cells, replace, tables};
use crate::listing::{About, Listed};
use crate::pg_catalog::classes::here;
use crate::pg_catalog::constraints::comments;
use crate::pg_catalog::oids;
use bowshot_tables::{Column, EntryName, Identity, IdentityKind};
use bowshot_types::enums::EnumType;
use bowshot_types::names;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use futures::future::BoxFuture;

/// Number of the table of tables, which comments are about.
const PG_CLASS: i64 = 1259;
const PG_CONSTRAINT: i64 = 2606;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_attribute: attrelid Long, attname Text, atttypid Long, attlen Short, attnum Short, attcacheoff Int,
        atttypmod Int, attndims Short, attbyval Bool, attalign Text, attstorage Text, attcompression Text,
        attnotnull Bool, atthasdef Bool, atthasmissing Bool, attidentity Text, attgenerated Text,
        attisdropped Bool, attislocal Bool, attinhcount Short, attcollation Long, attstattarget Short,
        attacl Texts, attoptions Texts, attfdwoptions Texts, attmissingval Texts => Later(attributes);

    pg_attrdef: oid Long, adrelid Long, adnum Short, adbin Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let Some(definition) = listed.definition() else { continue };
            let oid = oids::table(&listed.name);
            for (position, column) in definition.columns.iter().enumerate() {
                let Some(default) = default(visible, &listed, column) else { continue };
                let own = oids::constraint(&listed.name, column.field.name());
                rows.add(cells![own, oid, position + 1, default]);
            }
        }
    });

    pg_description: objoid Long, classoid Long, objsubid Int, description Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let oid = oids::table(&listed.name);
            if let Some(comment) = listed.comment() {
                rows.add(cells![oid, PG_CLASS, 0, comment]);
            }
            let Some(definition) = listed.definition() else { continue };
            for (position, column) in definition.columns.iter().enumerate() {
                if let Some(comment) = &column.comment {
                    rows.add(cells![oid, PG_CLASS, position + 1, comment]);
                }
            }
            for (name, comment) in comments(&listed.name, definition) {
                let oid = oids::constraint(&listed.name, &name);
                rows.add(cells![oid, PG_CONSTRAINT, 0, comment]);
            }
        }
    });
};

fn attributes<'a>(
    visible: &'a CatalogView,
    about: &'a About,
    rows: &'a mut Rows,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        for listed in here(visible, about) {
            let Some(schema) = visible.columns_of(&listed).await else { continue };
            for (position, field) in schema.fields().iter().enumerate() {
                rows.add(attribute(&listed, position, field));
            }
            for (index, key, _) in keys_of(&listed) {
                let oid = oids::constraint(&listed.name, &index);
                let fields = key.columns.iter().filter_map(|column| schema.column_with_name(column));
                for (place, (position, field)) in fields.enumerate() {
                    rows.add(of_index(attribute(&listed, position, field), oid, place));
                }
            }
        }
        Ok(())
    })
}

fn attribute(listed: &Listed, position: usize, field: &Field) -> Vec<Cell> {
    let column = listed.definition().and_then(|definition| definition.columns.get(position));
    let generated =
        listed.definition().is_some_and(|definition| definition.generated(field.name()).is_some());
    let postgres = names::postgres(field);
    let list = field.data_type().is_list();
    let (oid, length) = match EnumType::declared(field).and_then(|of| of.name) {
        Some(name) => (oids::enum_type(&name), 4),
        None if list => (postgres.array, -1),
        None => (postgres.oid, postgres.length),
    };
    let (table, name) = (oids::table(&listed.name), field.name());
    let (is_short, storage) = (length > 0 && length <= 8, if length < 0 { "x" } else { "p" });
    let mut cells = Vec::from(cells![table, name, oid, length, position + 1, -1, modifier(field)]);
    cells.extend(cells![i32::from(list), is_short, "i", storage, ""]);
    // What a view reads may be so; the view itself says nothing of it.
    let is_required = !field.is_nullable() && !listed.is_view();
    let has_default = column.is_some_and(|column| column.default.is_some() || is_serial(listed, column));
    let generated = if generated { "s" } else { "" };
    cells.extend(cells![is_required, has_default, false, identity(listed, name), generated, false, true, 0]);
    // That of the type, so that nobody takes it for one of the column's own.
    let collation = if matches!(postgres.oid, 25 | 1042 | 1043) { 100 } else { 0 };
    cells.extend(cells![collation, -1]);
    cells
}

/// The column of an index over that of its table.
fn of_index(mut cells: Vec<Cell>, index: i64, place: usize) -> Vec<Cell> {
    replace(&mut cells, [(0, index.into()), (4, (place + 1).into()), (12, false.into()), (13, false.into())]);
    replace(&mut cells, [(15, "".into()), (16, "".into())]);
    cells
}

/// PostgreSQL's letter for a column that numbers itself.
fn identity(listed: &Listed, column: &str) -> &'static str {
    match listed.definition().and_then(|definition| definition.identity(column)) {
        Some(Identity { kind: IdentityKind::Always, .. }) => "a",
        Some(Identity { kind: IdentityKind::ByDefault, .. }) => "d",
        Some(Identity { kind: IdentityKind::Serial | IdentityKind::Sequence, .. }) | None => "",
    }
}

/// Whether the numbers of a column are its default.
pub(crate) fn is_serial(listed: &Listed, column: &Column) -> bool {
    let identity = listed.definition().and_then(|definition| definition.identity(column.field.name()));
    identity.is_some_and(|identity| identity.kind == IdentityKind::Serial)
}

/// The name of the sequence of a column, as PostgreSQL makes it.
pub(crate) fn sequence_of(table: &str, column: &str) -> String {
    format!("{table}_{column}_seq")
}

/// The default of a column as PostgreSQL writes it; the next number of its sequence for SERIAL.
pub(crate) fn default(visible: &CatalogView, listed: &Listed, column: &Column) -> Option<String> {
    if !is_serial(listed, column) {
        let default = column.default.as_ref()?;
        return Some(names::default_of_postgres(default, &column.field));
    }
    let EntryName { catalog, schema, name } = &listed.name;
    let sequence = quoted(&sequence_of(name, column.field.name()));
    let is_near = visible.default_names() == (catalog.clone(), schema.clone());
    let sequence = if is_near { sequence } else { format!("{}.{sequence}", quoted(schema)) };
    Some(format!("nextval('{}'::regclass)", sequence.replace('\'', "''")))
}

/// Length, precision and scale as PostgreSQL packs them.
fn modifier(field: &Field) -> i32 {
    let data_type = field.data_type();
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            names::declared_length(field).map_or(-1, |length| length.saturating_add(4))
        }
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            ((i32::from(*digits) << 16) | (i32::from(*scale) & 0x7ff)) + 4
        }
        DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_) => {
            match names::second_digits(data_type) {
                Some(6) | None => -1,
                Some(digits) => digits,
            }
        }
        _ => -1,
    }
}
