//! The server, its catalogs, users and settings.

use crate::CatalogView;
use crate::lazy_table::{Cell, Defined, Kind, Rows, columns};
use crate::pg_catalog::classes::ready;
use crate::pg_catalog::oids;

pub(crate) static DATABASE: Defined = Defined {
    name: "pg_database",
    columns: columns![
        oid Long, datname Text, datdba Long, encoding Int, datlocprovider Text, datistemplate Bool,
        datallowconn Bool, datconnlimit Int, dattablespace Long, datcollate Text, datctype Text, datacl Texts,
        datlocale Text, daticulocale Text, daticurules Text, datcollversion Text, datfrozenxid Long,
        datminmxid Long, dathasloginevt Bool
    ],
    rows: |visible, _, rows| {
        for catalog in visible.catalog_names() {
            let oid = oids::catalog(&catalog);
            rows.add([
                oid.into(),
                catalog.into(),
                oids::OWNER.into(),
                6.into(),
                "c".into(),
                false.into(),
                true.into(),
                (-1).into(),
                1663.into(),
                "C".into(),
                "C".into(),
            ]);
        }
        ready()
    },
};

pub(crate) static ROLES: Defined = Defined {
    name: "pg_roles",
    columns: columns![
        rolname Text, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool, rolcanlogin Bool,
        rolreplication Bool, rolconnlimit Int, rolpassword Text, rolvaliduntil Text, rolbypassrls Bool,
        rolconfig Texts, oid Long
    ],
    rows: |visible, _, rows| {
        let [no, yes] = [|| Cell::Bool(false), || Cell::Bool(true)];
        rows.add([
            Cell::from(&visible.principal.name),
            no(),
            yes(),
            no(),
            yes(),
            yes(),
            no(),
            (-1).into(),
            "********".into(),
            Cell::Null,
            no(),
            Cell::Null,
            oids::OWNER.into(),
        ]);
        ready()
    },
};

/// The same users, as the table that PostgreSQL shows to superusers.
pub(crate) static AUTHID: Defined = Defined {
    name: "pg_authid",
    columns: columns![
        oid Long, rolname Text, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
        rolcanlogin Bool, rolreplication Bool, rolbypassrls Bool, rolconnlimit Int, rolpassword Text,
        rolvaliduntil Text
    ],
    rows: |visible, _, rows| {
        let rights = [false, true, false, true, true, false, false].map(Cell::Bool);
        let name = Cell::from(&visible.principal.name);
        let first = [Cell::from(oids::OWNER), name];
        rows.add(first.into_iter().chain(rights).chain([Cell::from(-1)]));
        ready()
    },
};

pub(crate) static USER: Defined = Defined {
    name: "pg_user",
    columns: columns![
        usename Text, usesysid Long, usecreatedb Bool, usesuper Bool, userepl Bool, usebypassrls Bool,
        passwd Text
    ],
    rows: |visible, _, rows| {
        let name = Cell::from(&visible.principal.name);
        rows.add([
            name,
            oids::OWNER.into(),
            true.into(),
            false.into(),
            false.into(),
            false.into(),
            "********".into(),
        ]);
        ready()
    },
};

pub(crate) static SETTINGS: Defined = Defined {
    name: "pg_settings",
    columns: OF_SETTINGS,
    rows: |visible, _, rows| {
        settings(visible, rows);
        ready()
    },
};

/// The same as a function, which pgAdmin calls.
pub(super) static ALL_SETTINGS: Defined = Defined {
    name: "pg_show_all_settings",
    columns: OF_SETTINGS,
    rows: |visible, _, rows| {
        settings(visible, rows);
        ready()
    },
};

const OF_SETTINGS: &[(&str, Kind)] = columns![
    name Text, setting Text, unit Text, category Text, short_desc Text, extra_desc Text, context Text,
    vartype Text, source Text, min_val Text, max_val Text, enumvals Texts, boot_val Text, reset_val Text,
    sourcefile Text, sourceline Int, pending_restart Bool
];

fn settings(visible: &CatalogView, rows: &mut Rows) {
    for setting in visible.settings() {
        let (name, text) = (Cell::from(setting.name), Cell::from(setting.text));
        let (unit, category) = (Cell::Null, "Session".into());
        rows.add([
            name,
            setting.value.into(),
            unit,
            category,
            text,
            Cell::Null,
            "user".into(),
            "string".into(),
            "session".into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            false.into(),
        ]);
    }
}

pub(crate) static AM: Defined = Defined {
    name: "pg_am",
    columns: columns![oid Long, amname Text, amhandler Text, amtype Text],
    rows: |_, _, rows| {
        rows.add([2.into(), "heap".into(), "heap_tableam_handler".into(), "t".into()]);
        rows.add([403.into(), "btree".into(), "bthandler".into(), "i".into()]);
        ready()
    },
};
