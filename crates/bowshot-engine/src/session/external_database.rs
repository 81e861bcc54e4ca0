//! Statements about external databases: INSERT into one of their tables, CREATE and DROP of them, ATTACH and DETACH.

use crate::authorize::AuthorizedPlan;
use crate::catalog::names::Names;
use crate::databases::DatabaseDefinition;
use crate::error::classify;
use crate::execute::materialized_table::materialized_table;
use crate::plan::parameters;
use crate::session::EngineSession;
use crate::session::write::Written;
use crate::write::Write;
use crate::write::external_database::sent_rows;
use crate::write::external_definition::DatabaseDefine;
use crate::write::external_rewrite::{
    DatabaseRewrite, acting_places, acts, new_rows, over_file, over_source, rows_after, rows_put, source_of,
};
use crate::write::merge::{TWICE, changed_twice};
use crate::write::rows::{checked, stream};
use bowshot_api::catalog_names::TARGET;
use bowshot_api::{BatchStream, Error, ErrorKind, LastWrite, Result};
use bowshot_sql::DatabaseStatement;
use bowshot_tables::EntryName;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl EngineSession {
    /// Runs a change of another database; `None` for every other statement.
    pub(crate) async fn change_database(
        &self,
        write: &Write,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
    ) -> Result<Option<Written>> {
        let written = match write {
            Write::DatabaseInsert(insert) => Some(self.insert_into_database(&insert.name, plan, rows).await?),
            Write::DatabaseRewrite(rewrite) => Some(self.rewrite_in_database(rewrite, plan, rows).await?),
            Write::DatabaseDefine(define) => self.define_in_database(define, plan, rows).await?,
            _ => return Ok(None),
        };
        Ok(Some(Written {
            pinned: plan.pinned().clone(),
            rows: written,
            rows_in_all: written,
            returned: None,
            last: LastWrite::default(),
        }))
    }

    /// The number of rows of `CREATE TABLE … AS`.
    async fn define_in_database(
        &self,
        define: &DatabaseDefine,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
    ) -> Result<Option<u64>> {
        let databases = &self.shared.parts.databases;
        if let DatabaseDefinition::Optimize { name } = &define.definition {
            self.optimize_in_database(name, plan).await?;
            return Ok(None);
        }
        let is_made = databases.define(&define.definition).await?;
        let DatabaseDefinition::CreateTable(new) = &define.definition else { return Ok(None) };
        match (define.has_rows, is_made) {
            (false, _) => Ok(None),
            (true, false) => Ok(Some(0)),
            (true, true) => match self.insert_into_database(&new.name, plan, rows).await {
                Ok(rows) => Ok(Some(rows)),
                Err(error) => {
                    let undo = DatabaseDefinition::DropTable { name: new.name.clone(), if_exists: true };
                    if let Err(fault) = databases.define(&undo).await {
                        tracing::warn!(error = %fault, "a table that was made in another database without its rows could not be dropped");
                    }
                    Err(error)
                }
            },
        }
    }

    /// Adds rows that a client has sent to a table of another database.
    pub(crate) async fn ingest_into_database(
        &self,
        name: &EntryName,
        rows: BatchStream,
        names: &Names,
    ) -> Result<Written> {
        let rows = sent_rows(name, rows, names).await?;
        let written = self.shared.parts.databases.insert(name, rows, names.access.principal()).await?;
        let (pinned, rows) = (names.pinned.clone(), Some(written));
        Ok(Written { pinned, rows, rows_in_all: rows, returned: None, last: LastWrite::default() })
    }

    async fn insert_into_database(
        &self,
        name: &EntryName,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
    ) -> Result<u64> {
        let query = bound(plan, rows)?;
        let (rows, origin) = stream(&self.state(plan.pinned()), &query).await?;
        let written = self.shared.parts.databases.insert(name, rows, plan.principal()).await?;
        checked(origin.as_ref())?;
        Ok(written)
    }

    /// The number of rows that were changed. Files without such a row stay as they are.
    async fn rewrite_in_database(
        &self,
        rewrite: &DatabaseRewrite,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
    ) -> Result<u64> {
        let state = self.state(plan.pinned());
        let query = with_source_rows(bound(plan, rows)?, &state).await?;
        let mut open = self.shared.parts.databases.rewrite(&rewrite.name).await?;
        let mut changed = 0;
        let files = if rewrite.changes_rows() { open.files() } else { Vec::new() };
        for (place, file) in files.iter().enumerate() {
            let query = over_file(&query, file)?;
            let count = acting_rows(&state, &query, &rewrite.name).await?;
            changed += count;
            let (replaced, query) = match count {
                0 => continue,
                count if open.deletes_in_place(place, count) => {
                    let places = places_of(&state, &acting_places(query.clone())?).await?;
                    open = open.delete(place, places)?;
                    if rewrite.touched.updates.is_none() {
                        continue;
                    }
                    (None, rows_put(query)?)
                }
                _ => (Some(place), rows_after(query)?),
            };
            let (rows, origin) = stream(&state, &query).await?;
            open = open.replace(replaced, rows).await?;
            checked(origin.as_ref())?;
        }
        if rewrite.touched.inserts.is_some() {
            let query = new_rows(over_file(&query, &open.table())?)?;
            let (rows, origin) = stream(&state, &query).await?;
            let (rows, count) = counted(rows);
            open = open.replace(None, rows).await?;
            checked(origin.as_ref())?;
            changed += count.load(Ordering::Relaxed);
        }
        if changed > 0 {
            open.commit().await?;
        }
        Ok(changed)
    }

    /// Writes the rows of small files, and of those with deleted rows, to fewer and larger ones.
    async fn optimize_in_database(&self, name: &EntryName, plan: &AuthorizedPlan) -> Result<()> {
        let state = self.state(plan.pinned());
        let open = self.shared.parts.databases.rewrite(name).await?;
        let (mut open, fragments) = open.fragments().await?;
        let files = open.files();
        for place in &fragments {
            let file = files.get(*place).ok_or_else(|| Error::internal("a file of a table is not there"))?;
            let rows = LogicalPlanBuilder::scan(TARGET, provider_as_source(Arc::clone(file)), None);
            let rows = rows.and_then(LogicalPlanBuilder::build).map_err(classify)?;
            let (rows, origin) = stream(&state, &rows).await?;
            open = open.replace(Some(*place), rows).await?;
            checked(origin.as_ref())?;
        }
        if fragments.is_empty() { Ok(()) } else { open.commit().await }
    }

    /// Runs a statement that opens or leaves a database. To be called on the query runtime.
    ///
    /// # Errors
    /// See [`crate::databases::Databases`].
    pub async fn control_databases(&self, statement: &DatabaseStatement) -> Result<()> {
        let databases = &self.shared.parts.databases;
        match statement {
            DatabaseStatement::Attach(attachment) => {
                let name = &attachment.name;
                if databases.has(name) && attachment.keep {
                    return Ok(());
                }
                if databases.has(name) || self.pin().shared().has_catalog(name) {
                    return Err(Error::new(
                        ErrorKind::AlreadyExists,
                        format!("catalog `{name}` already exists"),
                    )
                    .with_hint("choose another name behind AS"));
                }
                if crate::databases::is_reserved(name) {
                    return Err(Error::invalid(format!("the catalog name `{name}` is reserved")));
                }
                databases.attach(attachment).await
            }
            DatabaseStatement::Detach { name, if_exists } => {
                if *if_exists && !databases.has(name) {
                    Ok(())
                } else {
                    databases.detach(name)
                }
            }
        }
    }
}

/// How many rows of a file do not stay as they are.
async fn acting_rows(state: &SessionState, query: &LogicalPlan, table: &EntryName) -> Result<u64> {
    let (mut rows, origin) = stream(state, &acts(query.clone())?).await?;
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(classify)?;
        if numbers(&batch).contains(&TWICE) {
            return Err(changed_twice(table));
        }
        count += batch.num_rows() as u64;
    }
    checked(origin.as_ref())?;
    Ok(count)
}

/// The places of rows in a file, of which there are few.
async fn places_of(state: &SessionState, query: &LogicalPlan) -> Result<Vec<i64>> {
    let (mut rows, origin) = stream(state, query).await?;
    let mut places = Vec::new();
    while let Some(batch) = rows.next().await {
        places.extend_from_slice(numbers(&batch.map_err(classify)?));
    }
    checked(origin.as_ref())?;
    Ok(places)
}

/// The values of the first column.
fn numbers(batch: &RecordBatch) -> &[i64] {
    let column = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.map(|column| &**column.values()).unwrap_or_default()
}

/// The query with the source of a MERGE as a table: its rows are computed once, with however many files they are joined.
async fn with_source_rows(query: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let Some(source) = source_of(&query)? else { return Ok(query) };
    let (rows, origin) = stream(state, &source).await?;
    let schema = Arc::clone(source.schema().inner());
    let table = materialized_table(rows, schema, &TaskContext::from(state)).await.map_err(classify)?;
    checked(origin.as_ref())?;
    over_source(query, &table)
}

/// The rows, which are counted on their way.
fn counted(rows: SendableRecordBatchStream) -> (SendableRecordBatchStream, Arc<AtomicU64>) {
    let (schema, count) = (rows.schema(), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&count);
    let rows = rows.inspect_ok(move |batch| {
        counter.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
    });
    (Box::pin(RecordBatchStreamAdapter::new(schema, rows)), count)
}

/// The query with the values of its parameters, of which there is one row.
fn bound(plan: &AuthorizedPlan, rows: &[RecordBatch]) -> Result<LogicalPlan> {
    let planned = plan.planned();
    match rows {
        [] => {
            parameters::check_none(planned.parameters())?;
            Ok(planned.plan().clone())
        }
        [batch] if batch.num_rows() == 1 => parameters::bind(planned.plan(), planned.parameters(), batch, 0),
        _ => Err(Error::invalid("a change of another database takes one row of parameters")
            .with_hint("write the rows as VALUES, or add them to a table here first")),
    }
}
