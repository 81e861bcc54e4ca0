//! `CREATE EXTERNAL TABLE`: files that stay where they are, as a table of the catalog. What is kept is what the statement says of
//! them; each statement that reads the table looks for the files anew, below the places that the operator has opened.

use crate::catalog::file_paths;
use crate::catalog::names::Names;
use crate::write::create_table::when_there;
use crate::write::ddl::{self, Ddl};
use crate::write::{NewExternal, WhenThere};
use bowshot_api::catalog_names::TEMPORARY_CATALOG;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Entry, External};
use datafusion::sql::sqlparser::ast::CreateTable;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// What the table is to be. Its files are looked at once, so that one that cannot be read is refused now.
///
/// # Errors
/// `Denied` for who may not name files, and whatever reading them gives.
pub(crate) async fn table(create: &CreateTable, names: &Names) -> Result<Ddl> {
    let when_there = when_there(create.or_replace, create.if_not_exists)?;
    let name = names.new_name(&create.name, false)?;
    file_paths::check_may_name(&names.access)?;
    if name.catalog == TEMPORARY_CATALOG {
        return Err(Error::unsupported("external tables are not temporary")
            .with_hint("name the files in the statement, as in `SELECT * FROM read_csv('orders/*.csv')`"));
    }
    let carried = create.location.as_deref().and_then(bowshot_sql::rewrite::files);
    let mut files = carried.ok_or_else(|| Error::internal("an external table came without its files"))?;
    let location = files.paths.pop().unwrap_or_default();
    let options = file_paths::kept(files.options);
    let comment = create.comment.as_ref().map(ToString::to_string);
    let id = Uuid::new_v4();
    let external = External { id, format: files.format, location, found: None, options, comment };
    let external = match when_there == WhenThere::Keep && names.pinned.entry(&name).is_some() {
        true => external,
        false => with_place(looked_at(external, names).await?, names).await?,
    };
    Ok(Ddl::CreateExternal(NewExternal { name, external, when_there }))
}

/// The table, whose files can be read. A place that is no file may be a folder, all of whose files are meant then.
async fn looked_at(external: External, names: &Names) -> Result<External> {
    let files = names.parts.files.as_ref();
    let error = match file_paths::external(files, &external).await {
        Ok(_) => return Ok(external),
        Err(error) => error,
    };
    let may_be_folder = !external.location.ends_with('/') && !external.location.contains(['*', '?', '[']);
    if error.kind() != ErrorKind::NotFound || !may_be_folder {
        return Err(error);
    }
    let folder = External { location: format!("{}/", external.location), ..external };
    match file_paths::external(files, &folder).await {
        Ok(_) => Ok(folder),
        Err(of_folder) if of_folder.kind() == ErrorKind::NotFound => Err(error),
        Err(of_folder) => Err(of_folder),
    }
}

/// The table with the place that its files were found in, the first that has any: what is in other places later is not read.
async fn with_place(external: External, names: &Names) -> Result<External> {
    let Some(files) = names.parts.files.as_ref() else { return Ok(external) };
    let path = external.path();
    if Path::new(&path).is_absolute() || path.contains("://") {
        return Ok(external);
    }
    for whole in files.whole_paths(&path) {
        let found = External { found: Some(whole), ..external.clone() };
        if file_paths::external(Some(files), &found).await.is_ok() {
            return Ok(found);
        }
    }
    Err(Error::invalid("the place of these files cannot be kept")
        .with_hint("write the whole path, as the operator has opened it"))
}

/// The state with the table.
pub(crate) fn create(new: &NewExternal, names: &Names) -> Result<Pinned> {
    match ddl::room_for(names, &new.name, new.when_there, false)? {
        Some(()) => ddl::put(&names.pinned, &new.name, Entry::External(Arc::new(new.external.clone()))),
        None => Ok(names.pinned.clone()),
    }
}
