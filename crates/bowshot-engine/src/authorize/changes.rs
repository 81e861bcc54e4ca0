//! What a statement that changes something needs. Exhaustive on purpose: a new kind of change does not compile before it
//! says what it needs.

use crate::catalog::file_paths;
use crate::catalog::models::not_there;
use crate::databases::{ColumnChange, DatabaseDefinition};
use crate::write::alter::Alteration;
use crate::write::ddl::Ddl;
use crate::write::models::{NewModel, may_know};
use crate::write::{Affected, WhenThere, Write, secrets};
use bowshot_api::{Error, IfExists, Result};
use bowshot_policy::access::{Access, Reading, denied, unseen};
use bowshot_policy::rules::{Rules, model_place};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Privilege;
use bowshot_tables::EntryName;
use std::collections::BTreeSet;

/// Role of those who may have files of the exchange folder written and read.
const EXCHANGE: &str = "exchange";

/// Checks a change before its plan may run. `returns` tells whether it returns rows of what it changes.
///
/// # Errors
/// `Denied`; `NotFound` for what the user may not even know.
pub(crate) fn check_write(write: &Write, returns: bool, pinned: &Pinned, access: &Access) -> Result<()> {
    // Rules are there before there are any: who may make the first one is to be checked too.
    if let Write::Ddl(Ddl::Access(change)) = write {
        return change.check(access);
    }
    if let Write::Ddl(Ddl::Secret(_)) = write {
        return secrets::check(access);
    }
    if !access.is_everything() {
        permitted(write, pinned, access)?;
        if returns {
            returning(write, access)?;
        }
    }
    match write {
        Write::Ddl(ddl) => columns_keep_their_rules(ddl, access),
        Write::DatabaseDefine(define) => match &define.definition {
            DatabaseDefinition::AlterTable { name, changes, .. }
                if changes.iter().any(|change| matches!(change, ColumnChange::Rename { .. })) =>
            {
                check_without_rules(name, access)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn permitted(write: &Write, pinned: &Pinned, access: &Access) -> Result<()> {
    match write {
        Write::Ddl(ddl) => check_ddl(ddl, pinned, access)?,
        Write::CreateAs(new) => make(&new.name, new.when_there, pinned, access)?,
        Write::Insert(rows) => access.check_touched(&rows.name, &rows.touched)?,
        Write::Overwrite(name) => {
            access.check(Privilege::Insert, name)?;
            access.check(Privilege::Delete, name)?;
            access.check_part(name, false, "all rows are replaced")?;
        }
        Write::Refresh(refresh) => access.check_refresh(&refresh.name)?,
        Write::Delete(name) => access.check_rows(name, &[Privilege::Delete])?,
        Write::Update(Affected { name, touched }) => {
            access.check_touched(name, touched)?;
            access.check_rows(name, &[])?;
            unmasked(name, "UPDATE would write the masked values back", access)?;
        }
        Write::Merge(Affected { name, touched }) => {
            access.check_touched(name, touched)?;
            access.check_rows(name, &[])?;
            access.check_merged(name)?;
        }
        Write::CopyOut(_) => exchange(access)?,
        Write::CopyIn(copy) => {
            exchange(access)?;
            access.check_columns(Privilege::Insert, copy.table(), &copy.columns())?;
        }
        Write::Load(load) => load.check(access)?,
        Write::DatabaseInsert(insert) => {
            access.check_columns(Privilege::Insert, &insert.name, &insert.columns)?;
        }
        Write::DatabaseRewrite(rewrite) => rewrite.check(access)?,
        Write::DatabaseDefine(define) => match &define.definition {
            DatabaseDefinition::CreateSchema { database, .. } => {
                place(Privilege::Create, std::slice::from_ref(database), "catalog", access)?;
            }
            DatabaseDefinition::DropSchema { database, schema, .. } => {
                place(Privilege::Own, &[database.clone(), schema.clone()], "schema", access)?;
            }
            DatabaseDefinition::CreateTable(new) => {
                access.check_make(&new.name.catalog, &new.name.schema)?;
            }
            // What is not seen may be there, and is not dropped for that.
            DatabaseDefinition::DropTable { name, .. }
            | DatabaseDefinition::AlterTable { name, .. }
            | DatabaseDefinition::AlterLayout { name, .. }
            | DatabaseDefinition::Optimize { name }
            | DatabaseDefinition::Vacuum { name, .. } => {
                access.check(Privilege::Own, name)?;
            }
        },
        // Its tables were looked at where they were found.
        Write::Query => {}
    }
    Ok(())
}

/// Rules go by the names of columns, whatever is in them. Whoever gives a column another name takes away its rules, or gives
/// it those of another one: admins too are to say what they mean by that.
fn columns_keep_their_rules(ddl: &Ddl, access: &Access) -> Result<()> {
    match ddl {
        Ddl::Several(changes) => changes.iter().try_for_each(|ddl| columns_keep_their_rules(ddl, access)),
        Ddl::Alter { name, changes, .. }
            if changes.iter().any(|change| matches!(change, Alteration::RenameColumn { .. })) =>
        {
            check_without_rules(name, access)
        }
        _ => Ok(()),
    }
}

fn check_without_rules(name: &EntryName, access: &Access) -> Result<()> {
    if !access.has_rules_of_columns(name) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "cannot rename a column of `{name}`: the table has policies, masks or column rights"
    ))
    .with_hint(
        "drop them (`SELECT * FROM system.policies` lists them), rename the column, and create them again",
    ))
}

/// Rows that come outside of a statement. `columns` are theirs, where they are known already: before the first of them has come,
/// whoever may add nothing at all is refused.
///
/// # Errors
/// As [`check_write`].
pub(crate) fn check_ingest(
    name: &EntryName,
    (if_exists, columns): (IfExists, Option<&BTreeSet<String>>),
    pinned: &Pinned,
    access: &Access,
) -> Result<()> {
    if access.is_everything() {
        return Ok(());
    }
    match (pinned.entry(name), if_exists) {
        (Some(_), IfExists::Append) => match columns {
            Some(columns) => access.check_columns(Privilege::Insert, name, columns),
            None => access.check_any_column(Privilege::Insert, name),
        },
        (Some(_), IfExists::Replace) => access.check(Privilege::Own, name),
        // Whoever may not make a table does not learn that one is there.
        (Some(_), IfExists::Fail) => access.check_make(&name.catalog, &name.schema),
        (None, _) if access.may(Privilege::Create, &[name.catalog.clone(), name.schema.clone()]) => Ok(()),
        (None, _) if access.sees(name) => Err(access.refused(Privilege::Insert, name)),
        (None, IfExists::Append) => Err(unseen(name)),
        (None, _) => access.check_make(&name.catalog, &name.schema),
    }
}

/// Steering the caches is for admins: they belong to everybody.
///
/// # Errors
/// `Denied`.
pub(crate) fn check_cache(access: &Access) -> Result<()> {
    if access.is_everything() {
        return Ok(());
    }
    Err(denied(&format!("`{}` may not control the caches", access.user())).with_hint("an admin may"))
}

/// Where the server goes for rows, admins say alone, also where everybody may do everything else.
///
/// # Errors
/// `Denied`.
pub(crate) fn check_attach(access: &Access) -> Result<()> {
    if access.is_admin() {
        return Ok(());
    }
    Err(denied(&format!("`{}` may not open or leave other databases", access.user()))
        .with_hint("an admin may: `admin = true` under `[[access.users]]`"))
}

fn check_ddl(ddl: &Ddl, pinned: &Pinned, access: &Access) -> Result<()> {
    match ddl {
        Ddl::Access(change) => change.check(access),
        Ddl::Secret(_) => secrets::check(access),
        Ddl::Pipe(change) => change.check(access),
        Ddl::Type(change) => change.check(access),
        Ddl::Function(change) => change.check(pinned, access),
        Ddl::CreateCatalog { .. } => {
            Err(denied(&format!("`{}` may not make catalogs", access.user())).with_hint("an admin may"))
        }
        Ddl::CreateSchema { catalog, .. } => {
            place(Privilege::Create, std::slice::from_ref(catalog), "catalog", access)
        }
        Ddl::CreateTable(new) => make(&new.name, new.when_there, pinned, access),
        Ddl::CreateView(new) => make(&new.name, new.when_there, pinned, access),
        Ddl::CreateExternal(new) => {
            file_paths::check_may_name(access)?;
            make(&new.name, new.when_there, pinned, access)
        }
        Ddl::CreateModel(new) => make_model(new, pinned, access),
        Ddl::DropModel { name, if_exists } => drop_model(name, *if_exists, access),
        Ddl::DropCatalog { name, .. } => place(Privilege::Own, std::slice::from_ref(name), "catalog", access),
        Ddl::DropSchema { catalog, name, .. } => {
            place(Privilege::Own, &[catalog.clone(), name.clone()], "schema", access)
        }
        Ddl::DropTable { name, if_exists }
        | Ddl::DropView { name, if_exists }
        | Ddl::DropMaterialized { name, if_exists } => drop_it(name, *if_exists, access),
        Ddl::Alter { name, changes, if_exists } => {
            drop_it(name, *if_exists, access)?;
            changes.iter().try_for_each(|change| match change {
                Alteration::RenameTable { to } => access.check_make(&to.catalog, &to.schema),
                _ => Ok(()),
            })
        }
        Ddl::Comment { name, .. } | Ddl::Optimize { name } | Ddl::Vacuum { name, .. } => {
            access.check(Privilege::Own, name)
        }
        Ddl::SetRefresh { name, .. } => access.check_refresh(name),
        Ddl::Truncate { names, .. } => names.iter().try_for_each(|name| {
            access.check(Privilege::Delete, name)?;
            access.check_part(name, false, "all rows are taken out")
        }),
        Ddl::Several(changes) => changes.iter().try_for_each(|change| check_ddl(change, pinned, access)),
    }
}

/// What is not seen is as good as not there, which `IF EXISTS` allows.
fn drop_it(name: &EntryName, if_exists: bool, access: &Access) -> Result<()> {
    if if_exists && !access.sees(name) { Ok(()) } else { access.check(Privilege::Own, name) }
}

fn make(name: &EntryName, when_there: WhenThere, pinned: &Pinned, access: &Access) -> Result<()> {
    access.check_make(&name.catalog, &name.schema)?;
    if when_there == WhenThere::Replace && pinned.entry(name).is_some() {
        return access.check(Privilege::Own, name).map_err(|_| {
            denied(&format!("cannot create `{name}`: the name is taken")).with_hint("choose another name")
        });
    }
    Ok(())
}

/// A model comes from a file of the exchange folder, as the rows of COPY do, or from the client.
fn make_model(new: &NewModel, pinned: &Pinned, access: &Access) -> Result<()> {
    let (name, when_there) = (&new.name, new.when_there);
    // What a client sends is its own; a file of the folder may be anybody's.
    if !new.is_sent() {
        exchange(access)?;
    }
    access.check_make(&name.catalog, &name.schema)?;
    let place = model_place(name);
    let there = pinned.shared().notes().read(Rules::of).models.contains_key(&place);
    if when_there == WhenThere::Replace && there && !access.owns(&place) {
        let message = format!("cannot create `{name}`: the name is taken");
        return Err(denied(&message).with_hint("choose another name"));
    }
    Ok(())
}

/// Whether one is there is found out later, for who may know it.
fn drop_model(name: &EntryName, if_exists: bool, access: &Access) -> Result<()> {
    let place = model_place(name);
    if access.owns(&place) {
        return Ok(());
    }
    if !may_know(name, access) {
        return if if_exists { Ok(()) } else { Err(not_there(name)) };
    }
    Err(denied(&format!("`{}` may not drop model `{name}`", access.user()))
        .with_hint(format!("its owner or an admin can run `GRANT OWN ON MODEL {name} TO …`")))
}

fn place(privilege: Privilege, place: &[String], what: &str, access: &Access) -> Result<()> {
    if access.may(privilege, place) {
        return Ok(());
    }
    let name = place.join(".");
    let (verb, privilege) = match privilege {
        Privilege::Own => ("change", "OWN"),
        _ => ("make anything in", "CREATE"),
    };
    Err(denied(&format!("`{}` may not {verb} {what} `{name}`", access.user())).with_hint(format!(
        "its owner or an admin can run `GRANT {privilege} ON {} {name} TO …`",
        what.to_uppercase()
    )))
}

/// Refuses who sees other values than there are. Columns that are not seen at all stay what they are (`write/hidden_columns.rs`).
fn unmasked(name: &EntryName, reason: &str, access: &Access) -> Result<()> {
    match access.reading(name) {
        Reading::Limited(limits) if limits.masks.is_empty() => Ok(()),
        _ => access.check_part(name, true, reason),
    }
}

fn returning(write: &Write, access: &Access) -> Result<()> {
    match write {
        Write::Insert(Affected { name, .. })
        | Write::Overwrite(name)
        | Write::Delete(name)
        | Write::Update(Affected { name, .. })
        | Write::Merge(Affected { name, .. }) => access.check_returned(name),
        Write::Ddl(Ddl::Access(change)) if change.tells() => Ok(()),
        Write::Query => Ok(()),
        Write::Ddl(_)
        | Write::CreateAs(_)
        | Write::Refresh(_)
        | Write::CopyOut(_)
        | Write::CopyIn(_)
        | Write::Load(_)
        | Write::DatabaseInsert(_)
        | Write::DatabaseDefine(_)
        | Write::DatabaseRewrite(_) => Err(Error::internal("a change without rows was to return some")),
    }
}

fn exchange(access: &Access) -> Result<()> {
    if access.has_role(EXCHANGE) {
        return Ok(());
    }
    Err(denied(&format!("`{}` may not write or read files of the exchange folder", access.user()))
        .with_hint(format!("an admin can run `CREATE ROLE {EXCHANGE}` and `GRANT {EXCHANGE} TO …`")))
}
