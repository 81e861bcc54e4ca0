//! What goes on: the session that asks, and how often tables were changed. Of other sessions `system.sessions` tells.

use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, cells, tables};
use crate::pg_catalog::classes::here;
use crate::pg_catalog::oids;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_stat_activity: datid Long, datname Text, pid Int, leader_pid Int, usesysid Long, usename Text,
        application_name Text, client_addr Text, client_hostname Text, client_port Int, backend_start Text,
        xact_start Text, query_start Text, state_change Text, wait_event_type Text, wait_event Text,
        state Text, backend_xid Long, backend_xmin Long, query_id Long, query Text, backend_type Text
    => Now(|visible, _, rows| {
        let (catalog, _) = visible.default_names();
        let named = visible.settings().into_iter().find(|setting| setting.name == "application_name");
        let unknown = |count| std::iter::repeat_n(Cell::Null, count);
        let (oid, user) = (oids::catalog(&catalog), &visible.principal.name);
        let application = named.map(|setting| setting.value);
        let first = cells![oid, catalog, visible.number(), Cell::Null, oids::OWNER, user, application];
        let state = unknown(9).chain(["active".into()]);
        let kind = unknown(4).chain(["client backend".into()]);
        rows.add(first.into_iter().chain(state).chain(kind));
    });

    pg_cursors: name Text, statement Text, is_holdable Bool, is_binary Bool, is_scrollable Bool,
        creation_time Text
    => Now(|visible, _, rows| {
        for cursor in visible.cursors() {
            rows.add(cells![cursor.name, &*cursor.sql, cursor.is_held, false, false]);
        }
    });

    pg_stat_user_tables: relid Long, schemaname Text, relname Text, n_live_tup Long, n_dead_tup Long,
        seq_scan Long, seq_tup_read Long, idx_scan Long, idx_tup_fetch Long, n_tup_ins Long, n_tup_upd Long,
        n_tup_del Long, n_tup_hot_upd Long, n_mod_since_analyze Long, last_vacuum Text,
        last_autovacuum Text, last_analyze Text, last_autoanalyze Text
    => Now(|visible, about, rows| {
        for listed in here(visible, about) {
            let Some(live) = listed.rows() else { continue };
            let name = &listed.name;
            rows.add(cells![oids::table(name), &name.schema, &name.name, live, 0]);
        }
    });
};
