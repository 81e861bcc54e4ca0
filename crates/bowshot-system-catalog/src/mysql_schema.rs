//! Schema `mysql`, which administration tools of MySQL ask who there is and who may do what: in dialect `mysql` alone, and unless a
//! schema of that name was made. Admins see all, others themselves and what `system.grants` tells them; what proves who somebody is
//! stands nowhere.

use crate::CatalogView;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, Rows, tables};
use crate::listing::About;
use crate::system::access::{Right, rights};
use async_trait::async_trait;
use bowshot_policy::rules::Place;
use bowshot_sql::Privilege;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Its name.
pub const MYSQL: &str = "mysql";

/// Rights on a schema, in the order of the columns of `db`.
const OF_SCHEMAS: &[&str] = bowshot_api::words! {
    select insert update delete create drop grant references index alter create_tmp_table lock_tables
    create_view show_view create_routine alter_routine execute event trigger
};
/// Rights on tables, as `tables_priv` writes them.
const OF_TABLES: [&str; 10] =
    ["Select", "Insert", "Update", "Delete", "Create", "Drop", "Grant", "References", "Index", "Alter"];
/// Columns of `user` that say what somebody may do with everything.
const GLOBAL: usize = 29;

static TABLES: &[Defined] = tables! {
    user: host Text, user Text, select_priv Text, insert_priv Text, update_priv Text, delete_priv Text,
        create_priv Text, drop_priv Text, reload_priv Text, shutdown_priv Text, process_priv Text,
        file_priv Text, grant_priv Text, references_priv Text, index_priv Text, alter_priv Text,
        show_db_priv Text, super_priv Text, create_tmp_table_priv Text, lock_tables_priv Text,
        execute_priv Text, repl_slave_priv Text, repl_client_priv Text, create_view_priv Text,
        show_view_priv Text, create_routine_priv Text, alter_routine_priv Text, create_user_priv Text,
        event_priv Text, trigger_priv Text, create_tablespace_priv Text, ssl_type Text, ssl_cipher Text,
        x509_issuer Text, x509_subject Text, max_questions Long, max_updates Long, max_connections Long,
        max_user_connections Long, plugin Text, authentication_string Text, password_expired Text,
        account_locked Text, is_role Text, default_role Text => Now(users);
    db: host Text, db Text, user Text, select_priv Text, insert_priv Text, update_priv Text,
        delete_priv Text, create_priv Text, drop_priv Text, grant_priv Text, references_priv Text,
        index_priv Text, alter_priv Text, create_tmp_table_priv Text, lock_tables_priv Text,
        create_view_priv Text, show_view_priv Text, create_routine_priv Text, alter_routine_priv Text,
        execute_priv Text, event_priv Text, trigger_priv Text => Now(on_schemas);
    tables_priv: host Text, db Text, user Text, table_name Text, grantor Text, timestamp Text,
        table_priv Text, column_priv Text => Now(on_tables);
    columns_priv: host Text, db Text, user Text, table_name Text, column_name Text, timestamp Text,
        column_priv Text => Now(on_columns);
    // There are no stored procedures.
    procs_priv: host Text, db Text, user Text, routine_name Text, routine_type Text, grantor Text,
        proc_priv Text, timestamp Text;
};

fn users(visible: &CatalogView, _: &About, rows: &mut Rows) {
    let access = &visible.access;
    let (rules, settings) = (access.rules(), access.settings());
    // Whether they may do everything, and whether it is a role.
    let mut all: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    all.extend(rules.roles.iter().map(|name| (name.clone(), (false, true))));
    all.extend(rules.users.iter().map(|(name, user)| (name.clone(), (user.admin, false))));
    all.extend(settings.users.iter().map(|(name, user)| (name.clone(), (user.admin, false))));
    all.retain(|name, _| access.is_admin() || access.has_role(name));
    all.insert(visible.principal.name.clone(), (access.is_everything(), false));
    for (name, (is_admin, is_role)) in all {
        let mut cells: Vec<Cell> = vec![if is_role { "" } else { "%" }.into(), name.into()];
        cells.extend(std::iter::repeat_with(|| flag(is_admin)).take(GLOBAL));
        cells.extend([""; 4].map(Cell::from));
        cells.extend([0_i64; 4].map(Cell::from));
        cells.extend([if is_role { "" } else { "caching_sha2_password" }, "", "N", "N"].map(Cell::from));
        cells.extend([flag(is_role), "".into()]);
        rows.add(cells);
    }
}

/// Rights on places that have so many parts, by place and by who has them.
fn by_place(visible: &CatalogView, parts: &[usize]) -> BTreeMap<(Place, String), Vec<Right>> {
    let mut all: BTreeMap<(Place, String), Vec<Right>> = BTreeMap::new();
    for right in rights(&visible.access).into_iter().filter(|right| parts.contains(&right.place.len())) {
        all.entry((right.place.clone(), right.grantee.clone())).or_default().push(right);
    }
    all
}

/// The parts of a place; the schema of a right on a whole catalog is any.
fn part(place: &Place, at: usize) -> Cell {
    place.get(at).map_or_else(|| "%".into(), Cell::from)
}

/// Whether rights give what MySQL calls so: who owns a thing may do everything with it.
fn gives(rights: &[Right], name: &str) -> bool {
    rights.iter().any(|right| match name.to_ascii_lowercase().as_str() {
        "grant" => right.grantable,
        _ if right.columns.is_some() => false,
        _ => right.privilege == Privilege::Own || right.privilege.as_str().eq_ignore_ascii_case(name),
    })
}

fn on_schemas(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for ((place, grantee), rights) in by_place(visible, &[1, 2]) {
        let mut cells: Vec<Cell> = vec!["%".into(), part(&place, 1), grantee.into()];
        cells.extend(OF_SCHEMAS.iter().map(|name| flag(gives(&rights, name))));
        rows.add(cells);
    }
}

fn on_tables(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for ((place, grantee), rights) in by_place(visible, &[3]) {
        let given: Vec<&str> = OF_TABLES.into_iter().filter(|name| gives(&rights, name)).collect();
        let of_columns = rights.iter().filter(|right| right.columns.is_some());
        let of_columns: Vec<String> = of_columns.map(|right| capital(right.privilege)).collect();
        let grantor = rights.iter().find_map(|right| right.grantor.clone()).unwrap_or_default();
        let mut cells: Vec<Cell> = vec!["%".into(), part(&place, 1), grantee.into(), part(&place, 2)];
        cells.extend([grantor.into(), Cell::Null, given.join(",").into(), of_columns.join(",").into()]);
        rows.add(cells);
    }
}

fn on_columns(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for ((place, grantee), rights) in by_place(visible, &[3]) {
        let mut columns: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for right in &rights {
            for column in right.columns.iter().flatten() {
                columns.entry(column).or_default().push(capital(right.privilege));
            }
        }
        for (column, given) in columns {
            let mut cells: Vec<Cell> = vec!["%".into(), part(&place, 1), (&grantee).into(), part(&place, 2)];
            cells.extend([column.into(), Cell::Null, given.join(",").into()]);
            rows.add(cells);
        }
    }
}

fn flag(is_so: bool) -> Cell {
    if is_so { "Y" } else { "N" }.into()
}

/// `Select`
fn capital(privilege: Privilege) -> String {
    let lower = privilege.as_str().to_ascii_lowercase();
    let mut letters = lower.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The schema `mysql`.
#[derive(Debug)]
pub struct MysqlSchema(pub Arc<CatalogView>);

#[async_trait]
impl SchemaProvider for MysqlSchema {
    fn table_names(&self) -> Vec<String> {
        TABLES.iter().map(|defined| defined.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(TABLES.iter().find(|defined| defined.name == name).map(|defined| defined.provider(&self.0)))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.iter().any(|defined| defined.name == name)
    }
}
