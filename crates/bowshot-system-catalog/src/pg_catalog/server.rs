//! The server, its catalogs, users and settings.

use crate::CatalogView;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, Rows, cells, columns, tables};
use crate::listing::About;
use crate::pg_catalog::oids;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_database: oid Long, datname Text, datdba Long, encoding Int, datlocprovider Text, datistemplate Bool,
        datallowconn Bool, datconnlimit Int, dattablespace Long, datcollate Text, datctype Text,
        datacl Texts, datlocale Text, daticulocale Text, daticurules Text, datcollversion Text,
        datfrozenxid Long, datminmxid Long, dathasloginevt Bool
    => Now(|visible, _, rows| {
        for catalog in visible.catalog_names() {
            let oid = oids::catalog(&catalog);
            rows.add(cells![oid, catalog, oids::OWNER, 6, "c", false, true, -1, 1663, "C", "C"]);
        }
    });

    pg_roles: rolname Text, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
        rolcanlogin Bool, rolreplication Bool, rolconnlimit Int, rolpassword Text, rolvaliduntil Text,
        rolbypassrls Bool, rolconfig Texts, oid Long
    => Now(|visible, _, rows| {
        let first = cells![&visible.principal.name, false, true, false, true, true, false, -1, "********"];
        rows.add(first.into_iter().chain(cells![Cell::Null, false, Cell::Null, oids::OWNER]));
    });

    // The same users, as the table that PostgreSQL shows to superusers.
    pg_authid: oid Long, rolname Text, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
        rolcanlogin Bool, rolreplication Bool, rolbypassrls Bool, rolconnlimit Int, rolpassword Text,
        rolvaliduntil Text
    => Now(|visible, _, rows| {
        let rights = cells![false, true, false, true, true, false, false, -1];
        rows.add(cells![oids::OWNER, &visible.principal.name].into_iter().chain(rights));
    });

    pg_user: usename Text, usesysid Long, usecreatedb Bool, usesuper Bool, userepl Bool, usebypassrls Bool,
        passwd Text
    => Now(|visible, _, rows| {
        rows.add(cells![&visible.principal.name, oids::OWNER, true, false, false, false, "********"]);
    });

    pg_am: oid Long, amname Text, amhandler Text, amtype Text
    => Now(|_, _, rows| {
        rows.add(cells![2, "heap", "heap_tableam_handler", "t"]);
        rows.add(cells![403, "btree", "bthandler", "i"]);
    });
};

pub(super) static SETTINGS: &[Defined] = &[of_settings("pg_settings")];

/// The same as a function, which pgAdmin calls.
pub(super) static FUNCTIONS: &[Defined] = &[of_settings("pg_show_all_settings")];

const fn of_settings(name: &'static str) -> Defined {
    let columns = columns![
        name Text, setting Text, unit Text, category Text, short_desc Text, extra_desc Text, context Text,
        vartype Text, source Text, min_val Text, max_val Text, enumvals Texts, boot_val Text, reset_val Text,
        sourcefile Text, sourceline Int, pending_restart Bool
    ];
    Defined { name, columns, rows: Now(settings) }
}

fn settings(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for setting in visible.settings() {
        let first = cells![setting.name, setting.value, Cell::Null, "Session", setting.text, Cell::Null];
        let nothing = std::iter::repeat_n(Cell::Null, 7);
        let rest = cells!["user", "string", "session"].into_iter().chain(nothing).chain([false.into()]);
        rows.add(first.into_iter().chain(rest));
    }
}
