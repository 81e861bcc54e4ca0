//! Statements about external databases: INSERT into one of their tables, ATTACH and DETACH.

use crate::authorize::AuthorizedPlan;
use crate::plan::parameters;
use crate::session::EngineSession;
use crate::session::write::Written;
use crate::write::Write;
use crate::write::rows::{checked, stream};
use bowshot_api::{Error, ErrorKind, LastWrite, Result};
use bowshot_sql::DatabaseStatement;
use datafusion::arrow::record_batch::RecordBatch;

impl EngineSession {
    /// Runs an INSERT into another database; `None` for every other statement.
    pub(crate) async fn insert_into_database(
        &self,
        write: &Write,
        plan: &AuthorizedPlan,
        rows: &[RecordBatch],
    ) -> Result<Option<Written>> {
        let Write::DatabaseInsert(insert) = write else { return Ok(None) };
        let planned = plan.planned();
        let query = match rows {
            [] => {
                parameters::check_none(planned.parameters())?;
                planned.plan().clone()
            }
            [batch] if batch.num_rows() == 1 => {
                parameters::bind(planned.plan(), planned.parameters(), batch, 0)?
            }
            _ => {
                return Err(Error::invalid("INSERT into another database takes one row of parameters")
                    .with_hint("write the rows as VALUES, or add them to a table here first"));
            }
        };
        let (rows, origin) = stream(&self.state(plan.pinned()), &query).await?;
        let databases = &self.shared.parts.databases;
        let written = databases.insert(&insert.name, rows, plan.principal()).await?;
        checked(origin.as_ref())?;
        Ok(Some(Written {
            pinned: plan.pinned().clone(),
            rows: Some(written),
            rows_in_all: Some(written),
            returned: None,
            last: LastWrite::default(),
        }))
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
