//! Tables and namespaces that are made and dropped in a catalog. What is dropped is what the catalog lists by exactly that name, since
//! rights go by names.

use super::super::write::{NewTable, TableAlteration, TableChange, table_request};
use super::catalog::IcebergCatalog;
use super::fault::CatalogFault;
use super::insert::{ATTEMPTS, pause};
use super::names::{is_name, parts};
use bowshot_api::{Error, ErrorKind, Reason, Result};

/// Whether a change has changed something: what is to be there may be there already.
type Changed = Result<bool>;

impl IcebergCatalog {
    /// Makes a namespace.
    pub async fn create_schema(&self, schema: &str, if_not_exists: bool) -> Changed {
        let namespace = self.namespace(schema)?;
        match self.service().create_namespace(&namespace).await {
            Ok(()) => Ok(true),
            Err(CatalogFault::Conflict) if if_not_exists => Ok(false),
            Err(CatalogFault::Conflict) => Err(exists("schema", schema, Reason::DuplicateSchema)),
            Err(fault) => Err(fault.of(self.name())),
        }
    }

    /// Drops a namespace without tables.
    pub async fn drop_schema(&self, schema: &str, if_exists: bool) -> Changed {
        let namespace = self.namespace(schema)?;
        let fault = |fault: CatalogFault| fault.of(self.name());
        if !self.service().has_namespace(&namespace).await.map_err(fault)? {
            return missing("schema", schema, Reason::UndefinedSchema, if_exists);
        }
        match self.service().drop_namespace(&namespace).await {
            Ok(()) => {
                self.forget_names(schema).await;
                Ok(true)
            }
            Err(CatalogFault::Status(404)) => missing("schema", schema, Reason::UndefinedSchema, if_exists),
            Err(CatalogFault::Conflict) => {
                Err(Error::invalid(format!("schema `{schema}` is not empty"))
                    .with_hint("drop its tables first"))
            }
            Err(other) => Err(fault(other)),
        }
    }

    /// Makes a table without rows.
    ///
    /// # Errors
    /// `AlreadyExists` unless that is allowed; `Unsupported` for types that the format does not have; `Denied` for one that the catalog
    /// would put where this server reads nothing.
    pub async fn create_table(
        &self,
        (schema, table): (&str, &str),
        definition: &NewTable<'_>,
        if_not_exists: bool,
    ) -> Changed {
        let namespace = self.namespace(schema)?;
        if !is_name(table) {
            return Err(Error::invalid("invalid table name"));
        }
        let new = table_request(table, definition)?;
        match self.service().create_table(&namespace, &new).await {
            Ok(()) => {}
            Err(CatalogFault::Conflict) if if_not_exists => return Ok(false),
            Err(CatalogFault::Conflict) => return Err(exists("table", table, Reason::DuplicateTable)),
            Err(CatalogFault::Status(404)) => {
                return Err(Error::not_found(format!("schema `{schema}` not found"))
                    .with_reason(Reason::UndefinedSchema)
                    .with_hint("create it with CREATE SCHEMA"));
            }
            Err(fault) => return Err(fault.of(self.name())),
        }
        self.forget_names(schema).await;
        match self.writable(schema, table).await {
            Ok(Some(_)) => Ok(true),
            Ok(None) => Err(Error::invalid(format!("the catalog changed the name of the table `{table}`"))
                .with_hint("list the tables, and use lower-case names if the catalog changes the case")),
            Err(error) => {
                // Nobody could read it from here.
                let dropped = self.service().drop_table(&namespace, table).await;
                dropped.map_or_else(|fault| Err(fault.of(self.name())), |()| Err(error))
            }
        }
    }

    /// Changes what a table is, all of it or nothing. Where others are faster, the change is made anew of what they have left.
    ///
    /// # Errors
    /// `NotFound` unless that is allowed; `Unsupported` for what files that are there do not allow; `Conflict` where others change the
    /// table all the time; those of the catalog.
    pub async fn alter_table(
        &self,
        (schema, table): (&str, &str),
        alteration: &TableAlteration,
        if_exists: bool,
    ) -> Changed {
        let namespace = self.namespace(schema)?;
        let mut found = self.writable(schema, table).await?;
        let (mut undetermined, mut last) = (false, CatalogFault::Conflict);
        for attempt in 0..ATTEMPTS {
            let Some(now) = found else {
                return missing("table", table, Reason::UndefinedTable, if_exists);
            };
            let Some(change) = TableChange::new(&now.state, (&namespace, table), alteration)? else {
                return Ok(false);
            };
            let fault = self.service().commit_once(&namespace, table, change.request()).await.err();
            undetermined |= fault.as_ref().is_some_and(CatalogFault::is_undetermined);
            // Whoever reads next sees what there is now.
            found = match (self.writable(schema, table).await, fault) {
                // An answer that was lost may have been a good one. Where none was, somebody else has made the same change.
                (Ok(Some(now)), Some(_)) if undetermined && change.is_in(&now.state) => return Ok(true),
                (Ok(_), None) => return Ok(true),
                (Err(_), None) => {
                    self.forget(schema, table).await;
                    return Ok(true);
                }
                (Ok(found), Some(fault))
                    if fault.is_undetermined() || matches!(fault, CatalogFault::Conflict) =>
                {
                    last = fault;
                    found
                }
                (_, Some(fault)) => return Err(fault.of(self.name())),
            };
            tokio::time::sleep(pause(attempt + 1)).await;
        }
        Err(last.of(self.name()))
    }

    /// Drops a table; whether its files go, the catalog decides.
    pub async fn drop_table(&self, schema: &str, table: &str, if_exists: bool) -> Changed {
        let namespace = self.namespace(schema)?;
        let is_there = is_name(table) && self.has_table(schema, table).await?;
        if !is_there {
            return missing("table", table, Reason::UndefinedTable, if_exists);
        }
        let dropped = self.service().drop_table(&namespace, table).await;
        self.forget(schema, table).await;
        self.forget_names(schema).await;
        match dropped {
            Ok(()) => Ok(true),
            Err(CatalogFault::Status(404)) => missing("table", table, Reason::UndefinedTable, if_exists),
            Err(fault) => Err(fault.of(self.name())),
        }
    }

    fn namespace(&self, schema: &str) -> Result<Vec<String>> {
        parts(schema).filter(|_| self.may_have_schema(schema)).ok_or_else(|| {
            let message = format!("schema `{schema}` not found in the catalog `{}`", self.name());
            Error::new(ErrorKind::Denied, message).with_hint(
                "the operator sets the visible namespaces with `schemas` in the entry of the catalog",
            )
        })
    }
}

fn exists(what: &str, name: &str, reason: Reason) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("{what} `{name}` already exists")).with_reason(reason)
}

fn missing(what: &str, name: &str, reason: Reason, if_exists: bool) -> Changed {
    if if_exists {
        Ok(false)
    } else {
        Err(Error::not_found(format!("{what} `{name}` not found")).with_reason(reason))
    }
}
