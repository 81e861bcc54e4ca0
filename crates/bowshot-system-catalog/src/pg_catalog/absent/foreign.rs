//! Foreign data: files are served instead.

use crate::lazy_table::{Defined, tables};

pub(crate) static TABLES: &[Defined] = tables! {
    pg_foreign_data_wrapper: oid Long, fdwname Text, fdwowner Long, fdwhandler Text, fdwvalidator Text,
        fdwacl Texts, fdwoptions Texts;
    pg_foreign_server: oid Long, srvname Text, srvowner Long, srvfdw Long, srvtype Text, srvversion Text,
        srvacl Texts, srvoptions Texts;
    pg_foreign_table: ftrelid Long, ftserver Long, ftoptions Texts;
    pg_user_mapping: oid Long, umuser Long, umserver Long, umoptions Texts;
    pg_user_mappings: umid Long, srvid Long, srvname Text, umuser Long, usename Text, umoptions Texts;
};
