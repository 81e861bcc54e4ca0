//! INSERT into a table of an external database: the query for the rows is planned like any other, over the columns that the
//! statement names. The database decides about the other columns.

use crate::catalog::Visible;
use crate::catalog::external_database::only_rows;
use crate::catalog::names::{Names, ident, last};
use crate::error::classify;
use crate::plan;
use crate::write::constraints::cast_exactly;
use crate::write::recognise::{Leading, Recognised};
use crate::write::{Write, change, insert as own};
use bowshot_api::{BatchStream, Error, IfExists, Reason, Result};
use bowshot_sql::Privilege;
use bowshot_tables::{Column, Definition, EntryName, Storage};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::datasource::empty::EmptyTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, WriteOp};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, Statement};
use futures::{StreamExt, TryStreamExt};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rows of the plan go into this table.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseInsert {
    pub(crate) name: EntryName,
    /// The columns that get values.
    pub(crate) columns: BTreeSet<String>,
}

/// The change that such an INSERT is.
pub(super) async fn insert(
    (insert, name): (&ast::Insert, EntryName),
    leading: Leading,
    visible: &Visible,
    names: &Names,
) -> Result<Recognised> {
    names.access.check_any_column(Privilege::Insert, &name)?;
    names.parts.databases.check_writable(&name.catalog)?;
    check_plain(insert, &name)?;
    check_no_policies(&name, names)?;
    let ast::TableObject::TableName(written) = &insert.table else { return Err(only_rows(&name)) };
    let table = found(&name, names).await?;
    let mut insert = insert.clone();
    if let Some(rows) = &mut insert.source {
        leading.before(rows, written)?;
    }
    own::named_by_rows(&mut insert, visible).await?;
    let wanted = wanted(&insert, &table.schema(), &name)?;
    let columns: BTreeSet<String> = wanted.fields().iter().map(|field| field.name().clone()).collect();
    names.access.check_columns(Privilege::Insert, &name, &columns)?;
    insert.columns.clear();
    let rows = planned(insert, wanted, visible).await?;
    Ok(Recognised::Write(Box::new(Write::DatabaseInsert(DatabaseInsert { name, columns })), rows))
}

pub(super) async fn found(name: &EntryName, names: &Names) -> Result<Arc<dyn TableProvider>> {
    let table = names.parts.databases.table(name, names.access.principal()).await?;
    table.ok_or_else(|| not_found(name))
}

/// The same with the columns that only whoever writes rows again sees.
pub(super) async fn rewritable(name: &EntryName, names: &Names) -> Result<Arc<dyn TableProvider>> {
    let table = names.parts.databases.rewritable(name, names.access.principal()).await?;
    table.ok_or_else(|| not_found(name))
}

/// The columns of such a table, of which the database alone knows more.
pub(super) fn definition<'f>(fields: impl Iterator<Item = &'f FieldRef>) -> Definition {
    let columns = fields.map(|field| Column { field: Arc::clone(field), default: None, comment: None });
    Definition { storage: Storage::Memory, columns: columns.collect(), ..Definition::default() }
}

/// The columns as values have them that no file of the database has had before. Who takes the rows refuses NULL; a plan would not name
/// the column.
pub(super) fn plain_fields(columns: &SchemaRef) -> Vec<FieldRef> {
    let plain = |field: &FieldRef| {
        let data_type = plain_type(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true))
    };
    columns.fields().iter().map(plain).collect()
}

fn not_found(name: &EntryName) -> Error {
    Error::not_found(format!("table `{name}` not found")).with_reason(Reason::UndefinedTable)
}

fn check_no_policies(name: &EntryName, names: &Names) -> Result<()> {
    if names.access.written(name).is_none() {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "`{name}` has row policies for `{}`, and rows that go to another database are not held against them",
        names.access.user()
    ))
    .with_hint("let somebody without row policies add them"))
}

/// Whether a client may send rows for a table. `columns` are theirs, where they are known already.
///
/// # Errors
/// As for INSERT; `Unsupported` for rows that are to replace others, or to make a table.
pub(crate) fn check_ingest(
    name: &EntryName,
    (if_exists, columns): (IfExists, Option<&BTreeSet<String>>),
    names: &Names,
) -> Result<()> {
    match columns {
        Some(columns) => names.access.check_columns(Privilege::Insert, name, columns)?,
        None => names.access.check_any_column(Privilege::Insert, name)?,
    }
    names.parts.databases.check_writable(&name.catalog)?;
    if if_exists != IfExists::Append {
        return Err(only_rows(name));
    }
    check_no_policies(name, names)
}

/// Rows of a client for a table, in the types of its columns: nothing of them is lost in casts.
///
/// # Errors
/// `NotFound` for a table or a column that is not there.
pub(crate) async fn sent_rows(
    name: &EntryName,
    rows: BatchStream,
    names: &Names,
) -> Result<SendableRecordBatchStream> {
    let table = found(name, names).await?.schema();
    let mut fields = Vec::with_capacity(rows.schema().fields().len());
    for field in rows.schema().fields() {
        let there = table.field_with_name(field.name()).map_err(|_| {
            Error::not_found(format!("`{name}` has no column `{}`", field.name()))
                .with_reason(Reason::UndefinedColumn)
        })?;
        // Whether NULL is allowed, the database decides.
        fields.push(there.clone().with_nullable(true));
    }
    let schema = Arc::new(Schema::new(fields));
    let wanted = Arc::clone(&schema);
    let fitted = move |batch: RecordBatch| {
        let columns = batch.columns().iter().zip(wanted.fields());
        let columns = columns.map(|(column, field)| cast_exactly(column, field));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&wanted), columns)
            .map_err(|error| Error::invalid("the rows do not fit the table").with_source(error))
    };
    let rows = rows.map(move |batch| batch.and_then(&fitted));
    let rows = rows.map_err(|error| DataFusionError::External(Box::new(error)));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// What another database would have to do is not promised here.
fn check_plain(insert: &ast::Insert, name: &EntryName) -> Result<()> {
    let more = insert.overwrite || insert.ignore || insert.or.is_some() || insert.replace_into;
    let more = more || insert.returning.is_some() || insert.on.is_some();
    if more || insert.source.is_none() || !insert.assignments.is_empty() {
        return Err(Error::unsupported(format!(
            "rows are only added to `{name}`, which is in another database"
        ))
        .with_hint(
            "write `INSERT INTO … SELECT …` or `… VALUES …`, without ON CONFLICT, RETURNING and OVERWRITE",
        ));
    }
    Ok(())
}

/// The columns that the rows have, in their order.
fn wanted(insert: &ast::Insert, all: &SchemaRef, name: &EntryName) -> Result<SchemaRef> {
    if insert.columns.is_empty() {
        return Ok(Arc::clone(all));
    }
    let mut fields = Vec::with_capacity(insert.columns.len());
    for column in &insert.columns {
        let column = ident(&last(column)?);
        let field = all.field_with_name(&column).map_err(|_| {
            Error::not_found(format!("`{name}` has no column `{column}`"))
                .with_reason(Reason::UndefinedColumn)
        })?;
        if fields.iter().any(|known: &Field| *known.name() == column) {
            return Err(Error::invalid(format!("column `{column}` is there twice"))
                .with_reason(Reason::DuplicateColumn));
        }
        fields.push(field.clone());
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The rows with the types of the columns.
async fn planned(mut insert: ast::Insert, columns: SchemaRef, visible: &Visible) -> Result<LogicalPlan> {
    insert.table = ast::TableObject::TableName(change::target_name());
    insert.table_alias = None;
    let visible = own::planned_apart(&mut insert, visible).await?;
    let statement = Parsed::Statement(Box::new(Statement::Insert(insert)));
    let columns = Arc::new(Schema::new(plain_fields(&columns)));
    let state = visible.with_target(Arc::new(EmptyTable::new(columns))).state();
    let plan = plan::logical(&state, statement).await.map_err(classify)?;
    match plan {
        LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(InsertOp::Append), input, .. }) => {
            bowshot_types::casts::settled(Arc::unwrap_or_clone(input), state.config_options())
                .map_err(classify)
        }
        _ => Err(Error::internal("INSERT was planned as something else")),
    }
}

/// The type without the metadata of nested fields, such as their numbers, and without their NOT NULL: values that a statement writes out
/// have none, and the planner takes types that differ in them for different ones. Who takes the rows casts them, and refuses NULL.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    let plain = |field: &FieldRef| Arc::new(Field::new(field.name(), plain_type(field.data_type()), true));
    match data_type {
        DataType::List(element) => DataType::List(plain(element)),
        DataType::LargeList(element) => DataType::LargeList(plain(element)),
        DataType::FixedSizeList(element, length) => DataType::FixedSizeList(plain(element), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::Map(entries, is_sorted) => match entries.data_type() {
            DataType::Struct(pair) => {
                // Keys are never NULL, wherever they are.
                let pair = pair.iter().enumerate();
                let pair = pair.map(|(place, field)| plain(field).as_ref().clone().with_nullable(place > 0));
                let pair = DataType::Struct(pair.collect());
                DataType::Map(Arc::new(Field::new(entries.name(), pair, false)), *is_sorted)
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}
