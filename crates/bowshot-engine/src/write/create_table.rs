//! What CREATE TABLE makes.

use crate::catalog::defaults;
use crate::catalog::names::{Names, ident};
use crate::error::classify;
use crate::write::ddl::Ddl;
use crate::write::enums;
use crate::write::table_clauses::{self, Parts};
use crate::write::{NewTable, WhenThere, Write};
use bowshot_api::{Error, Layout, Result};
use bowshot_tables::{Check, Definition, Storage};
use bowshot_types::declared::{self, Declared};
use bowshot_types::{names, result_metadata, storage_type};
use datafusion::arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CreateTable, CreateTableLikeKind, CreateTableOptions, Expr as SqlExpr, SqlOption, Value,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::HashSet;
use std::sync::Arc;
use uuid::Uuid;

/// What a table is to be, and the query that gives its rows for `CREATE TABLE … AS`.
pub(crate) fn table<'a>(
    mut create: CreateTable,
    names: &'a Names,
    state: &'a SessionState,
) -> BoxFuture<'a, Result<(Write, Option<LogicalPlan>)>> {
    async move {
        let when_there = when_there(create.or_replace, create.if_not_exists)?;
        take_comment(&mut create);
        let asked = storage_option(std::mem::replace(&mut create.table_options, CreateTableOptions::None))?;
        let temporary = std::mem::take(&mut create.temporary);
        let name = names.new_name(&create.name, temporary)?;
        let storage = names.storage(&name, asked)?;
        if let Some(like) = create.like.take() {
            let definition = copied(&like, storage, names)?;
            return Ok((Write::Ddl(Ddl::CreateTable(NewTable { name, definition, when_there })), None));
        }
        if let Some(of) = create.clone.take() {
            let (definition, rows) = cloned((of, create.query.take()), storage, (names, state)).await?;
            return Ok((Write::CreateAs(NewTable { name, definition, when_there }), Some(rows)));
        }
        drop_hints(&mut create)?;
        let parts = Parts::take(&mut create)?;
        let has_rows = create.query.is_some();
        create.or_replace = false;
        create.if_not_exists = false;
        let varchars = plain_varchars(&create.columns);
        let rows = planned(create, state).await?;
        let schema = if has_rows {
            made_schema(&rows, state)
        } else {
            with_varchars(rows.schema().inner(), &varchars)
        };
        let definition = parts.definition(&schema, has_rows, storage)?;
        check_expressions(&definition, state)?;
        table_clauses::note_referred(&definition.references, names)?;
        let table = NewTable { name, definition, when_there };
        Ok(if has_rows {
            (Write::CreateAs(table), Some(rows))
        } else {
            (Write::Ddl(Ddl::CreateTable(table)), None)
        })
    }
    .boxed()
}

/// The columns of a query with what is declared for them, in the types in which its rows come.
pub(super) fn made_schema(rows: &LogicalPlan, state: &SessionState) -> Schema {
    let made = result_metadata::analysed_schema(state, rows);
    let fields = rows.schema().fields().iter().zip(made.fields());
    let fields = fields
        .map(|(field, made)| table_clauses::declared(&declared::without_marks(field), made.as_ref().clone()));
    Schema::new(fields.collect::<Fields>())
}

/// The comment stands among the options where there are some.
fn take_comment(create: &mut CreateTable) {
    let (CreateTableOptions::Plain(options) | CreateTableOptions::With(options)) = &mut create.table_options
    else {
        return;
    };
    options.retain(|option| {
        let comment = match option {
            SqlOption::Comment(comment) => Some(comment.clone()),
            SqlOption::KeyValue { key, value: SqlExpr::Value(value) } if ident(key) == "comment" => {
                match &value.value {
                    Value::SingleQuotedString(text) => Some(ast::CommentDef::WithEq(text.clone())),
                    _ => None,
                }
            }
            _ => None,
        };
        let kept = comment.is_none();
        create.comment = comment.or(create.comment.take());
        kept
    });
}

/// How rows are laid out in other systems, which says nothing about what they are. Where they are does: there may be some.
fn drop_hints(create: &mut CreateTable) -> Result<()> {
    if create.hive_formats.as_ref().is_some_and(|formats| formats.location.is_some()) {
        return Err(Error::unsupported("a table that is kept here has no LOCATION").with_hint(
            "write `CREATE EXTERNAL TABLE … STORED AS PARQUET LOCATION '…'` for files that are there, or leave LOCATION out",
        ));
    }
    create.partition_by = None;
    create.cluster_by = None;
    create.clustered_by = None;
    create.order_by = None;
    create.without_rowid = false;
    create.strict = false;
    create.hive_distribution = ast::HiveDistributionStyle::NONE;
    create.hive_formats = None;
    (create.diststyle, create.distkey, create.sortkey) = (None, None, None);
    Ok(())
}

/// `CREATE TABLE … LIKE t` has all that `t` has but its rows; `(LIKE t)` its columns alone, as in PostgreSQL.
fn copied(like: &CreateTableLikeKind, storage: Storage, names: &Names) -> Result<Definition> {
    let (of, plain) = match like {
        CreateTableLikeKind::Plain(of) => (of, true),
        CreateTableLikeKind::Parenthesized(of) => (of, false),
    };
    let like = names.resolve(&of.name)?;
    let there = names.table(&like)?;
    names.access.check_whole(&like)?;
    let mut definition = Definition {
        storage,
        materialized: None,
        references: Vec::new(),
        ..there.definition().as_ref().clone()
    };
    for column in &mut definition.columns {
        let meant = column.field.as_ref().clone().with_data_type(storage_type::logical(&column.field));
        column.field = Arc::new(kept_field(storage, &meant)?);
    }
    if plain {
        definition.identities.iter_mut().for_each(|identity| identity.id = Uuid::new_v4());
        return Ok(definition);
    }
    let with_defaults = matches!(of.defaults, Some(ast::CreateTableLikeDefaults::Including));
    for column in &mut definition.columns {
        column.comment = None;
        column.default = column.default.take().filter(|_| with_defaults);
    }
    Ok(Definition { storage, columns: definition.columns, ..Definition::default() })
}

/// `CREATE TABLE … CLONE t` has all that `t` has, with its rows as they are or were. They are copied: nothing of the new table depends
/// on the other one.
async fn cloned(
    (of, query): (ast::ObjectName, Option<Box<ast::Query>>),
    storage: Storage,
    (names, state): (&Names, &SessionState),
) -> Result<(Definition, LogicalPlan)> {
    let Some(query) = query else { return Err(Error::internal("a table was to be cloned without its rows")) };
    let like = ast::CreateTableLike { name: of.clone(), defaults: None };
    let definition = copied(&CreateTableLikeKind::Plain(like), storage, names)?;
    let query = Statement::Statement(Box::new(ast::Statement::Query(query)));
    let rows = crate::plan::logical(state, query).await.map_err(classify)?;
    let there = rows.schema().fields().iter().map(|field| field.name());
    if !there.eq(definition.columns.iter().map(|column| column.field.name())) {
        return Err(Error::invalid(format!("`{of}` had other columns then"))
            .with_hint("make a table of the rows: `CREATE TABLE … AS SELECT * FROM …`"));
    }
    Ok((definition, rows))
}

/// The query that a plain CREATE TABLE stands for: one with its columns.
pub(super) fn planned<'a>(
    mut create: CreateTable,
    state: &'a SessionState,
) -> BoxFuture<'a, Result<LogicalPlan>> {
    async move {
        create.columns.iter().try_for_each(enums::check_column)?;
        // Under a name that nobody has: whether it is taken is decided where the catalog changes.
        create.name = ast::ObjectName::from(vec![ast::Ident::new("__bowshot_new")]);
        let statement = Statement::Statement(Box::new(ast::Statement::CreateTable(create)));
        match crate::plan::logical(state, statement).await.map_err(classify)? {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(planned)) => {
                crate::plan::without_marks(Arc::unwrap_or_clone(planned.input))
            }
            _ => Err(Error::internal("CREATE TABLE was planned as something else")),
        }
    }
    .boxed()
}

/// The columns of a plain CREATE TABLE, in the types in which they are kept.
pub(crate) fn planned_columns<'a>(
    create: CreateTable,
    state: &'a SessionState,
) -> BoxFuture<'a, Result<SchemaRef>> {
    async move {
        let varchars = plain_varchars(&create.columns);
        let planned = planned(create, state).await?;
        Ok(Layout::default().schema(&with_varchars(planned.schema().inner(), &varchars)))
    }
    .boxed()
}

/// The columns that are VARCHAR without a length, which are texts like those of TEXT to all but clients of PostgreSQL. A cast to
/// it says nothing of its values, so that only columns are marked.
fn plain_varchars(columns: &[ast::ColumnDef]) -> HashSet<String> {
    use ast::DataType::{CharVarying, CharacterVarying, Nvarchar, Varchar};
    let is_plain = |column: &&ast::ColumnDef| {
        matches!(
            column.data_type,
            Varchar(None) | Nvarchar(None) | CharacterVarying(None) | CharVarying(None)
        )
    };
    columns.iter().filter(is_plain).map(|column| ident(&column.name)).collect()
}

/// The schema with these columns marked as VARCHAR.
fn with_varchars(schema: &Schema, varchars: &HashSet<String>) -> Schema {
    let fields = schema.fields().iter().map(|field| {
        if !varchars.contains(field.name()) {
            return Arc::clone(field);
        }
        let declared = Declared::PlainVarchar.field(field.data_type().clone());
        Arc::new(table_clauses::declared(&declared, field.as_ref().clone()))
    });
    Schema::new(fields.collect::<Fields>())
}

pub(crate) fn when_there(or_replace: bool, if_not_exists: bool) -> Result<WhenThere> {
    match (or_replace, if_not_exists) {
        (true, true) => Err(Error::invalid("OR REPLACE and IF NOT EXISTS exclude one another")),
        (true, false) => Ok(WhenThere::Replace),
        (false, true) => Ok(WhenThere::Keep),
        (false, false) => Ok(WhenThere::Fail),
    }
}

/// Options of other systems that say how a table is stored or found there, and nothing about its rows.
const WITHOUT_MEANING: &[&str] = &[
    "engine",
    "charset",
    "default charset",
    "character set",
    "default character set",
    "collate",
    "default collate",
    "auto_increment",
    "row_format",
    "key_block_size",
    "avg_row_length",
    "max_rows",
    "min_rows",
    "pack_keys",
    "checksum",
    "delay_key_write",
    "stats_auto_recalc",
    "stats_persistent",
    "stats_sample_pages",
    "compression",
    "fillfactor",
    "autovacuum_enabled",
    "oids",
    "replication_num",
];

/// The only option of a table that means something is where its rows are kept.
pub(crate) fn storage_option(options: CreateTableOptions) -> Result<Option<Storage>> {
    let options = match options {
        CreateTableOptions::None => return Ok(None),
        CreateTableOptions::With(options)
        | CreateTableOptions::Options(options)
        | CreateTableOptions::Plain(options)
        | CreateTableOptions::TableProperties(options) => options,
    };
    let mut storage = None;
    for option in options {
        let (key, value) = match &option {
            SqlOption::KeyValue { key, value } => (key, value),
            // The engine of MySQL, its character sets and places.
            SqlOption::NamedParenthesizedList(_) | SqlOption::TableSpace(_) => continue,
            _ => return Err(unknown_option(&option.to_string())),
        };
        match ident(key).as_str() {
            "storage" => {}
            name if WITHOUT_MEANING.contains(&name) => continue,
            _ => return Err(unknown_option(&key.value)),
        }
        storage = Some(match text(value).as_deref() {
            Some("memory") => Storage::Memory,
            Some("durable") => Storage::Durable,
            _ => {
                return Err(Error::unsupported(format!("storage {value} is not there"))
                    .with_hint("write `storage = 'durable'` or `storage = 'memory'`"));
            }
        });
    }
    Ok(storage)
}

/// The field of a column as a table keeps it.
///
/// # Errors
/// `Unsupported` for a type that a durable table has no place for.
pub(crate) fn kept_field(storage: Storage, field: &Field) -> Result<Field> {
    storage_type::kept(storage, field).ok_or_else(|| {
        Error::unsupported(format!(
            "column `{}` of type {} cannot be durable",
            field.name(),
            names::sql(field)
        ))
        .with_hint("store another type, or keep the table in memory: `WITH (storage = 'memory')`")
    })
}

fn unknown_option(name: &str) -> Error {
    Error::invalid(format!("`{name}` is no option of a table")).with_hint("the one option is `storage`")
}

fn text(value: &SqlExpr) -> Option<String> {
    match value {
        SqlExpr::Identifier(name) => Some(ident(name)),
        other => written(other).map(|text| text.to_ascii_lowercase()),
    }
}

/// A text in quotes.
pub(super) fn written(value: &SqlExpr) -> Option<String> {
    let SqlExpr::Value(value) = value else { return None };
    match &value.value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
        _ => None,
    }
}

/// A name for a check that has none.
pub(crate) fn free_name(checks: &[Check]) -> String {
    let taken: HashSet<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let is_free = |name: &String| !taken.contains(name.as_str());
    (1..).map(|number| format!("check_{number}")).find(is_free).unwrap_or_default()
}

/// Names that the queries need which find the rows of a change.
pub(crate) fn check_column_name(name: &str) -> Result<()> {
    if name.starts_with("__bowshot") {
        return Err(Error::invalid(format!("the column name `{name}` is reserved")));
    }
    Ok(())
}

/// A table with the columns of some rows.
pub(crate) fn of_rows(schema: &Schema, storage: Storage) -> Result<Definition> {
    Parts::default().definition(schema, true, storage)
}

/// Defaults and checks must make sense before rows depend on them.
pub(crate) fn check_expressions(definition: &Definition, state: &SessionState) -> Result<()> {
    for column in &definition.columns {
        enums::check_default(column)?;
        if let Some(default) = &column.default {
            let planned = defaults::parse(default, state).map_err(classify)?;
            if !planned.column_refs().is_empty() {
                return Err(Error::invalid(format!(
                    "the default of column `{}` names a column",
                    column.field.name()
                )));
            }
        }
    }
    let columns = DFSchema::try_from(storage_type::operand_schema(definition)).map_err(classify)?;
    for check in &definition.checks {
        super::constraints::plan_check(&columns, check, state)?;
    }
    for generated in &definition.generated {
        super::constraints::plan_generated(&columns, generated, state)?;
        if let Some(column) =
            definition.columns.iter().find(|column| column.field.name() == &generated.column)
            && column.default.is_some()
        {
            return Err(Error::invalid(format!(
                "column `{}` is computed and cannot have a default",
                generated.column
            )));
        }
    }
    for identity in &definition.identities {
        let position = definition.position(&identity.column);
        let column = position.and_then(|position| definition.columns.get(position));
        if !column.is_some_and(|column| column.field.data_type().is_numeric() && column.default.is_none()) {
            return Err(Error::invalid(format!("column `{}` cannot be numbered", identity.column))
                .with_hint("it has to be a whole number, without a default"));
        }
    }
    Ok(())
}
