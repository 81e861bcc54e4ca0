//! INSERT in its forms: what gives the rows, and what becomes of those whose key is there.

use crate::catalog::Visible;
use crate::catalog::defaults::WithDefaults;
use crate::catalog::names::{self, Names, ident};
use crate::error::classify;
use crate::plan;
use crate::write::conflict::Conflict;
use crate::write::recognise::{Leading, Recognised, changing, returned, with_returning};
use crate::write::returned_states::{self, RowChange};
use crate::write::{Affected, Write, change, external_database, values};
use bowshot_api::catalog_names::{CHANGE_SCHEMA, SOURCE};
use bowshot_api::variant::is_variant_type;
use bowshot_api::{Error, Result};
use bowshot_policy::Touched;
use bowshot_sql::{BY_NAME, DialectName, Privilege};
use bowshot_tables::{Definition, EntryName, Table};
use bowshot_types::{assigned_parameter, assigned_value};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::config::Dialect;
use datafusion::datasource::ViewTable;
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{
    Cast, DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, WriteOp,
};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, Statement};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// UUIDs as the files of others have them.
const UUID_BYTES: DataType = DataType::FixedSizeBinary(16);

/// The change that an INSERT is.
pub(super) fn insert<'a>(
    insert: &'a ast::Insert,
    leading: Leading,
    visible: &'a Visible,
    names: &'a Names,
) -> BoxFuture<'a, Result<Recognised>> {
    async move {
        if insert.output.is_some() {
            return Err(change::no_output());
        }
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(Error::unsupported("INSERT takes the name of a table"));
        };
        let full = names.resolve(name)?;
        if names.parts.databases.has(&full.catalog) {
            return Box::pin(external_database::insert((insert, full), leading, visible, names)).await;
        }
        let (target, table) = names.writable(name)?;
        names.access.check_any_column(Privilege::Insert, &target)?;
        let definition = table.definition();
        let mut insert = insert.clone();
        let items = insert.returning.take();
        let alias = match insert.table_alias.take() {
            Some(alias) => alias.alias,
            None => names::last(name)?,
        };
        let dialect = plan::dialect(&visible.options()).name();
        let conflict = Conflict::take(&mut insert, definition)?;
        let overwrite = std::mem::take(&mut insert.overwrite);
        values::assigned(&mut insert)?;
        if let Some(rows) = &mut insert.source {
            leading.before(rows, name)?;
        }
        named_by_rows(&mut insert, visible).await?;
        if dialect != DialectName::MySql {
            values::name_first_columns(&mut insert, definition);
        }
        let columns = given_values(&insert, definition)?;
        let touched = match &conflict {
            None => Touched::inserting(columns),
            Some(conflict) => conflict.touched(columns)?,
        };
        names.access.check_touched(&target, &touched)?;
        if conflict.is_some() {
            names.access.check_merged(&target)?;
        }
        values::written_out(&mut insert, definition, visible)?;
        let rows = new_rows(insert, &table, visible).await;
        let rows = rows.map_err(|error| names.access.told_of_columns(&target, error))?;
        let items = returned_items(items.as_deref(), &alias, (&target, &table), (conflict.as_ref(), names))?;
        let returning = (items.as_deref(), &alias);
        match conflict {
            None if overwrite => {
                with_returning(Write::Overwrite(target), rows, returning, &table, visible).await
            }
            None => {
                let write = Write::Insert(Affected { name: target, touched });
                with_returning(write, rows, returning, &table, visible).await
            }
            Some(_) if overwrite => Err(Error::invalid("INSERT OVERWRITE leaves no row to conflict with")),
            Some(conflict) => {
                let query = conflict.query(definition, &alias, dialect);
                let query = query.map_err(|error| names.access.told_of_columns(&target, error))?;
                let source = Arc::new(ViewTable::new(rows, None));
                let merged = changing(query, (&target, &table), &visible.with_source(source)).await?;
                let write = Write::Merge(Affected { name: target, touched });
                with_returning(write, merged, returning, &table, visible).await
            }
        }
    }
    .boxed()
}

/// What is returned of new rows. Rights come before all else: what is wrong with a column tells which there are.
fn returned_items(
    items: Option<&[ast::SelectItem]>,
    alias: &Ident,
    (target, table): (&EntryName, &Table),
    (conflict, names): (Option<&Conflict>, &Names),
) -> Result<Option<Vec<ast::SelectItem>>> {
    let Some(items) = items else { return Ok(None) };
    names.access.check_returned(target)?;
    if conflict.is_some() && returned_states::are_named(items, alias) {
        return Err(Error::unsupported("INSERT … ON CONFLICT does not return `old` and `new` rows")
            .with_hint(
                "name the columns alone, or write a MERGE, whose `merge_action()` tells what happened",
            ));
    }
    returned(Some(items), alias, table, RowChange::Inserted)
}

/// The columns that an INSERT gives values: those that it names, else all; none for DEFAULT VALUES.
fn given_values(insert: &ast::Insert, definition: &Definition) -> Result<BTreeSet<String>> {
    if !insert.columns.is_empty() {
        return insert.columns.iter().map(|name| Ok(ident(&names::last(name)?))).collect();
    }
    let all = definition.columns.iter().map(|column| column.field.name().clone());
    Ok(all.filter(|_| insert.source.is_some()).collect())
}

/// The rows of an INSERT in the columns of the table.
fn new_rows<'a>(
    mut insert: ast::Insert,
    table: &'a Arc<Table>,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<LogicalPlan>> {
    async move {
        insert.table = ast::TableObject::TableName(change::target_name());
        let visible = planned_apart(&mut insert, visible).await?;
        // Without rows: the query of the user is planned beside it.
        let columns = Arc::new(EmptyTable::new(table.provider().schema()));
        let provider =
            WithDefaults::to_insert(columns, table.definition(), &visible.context).map_err(classify)?;
        let again = needs_casts(&insert, table.definition()).then(|| insert.clone());
        let written = insert.source.as_deref().map_or_else(HashSet::new, written_casts);
        let statement = |insert| Parsed::Statement(Box::new(Statement::Insert(insert)));
        let state = visible.with_target(Arc::clone(&provider)).state();
        let mut plan = plan::logical(&state, statement(insert)).await;
        if let Some(mut insert) = again.filter(|_| plan.is_err())
            && let Ok(Some(visible)) = with_casts(&mut insert, table.definition(), &visible).await
        {
            plan = plan::logical(&visible.with_target(provider).state(), statement(insert)).await;
        }
        match plan.map_err(classify)? {
            LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(InsertOp::Append), input, .. }) => {
                let rows = with_bytes(Arc::unwrap_or_clone(input)).map_err(classify)?;
                let dialect = &state.config_options().sql_parser.dialect;
                let rows = with_assignments(rows, dialect, &written).map_err(classify)?;
                bowshot_types::casts::settled(rows, state.config_options()).map_err(classify)
            }
            _ => Err(Error::internal("INSERT was planned as something else")),
        }
    }
    .boxed()
}

/// The planner gives every VALUES below an INSERT the types of the table's columns, which only the rows themselves have: a query
/// with VALUES of its own is planned by itself.
pub(super) fn planned_apart<'a>(
    insert: &'a mut ast::Insert,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<Visible>> {
    async move {
        let source = insert.source.as_mut().filter(|source| values::are_within(source));
        let Some(source) = source else { return Ok(visible.clone()) };
        let stand_in = bowshot_sql::read_query(&format!("SELECT * FROM \"{CHANGE_SCHEMA}\".\"{SOURCE}\""))?;
        let query = Statement::Query(std::mem::replace(source, stand_in));
        let query = Parsed::Statement(Box::new(query));
        let rows = plan::logical(&visible.state(), query).await.map_err(classify)?;
        let names: Vec<String> = (0..rows.schema().fields().len()).map(|at| format!("column_{at}")).collect();
        let rows = plan::renamed(rows, &names).map_err(classify)?;
        Ok(visible.with_source(Arc::new(ViewTable::new(rows, None))))
    }
    .boxed()
}

/// Whether the planner may fail to cast UUIDs and VARIANT: rows that are written out have none for columns of other types.
fn needs_casts(insert: &ast::Insert, definition: &Definition) -> bool {
    let is_query = |source: &ast::Query| !matches!(source.body.as_ref(), ast::SetExpr::Values(_));
    insert.source.as_deref().is_some_and(is_query)
        || definition
            .columns
            .iter()
            .map(|column| bowshot_types::storage_type::logical(&column.field))
            .any(|column| column == UUID_BYTES || is_variant_type(&column))
}

/// The rows of an INSERT planned by themselves, with UUIDs in the form that their columns have, bytes or texts, and as VARIANT where
/// the columns are: the planner knows no such casts. `None` where there are none.
fn with_casts<'a>(
    insert: &'a mut ast::Insert,
    definition: &'a Definition,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<Option<Visible>>> {
    async move {
        let Some(source) = &mut insert.source else { return Ok(None) };
        let query = Parsed::Statement(Box::new(Statement::Query(source.clone())));
        let rows = plan::logical(&visible.state(), query).await.map_err(classify)?;
        let places = insert.columns.iter().map(|name| Ok(definition.position(&ident(&names::last(name)?))));
        let places = places.collect::<Result<Vec<Option<usize>>>>()?;
        let mut differs = false;
        let given = bowshot_types::with_uuids(&rows);
        let columns = given.iter().enumerate().map(|(at, (relation, field))| {
            let place = if places.is_empty() { Some(at) } else { places.get(at).copied().flatten() };
            let column = place.and_then(|place| definition.columns.get(place));
            let value = Expr::Column(Column::new(relation.cloned(), field.name()));
            let value = match column.map(|column| bowshot_types::storage_type::logical(&column.field)) {
                Some(wanted)
                    if (bowshot_types::are_uuids(field) && wanted.is_string())
                        || (field.data_type().is_string() && wanted == UUID_BYTES)
                        || (is_variant_type(&wanted) && !is_variant_type(field.data_type())) =>
                {
                    differs = true;
                    Expr::Cast(Cast::new(Box::new(value), wanted))
                }
                _ => value,
            };
            value.alias(format!("column_{at}"))
        });
        let columns: Vec<Expr> = columns.collect();
        if !differs {
            return Ok(None);
        }
        let rows = LogicalPlanBuilder::from(rows).project(columns).and_then(LogicalPlanBuilder::build);
        *source = bowshot_sql::read_query(&format!("SELECT * FROM \"{CHANGE_SCHEMA}\".\"{SOURCE}\""))?;
        Ok(Some(visible.with_source(Arc::new(ViewTable::new(rows.map_err(classify)?, None)))))
    }
    .boxed()
}

/// `INSERT INTO t SELECT '\xbeef'`: a text that stands in the place of a column of bytes is written as bytes are.
fn with_bytes(rows: LogicalPlan) -> datafusion::error::Result<LogicalPlan> {
    let LogicalPlan::Projection(mut top) = rows else { return Ok(rows) };
    let LogicalPlan::Projection(source) = top.input.as_ref() else { return Ok(LogicalPlan::Projection(top)) };
    for expr in &mut top.expr {
        let Expr::Alias(alias) = expr else { continue };
        let Expr::Cast(cast) = alias.expr.as_mut() else { continue };
        let (Expr::Column(column), DataType::Binary) = (cast.expr.as_ref(), cast.field.data_type()) else {
            continue;
        };
        let written = source.schema.maybe_index_of_column(column).and_then(|at| source.expr.get(at));
        let written = written
            .map(|written| if let Expr::Alias(alias) = written { alias.expr.as_ref() } else { written });
        if let Some(text @ Expr::Literal(ScalarValue::Utf8(Some(_)), _)) = written {
            *cast.expr = text.clone();
        }
    }
    Ok(LogicalPlan::Projection(top))
}

/// Row and column of the values that are casts of the user, or calls that become casts.
fn written_casts(source: &ast::Query) -> HashSet<(usize, usize)> {
    fn is_cast(expr: &ast::Expr) -> bool {
        match expr {
            ast::Expr::Nested(inner) => is_cast(inner),
            expr => matches!(expr, ast::Expr::Cast { .. } | ast::Expr::Function(_)),
        }
    }
    match source.body.as_ref() {
        ast::SetExpr::Values(values) => {
            let rows = values.rows.iter().enumerate();
            let cells =
                rows.flat_map(|(row, cells)| cells.content.iter().enumerate().map(move |cell| (row, cell)));
            cells.filter(|(_, (_, cell))| is_cast(cell)).map(|(row, (column, _))| (row, column)).collect()
        }
        ast::SetExpr::Query(inner) => written_casts(inner),
        _ => HashSet::new(),
    }
}

/// The casts that the planner has put around values, as assignments. Among rows that are written out, a cast may be that of the user.
fn with_assignments(
    rows: LogicalPlan,
    dialect: &Dialect,
    written: &HashSet<(usize, usize)>,
) -> datafusion::error::Result<LogicalPlan> {
    let LogicalPlan::Projection(mut top) = rows else { return Ok(rows) };
    for expr in &mut top.expr {
        if let Expr::Alias(alias) = expr {
            assign(&mut alias.expr, top.input.schema(), dialect)?;
        }
    }
    // There, no cast of a number is left that is one to a time.
    let are_all_of_planner = matches!(dialect, Dialect::MySQL | Dialect::PostgreSQL);
    if matches!(top.input.as_ref(), LogicalPlan::Values(_))
        && let LogicalPlan::Values(values) = Arc::make_mut(&mut top.input)
    {
        let nothing = DFSchema::empty();
        for (row, cells) in values.values.iter_mut().enumerate() {
            for (column, value) in cells.iter_mut().enumerate() {
                if are_all_of_planner || !written.contains(&(row, column)) {
                    assign(value, &nothing, dialect)?;
                }
            }
        }
    }
    Ok(LogicalPlan::Projection(top))
}

fn assign(expr: &mut Expr, columns: &DFSchema, dialect: &Dialect) -> datafusion::error::Result<()> {
    if let Expr::Placeholder(Placeholder { field: Some(field), .. }) = expr {
        *field = Arc::new(assigned_parameter(field, dialect));
    }
    let Expr::Cast(cast) = expr else { return Ok(()) };
    let from = cast.expr.get_type(columns)?;
    let value = std::mem::take(cast.expr.as_mut());
    *cast.expr = assigned_value(value, (&from, cast.field.data_type()), dialect)?.data;
    Ok(())
}

/// `INSERT … BY NAME`: the columns are those of the query.
pub(super) fn named_by_rows<'a>(
    insert: &'a mut ast::Insert,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<()>> {
    async move {
        let [only] = insert.columns.as_slice() else { return Ok(()) };
        if ident(&names::last(only)?) != BY_NAME {
            return Ok(());
        }
        let Some(source) = &insert.source else {
            return Err(Error::invalid("INSERT BY NAME takes a query"));
        };
        let query = Parsed::Statement(Box::new(Statement::Query(source.clone())));
        let plan = plan::logical(&visible.state(), query).await.map_err(classify)?;
        let columns = plan.schema().fields().iter().map(|field| Ident::with_quote('"', field.name()));
        insert.columns = columns.map(|name| ObjectName::from(vec![name])).collect();
        Ok(())
    }
    .boxed()
}
