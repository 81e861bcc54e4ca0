//! The statements that change tables, as a session runs them. Nothing is visible to others before the session commits.

use crate::authorize::{Action, AuthorizedPlan, Change, changes, decision};
use crate::catalog::identity;
use crate::catalog::lazy_state::LazyState;
use crate::catalog::names::{Names, check_changeable};
use crate::error::classify;
use crate::plan::parameters;
use crate::plan::steps::Steps;
use crate::session::{EngineSession, distributed_query};
use crate::write::apply::{self, Applied, Place, arranged, by_name};
use crate::write::constraints::Casts;
use crate::write::data_modifying_with::Step;
use crate::write::refresh::Extent;
use crate::write::returning::{Detail, Returned, Returning, with_tables};
use crate::write::rows::{Rows, absent_values, checked, physical, started, stream};
use crate::write::{Write, batch_insert, create_table, external_database, literal, notices, scalar_rows};
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PG_TEMP, TEMPORARY_CATALOG};
use bowshot_api::{
    BatchStream, Error, ErrorKind, IfExists, IfMissing, Ingest, LastWrite, PrimaryKey, Reason, Result,
    TableName,
};
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Entry, EntryName, Table};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a statement has made.
#[derive(Debug)]
pub struct Written {
    /// The state of all tables after it.
    pub pinned: Pinned,
    /// The number of rows that it changed; `None` for a change of the catalog.
    pub rows: Option<u64>,
    /// The number of rows that all its parts changed: those of its WITH, too.
    pub rows_in_all: Option<u64>,
    /// What the statement returns, if it says so.
    pub returned: Option<Returned>,
    /// What it did to rows beyond their number.
    pub last: LastWrite,
}

impl EngineSession {
    /// Runs a statement that changes tables on the state that it was planned on. `sql` is planned again for each row of
    /// parameters after the first, so that it sees what the rows before have changed. To be called on the query runtime.
    ///
    /// # Errors
    /// From running the query, and for rows that do not fit the table.
    pub fn write<'a>(
        &'a self,
        sql: &'a str,
        plan: &'a AuthorizedPlan,
        rows: &'a [RecordBatch],
    ) -> BoxFuture<'a, Result<Written>> {
        async move {
            let write = effect(plan)?;
            if let Some(returning) = plan.returning()
                && let Some(detail) = returning.measured()
            {
                return Box::pin(self.measured(write, plan, rows, (returning.as_ref(), detail))).await;
            }
            if let Action::Write(change) = plan.action()
                && !change.before.is_empty()
            {
                return Box::pin(self.write_in_steps(change, plan, rows)).await;
            }
            if let Some(written) = self.copy(write, plan, rows).await? {
                return Ok(written);
            }
            if let Some(written) = self.change_database(write, plan, rows).await? {
                return Ok(written);
            }
            if rows.is_empty() {
                parameters::check_none(plan.planned().parameters())?;
                let applied = self.run(write, plan.planned().plan().clone(), plan.pinned()).await;
                let applied = applied.map_err(|error| match plan.pinned().input() {
                    Some(input) => input.located(error),
                    None => error,
                })?;
                return self.written(plan, applied).await;
            }
            if let Some(all) = batch_insert::all_at_once(write, plan.planned(), rows)? {
                let applied = self.run(write, all, plan.pinned()).await?;
                return self.written(plan, applied).await;
            }
            let (mut pinned, mut changed, mut last) = (plan.pinned().clone(), 0, LastWrite::default());
            let mut returned =
                plan.returning().map(|returning| Returned::new(returning, &self.lazy_state(plan.pinned())));
            for batch in rows {
                for row in 0..batch.num_rows() {
                    let plan = if pinned.is_same(plan.pinned()) {
                        plan.clone()
                    } else {
                        self.plan(sql, &pinned).await?
                    };
                    let planned = plan.planned();
                    let bound = parameters::bind(planned.plan(), planned.parameters(), batch, row)?;
                    let applied = self.run(effect(&plan)?, bound, &pinned).await?;
                    last = together(last, applied.last());
                    (pinned, changed) = (applied.pinned, changed + applied.rows);
                    if let (Some(returned), Some(returning)) = (&mut returned, plan.returning()) {
                        returned.add(returning, applied.touched, &self.lazy_state(plan.pinned())).await?;
                    }
                }
            }
            let rows = write.counts().then_some(changed);
            Ok(Written { pinned, rows, rows_in_all: rows, returned, last })
        }
        .boxed()
    }

    async fn written(&self, plan: &AuthorizedPlan, applied: Applied) -> Result<Written> {
        let write = effect(plan)?;
        let notices = if matches!(write, Write::Ddl(_) | Write::CreateAs(_)) {
            notices::collect(write, &self.names(plan.pinned()), &applied.pinned)
        } else {
            Vec::new()
        };
        let last = LastWrite { notices, ..applied.last() };
        let returned = match plan.returning() {
            None => None,
            Some(returning) => {
                let state = self.lazy_state(plan.pinned());
                let mut returned = Returned::new(returning, &state);
                returned.add(returning, applied.touched, &state).await?;
                Some(returned)
            }
        };
        let rows = write.counts().then_some(applied.rows);
        Ok(Written { pinned: applied.pinned, rows, rows_in_all: rows, returned, last })
    }

    /// EXPLAIN ANALYZE of such a statement: its plan, with what it took.
    async fn measured(
        &self,
        write: &Write,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
        (returning, detail): (&Returning, Detail),
    ) -> Result<Written> {
        let (query, pinned) = (bound_once(plan, rows)?, plan.pinned());
        let state = self.lazy_state(pinned);
        let physical = physical(&state, &query).await?;
        let (rows, origin) = started(&state, Arc::clone(&physical))?;
        let rows = bowshot_query_task::checked(rows.map(|batch| batch.map_err(classify))).boxed();
        let applied = self.apply(write, &query, (rows, origin), (&state, pinned)).await?;
        let mut returned = Returned::new(returning, &state);
        returned.add_plan(physical.as_ref(), detail, applied.rows)?;
        let last = applied.last();
        let rows = write.counts().then_some(applied.rows);
        Ok(Written { pinned: applied.pinned, rows, rows_in_all: rows, returned: Some(returned), last })
    }

    /// A statement whose WITH changes rows: its parts in their order, all on the tables as they were before.
    async fn write_in_steps(
        &self,
        change: &Change,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
    ) -> Result<Written> {
        let bound = bound_once(plan, rows)?;
        let (state, mut pinned) = (self.lazy_state(plan.pinned()), plan.pinned().clone());
        let (mut tables, mut answer, mut last) = (Vec::new(), None, LastWrite::default());
        let (mut changed, mut in_all) = (0, 0);
        let main = Step {
            table: String::new(),
            write: Arc::clone(&change.write),
            returning: change.returning.clone(),
        };
        for (step, query) in change.before.iter().chain([&main]).zip(Steps::of(&bound)) {
            let query = with_tables(query, &tables)?;
            let (touched, returning) = if matches!(step.write.as_ref(), Write::Query) {
                (Vec::new(), Some(Arc::new(Returning::query(query))))
            } else {
                let (rows, origin) = stream(&state, &query).await?;
                let rows = bowshot_query_task::checked(rows.map(|batch| batch.map_err(classify))).boxed();
                let applied = self.apply(&step.write, &query, (rows, origin), (&state, &pinned)).await?;
                last = together(last, applied.last());
                // Of a change behind WITH its own rows are counted, as PostgreSQL does.
                changed = if step.table.is_empty() { applied.rows } else { changed + applied.rows };
                in_all += applied.rows;
                pinned = applied.pinned;
                (applied.touched, step.returning.clone())
            };
            answer = match returning {
                Some(returning) => {
                    let mut returned = Returned::new(&returning, &state);
                    returned.add(&returning, touched, &state).await?;
                    tables.push((step.table.clone(), returned.table()?));
                    Some(returned)
                }
                None => None,
            };
        }
        Ok(Written { pinned, rows: Some(changed), rows_in_all: Some(in_all), returned: answer, last })
    }

    async fn run(&self, write: &Write, plan: LogicalPlan, pinned: &Pinned) -> Result<Applied> {
        let state = self.lazy_state(pinned);
        let rows = rows(self, write, (&state, pinned), &plan).await?;
        self.apply(write, &plan, rows, (&state, pinned)).await
    }

    async fn apply(
        &self,
        write: &Write,
        plan: &LogicalPlan,
        (rows, origin): Rows<BoxStream<'static, Result<RecordBatch>>>,
        (state, pinned): (&LazyState, &Pinned),
    ) -> Result<Applied> {
        let (names, stores) = (self.names(pinned), self.stores());
        let place = Place { names: &names, stores: &stores, state };
        let mut applied = apply::apply(write, rows, &place).await?;
        checked(origin.as_ref())?;
        applied.generated = applied.numbers.is_some() && identity::numbers_rows(plan);
        if applied.generated
            && let Some(Entry::Table(table)) = write.target().and_then(|name| pinned.entry(name))
            && let (Some((_, last)), Some(first)) = (applied.numbers, table.definition().identities.first())
        {
            self.numbers.note(first, last);
        }
        if !matches!(write, Write::Ddl(_) | Write::CreateAs(_)) {
            return Ok(applied);
        }
        Ok(Applied {
            pinned: bowshot_policy::propagate_rules(pinned, applied.pinned, &names.access)?,
            ..applied
        })
    }

    /// Takes rows into a table. To be called on the query runtime.
    ///
    /// # Errors
    /// See [`bowshot_api::Session::ingest`].
    pub fn ingest<'a>(
        &'a self,
        ingest: &'a Ingest,
        rows: BatchStream,
        pinned: &'a Pinned,
    ) -> BoxFuture<'a, Result<Written>> {
        async move {
            let columns = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
            self.check_ingest_of(ingest, Some(&columns), pinned).await?;
            let state = self.lazy_state(pinned);
            let (names, stores) = (self.names(pinned), self.stores());
            let name = target_of(ingest, &names);
            if names.parts.databases.has(&name.catalog) {
                return self.ingest_into_database(&name, rows, &names).await;
            }
            let table = Arc::new(target(ingest, &name, &rows.schema(), &names)?);
            let positions = by_name(&rows.schema(), table.definition(), &name);
            let positions = positions.map_err(|error| names.access.told_of_columns(&name, error))?;
            let absent = absent_values(table.definition(), &state, &stores.shared).await?;
            let exclusive = rows.is_exclusive();
            let rows = arranged(rows, positions, absent, table.schema());
            let place = Place { names: &names, stores: &stores, state: &state };
            let added = apply::adding(&name, &table, &place);
            let added = if exclusive { added.taking_over() } else { added };
            let applied = apply::insert(&name, added, Casts::Exact, rows, &place).await?;
            let changed = bowshot_policy::propagate_rules(pinned, applied.pinned, &names.access)?;
            let last = LastWrite::default();
            let rows = Some(applied.rows);
            Ok(Written { pinned: changed, rows, rows_in_all: rows, returned: None, last })
        }
        .boxed()
    }

    /// Whether the rows of an ingest go to another database, where they cannot be taken back.
    pub fn is_ingest_final(&self, ingest: &Ingest, pinned: &Pinned) -> bool {
        let names = self.names(pinned);
        names.parts.databases.has(&target_of(ingest, &names).catalog)
    }

    /// Whether rows may go into a table: for those who have to wait long for the first of them.
    ///
    /// # Errors
    /// `Denied`, or `NotFound` for what the caller must not know of.
    pub async fn check_ingest(&self, ingest: &Ingest, pinned: &Pinned) -> Result<()> {
        self.check_ingest_of(ingest, None, pinned).await
    }

    async fn check_ingest_of(
        &self,
        ingest: &Ingest,
        columns: Option<&BTreeSet<String>>,
        pinned: &Pinned,
    ) -> Result<()> {
        let names = self.names(pinned);
        let name = target_of(ingest, &names);
        let is_external = names.parts.databases.has(&name.catalog);
        match is_external {
            true => external_database::check_ingest(&name, (ingest.if_exists, columns), &names)?,
            false => changes::check_ingest(&name, (ingest.if_exists, columns), pinned, &names.access)?,
        }
        let is_there = is_external || pinned.entry(&name).is_some();
        let action = if is_there { "insert" } else { "create" };
        self.check_outside(action, pinned, vec![decision::changed(&name)]).await
    }

    /// The primary key of a table.
    ///
    /// # Errors
    /// `NotFound` without such a table.
    pub fn primary_key(&self, table: &TableName, pinned: &Pinned) -> Result<Option<PrimaryKey>> {
        let names = self.names(pinned);
        let name = EntryName {
            catalog: table.catalog.clone().unwrap_or_else(|| names.default_catalog.clone()),
            schema: table.schema_name.clone().unwrap_or_else(|| names.default_schema.clone()),
            name: table.name.clone(),
        };
        if names.parts.databases.has(&name.catalog)
            || (names.parts.is_file_table(&name) && names.access.sees(&name))
            || matches!(names.entry(&name), Some(Entry::View(_) | Entry::External(_)))
        {
            return Ok(None);
        }
        let there = names.table(&name)?;
        let EntryName { catalog, schema, name } = name;
        Ok(there.definition().primary_key.as_ref().map(|key| PrimaryKey {
            table: [catalog, schema, name],
            name: key.name.clone(),
            columns: key.columns.clone(),
        }))
    }
}

/// What two executions of one statement did.
fn together(one: LastWrite, next: LastWrite) -> LastWrite {
    let changed = match (one.changed, next.changed) {
        (Some(one), Some(next)) => Some(one + next),
        (one, next) => one.or(next),
    };
    LastWrite {
        changed,
        generated: one.generated.or(next.generated),
        number: next.number.or(one.number),
        notices: Vec::new(),
    }
}

/// The plan with the one row of parameters that it takes, or none.
fn bound_once(plan: &AuthorizedPlan, rows: &[RecordBatch]) -> Result<LogicalPlan> {
    let planned = plan.planned();
    match rows {
        [] => {
            parameters::check_none(planned.parameters())?;
            Ok(planned.plan().clone())
        }
        [row] if row.num_rows() == 1 => parameters::bind(planned.plan(), planned.parameters(), row, 0),
        _ => Err(Error::unsupported("the statement takes one row of parameters")
            .with_hint("run it once for each row")),
    }
}

fn effect(plan: &AuthorizedPlan) -> Result<&Write> {
    match plan.action() {
        Action::Write(change) => Ok(&change.write),
        _ => Err(Error::internal("a statement that changes nothing was run as a change")),
    }
}

async fn rows(
    session: &EngineSession,
    write: &Write,
    (state, pinned): (&LazyState, &Pinned),
    plan: &LogicalPlan,
) -> Result<Rows<BoxStream<'static, Result<RecordBatch>>>> {
    let is_without = match write {
        Write::Ddl(ddl) => !ddl.takes_rows(),
        Write::Refresh(refresh) => refresh.extent == Extent::Nothing,
        _ => false,
    };
    if is_without {
        return Ok((futures::stream::empty().boxed(), None));
    }
    if matches!(write, Write::Insert(_)) {
        let known = literal::rows(plan)?.or_else(|| scalar_rows::rows(plan, None, state));
        if let Some(rows) = known {
            return Ok((futures::stream::iter([Ok(rows)]).boxed(), None));
        }
    }
    if matches!(write, Write::Update(_) | Write::Delete(_))
        && let Some(rows) = session.find_changed_rows(plan, state).await?
    {
        return Ok((futures::stream::iter(rows.into_iter().map(Ok)).boxed(), None));
    }
    // Addresses of rows are read where the rows are.
    let adds = match write {
        Write::Insert(_) | Write::CreateAs(_) | Write::Overwrite(_) => true,
        Write::Refresh(refresh) => matches!(refresh.extent, Extent::Full(_)),
        _ => false,
    };
    if adds
        && pinned.input().is_none()
        && let Some(rows) = distributed_query::to_write(session, state, plan).await?
    {
        let origin = rows.origin().cloned();
        return Ok((bowshot_query_task::checked(rows).boxed(), origin));
    }
    let (rows, origin) = stream(state, plan).await?;
    Ok((bowshot_query_task::checked(rows.map(|batch| batch.map_err(classify))).boxed(), origin))
}

/// The table that an ingest means by its names, which are in their case.
fn target_of(ingest: &Ingest, names: &Names) -> EntryName {
    let schema = ingest.schema_name.as_deref();
    let is_temporary = ingest.catalog.is_none() && matches!(schema, Some(TEMPORARY_CATALOG | PG_TEMP));
    if ingest.temporary || is_temporary {
        return EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &ingest.table);
    }
    // Rows are added to the table that INSERT would find; a new one is made in the default schema.
    if ingest.catalog.is_none() && ingest.schema_name.is_none() && ingest.if_exists == IfExists::Append {
        return names.unqualified(&ingest.table);
    }
    let catalog = ingest.catalog.as_deref().unwrap_or(&names.default_catalog);
    let schema = schema.map_or(names.default_schema.as_str(), |schema| names.schema_meant(catalog, schema));
    EntryName::new(catalog, schema, &ingest.table)
}

/// The table that the rows go into: the one that is there, or a new one with the columns of the rows.
fn target(ingest: &Ingest, name: &EntryName, schema: &SchemaRef, names: &Names) -> Result<Table> {
    let there = names.pinned.entry(name);
    match (there, ingest.if_exists) {
        (Some(_), IfExists::Append) => {
            let table = names.table(name)?;
            check_changeable(name, &table)?;
            Ok(table.as_ref().clone())
        }
        (Some(_), IfExists::Replace) => {
            names.table(name)?;
            new_table(schema, name, names)
        }
        (Some(_), IfExists::Fail) => {
            Err(Error::new(ErrorKind::AlreadyExists, format!("table `{name}` already exists"))
                .with_reason(Reason::DuplicateTable)
                .with_hint("append to it, replace it, or choose another name"))
        }
        (None, _) if ingest.if_missing == IfMissing::Fail => Err(names.not_there(name)),
        (None, IfExists::Append | IfExists::Replace) if names.parts.is_file_table(name) => {
            Err(names.not_there(name))
        }
        (None, _) => {
            names.check_new(name)?;
            new_table(schema, name, names)
        }
    }
}

fn new_table(schema: &SchemaRef, name: &EntryName, names: &Names) -> Result<Table> {
    let definition = create_table::of_rows(schema, names.storage(name, None)?)?;
    Ok(Table::new(definition))
}

#[cfg(test)]
mod tests;
