//! Tables that are always empty but that clients query.

use crate::lazy_table::{Defined, tables};

pub(crate) static TABLES: &[Defined] = tables! {
    // Foreign data: files are served instead.
    pg_foreign_data_wrapper: oid Long, fdwname Text, fdwowner Long, fdwhandler Text, fdwvalidator Text,
        fdwacl Texts, fdwoptions Texts;
    pg_foreign_server: oid Long, srvname Text, srvowner Long, srvfdw Long, srvtype Text, srvversion Text,
        srvacl Texts, srvoptions Texts;
    pg_foreign_table: ftrelid Long, ftserver Long, ftoptions Texts;
    pg_user_mapping: oid Long, umuser Long, umserver Long, umoptions Texts;
    pg_user_mappings: umid Long, srvid Long, srvname Text, umuser Long, usename Text, umoptions Texts;

    // Things of PostgreSQL's that there are none of here: rules, policies, triggers of events, what depends on what.
    pg_aggregate: aggfnoid Text, aggkind Text, aggnumdirectargs Short, aggtransfn Text, aggfinalfn Text,
        aggcombinefn Text, aggsortop Long, aggtranstype Long, agginitval Text;
    pg_auth_members: oid Long, roleid Long, member Long, grantor Long, admin_option Bool, inherit_option Bool,
        set_option Bool;
    pg_available_extensions: name Text, default_version Text, installed_version Text, comment Text;
    pg_db_role_setting: setdatabase Long, setrole Long, setconfig Texts;
    pg_default_acl: oid Long, defaclrole Long, defaclnamespace Long, defaclobjtype Text, defaclacl Texts;
    pg_depend: classid Long, objid Long, objsubid Int, refclassid Long, refobjid Long, refobjsubid Int,
        deptype Text;
    pg_event_trigger: oid Long, evtname Text, evtevent Text, evtowner Long, evtfoid Long, evtenabled Text,
        evttags Texts;
    pg_extension: oid Long, extname Text, extowner Long, extnamespace Long, extrelocatable Bool,
        extversion Text, extconfig Longs, extcondition Texts;
    pg_inherits: inhrelid Long, inhparent Long, inhseqno Int, inhdetachpending Bool;
    pg_init_privs: objoid Long, classoid Long, objsubid Int, privtype Text, initprivs Texts;
    pg_largeobject: loid Long, pageno Int, data Text;
    pg_largeobject_metadata: oid Long, lomowner Long, lomacl Texts;
    pg_partitioned_table: partrelid Long, partstrat Text, partnatts Short, partdefid Long, partattrs Shorts,
        partclass Longs, partcollation Longs, partexprs Text;
    pg_policies: schemaname Text, tablename Text, policyname Text, permissive Text, roles Texts, cmd Text,
        qual Text, with_check Text;
    pg_policy: oid Long, polname Text, polrelid Long, polcmd Text, polpermissive Bool, polroles Longs,
        polqual Text, polwithcheck Text;
    pg_range: rngtypid Long, rngsubtype Long, rngmultitypid Long, rngcollation Long, rngsubopc Long,
        rngcanonical Text, rngsubdiff Text;
    pg_rewrite: oid Long, rulename Text, ev_class Long, ev_type Text, ev_enabled Text, is_instead Bool,
        ev_qual Text, ev_action Text;
    pg_rules: schemaname Text, tablename Text, rulename Text, definition Text;
    pg_seclabel: objoid Long, classoid Long, objsubid Int, provider Text, label Text;
    pg_seclabels: objoid Long, classoid Long, objsubid Int, objtype Text, objnamespace Long, objname Text,
        provider Text, label Text;
    pg_shdepend: dbid Long, classid Long, objid Long, objsubid Int, refclassid Long, refobjid Long,
        deptype Text;
    pg_shdescription: objoid Long, classoid Long, description Text;
    pg_trigger: oid Long, tgrelid Long, tgname Text, tgfoid Long, tgtype Short, tgenabled Text,
        tgisinternal Bool, tgparentid Long, tgconstrrelid Long, tgconstrindid Long, tgconstraint Long,
        tgdeferrable Bool, tginitdeferred Bool, tgnargs Short, tgattr Shorts, tgargs Text, tgqual Text,
        tgoldtable Text, tgnewtable Text;

    // Operators, casts and what orders them. They are built in, and named nowhere.
    pg_amop: oid Long, amopfamily Long, amoplefttype Long, amoprighttype Long, amopstrategy Short,
        amoppurpose Text, amopopr Long, amopmethod Long, amopsortfamily Long;
    pg_amproc: oid Long, amprocfamily Long, amproclefttype Long, amprocrighttype Long, amprocnum Short,
        amproc Text;
    pg_cast: oid Long, castsource Long, casttarget Long, castfunc Long, castcontext Text, castmethod Text;
    pg_conversion: oid Long, conname Text, connamespace Long, conowner Long, conforencoding Int,
        contoencoding Int, conproc Text, condefault Bool;
    pg_opclass: oid Long, opcmethod Long, opcname Text, opcnamespace Long, opcowner Long, opcfamily Long,
        opcintype Long, opcdefault Bool, opckeytype Long;
    pg_operator: oid Long, oprname Text, oprnamespace Long, oprowner Long, oprkind Text, oprcanmerge Bool,
        oprcanhash Bool, oprleft Long, oprright Long, oprresult Long, oprcom Long, oprnegate Long,
        oprcode Text, oprrest Text, oprjoin Text;
    pg_opfamily: oid Long, opfmethod Long, opfname Text, opfnamespace Long, opfowner Long;
    pg_transform: oid Long, trftype Long, trflang Long, trffromsql Long, trftosql Long;
    pg_ts_config: oid Long, cfgname Text, cfgnamespace Long, cfgowner Long, cfgparser Long;
    pg_ts_config_map: mapcfg Long, maptokentype Int, mapseqno Int, mapdict Long;
    pg_ts_dict: oid Long, dictname Text, dictnamespace Long, dictowner Long, dicttemplate Long,
        dictinitoption Text;
    pg_ts_parser: oid Long, prsname Text, prsnamespace Long, prsstart Text, prstoken Text, prsend Text,
        prsheadline Text, prslextype Text;
    pg_ts_template: oid Long, tmplname Text, tmplnamespace Long, tmplinit Text, tmpllexize Text;

    // Replication, which there is none of.
    pg_publication: oid Long, pubname Text, pubowner Long, puballtables Bool, pubinsert Bool, pubupdate Bool,
        pubdelete Bool, pubtruncate Bool, pubviaroot Bool, pubgencols Text;
    pg_publication_namespace: oid Long, pnpubid Long, pnnspid Long;
    pg_publication_rel: oid Long, prpubid Long, prrelid Long, prqual Text, prattrs Shorts;
    pg_publication_tables: pubname Text, schemaname Text, tablename Text, attnames Texts, rowfilter Text;
    pg_replication_origin: roident Long, roname Text;
    pg_replication_slots: slot_name Text, plugin Text, slot_type Text, datoid Long, database Text,
        temporary Bool, active Bool, active_pid Int, xmin Long, catalog_xmin Long, restart_lsn Text,
        confirmed_flush_lsn Text, wal_status Text, safe_wal_size Long, two_phase Bool;
    pg_stat_replication: pid Int, usesysid Long, usename Text, application_name Text, client_addr Text,
        client_hostname Text, client_port Int, state Text, sent_lsn Text, write_lsn Text, flush_lsn Text,
        replay_lsn Text, sync_priority Int, sync_state Text;
    pg_stat_subscription: subid Long, subname Text, pid Int, relid Long, received_lsn Text,
        latest_end_lsn Text;
    pg_stat_wal_receiver: pid Int, status Text, slot_name Text, sender_host Text, sender_port Int,
        conninfo Text;
    pg_subscription: oid Long, subdbid Long, subskiplsn Text, subname Text, subowner Long, subenabled Bool,
        subbinary Bool, substream Text, subtwophasestate Text, subdisableonerr Bool, subpasswordrequired Bool,
        subrunasowner Bool, subfailover Bool, subconninfo Text, subslotname Text, subsynccommit Text,
        subpublications Texts, suborigin Text;
    pg_subscription_rel: srsubid Long, srrelid Long, srsubstate Text, srsublsn Text;

    // Statistics as PostgreSQL keeps them, and what waits for what. What Bowshot counts is in schema `system`.
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
