//! Which statements change tables, and what they change.

use crate::catalog::Visible;
use crate::catalog::lazy_state::LazyState;
use crate::catalog::names::{self, Names, ident};
use crate::error::classify;
use crate::write::alter::Alteration;
use crate::write::change::{self, Changed};
use crate::write::data_modifying_with::{self, Step};
use crate::write::ddl::{Commented, Ddl};
use crate::write::returned_states::{self, RowChange};
use crate::write::returning::{self, Returning};
use crate::write::{
    Affected, Write, alter_table_operations, create_table, create_view, enums, external, external_merge,
    external_rewrite, hidden_columns, insert, merge, not_in, sequences,
};
use bowshot_api::catalog_names::{
    CHANGE_SCHEMA, DEFAULT_SCHEMA, PG_CATALOG, SYSTEM_SCHEMA, TARGET, TEMPORARY_CATALOG,
};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::Touched;
use bowshot_sql::rewrite::Source;
use bowshot_sql::{DialectName, OF_CONSTRAINT, Privilege};
use bowshot_tables::{EntryName, Table};
use bowshot_types::{assigned_parameter, assigned_value, storage_type};
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, TableReference};
use datafusion::config::Dialect;
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, CommentObject, Ident, ObjectName, ObjectNamePart, ObjectType, Query, SchemaName, SelectItem,
    SetExpr, Statement, Truncate, TruncateIdentityOption, With,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;

/// A statement that changes something, and the query that gives its rows.
pub(crate) enum Recognised {
    Write(Box<Write>, LogicalPlan),
    Returning(Box<Write>, LogicalPlan, Returning),
    /// Queries of a WITH that change rows, and what stands behind them: the plan is that of all.
    InSteps(Vec<Step>, Box<Write>, LogicalPlan, Option<Returning>),
}

/// `None` for a statement that changes no table.
pub(crate) fn recognise<'a>(
    statement: &'a Parsed,
    visible: &'a Visible,
    names: &'a Names,
    source: Source<'a>,
) -> BoxFuture<'a, Result<Option<Recognised>>> {
    async move {
        let Parsed::Statement(statement) = statement else { return Ok(None) };
        if let Statement::Query(query) = statement.as_ref()
            && data_modifying_with::are_in(query)
        {
            return data_modifying_with::recognise(query, visible, names, source).await.map(Some);
        }
        let mut statement = statement.clone();
        let mut leading = Leading::take(&mut statement)?;
        if matches!(
            statement.as_ref(),
            Statement::Insert(_) | Statement::CreateTable(_) | Statement::CreateView(_) | Statement::Merge(_)
        ) {
            not_in::aware(&mut statement)?;
        }
        let statement = &statement;
        if let Some(found) = external_rewrite::recognise(statement, &mut leading, visible, names).await? {
            return Ok(Some(found));
        }
        if let Some(found) = external_merge::recognise(statement, &mut leading, visible, names).await? {
            return Ok(Some(found));
        }
        if let Some(ddl) = catalog_change(statement, names)? {
            return Ok(Some(defined(ddl)));
        }
        let recognised = match statement.as_ref() {
            Statement::CreateTable(create) if create.external => {
                defined(Box::pin(external::table(create, names)).await?)
            }
            Statement::CreateTable(create) => {
                let state = visible.state();
                let (write, rows) = Box::pin(create_table::table(create.clone(), names, &state)).await?;
                Recognised::Write(Box::new(write), rows.unwrap_or_else(nothing))
            }
            Statement::CreateView(create) => {
                let (write, rows) =
                    Box::pin(create_view::view(create.clone(), names, visible, source)).await?;
                Recognised::Write(Box::new(write), rows.unwrap_or_else(nothing))
            }
            Statement::AlterTable(alter) => {
                let state = LazyState::new(visible.clone());
                defined(Box::pin(alter_table_operations::alteration(alter, names, &state)).await?)
            }
            Statement::Insert(insert) => Box::pin(insert::insert(insert, leading, visible, names)).await?,
            Statement::Delete(delete) => {
                let Changed { name, alias, mut query } =
                    change::delete(delete, |name| definition(name, names))?;
                leading.before(&mut query, &name)?;
                let (target, table) = names.writable(&name)?;
                names.access.check_rows(&target, &[Privilege::Delete])?;
                if delete.returning.is_some() {
                    // Its columns come with the rows: which there are is told by what is wrong with them.
                    names.access.check_returned(&target)?;
                }
                let rows = changing(query, (&target, &table), visible).await?;
                let items = delete.returning.as_deref();
                let items = returned(items, &alias, &table, RowChange::Deleted)?;
                let returning = (items.as_deref(), &alias);
                with_returning(Write::Delete(target), rows, returning, &table, visible).await?
            }
            Statement::Update(update) => {
                Box::pin(updated(update, leading, source.dialect, (visible, names))).await?
            }
            Statement::Merge(merge) => Box::pin(merged(merge, leading, visible, names)).await?,
            Statement::Truncate(truncate) => defined(truncated(truncate, names, source.dialect)?),
            _ => return Ok(None),
        };
        Ok(Some(recognised))
    }
    .boxed()
}

/// Rights come before all else: what is wrong with the columns of a statement tells which there are.
async fn updated(
    update: &ast::Update,
    leading: Leading,
    dialect: DialectName,
    (visible, names): (&Visible, &Names),
) -> Result<Recognised> {
    let assigned = change::assigned_names(&update.assignments)?;
    let touched = Touched::updating(assigned.clone());
    let (target, table) = names.writable(&change::target(&update.table)?)?;
    names.access.check_touched(&target, &touched)?;
    names.access.check_rows(&target, &[])?;
    let seen = hidden_columns::seen(&target, names);
    let changed = change::update(update, |_| Ok((Arc::clone(table.definition()), seen.clone())));
    let Changed { name, alias, mut query } =
        changed.map_err(|error| names.access.told_of_columns(&target, error))?;
    // Who sees a part of the columns counts the rows that are found.
    if dialect == DialectName::MySql && seen.is_none() {
        change::with_former(&mut query, &assigned, &alias)?;
    }
    let with_old = update.returning.as_deref().filter(|items| returned_states::are_named(items, &alias));
    if with_old.is_some() {
        names.access.check_returned(&target)?;
        returned_states::add_old(&mut query, table.definition(), &alias)?;
    }
    leading.before(&mut query, &name)?;
    let rows = changing(query, (&target, &table), visible).await?;
    let rows = if seen.is_some() { hidden_columns::beside(rows, &table)? } else { rows };
    let write = Write::Update(Affected { name: target, touched });
    if let Some(items) = with_old {
        let items = returned_states::returned_items(items, &alias, table.definition(), RowChange::Updated)?;
        let table = Arc::new(Table::new(returned_states::definition_with_old(table.definition())));
        return with_returning(write, rows, (Some(&items), &alias), &table, visible).await;
    }
    with_returning(write, rows, (update.returning.as_deref(), &alias), &table, visible).await
}

/// See [`updated`].
async fn merged(
    merge: &ast::Merge,
    leading: Leading,
    visible: &Visible,
    names: &Names,
) -> Result<Recognised> {
    let (name, ..) = change::retarget_factor(&merge.table)?;
    let (target, table) = names.writable(&name)?;
    let touched = merge::touched(merge, table.definition())?;
    names.access.check_touched(&target, &touched)?;
    names.access.check_rows(&target, &[])?;
    names.access.check_merged(&target)?;
    let query = merge::merge(merge, |_| Ok(Arc::clone(table.definition())));
    let (name, mut query) = query.map_err(|error| names.access.told_of_columns(&target, error))?;
    leading.before(&mut query, &name)?;
    let plan = changing(query, (&target, &table), visible).await?;
    merge::check_stable(&plan)?;
    let write = Write::Merge(Affected { name: target, touched });
    let Some(items) = merge::returned(merge)? else {
        return Ok(Recognised::Write(Box::new(write), plan));
    };
    let (.., alias) = change::retarget_factor(&merge.table)?;
    let items = merge::returned_items(items, &alias, table.definition())?;
    let table = Arc::new(Table::new(merge::returned_definition(table.definition())));
    with_returning(write, plan, (Some(items.as_slice()), &alias), &table, visible).await
}

fn defined(ddl: Ddl) -> Recognised {
    Recognised::Write(Box::new(Write::Ddl(ddl)), nothing())
}

/// The queries of a `WITH` before a statement that changes rows.
#[derive(Clone)]
pub(super) struct Leading {
    with: Option<With>,
    names: Vec<Ident>,
}

impl Leading {
    /// `WITH … INSERT` and the like, which the parser gives as queries: the statement itself takes the place of the query.
    ///
    /// # Errors
    /// `Invalid` for a query whose name could be taken for the changed table.
    fn take(statement: &mut Statement) -> Result<Self> {
        let mut leading = Self { with: None, names: Vec::new() };
        let Statement::Query(query) = statement else { return Ok(leading) };
        let (SetExpr::Insert(inner)
        | SetExpr::Update(inner)
        | SetExpr::Delete(inner)
        | SetExpr::Merge(inner)) = query.body.as_mut()
        else {
            return Ok(leading);
        };
        let inner = inner.clone();
        leading.with = query.with.take();
        *statement = inner;
        let queries = leading.with.iter().flat_map(|with| &with.cte_tables);
        leading.names = queries.map(|query| query.alias.name.clone()).collect();
        // The planner looks a qualified name up among the queries by its text, dots and all.
        match leading.names.iter().find(|name| name.value.to_ascii_lowercase().starts_with("__bowshot")) {
            Some(name) => Err(Error::invalid(format!("the name {name} is reserved"))),
            None => Ok(leading),
        }
    }

    /// The queries, which are here no more.
    pub(super) fn take_out(&mut self) -> Self {
        Self { with: self.with.take(), names: std::mem::take(&mut self.names) }
    }

    /// Puts the queries before the one that gives the rows for a table.
    ///
    /// # Errors
    /// `Invalid` when one of them hides the table: whose rows are meant is not to be guessed.
    pub(super) fn before(self, rows: &mut Query, target: &ObjectName) -> Result<()> {
        let last = ident(&names::last(target)?);
        if target.0.len() == 1
            && let Some(name) = self.names.iter().find(|name| ident(name) == last)
        {
            return Err(Error::invalid(format!("{name} is both the changed table and a query before it"))
                .with_hint("give the query another name"));
        }
        let Some(with) = self.with else { return Ok(()) };
        if rows.with.is_some() {
            let mut outer = *change::template()?;
            std::mem::swap(&mut outer, rows);
            *rows.body = SetExpr::Query(Box::new(outer));
        }
        rows.with = Some(with);
        Ok(())
    }
}

/// What is returned of rows of which there is one state alone.
pub(super) fn returned(
    items: Option<&[SelectItem]>,
    alias: &Ident,
    table: &Table,
    change: RowChange,
) -> Result<Option<Vec<SelectItem>>> {
    let items = items.map(|items| {
        if returned_states::are_named(items, alias) {
            returned_states::returned_items(items, alias, table.definition(), change)
        } else {
            Ok(items.to_vec())
        }
    });
    items.transpose()
}

/// The write, with what it returns under the name that the statement calls its table by.
pub(super) fn with_returning<'a>(
    write: Write,
    rows: LogicalPlan,
    (returning, name): (Option<&'a [SelectItem]>, &'a Ident),
    table: &'a Arc<Table>,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<Recognised>> {
    async move {
        let Some(items) = returning else { return Ok(Recognised::Write(Box::new(write), rows)) };
        // Before they are planned: what is wrong with them tells which columns there are.
        write.target().map_or(Ok(()), |name| visible.access.check_returned(name))?;
        let returning = Box::pin(returning::planned(items, table, name, visible)).await?;
        Ok(Recognised::Returning(Box::new(write), rows, returning))
    }
    .boxed()
}

pub(crate) fn nothing() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

fn definition(name: &ObjectName, names: &Names) -> Result<Arc<bowshot_tables::Definition>> {
    Ok(Arc::clone(names.writable(name)?.1.definition()))
}

/// Plans a query over the target with the addresses of its rows.
pub(super) fn changing<'a>(
    query: Box<Query>,
    (name, table): (&'a EntryName, &'a Arc<Table>),
    visible: &'a Visible,
) -> BoxFuture<'a, Result<LogicalPlan>> {
    async move {
        let mut statement = Statement::Query(query);
        not_in::aware(&mut statement)?;
        let target = TableReference::partial(CHANGE_SCHEMA, TARGET);
        let target =
            storage_type::as_declared(table.addressed_provider(change::ADDRESS), table.definition(), target);
        let target = target.and_then(|target| visible.changeable(name, target, change::ADDRESS));
        let visible = visible.with_target(target.map_err(classify)?);
        let statement = Parsed::Statement(Box::new(statement));
        let state = visible.state();
        let plan = crate::plan::logical(&state, statement).await.map_err(classify)?;
        crate::plan::allowed::check_size(&plan)?;
        typed(plan, table, &state.config_options().sql_parser.dialect)
    }
    .boxed()
}

/// `SET a = $1`: a parameter that is assigned as it is has the type of its column, and so has a text of bytes, and what SQL assigns in
/// another way than Arrow casts.
fn typed(plan: LogicalPlan, table: &Table, dialect: &Dialect) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(mut top) = plan else { return Ok(plan) };
    for (expr, from) in top.expr.iter_mut().zip(top.schema.fields()) {
        let Expr::Alias(alias) = expr else { continue };
        let position = table.definition().position(&alias.name);
        let column = position.and_then(|position| table.definition().columns.get(position));
        let Some(column) = column else { continue };
        let wanted = storage_type::logical(&column.field);
        match alias.expr.as_mut() {
            Expr::Placeholder(Placeholder { field: place @ None, .. }) => {
                *place = Some(Arc::new(assigned_parameter(&column.field, dialect).with_data_type(wanted)));
            }
            // What is written as a text is bytes there.
            text if wanted == DataType::Binary && from.data_type().is_string() => {
                *text = Expr::Cast(Cast::new(Box::new(std::mem::take(text)), DataType::Binary));
            }
            value => {
                let given = std::mem::take(value);
                let assigned = assigned_value(given, (from.data_type(), &wanted), dialect);
                *value = assigned.map_err(classify)?.data;
            }
        }
    }
    let plan = LogicalPlan::Projection(top);
    plan.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
        .data()
        .map_err(classify)
}

/// TRUNCATE, which in MySQL lets columns number their rows from the beginning, and elsewhere where it says so.
fn truncated(truncate: &Truncate, names: &Names, dialect: DialectName) -> Result<Ddl> {
    if truncate.partitions.is_some() {
        return Err(Error::unsupported("TRUNCATE takes all rows out, and none of a partition alone")
            .with_hint("name the rows: `DELETE FROM … WHERE …`"));
    }
    let mut tables = Vec::with_capacity(truncate.table_names.len());
    for table in &truncate.table_names {
        if !(truncate.if_exists && names.is_nothing(&names.resolve(&table.name)?)) {
            tables.push(names.writable(&table.name)?.0);
        }
    }
    let restarts =
        matches!(truncate.identity, Some(TruncateIdentityOption::Restart)) || dialect == DialectName::MySql;
    Ok(Ddl::Truncate { names: tables, restarts })
}

/// Changes of the catalog that need no planning.
fn catalog_change(statement: &Statement, names: &Names) -> Result<Option<Ddl>> {
    Ok(Some(match statement {
        Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            let SchemaName::Simple(name) = schema_name else {
                return Err(Error::unsupported("AUTHORIZATION is not supported"));
            };
            let (catalog, name) = names.schema(name)?;
            check_schema_name(&name)?;
            Ddl::CreateSchema { catalog, name, keep: *if_not_exists }
        }
        Statement::CreateDatabase { db_name, if_not_exists, .. } => {
            let name = names.catalog(db_name)?;
            if name == TEMPORARY_CATALOG || name.starts_with("__bowshot") {
                return Err(Error::invalid(format!("the catalog name `{name}` is reserved")));
            }
            if names.parts.databases.has(&name) {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("the database `{name}` has this name"),
                )
                .with_hint("choose another name for the catalog"));
            }
            Ddl::CreateCatalog { name, keep: *if_not_exists }
        }
        Statement::Drop { object_type, if_exists, names: dropped, cascade, temporary, .. } => {
            let drop = |name| match temporary {
                true => dropped_own(name, *if_exists, names),
                false => dropped_thing(*object_type, name, *if_exists, *cascade, names),
            };
            match dropped.as_slice() {
                [name] => drop(name)?,
                several => Ddl::Several(several.iter().map(drop).collect::<Result<_>>()?),
            }
        }
        Statement::RenameTable(renamed) => {
            let rename = |renamed: &ast::RenameTable| {
                let name = names.resolve(&renamed.old_name)?;
                let to = names.resolve(&renamed.new_name)?;
                if to.catalog != name.catalog {
                    return Err(Error::unsupported("a table stays in its catalog")
                        .with_hint("use `CREATE TABLE … AS` and drop the old one"));
                }
                Ok(Ddl::Alter { name, if_exists: false, changes: vec![Alteration::RenameTable { to }] })
            };
            Ddl::Several(renamed.iter().map(rename).collect::<Result<_>>()?)
        }
        Statement::Comment { object_type, object_name, comment, .. } => {
            commented(*object_type, object_name, comment.clone(), names)?
        }
        other => match sequences::created(other, names)? {
            Some(created) => created,
            None => return enums::recognise(other, names),
        },
    }))
}

/// Names that mean something else cannot be taken: what is in them, everybody may read.
fn check_schema_name(name: &str) -> Result<()> {
    let reserved = [INFORMATION_SCHEMA, PG_CATALOG, SYSTEM_SCHEMA, TEMPORARY_CATALOG];
    if reserved.contains(&name) || name.starts_with("__bowshot") {
        return Err(Error::invalid(format!("the schema name `{name}` is reserved")));
    }
    Ok(())
}

/// `DROP TEMPORARY TABLE`, which leaves the table alone that everybody sees.
fn dropped_own(name: &ObjectName, if_exists: bool, names: &Names) -> Result<Ddl> {
    let found = names.resolve(name)?;
    let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &found.name);
    if found.catalog == TEMPORARY_CATALOG || name.0.len() == 1 {
        return Ok(Ddl::DropTable { name: own, if_exists });
    }
    Err(Error::invalid(format!("`{name}` is no temporary table")).with_hint("leave the schema out"))
}

fn dropped_thing(
    kind: ObjectType,
    name: &ObjectName,
    if_exists: bool,
    cascade: bool,
    names: &Names,
) -> Result<Ddl> {
    Ok(match kind {
        ObjectType::Table => sequences::dropped(name, if_exists, sequences::Kind::Table, names)?,
        ObjectType::Sequence => sequences::dropped(name, if_exists, sequences::Kind::Sequence, names)?,
        ObjectType::MaterializedView => Ddl::DropMaterialized { name: names.resolve(name)?, if_exists },
        ObjectType::View => Ddl::DropView { name: names.resolve(name)?, if_exists },
        ObjectType::Schema => {
            let (catalog, name) = names.schema(name)?;
            Ddl::DropSchema { catalog, name, if_exists, cascade }
        }
        ObjectType::Type => enums::dropped(name, if_exists, names)?,
        ObjectType::Database => Ddl::DropCatalog { name: names.catalog(name)?, if_exists, cascade },
        other => return Err(Error::unsupported(format!("DROP {other} is not supported"))),
    })
}

fn commented(kind: CommentObject, name: &ObjectName, text: Option<String>, names: &Names) -> Result<Ddl> {
    match kind {
        CommentObject::Table | CommentObject::View | CommentObject::MaterializedView => {
            Ok(Ddl::Comment { name: names.resolve(name)?, about: Commented::Whole, text })
        }
        CommentObject::Column => {
            let [table @ .., ObjectNamePart::Identifier(column)] = name.0.as_slice() else {
                return Err(Error::invalid("COMMENT ON COLUMN takes `table.column`"));
            };
            let about = match column.value.strip_prefix(OF_CONSTRAINT) {
                Some(constraint) => Commented::Constraint(constraint.to_owned()),
                None => Commented::Column(ident(column)),
            };
            Ok(Ddl::Comment { name: names.resolve(&ObjectName(table.to_vec()))?, about, text })
        }
        other => Err(Error::unsupported(format!("COMMENT ON {other} is not supported"))),
    }
}
