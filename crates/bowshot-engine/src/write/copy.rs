//! COPY: rows between tables and files of the exchange folder.
//!
//! What goes out is a query like any other, whose rows go into a file in the place of the socket. What comes in takes the
//! road of a bulk ingest: nothing may be lost in casts, and defaults, checks and keys hold.

use crate::catalog::names::{Names, ident};
use crate::catalog::{Visible, functions, group_keys, public, search_path};
use crate::error::classify;
use crate::write::external_database::{definition, plain_fields};
use crate::write::recognise::nothing;
use crate::write::{Write, change, external_database, not_in};
use bowshot_api::variant::is_variant_type;
use bowshot_api::{Error, ErrorKind, IfExists, Reason, Result};
use bowshot_files::exchange::{ExchangeFolder, Shape, Wanted};
use bowshot_formats::read_options::{OptionValue, ReadOptions};
use bowshot_formats::variants::Shredding;
use bowshot_object_store::file_name::Format;
use bowshot_sql::{CopyStatement, Direction, Privilege};
use bowshot_tables::{Definition, EntryName};
use bowshot_types::{Types, storage_type};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, SelectItem, Statement, TableFactor};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rows of the plan go into this file.
#[derive(Debug, Clone)]
pub(crate) struct CopyOut {
    pub(crate) path: String,
    pub(crate) shape: Shape,
    pub(crate) overwrite: bool,
    pub(crate) shredding: Shredding,
}

/// The rows of this file go into a table.
#[derive(Debug, Clone)]
pub(crate) struct CopyIn {
    pub(crate) table: EntryName,
    pub(crate) path: String,
    pub(crate) shape: Shape,
    pub(crate) read: ReadOptions,
    pub(crate) wanted: Wanted,
    /// Whether the table is in another database.
    pub(crate) in_database: bool,
}

impl CopyIn {
    pub(crate) fn table(&self) -> &EntryName {
        &self.table
    }

    /// The columns that get values.
    pub(crate) fn columns(&self) -> BTreeSet<String> {
        self.wanted.fields.iter().map(|field| field.name().clone()).collect()
    }
}

/// What the statement does, and the query that gives its rows.
///
/// # Errors
/// `Denied` where the operator has opened no folder, and for paths that lead out of it.
pub(crate) fn recognise<'a>(
    statement: CopyStatement,
    visible: &'a Visible,
    names: &'a Names,
) -> BoxFuture<'a, Result<(Write, LogicalPlan)>> {
    async move {
        let CopyStatement { direction, path, options } = statement;
        folder(names)?.check(&path)?;
        let options = Options::read(&path, options)?;
        let query = match direction {
            Direction::In { table, columns } => {
                let (shape, read) = options.for_reading()?;
                let place = names.resolve(&table)?;
                let in_database = names.parts.databases.has(&place.catalog);
                let (name, wanted) = if in_database {
                    external_database::check_ingest(&place, (IfExists::Append, None), names)?;
                    let fields = plain_fields(&external_database::found(&place, names).await?.schema());
                    (place, wanted(&definition(fields.iter()), &columns))
                } else {
                    let (name, table) = names.writable(&table)?;
                    names.access.check_any_column(Privilege::Insert, &name)?;
                    let wanted = wanted(table.definition(), &columns);
                    (name, wanted)
                };
                let wanted = wanted.map_err(|error| names.access.told_of_columns(&name, error))?;
                let copy = CopyIn { table: name, path, shape, read, wanted, in_database };
                names.access.check_columns(Privilege::Insert, copy.table(), &copy.columns())?;
                copy.shape.check(&Schema::new(copy.wanted.fields.clone()))?;
                return Ok((Write::CopyIn(copy), nothing()));
            }
            Direction::TableOut { table, columns } => all_of(table, columns)?,
            Direction::QueryOut(query) => query,
        };
        if !options.read.is_empty() {
            return Err(Error::invalid("an option that says how a file is read is none of COPY … TO")
                .with_hint("the options are FORMAT, HEADER, DELIMITER, OVERWRITE and SHREDDING"));
        }
        let mut statement = Statement::Query(query);
        not_in::aware(&mut statement)?;
        let mut statement = Parsed::Statement(Box::new(statement));
        public::resolve(&mut statement, &names.schemas());
        names.types().resolve(&mut statement);
        Box::pin(functions::expand(&mut statement, (visible, names))).await?;
        search_path::resolve(&mut statement, names, visible);
        group_keys::add(&mut statement, names, visible);
        let plan = crate::plan::logical(&visible.state(), statement).await.map_err(classify)?;
        let columns = options.shape.layout().schema(plan.schema().as_arrow());
        options.shape.check(&columns)?;
        let shredding = shredding(options.shredding.as_deref(), &columns, options.shape.format)?;
        let copy = CopyOut { path, shape: options.shape, overwrite: options.overwrite, shredding };
        Ok((Write::CopyOut(copy), plan))
    }
    .boxed()
}

pub(crate) fn folder(names: &Names) -> Result<&Arc<ExchangeFolder>> {
    names.parts.exchange.as_ref().ok_or_else(|| {
        Error::new(ErrorKind::Denied, "statements cannot read or write files of this server").with_hint(
            "the operator can allow one folder with the setting `storage.exchange_folder`; or write the result at the client, for example with `bowshot sql --format parquet`",
        )
    })
}

/// `SELECT columns FROM table`
fn all_of(table: ObjectName, columns: Vec<Ident>) -> Result<Box<Query>> {
    let mut query = bowshot_sql::read_query("SELECT * FROM t")?;
    let select = change::select_of(&mut query)?;
    if let Some(TableFactor::Table { name, .. }) = select.from.first_mut().map(|from| &mut from.relation) {
        *name = table;
    }
    if !columns.is_empty() {
        let item =
            |column| SelectItem::UnnamedExpr(datafusion::sql::sqlparser::ast::Expr::Identifier(column));
        select.projection = columns.into_iter().map(item).collect();
    }
    Ok(query)
}

/// How COPY … FROM reads files, by its options.
///
/// # Errors
/// `Invalid`, naming the option; `Unsupported` for formats that COPY does not read.
pub(crate) fn read_options(
    path: &str,
    options: Vec<(String, Option<String>)>,
) -> Result<(Shape, ReadOptions)> {
    Options::read(path, options)?.for_reading()
}

/// The columns of the table that the rows go into.
pub(crate) fn wanted(definition: &Definition, columns: &[Ident]) -> Result<Wanted> {
    if columns.is_empty() {
        let fields = definition.columns.iter().map(|column| wanted_field(&column.field)).collect();
        return Ok(Wanted { fields, named: false });
    }
    let mut fields: Vec<FieldRef> = Vec::with_capacity(columns.len());
    for name in columns.iter().map(ident) {
        let column = definition.position(&name).and_then(|position| definition.columns.get(position));
        let column = column.ok_or_else(|| change::no_column(&name, definition))?;
        if fields.iter().any(|field| *field.name() == name) {
            return Err(Error::invalid(format!("column `{name}` is there twice"))
                .with_reason(Reason::DuplicateColumn));
        }
        fields.push(wanted_field(&column.field));
    }
    Ok(Wanted { fields, named: true })
}

/// A column as files have it. What is read from text for VARIANT is JSON, which becomes VARIANT on its way into the table.
fn wanted_field(column: &Field) -> FieldRef {
    let meant = storage_type::meant_field(column);
    match is_variant_type(meant.data_type()) {
        true => Arc::new(meant.as_ref().clone().with_data_type(DataType::Utf8)),
        false => meant,
    }
}

/// Which parts of VARIANT columns are written in types of their own: `v STRUCT<a BIGINT, b VARCHAR[]>, w BIGINT`.
fn shredding(said: Option<&str>, columns: &Schema, format: Format) -> Result<Shredding> {
    let Some(said) = said else { return Ok(Shredding::default()) };
    let wrong = |detail: &str| {
        Error::invalid(format!("SHREDDING: {detail}")).with_hint(
            "name VARIANT columns with the types of their values: `SHREDDING 'v STRUCT<a BIGINT>'`",
        )
    };
    if format != Format::Parquet {
        return Err(wrong("it is an option of the format parquet"));
    }
    let named =
        bowshot_sql::read_type(&format!("STRUCT<{said}>")).ok_or_else(|| wrong("these are no columns"))?;
    let field = Types.plan_type_field(&named).map_err(classify)?;
    let types = field.as_ref().map(|field| field.data_type());
    let Some(DataType::Struct(types)) = types else { return Err(wrong("these are no columns")) };
    let shredding = Shredding::new(types, columns).map_err(|detail| wrong(&detail))?;
    shredding
        .shred(&RecordBatch::new_empty(Arc::new(columns.clone())))
        .map_err(|error| wrong(&error.to_string()))?;
    Ok(shredding)
}

/// Options of files that COPY … FROM has beside its own.
const READ_OPTIONS: [&str; 16] = [
    "quote",
    "escape",
    "comment",
    "skip",
    "nullstr",
    "null",
    "dateformat",
    "timestampformat",
    "decimal_separator",
    "thousands",
    "encoding",
    "null_padding",
    "ignore_errors",
    "max_line_size",
    "compression",
    "sample_size",
];

struct Options {
    shape: Shape,
    /// How a file is read, as far as its shape does not say it.
    read: ReadOptions,
    overwrite: bool,
    shredding: Option<String>,
}

impl Options {
    fn read(path: &str, given: Vec<(String, Option<String>)>) -> Result<Self> {
        let (mut format, mut header, mut delimiter, mut overwrite) = (None, None, None, None);
        let mut shredding = None;
        let mut read = ReadOptions::default();
        for (name, value) in given {
            match name.as_str() {
                "format" => set(&mut format, &name, value.ok_or_else(|| no_value(&name))?)?,
                "header" => set(&mut header, &name, truth(&name, value)?)?,
                "delimiter" | "delim" | "sep" => set(&mut delimiter, &name, character(&name, value)?)?,
                "overwrite" => set(&mut overwrite, &name, truth(&name, value)?)?,
                "shredding" => set(&mut shredding, &name, value.ok_or_else(|| no_value(&name))?)?,
                _ if READ_OPTIONS.contains(&name.as_str()) => {
                    read.set(&name, &OptionValue::Text(value.ok_or_else(|| no_value(&name))?))?;
                }
                _ => {
                    return Err(Error::invalid(format!("`{name}` is no option of COPY"))
                        .with_hint("the options are FORMAT, HEADER, DELIMITER, OVERWRITE and SHREDDING, and of COPY … FROM those of `read_csv`"));
                }
            }
        }
        let format = Shape::format_of(path, format.as_deref())?;
        if format != Format::Csv && (header.is_some() || delimiter.is_some()) {
            return Err(Error::invalid("HEADER and DELIMITER are options of the format csv"));
        }
        let shape = Shape { format, header: header.unwrap_or(true), delimiter };
        Ok(Self { shape, read, overwrite: overwrite.unwrap_or(false), shredding })
    }

    /// Of COPY … FROM: the shape of a file, and how it is read.
    fn for_reading(self) -> Result<(Shape, ReadOptions)> {
        if self.shredding.is_some() {
            return Err(Error::invalid("SHREDDING is an option of COPY … TO"));
        }
        if self.overwrite {
            return Err(Error::invalid("OVERWRITE is an option of COPY … TO")
                .with_hint("empty the table first: `TRUNCATE TABLE`"));
        }
        Ok((self.shape, self.read))
    }
}

fn set<T>(place: &mut Option<T>, name: &str, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("the option `{name}` is there twice"))),
    }
}

fn no_value(name: &str) -> Error {
    Error::invalid(format!("the option `{name}` has no value"))
}

/// `HEADER` alone means that there is one.
fn truth(name: &str, value: Option<String>) -> Result<bool> {
    match value.map(|value| value.to_ascii_lowercase()).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(other) => Err(Error::invalid(format!("`{other}` is no value for `{name}`"))
            .with_reason(Reason::InvalidValue)
            .with_hint("write true or false")),
    }
}

fn character(name: &str, value: Option<String>) -> Result<u8> {
    let value = value.ok_or_else(|| no_value(name))?;
    match value.as_bytes() {
        [one] if one.is_ascii() && !b"\"\r\n\0".contains(one) => Ok(*one),
        b"\\t" => Ok(b'\t'),
        _ => Err(Error::invalid(format!("`{value}` is no value for `{name}`"))
            .with_reason(Reason::InvalidValue)
            .with_hint("it is one character, such as ',', ';' or '\\t'")),
    }
}
