//! From the names in a statement to the things that they mean.

use crate::catalog::enum_types::SeenTypes;
use crate::catalog::public::Schemas;
use crate::catalog::{CatalogParts, external_database, models};
use crate::error::wording::closest;
pub(crate) use bowshot_types::names::identifier as ident;

use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PG_TEMP, PUBLIC, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Privilege;
use bowshot_tables::{Definition, Entry, EntryName, Storage, Table};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use std::sync::Arc;

/// What a statement that changes something knows of names.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) pinned: Pinned,
    /// What the statement may do.
    pub(crate) access: Access,
    pub(crate) parts: CatalogParts,
    pub(crate) default_catalog: String,
    pub(crate) default_schema: String,
    /// Schemas of the default catalog in which names are looked for after the default schema.
    pub(crate) path: Vec<String>,
}

fn parts(name: &ObjectName) -> Result<Vec<String>> {
    let part = |part: &ObjectNamePart| {
        let part = part.as_ident().map(ident);
        let part = part.ok_or_else(|| Error::invalid(format!("`{name}` is not a valid table name")))?;
        let shared = bowshot_sql::rewrite::shared(&part).map(ToOwned::to_owned);
        Ok::<_, Error>(shared.unwrap_or(part))
    };
    name.0.iter().map(part).collect()
}

/// The last part of a name, which is what its columns are called by.
pub(crate) fn last(name: &ObjectName) -> Result<Ident> {
    let part = name.0.last().and_then(ObjectNamePart::as_ident);
    part.cloned().ok_or_else(|| Error::invalid(format!("`{name}` is not a valid table name")))
}

/// A sequence has no rows.
pub(crate) fn check_rows(name: &EntryName, definition: &Definition) -> Result<()> {
    if definition.sequence().is_none() {
        return Ok(());
    }
    Err(Error::invalid(format!("`{name}` is a sequence, not a table"))
        .with_reason(Reason::WrongObject)
        .with_hint("use the functions `nextval`, `currval` and `setval`"))
}

/// Rows of a materialised view come from its query alone.
pub(crate) fn check_changeable(name: &EntryName, table: &Table) -> Result<()> {
    check_rows(name, table.definition())?;
    match &table.definition().materialized {
        None => Ok(()),
        Some(_) => {
            Err(Error::invalid(format!("`{name}` is a materialized view: its rows cannot be changed"))
                .with_reason(Reason::WrongObject)
                .with_hint(format!("use `REFRESH MATERIALIZED VIEW {}`", name.name)))
        }
    }
}

impl Names {
    /// The full name of a thing that is there or will be.
    pub(crate) fn resolve(&self, name: &ObjectName) -> Result<EntryName> {
        let full = match parts(name)?.as_slice() {
            [name] => return Ok(self.unqualified(name)),
            [schema, name] if schema == TEMPORARY_CATALOG || schema == PG_TEMP => {
                EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, name)
            }
            [schema, name] => {
                EntryName::new(&self.default_catalog, self.schema_meant(&self.default_catalog, schema), name)
            }
            [catalog, schema, name] => EntryName::new(catalog, self.schema_meant(catalog, schema), name),
            _ => return Err(Error::invalid(format!("`{name}` has more than three parts"))),
        };
        Ok(full)
    }

    /// The schema that a name means: that of names which do not say theirs for `public`, where nothing else is called so.
    pub(crate) fn schema_meant<'a>(&self, catalog: &str, schema: &'a str) -> &'a str {
        if schema == PUBLIC && self.schemas().has_alias(catalog) { DEFAULT_SCHEMA } else { schema }
    }

    pub(crate) fn schemas(&self) -> Schemas<'_> {
        let (pinned, databases) = (&self.pinned, &self.parts.databases);
        Schemas { pinned, databases, default_catalog: &self.default_catalog }
    }

    /// The types that the statement may name.
    pub(crate) fn types(&self) -> SeenTypes<'_> {
        SeenTypes::new(self.schemas(), (&self.default_schema, &self.path), &self.access)
    }

    /// The session's own tables hide those of the default schema, and these hide those of later schemas of the search path.
    pub(crate) fn unqualified(&self, name: &str) -> EntryName {
        let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, name);
        if self.pinned.entry(&own).is_some() {
            return own;
        }
        let first = EntryName::new(&self.default_catalog, &self.default_schema, name);
        if self.path.is_empty() || !self.is_nothing(&first) {
            return first;
        }
        self.in_path(name).find(|other| !self.is_nothing(other)).unwrap_or(first)
    }

    /// A name in the schemas that are looked into after the default one.
    fn in_path<'a>(&'a self, name: &'a str) -> impl Iterator<Item = EntryName> + 'a {
        self.path.iter().map(move |schema| EntryName::new(&self.default_catalog, schema, name))
    }

    /// The full name of a model that is there.
    pub(crate) fn known_model(&self, name: &ObjectName) -> Result<EntryName> {
        let first = self.model(name)?;
        let is_there = |full: &EntryName| models::seen(self.pinned.shared(), &self.access, full).is_some();
        if name.0.len() > 1 || is_there(&first) {
            return Ok(first);
        }
        let found = self.in_path(&first.name).find(is_there);
        Ok(found.unwrap_or(first))
    }

    /// The full name of a model to be made. None is temporary.
    pub(crate) fn model(&self, name: &ObjectName) -> Result<EntryName> {
        Self::model_within(name, (&self.default_catalog, &self.default_schema))
    }

    /// [`Self::model`], where names that do not say theirs are in this catalog and this schema.
    pub(crate) fn model_within(name: &ObjectName, (catalog, schema): (&str, &str)) -> Result<EntryName> {
        let full = match parts(name)?.as_slice() {
            [name] => EntryName::new(catalog, schema, name),
            [schema, name] => EntryName::new(catalog, schema, name),
            [catalog, schema, name] => EntryName::new(catalog, schema, name),
            _ => return Err(Error::invalid(format!("`{name}` has more than three parts"))),
        };
        if full.catalog == TEMPORARY_CATALOG || full.schema == TEMPORARY_CATALOG {
            return Err(Error::invalid("there are no temporary models"));
        }
        Ok(full)
    }

    /// What something to be made is called, which need not be possible.
    pub(crate) fn full_new_name(&self, name: &ObjectName) -> Result<EntryName> {
        match parts(name)?.as_slice() {
            [name] => Ok(EntryName::new(&self.default_catalog, &self.default_schema, name)),
            _ => self.resolve(name),
        }
    }

    /// The name of something to be made.
    pub(crate) fn new_name(&self, name: &ObjectName, temporary: bool) -> Result<EntryName> {
        let full = match parts(name)?.as_slice() {
            [name] if temporary => EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, name),
            _ => self.full_new_name(name)?,
        };
        if temporary && full.catalog != TEMPORARY_CATALOG {
            return Err(Error::invalid(format!("the temporary table `{name}` cannot be in another schema"))
                .with_hint("leave the schema out"));
        }
        self.check_new(&full)?;
        Ok(full)
    }

    /// Where the rows of a new table are kept: where the statement says, else where they last longest.
    pub(crate) fn storage(&self, name: &EntryName, asked: Option<Storage>) -> Result<Storage> {
        let possible = name.catalog != TEMPORARY_CATALOG && self.parts.tables.has_folder();
        match asked {
            Some(Storage::Durable) if !possible => {
                Err(Error::unsupported(format!("table `{name}` cannot be durable"))
                    .with_hint("start the server with `--data FOLDER`; temporary tables are never durable"))
            }
            Some(asked) => Ok(asked),
            None if possible => Ok(Storage::Durable),
            None => Ok(Storage::Memory),
        }
    }

    /// Something can be made under this name: its schema is there, and no file has it.
    pub(crate) fn check_new(&self, name: &EntryName) -> Result<()> {
        self.access.check_make(&name.catalog, &name.schema)?;
        if self.parts.databases.has(&name.catalog) {
            return Err(external_database::only_rows(name));
        }
        self.check_schema(name)?;
        if name.name.starts_with("__bowshot") {
            return Err(Error::invalid(format!("the name `{}` is reserved", name.name)));
        }
        if self.parts.is_file_table(name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("`{name}` is a table of files that the server serves"),
            )
            .with_reason(Reason::DuplicateTable)
            .with_hint("choose another name; tables of files are read-only"));
        }
        Ok(())
    }

    /// The schema of something to be made is there. The default schema may not be: it is only named by a search path, or dropped.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn check_schema(&self, name: &EntryName) -> Result<()> {
        let EntryName { catalog, schema, .. } = name;
        if self.pinned.has_schema(catalog, schema) {
            return Ok(());
        }
        let is_default = *catalog == self.default_catalog && *schema == self.default_schema;
        let start = if is_default { "no schema has been selected to create in: " } else { "" };
        Err(Error::not_found(format!("{start}schema `{catalog}.{schema}` not found"))
            .with_reason(Reason::UndefinedSchema)
            .with_hint(format!("make it with `CREATE SCHEMA {catalog}.{schema}`")))
    }

    /// The schema of a name of one or two parts: catalog and schema.
    pub(crate) fn schema(&self, name: &ObjectName) -> Result<(String, String)> {
        match parts(name)?.as_slice() {
            [schema] => Ok((self.default_catalog.clone(), schema.clone())),
            [catalog, schema] => Ok((catalog.clone(), schema.clone())),
            _ => Err(Error::invalid(format!("`{name}` is not a valid schema name"))),
        }
    }

    /// The catalog of a name of one part.
    pub(crate) fn catalog(&self, name: &ObjectName) -> Result<String> {
        match parts(name)?.as_slice() {
            [catalog] => Ok(catalog.clone()),
            _ => Err(Error::invalid(format!("`{name}` is not a valid catalog name"))),
        }
    }

    /// The table of a name, which must be one whose rows can be changed.
    pub(crate) fn writable(&self, name: &ObjectName) -> Result<(EntryName, Arc<Table>)> {
        self.check_not_input(name)?;
        let name = self.resolve(name)?;
        let table = self.table(&name)?;
        check_changeable(&name, &table)?;
        Ok((name, table))
    }

    /// Whose rows are meant is not to be guessed where the rows of the client have the name of a table.
    fn check_not_input(&self, name: &ObjectName) -> Result<()> {
        match (self.pinned.input(), parts(name)?.as_slice()) {
            (Some(input), [name]) if input.name() == name => Err(Error::invalid(format!(
                "`{name}` is the input stream of the statement, which is read-only"
            ))
            .with_hint("give them another name, or name the table with its schema")),
            _ => Ok(()),
        }
    }

    /// What is under a name, if the statement may know it. Whether a name is free, the snapshot itself says. That it was looked at
    /// is noted, as it is of tables in queries.
    pub(crate) fn entry(&self, name: &EntryName) -> Option<&Entry> {
        let found = self.pinned.entry(name).filter(|_| self.access.sees(name))?;
        self.pinned.note(name);
        Some(found)
    }

    /// Whether there is nothing under a name, as far as the statement may know.
    pub(crate) fn is_nothing(&self, name: &EntryName) -> bool {
        self.entry(name).is_none() && !(self.parts.is_file_table(name) && self.access.sees(name))
    }

    /// The statement that would make a table or view again tells all of it, and names other tables.
    ///
    /// # Errors
    /// `Denied` for who does not own it.
    pub(crate) fn check_text(&self, name: &EntryName) -> Result<()> {
        if self.entry(name).is_some() { self.access.check(Privilege::Own, name) } else { Ok(()) }
    }

    /// See [`Names::writable`].
    pub(crate) fn table(&self, name: &EntryName) -> Result<Arc<Table>> {
        match self.entry(name) {
            Some(Entry::Table(table)) => Ok(Arc::clone(table)),
            Some(Entry::View(_)) => Err(Error::invalid(format!("`{name}` is a view, not a table"))
                .with_reason(Reason::WrongObject)
                .with_hint("change the tables that it reads")),
            Some(Entry::External(_)) => {
                Err(Error::invalid(format!("`{name}` is an external table: its rows are those of its files"))
                    .with_reason(Reason::WrongObject)
                    .with_hint("change the files, or make a table of them with `CREATE TABLE … AS SELECT`"))
            }
            Some(Entry::Broken(broken)) => Err(broken.error(name).into()),
            None => Err(self.not_there(name)),
        }
    }

    /// Why there is nothing to change under a name.
    pub(crate) fn not_there(&self, name: &EntryName) -> Error {
        if self.parts.databases.has(&name.catalog) && self.access.sees(name) {
            return external_database::only_rows(name);
        }
        if self.parts.is_file_table(name) && self.access.sees(name) {
            return Error::unsupported(format!("`{name}` is a table of files: it is read-only")).with_hint(
                format!(
                    "change the files, or make a table of your own: `CREATE TABLE … AS SELECT * FROM {}`",
                    name.name
                ),
            );
        }
        let error = Error::not_found(format!("table `{name}` not found")).with_reason(Reason::UndefinedTable);
        match self.nearest(name) {
            Some(nearest) => error.with_hint(format!("did you mean `{nearest}`?")),
            None => error.with_hint("list the tables with `SELECT * FROM information_schema.tables`"),
        }
    }

    /// The table in the same schema that was probably meant, of those that the statement may know of.
    fn nearest(&self, name: &EntryName) -> Option<String> {
        let mut there = self.pinned.shared().names(&name.catalog, &name.schema);
        let full = |other: &str| EntryName::new(&name.catalog, &name.schema, other);
        there.retain(|other| self.access.sees(&full(other)));
        there.extend(self.pinned.own().names(TEMPORARY_CATALOG, DEFAULT_SCHEMA));
        closest(&name.name, there.iter().map(String::as_str)).map(ToOwned::to_owned)
    }
}
