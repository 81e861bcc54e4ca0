//! Foreign data: files are served instead.

use crate::catalog::lazy_table::{Defined, Kind};
use crate::catalog::pg_catalog::absent::empty;
use Kind::{Long, Text, Texts};

pub(crate) static TABLES: &[Defined] = &[
    empty(
        "pg_foreign_data_wrapper",
        &[
            ("oid", Long),
            ("fdwname", Text),
            ("fdwowner", Long),
            ("fdwhandler", Text),
            ("fdwvalidator", Text),
            ("fdwacl", Texts),
            ("fdwoptions", Texts),
        ],
    ),
    empty(
        "pg_foreign_server",
        &[
            ("oid", Long),
            ("srvname", Text),
            ("srvowner", Long),
            ("srvfdw", Long),
            ("srvtype", Text),
            ("srvversion", Text),
            ("srvacl", Texts),
            ("srvoptions", Texts),
        ],
    ),
    empty("pg_foreign_table", &[("ftrelid", Long), ("ftserver", Long), ("ftoptions", Texts)]),
    empty("pg_user_mapping", &[("oid", Long), ("umuser", Long), ("umserver", Long), ("umoptions", Texts)]),
    empty(
        "pg_user_mappings",
        &[
            ("umid", Long),
            ("srvid", Long),
            ("srvname", Text),
            ("umuser", Long),
            ("usename", Text),
            ("umoptions", Texts),
        ],
    ),
];
