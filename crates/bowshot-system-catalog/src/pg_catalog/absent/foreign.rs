//! Foreign data: files are served instead.

use crate::lazy_table::{Defined, columns};
use crate::pg_catalog::absent::empty;

pub(crate) static TABLES: &[Defined] = &[
    empty(
        "pg_foreign_data_wrapper",
        columns![
            oid Long, fdwname Text, fdwowner Long, fdwhandler Text, fdwvalidator Text, fdwacl Texts,
            fdwoptions Texts
        ],
    ),
    empty(
        "pg_foreign_server",
        columns![
            oid Long, srvname Text, srvowner Long, srvfdw Long, srvtype Text, srvversion Text, srvacl Texts,
            srvoptions Texts
        ],
    ),
    empty("pg_foreign_table", columns![ftrelid Long, ftserver Long, ftoptions Texts]),
    empty("pg_user_mapping", columns![oid Long, umuser Long, umserver Long, umoptions Texts]),
    empty(
        "pg_user_mappings",
        columns![umid Long, srvid Long, srvname Text, umuser Long, usename Text, umoptions Texts],
    ),
];
