//! Built-in collations, tablespaces and languages.

use crate::lazy_table::Make::Now;
use crate::lazy_table::{Defined, cells, tables};
use crate::pg_catalog::oids;

/// Number of the schema of what is built in.
const PG_CATALOG: i64 = 11;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_collation: oid Long, collname Text, collnamespace Long, collowner Long, collprovider Text,
        collisdeterministic Bool, collencoding Int, collcollate Text, collctype Text, colllocale Text,
        collicurules Text, collversion Text, colliculocale Text
    => Now(|_, _, rows| {
        for (oid, name, provider) in [(100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")] {
            rows.add(cells![oid, name, PG_CATALOG, oids::OWNER, provider, true, -1, "C", "C"]);
        }
    });

    pg_tablespace: oid Long, spcname Text, spcowner Long, spcacl Texts, spcoptions Texts
    => Now(|_, _, rows| {
        for (oid, name) in [(1663, "pg_default"), (1664, "pg_global")] {
            rows.add(cells![oid, name, oids::OWNER]);
        }
    });

    pg_language: oid Long, lanname Text, lanowner Long, lanispl Bool, lanpltrusted Bool, lanplcallfoid Long,
        laninline Long, lanvalidator Long, lanacl Texts
    => Now(|_, _, rows| {
        for (oid, name) in [(12, "internal"), (14, "sql")] {
            rows.add(cells![oid, name, oids::OWNER, false, name == "sql", 0, 0, 0]);
        }
    });
};
