//! Where tables are kept, how texts are compared, and what functions are written in: one way each.

use crate::lazy_table::{Cell, Defined, columns};
use crate::pg_catalog::classes::ready;
use crate::pg_catalog::oids;

/// Number of the schema of what is built in.
const PG_CATALOG: i64 = 11;

pub(crate) static COLLATION: Defined = Defined {
    name: "pg_collation",
    columns: columns![
        oid Long, collname Text, collnamespace Long, collowner Long, collprovider Text,
        collisdeterministic Bool, collencoding Int, collcollate Text, collctype Text, colllocale Text,
        collicurules Text, collversion Text, colliculocale Text
    ],
    rows: |_, _, rows| {
        for (oid, name, provider) in [(100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")] {
            rows.add([
                oid.into(),
                name.into(),
                PG_CATALOG.into(),
                oids::OWNER.into(),
                provider.into(),
                true.into(),
                (-1).into(),
                "C".into(),
                "C".into(),
            ]);
        }
        ready()
    },
};

pub(crate) static TABLESPACE: Defined = Defined {
    name: "pg_tablespace",
    columns: columns![oid Long, spcname Text, spcowner Long, spcacl Texts, spcoptions Texts],
    rows: |_, _, rows| {
        for (oid, name) in [(1663, "pg_default"), (1664, "pg_global")] {
            rows.add([oid.into(), name.into(), oids::OWNER.into()]);
        }
        ready()
    },
};

pub(crate) static LANGUAGE: Defined = Defined {
    name: "pg_language",
    columns: columns![
        oid Long, lanname Text, lanowner Long, lanispl Bool, lanpltrusted Bool, lanplcallfoid Long,
        laninline Long, lanvalidator Long, lanacl Texts
    ],
    rows: |_, _, rows| {
        for (oid, name) in [(12, "internal"), (14, "sql")] {
            let none = || Cell::from(0);
            let trusted = name == "sql";
            let first = [oid.into(), name.into(), oids::OWNER.into(), false.into(), trusted.into()];
            rows.add(first.into_iter().chain([none(), none(), none()]));
        }
        ready()
    },
};
