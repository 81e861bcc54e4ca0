//! Statistics as PostgreSQL keeps them, and what waits for what. What Bowshot counts is in schema `system`.

use crate::lazy_table::{Defined, tables};

pub(crate) static TABLES: &[Defined] = tables! {
    pg_file_settings: sourcefile Text, sourceline Int, seqno Int, name Text, setting Text, applied Bool,
        error Text;
    pg_locks: locktype Text, database Long, relation Long, page Int, tuple Short, virtualxid Text,
        transactionid Long, classid Long, objid Long, objsubid Short, virtualtransaction Text, pid Int,
        mode Text, granted Bool, fastpath Bool, waitstart Text;
    pg_prepared_statements: name Text, statement Text, prepare_time Text, parameter_types Texts,
        result_types Texts, from_sql Bool, generic_plans Long, custom_plans Long;
    pg_prepared_xacts: transaction Long, gid Text, prepared Text, owner Text, database Text;
    pg_stat_all_indexes: relid Long, indexrelid Long, schemaname Text, relname Text, indexrelname Text,
        idx_scan Long, last_idx_scan Text, idx_tup_read Long, idx_tup_fetch Long;
    pg_stat_all_tables: relid Long, schemaname Text, relname Text, seq_scan Long, last_seq_scan Text,
        seq_tup_read Long, idx_scan Long, last_idx_scan Text, idx_tup_fetch Long, n_tup_ins Long,
        n_tup_upd Long, n_tup_del Long, n_tup_hot_upd Long, n_live_tup Long, n_dead_tup Long,
        n_mod_since_analyze Long, n_ins_since_vacuum Long, last_vacuum Text, last_autovacuum Text,
        last_analyze Text, last_autoanalyze Text, vacuum_count Long, autovacuum_count Long,
        analyze_count Long, autoanalyze_count Long;
    pg_stat_bgwriter: checkpoints_timed Long, checkpoints_req Long, buffers_checkpoint Long,
        buffers_clean Long, maxwritten_clean Long, buffers_backend Long, buffers_alloc Long, stats_reset Text;
    pg_stat_database: datid Long, datname Text, numbackends Int, xact_commit Long, xact_rollback Long,
        blks_read Long, blks_hit Long, tup_returned Long, tup_fetched Long, tup_inserted Long,
        tup_updated Long, tup_deleted Long, conflicts Long, temp_files Long, temp_bytes Long, deadlocks Long,
        stats_reset Text;
    pg_stat_progress_vacuum: pid Int, datid Long, datname Text, relid Long, phase Text;
    pg_stat_ssl: pid Int, ssl Bool, version Text, cipher Text, bits Int, client_dn Text, client_serial Long,
        issuer_dn Text;
    pg_stat_user_indexes: relid Long, indexrelid Long, schemaname Text, relname Text, indexrelname Text,
        idx_scan Long, last_idx_scan Text, idx_tup_read Long, idx_tup_fetch Long;
    pg_statio_user_tables: relid Long, schemaname Text, relname Text, heap_blks_read Long, heap_blks_hit Long,
        idx_blks_read Long, idx_blks_hit Long;
    pg_statistic: starelid Long, staattnum Short, stainherit Bool, stanullfrac Long, stawidth Int,
        stadistinct Long;
    pg_statistic_ext: oid Long, stxrelid Long, stxname Text, stxnamespace Long, stxowner Long, stxkeys Shorts,
        stxstattarget Short, stxkind Texts, stxexprs Text;
    pg_statistic_ext_data: stxoid Long, stxdinherit Bool;
    pg_stats: schemaname Text, tablename Text, attname Text, inherited Bool, null_frac Long, avg_width Int,
        n_distinct Long, most_common_vals Texts, histogram_bounds Texts, correlation Long;
    pg_stats_ext: schemaname Text, tablename Text, statistics_schemaname Text, statistics_name Text,
        statistics_owner Text, attnames Texts, kinds Texts;
};
