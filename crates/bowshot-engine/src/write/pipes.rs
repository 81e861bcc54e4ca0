//! `CREATE PIPE`, `ALTER PIPE` and `DROP PIPE`. A pipe loads files that a statement could name, with the rights of who has made it,
//! which are asked for at each load.

use crate::catalog::file_paths;
use crate::catalog::names::{Names, check_changeable};
use crate::pipes::ChosenFiles;
use crate::write::Write;
use crate::write::copy::{read_options, wanted};
use crate::write::ddl::{Ddl, full};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_files::exchange::{Shape, Wanted};
use bowshot_formats::read_options::ReadOptions;
use bowshot_policy::Access;
use bowshot_policy::access::denied;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::{PipeChange, PipeCopy, PipeStatement, Privilege};
use bowshot_tables::{EntryName, Pipe};
use datafusion::arrow::datatypes::Schema;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Pipes of all tables: the server looks for the files of each.
const MAX_PIPES: usize = 100;
/// How often the server looks for files.
const EVERY: Duration = Duration::from_secs(5);

/// What a statement does with a pipe.
#[derive(Debug, Clone)]
pub(crate) struct PipeDdl {
    pub(crate) name: String,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Create { pipe: Box<Pipe>, keep: bool },
    Alter { change: PipeChange, if_exists: bool },
    Drop { if_exists: bool },
}

/// The files that were found are loaded, and that is noted.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) name: String,
    pub(crate) table: EntryName,
    pub(crate) shape: Shape,
    pub(crate) read: ReadOptions,
    pub(crate) wanted: Wanted,
    pub(crate) chosen: Arc<ChosenFiles>,
}

/// What a statement about a pipe does.
///
/// # Errors
/// `Denied` for who may not name files or insert rows; `NotFound` without the table or the pipe; `Invalid` for options.
pub(crate) async fn change(statement: PipeStatement, names: &Names) -> Result<Write> {
    let (name, change) = match statement {
        PipeStatement::Create { name, if_not_exists: keep, copy } => {
            let pipe = Box::new(created(copy, names).await?);
            (name, Change::Create { pipe, keep })
        }
        PipeStatement::Alter { name, change: PipeChange::Refresh, .. } => {
            return load(name, names).map(Write::Load);
        }
        PipeStatement::Alter { name, if_exists, change } => (name, Change::Alter { change, if_exists }),
        PipeStatement::Drop { name, if_exists } => (name, Change::Drop { if_exists }),
    };
    Ok(Write::Ddl(Ddl::Pipe(PipeDdl { name, change })))
}

async fn created(copy: PipeCopy, names: &Names) -> Result<Pipe> {
    let PipeCopy { table, location, options, every } = copy;
    file_paths::check_may_name(&names.access)?;
    let (table, there) = names.writable(&table)?;
    names.access.check_any_column(Privilege::Insert, &table)?;
    if table.catalog == TEMPORARY_CATALOG {
        return Err(Error::unsupported(format!("`{table}` is a temporary table: a pipe outlives it"))
            .with_hint("name a table that is kept"));
    }
    let principal = names.access.principal();
    if principal.claims.is_some() {
        return Err(denied(
            "a pipe loads with the rights of who has made it, and only users of this server have them",
        )
        .with_hint("let a user of the configuration, or one that `CREATE USER` has made, say it"));
    }
    let (shape, read) = read_options(&location, options.clone())?;
    shape.check(&Schema::new(wanted(there.definition(), &[])?.fields))?;
    let location = whole(location, read, shape, names).await?;
    let EntryName { catalog, schema, name } = table;
    Ok(Pipe {
        id: Uuid::new_v4(),
        owner: principal.authenticated.then(|| principal.name.clone()),
        table: [catalog, schema, name],
        location,
        options,
        every: every.unwrap_or(EVERY),
        paused: false,
        change: Uuid::nil(),
        files: 0,
        rows: 0,
        loaded_us: None,
    })
}

/// The location with the one place that it means, which must be open.
async fn whole(location: String, read: ReadOptions, shape: Shape, names: &Names) -> Result<String> {
    let files = file_catalog(names)?;
    let is_whole = location.contains("://") || Path::new(&location).is_absolute();
    let places = if is_whole { Vec::new() } else { files.whole_paths(&location) };
    let location = match places.as_slice() {
        [] => location,
        [only] => only.clone(),
        _ => {
            return Err(Error::invalid(format!("`{location}` may be in {} served folders", places.len()))
                .with_hint("write the whole path, as the operator has opened it"));
        }
    };
    if location.contains("://") {
        // What lies in no place that is open is refused.
        let (files, asked) = (Arc::clone(files), location.clone());
        let options = of_format(read, shape);
        let looked = spawn_blocking(move || files.find_files(&asked, &options).map(drop)).await;
        looked.map_err(|error| Error::internal("looking for files broke down").with_source(error))??;
    } else if files.whole_paths(&location).is_empty() {
        return Err(Error::not_found(format!(
            "`{location}` is in no folder that statements may name files of"
        ))
        .with_hint("the operator serves the folder, or names it with `storage.read_folder`"));
    }
    Ok(location)
}

/// Files of a pattern are those of the format, whatever their endings.
pub(crate) fn of_format(read: ReadOptions, shape: Shape) -> ReadOptions {
    ReadOptions { format: Some(shape.format), ..read }
}

pub(crate) fn file_catalog(names: &Names) -> Result<&Arc<bowshot_files::FileCatalog>> {
    names.parts.files.as_ref().ok_or_else(|| {
        Error::unsupported("this server serves no files")
            .with_hint("start it with a folder: `bowshot serve FOLDER`")
    })
}

/// The load of the files that the server has found.
fn load(name: String, names: &Names) -> Result<Load> {
    let pipe = found(&name, names)?;
    file_paths::check_may_name(&names.access)?;
    let [catalog, schema, table] = &pipe.table;
    let table = EntryName::new(catalog, schema, table);
    if pipe.paused {
        return Err(Error::invalid(format!("pipe `{name}` is paused"))
            .with_hint(format!("say `ALTER PIPE {name} RESUME`")));
    }
    let there = names.table(&table)?;
    check_changeable(&table, &there)?;
    let (shape, read) = read_options(&pipe.location, pipe.options.clone())?;
    let wanted = wanted(there.definition(), &[])?;
    shape.check(&Schema::new(wanted.fields.clone()))?;
    let chosen = names.parts.pipes.chosen(&pipe);
    Ok(Load { name, table, shape, read, wanted, chosen })
}

/// The pipe of a name, as far as the statement may know it.
fn found(name: &str, names: &Names) -> Result<Pipe> {
    let texts = names.pinned.shared().notes().texts();
    Pipe::find(texts, name).filter(|pipe| names.access.may_know(pipe)).ok_or_else(|| not_there(name))
}

fn not_there(name: &str) -> Error {
    Error::not_found(format!("pipe `{name}` not found")).with_hint("see `SELECT * FROM system.pipes`")
}

impl Load {
    /// # Errors
    /// `Denied` for who may not name files, or not insert rows into the table.
    pub(crate) fn check(&self, access: &Access) -> Result<()> {
        file_paths::check_may_name(access)?;
        let columns = self.wanted.fields.iter().map(|field| field.name().clone()).collect();
        access.check_columns(Privilege::Insert, &self.table, &columns)
    }

    /// The state in which the files are noted as loaded. Whoever has loaded some meanwhile, or changed the pipe, was first.
    ///
    /// # Errors
    /// `Conflict` then; `LimitReached` for more files than a pipe may know.
    pub(crate) fn noted(&self, pinned: &Pinned, rows: u64) -> Result<Pinned> {
        let (chosen, notes) = (&self.chosen, pinned.shared().notes());
        let now = Pipe::find(notes.texts(), &self.name).filter(|now| now.change == chosen.change);
        let Some(now) = now else {
            let message = format!("pipe `{}` was changed, or has loaded files, meanwhile", self.name);
            return Err(Error::new(ErrorKind::Conflict, message).with_hint("it loads what is left by itself"));
        };
        let changes = now.after(&self.name, notes.texts(), &chosen.load, rows)?;
        pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
    }
}

impl PipeDdl {
    /// What others call this.
    pub(crate) fn action(&self) -> &'static str {
        match self.change {
            Change::Create { .. } => "create",
            Change::Alter { .. } => "alter",
            Change::Drop { .. } => "drop",
        }
    }

    /// # Errors
    /// `Denied` for who may not name files or insert rows. Whether there is a pipe, who may not know it does not learn.
    pub(crate) fn check(&self, access: &Access) -> Result<()> {
        let Change::Create { pipe, .. } = &self.change else { return Ok(()) };
        file_paths::check_may_name(access)?;
        let [catalog, schema, table] = &pipe.table;
        access.check_any_column(Privilege::Insert, &EntryName::new(catalog, schema, table))
    }

    /// The state with the change.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `LimitReached`.
    pub(crate) fn apply(&self, names: &Names) -> Result<Pinned> {
        let (name, pinned) = (&self.name, &names.pinned);
        let texts = pinned.shared().notes().texts();
        let changes = match &self.change {
            Change::Create { keep, .. } if texts.contains_key(&Pipe::key(name)) => {
                if *keep {
                    return Ok(pinned.clone());
                }
                return Err(Error::new(ErrorKind::AlreadyExists, format!("pipe `{name}` already exists"))
                    .with_hint("use IF NOT EXISTS to keep it, or another name"));
            }
            Change::Create { .. } if Pipe::all(texts).len() >= MAX_PIPES => {
                return Err(full(MAX_PIPES, "pipes"));
            }
            Change::Create { pipe, .. } => vec![Pipe::clone(pipe).changed(name)],
            Change::Alter { if_exists, .. } | Change::Drop { if_exists } => match found(name, names) {
                Ok(pipe) => self.changes(pipe, names),
                Err(_) if *if_exists => return Ok(pinned.clone()),
                Err(error) => return Err(error),
            },
        };
        pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
    }

    /// The notes of a pipe that is there.
    fn changes(&self, pipe: Pipe, names: &Names) -> Vec<(String, Option<String>)> {
        let (name, texts) = (&self.name, names.pinned.shared().notes().texts());
        let Change::Alter { change, .. } = &self.change else { return Pipe::removed(texts, name) };
        let (paused, mut changes) = match change {
            PipeChange::Pause => (true, Vec::new()),
            PipeChange::Resume => (false, Vec::new()),
            PipeChange::Retry | PipeChange::Refresh => (pipe.paused, Pipe::without_errors(texts, name)),
        };
        changes.push(Pipe { paused, ..pipe }.changed(name));
        changes
    }
}
