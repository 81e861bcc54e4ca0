//! What goes on: the session that asks, and how often tables were changed. Of other sessions `system.sessions` tells.

use crate::lazy_table::{Cell, Defined, columns};
use crate::pg_catalog::classes::{here, ready};
use crate::pg_catalog::oids;

pub(crate) static ACTIVITY: Defined = Defined {
    name: "pg_stat_activity",
    columns: columns![
        datid Long, datname Text, pid Int, leader_pid Int, usesysid Long, usename Text, application_name Text,
        client_addr Text, client_hostname Text, client_port Int, backend_start Text, xact_start Text,
        query_start Text, state_change Text, wait_event_type Text, wait_event Text, state Text,
        backend_xid Long, backend_xmin Long, query_id Long, query Text, backend_type Text
    ],
    rows: |visible, _, rows| {
        let (catalog, _) = visible.default_names();
        let named = visible.settings().into_iter().find(|setting| setting.name == "application_name");
        let unknown = |count| std::iter::repeat_n(Cell::Null, count);
        let first = [
            Cell::from(oids::catalog(&catalog)),
            catalog.into(),
            visible.number().into(),
            Cell::Null,
            oids::OWNER.into(),
            (&visible.principal.name).into(),
            named.map(|setting| setting.value).into(),
        ];
        rows.add(
            first
                .into_iter()
                .chain(unknown(9))
                .chain(["active".into()])
                .chain(unknown(4))
                .chain(["client backend".into()]),
        );
        ready()
    },
};

pub(crate) static CURSORS: Defined = Defined {
    name: "pg_cursors",
    columns: columns![
        name Text, statement Text, is_holdable Bool, is_binary Bool, is_scrollable Bool, creation_time Text
    ],
    rows: |visible, _, rows| {
        for cursor in visible.cursors() {
            let (name, sql) = (Cell::from(cursor.name), Cell::from(&*cursor.sql));
            rows.add([name, sql, cursor.is_held.into(), false.into(), false.into(), Cell::Null]);
        }
        ready()
    },
};

pub(crate) static USER_TABLES: Defined = Defined {
    name: "pg_stat_user_tables",
    columns: columns![
        relid Long, schemaname Text, relname Text, n_live_tup Long, n_dead_tup Long, seq_scan Long,
        seq_tup_read Long, idx_scan Long, idx_tup_fetch Long, n_tup_ins Long, n_tup_upd Long, n_tup_del Long,
        n_tup_hot_upd Long, n_mod_since_analyze Long, last_vacuum Text, last_autovacuum Text,
        last_analyze Text, last_autoanalyze Text
    ],
    rows: |visible, about, rows| {
        for listed in here(visible, about) {
            let Some(live) = listed.rows() else { continue };
            let name = &listed.name;
            let first = [oids::table(name).into(), (&name.schema).into(), (&name.name).into(), live.into()];
            rows.add(first.into_iter().chain([Cell::from(0)]));
        }
        ready()
    },
};
