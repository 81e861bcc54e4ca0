//! Replication, which there is none of.

use crate::lazy_table::{Defined, tables};

pub(crate) static TABLES: &[Defined] = tables! {
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
};
