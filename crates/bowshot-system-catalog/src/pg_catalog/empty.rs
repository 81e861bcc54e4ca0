//! Tables of PostgreSQL's catalog that describe tables, and have nothing to say of those of Bowshot.

use crate::lazy_table::{Defined, columns, nothing};

pub(crate) static EXTENSION: Defined = Defined {
    name: "pg_extension",
    columns: columns![
        oid Long, extname Text, extowner Long, extnamespace Long, extrelocatable Bool, extversion Text,
        extconfig Longs, extcondition Texts
    ],
    rows: nothing,
};

pub(crate) static INHERITS: Defined = Defined {
    name: "pg_inherits",
    columns: columns![inhrelid Long, inhparent Long, inhseqno Int, inhdetachpending Bool],
    rows: nothing,
};

pub(crate) static SEQUENCES: Defined = Defined {
    name: "pg_sequences",
    columns: columns![
        schemaname Text, sequencename Text, sequenceowner Text, data_type Text, start_value Long,
        min_value Long, max_value Long, increment_by Long, cycle Bool, cache_size Long, last_value Long
    ],
    rows: nothing,
};

pub(crate) static TRIGGER: Defined = Defined {
    name: "pg_trigger",
    columns: columns![
        oid Long, tgrelid Long, tgname Text, tgfoid Long, tgtype Short, tgenabled Text, tgisinternal Bool,
        tgparentid Long, tgconstrrelid Long, tgconstrindid Long, tgconstraint Long, tgdeferrable Bool,
        tginitdeferred Bool, tgnargs Short, tgattr Shorts, tgargs Text, tgqual Text, tgoldtable Text,
        tgnewtable Text
    ],
    rows: nothing,
};
