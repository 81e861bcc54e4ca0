//! The server, its catalogs, users and settings.

use crate::CatalogView;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, Kind, Rows, cells, columns};
use crate::listing::About;
use crate::pg_catalog::oids;

pub(crate) static DATABASE: Defined = Defined {
    name: "pg_database",
    columns: columns![
        oid Long, datname Text, datdba Long, encoding Int, datlocprovider Text, datistemplate Bool,
        datallowconn Bool, datconnlimit Int, dattablespace Long, datcollate Text, datctype Text, datacl Texts,
        datlocale Text, daticulocale Text, daticurules Text, datcollversion Text, datfrozenxid Long,
        datminmxid Long, dathasloginevt Bool
    ],
    rows: Now(|visible, _, rows| {
        for catalog in visible.catalog_names() {
            let oid = oids::catalog(&catalog);
            rows.add(cells![oid, catalog, oids::OWNER, 6, "c", false, true, -1, 1663, "C", "C"]);
        }
    }),
};

pub(crate) static ROLES: Defined = Defined {
    name: "pg_roles",
    columns: columns![
        rolname Text, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool, rolcanlogin Bool,
        rolreplication Bool, rolconnlimit Int, rolpassword Text, rolvaliduntil Text, rolbypassrls Bool,
        rolconfig Texts, oid Long
    ],
    rows: Now(|visible, _, rows| {
        let first = cells![&visible.principal.name, false, true, false, true, true, false, -1, "********"];
        rows.add(first.into_iter().chain(cells![Cell::Null, false, Cell::Null, oids::OWNER]));
    }),
};

/// The same users, as the table that PostgreSQL shows to superusers.
pub(crate) static AUTHID: Defined = Defined {
    name: "pg_authid",
    columns: columns![
        oid Long, rolname Text, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
        rolcanlogin Bool, rolreplication Bool, rolbypassrls Bool, rolconnlimit Int, rolpassword Text,
        rolvaliduntil Text
    ],
    rows: Now(|visible, _, rows| {
        let rights = cells![false, true, false, true, true, false, false, -1];
        rows.add(cells![oids::OWNER, &visible.principal.name].into_iter().chain(rights));
    }),
};

pub(crate) static USER: Defined = Defined {
    name: "pg_user",
    columns: columns![
        usename Text, usesysid Long, usecreatedb Bool, usesuper Bool, userepl Bool, usebypassrls Bool,
        passwd Text
    ],
    rows: Now(|visible, _, rows| {
        rows.add(cells![&visible.principal.name, oids::OWNER, true, false, false, false, "********"]);
    }),
};

pub(crate) static SETTINGS: Defined =
    Defined { name: "pg_settings", columns: OF_SETTINGS, rows: Now(settings) };

/// The same as a function, which pgAdmin calls.
pub(super) static ALL_SETTINGS: Defined =
    Defined { name: "pg_show_all_settings", columns: OF_SETTINGS, rows: Now(settings) };

const OF_SETTINGS: &[(&str, Kind)] = columns![
    name Text, setting Text, unit Text, category Text, short_desc Text, extra_desc Text, context Text,
    vartype Text, source Text, min_val Text, max_val Text, enumvals Texts, boot_val Text, reset_val Text,
    sourcefile Text, sourceline Int, pending_restart Bool
];

fn settings(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for setting in visible.settings() {
        let first = cells![setting.name, setting.value, Cell::Null, "Session", setting.text, Cell::Null];
        let nothing = std::iter::repeat_n(Cell::Null, 7);
        let rest = cells!["user", "string", "session"].into_iter().chain(nothing).chain([false.into()]);
        rows.add(first.into_iter().chain(rest));
    }
}

pub(crate) static AM: Defined = Defined {
    name: "pg_am",
    columns: columns![oid Long, amname Text, amhandler Text, amtype Text],
    rows: Now(|_, _, rows| {
        rows.add(cells![2, "heap", "heap_tableam_handler", "t"]);
        rows.add(cells![403, "btree", "bthandler", "i"]);
    }),
};
