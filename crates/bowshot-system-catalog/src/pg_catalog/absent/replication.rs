//! Replication, which there is none of.

use crate::lazy_table::{Defined, columns};
use crate::pg_catalog::absent::empty;

pub(crate) static TABLES: &[Defined] = &[
    empty(
        "pg_publication",
        columns![
            oid Long, pubname Text, pubowner Long, puballtables Bool, pubinsert Bool, pubupdate Bool,
            pubdelete Bool, pubtruncate Bool, pubviaroot Bool, pubgencols Text
        ],
    ),
    empty("pg_publication_namespace", columns![oid Long, pnpubid Long, pnnspid Long]),
    empty("pg_publication_rel", columns![oid Long, prpubid Long, prrelid Long, prqual Text, prattrs Shorts]),
    empty(
        "pg_publication_tables",
        columns![pubname Text, schemaname Text, tablename Text, attnames Texts, rowfilter Text],
    ),
    empty("pg_replication_origin", columns![roident Long, roname Text]),
    empty(
        "pg_replication_slots",
        columns![
            slot_name Text, plugin Text, slot_type Text, datoid Long, database Text, temporary Bool,
            active Bool, active_pid Int, xmin Long, catalog_xmin Long, restart_lsn Text,
            confirmed_flush_lsn Text, wal_status Text, safe_wal_size Long, two_phase Bool
        ],
    ),
    empty(
        "pg_stat_replication",
        columns![
            pid Int, usesysid Long, usename Text, application_name Text, client_addr Text,
            client_hostname Text, client_port Int, state Text, sent_lsn Text, write_lsn Text, flush_lsn Text,
            replay_lsn Text, sync_priority Int, sync_state Text
        ],
    ),
    empty(
        "pg_stat_subscription",
        columns![subid Long, subname Text, pid Int, relid Long, received_lsn Text, latest_end_lsn Text],
    ),
    empty(
        "pg_stat_wal_receiver",
        columns![pid Int, status Text, slot_name Text, sender_host Text, sender_port Int, conninfo Text],
    ),
    empty(
        "pg_subscription",
        columns![
            oid Long, subdbid Long, subskiplsn Text, subname Text, subowner Long, subenabled Bool,
            subbinary Bool, substream Text, subtwophasestate Text, subdisableonerr Bool,
            subpasswordrequired Bool, subrunasowner Bool, subfailover Bool, subconninfo Text,
            subslotname Text, subsynccommit Text, subpublications Texts, suborigin Text
        ],
    ),
    empty("pg_subscription_rel", columns![srsubid Long, srrelid Long, srsubstate Text, srsublsn Text]),
];
