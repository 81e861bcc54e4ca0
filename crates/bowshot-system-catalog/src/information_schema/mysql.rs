//! What MySQL has beside the standard, for its clients: tables with rows.

use crate::information_schema::tables::yes;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, cells, tables};
use crate::system::access::rights;
use bowshot_sql::Privilege;
use datafusion::sql::sqlparser::keywords::{
    ALL_KEYWORDS, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS,
};

pub(crate) static TABLES: &[Defined] = tables! {
    engines: engine Text, support Text, comment Text, transactions Text, xa Text, savepoints Text
    => Now(|_, _, rows| {
        let about = "Arrow in memory and Parquet files";
        rows.add(["Bowshot", "DEFAULT", about, "YES", "NO", "YES"].map(Cell::from));
    });

    // The session that asks; of others `system.sessions` tells.
    processlist: id Long, user Text, host Text, db Text, command Text, time Long, state Text, info Text
    => Now(|visible, _, rows| {
        let (id, user, schema) = (visible.number(), &visible.principal.name, visible.default_names().1);
        rows.add(cells![id, user, "", schema, "Query", 0, "executing"]);
    });

    // Rights on everything, and on schemas. Those on tables have a table of the standard.
    user_privileges: grantee Text, table_catalog Text, privilege_type Text, is_grantable Text
    => Now(|visible, _, rows| {
        let all = visible.access.is_everything();
        let right = if all { "ALL PRIVILEGES" } else { "USAGE" };
        let grantee = format!("'{}'@'%'", visible.principal.name);
        rows.add(cells![grantee, "def", right, yes(all)]);
    });

    schema_privileges: grantee Text, table_catalog Text, table_schema Text, privilege_type Text,
        is_grantable Text
    => Now(|visible, _, rows| {
        for right in rights(&visible.access) {
            let ([_, schema], None) = (right.place.as_slice(), &right.columns) else { continue };
            let privilege = right.privilege;
            let name = if privilege == Privilege::Own { "ALL PRIVILEGES" } else { privilege.as_str() };
            let grantee = format!("'{}'@'%'", right.grantee);
            rows.add(cells![grantee, "def", schema, name, yes(right.grantable)]);
        }
    });

    keywords: word Text, reserved Int
    => Now(|_, _, rows| {
        let is_reserved = |word: &str| {
            let all = RESERVED_FOR_COLUMN_ALIAS.iter().chain(RESERVED_FOR_TABLE_ALIAS);
            all.into_iter().any(|reserved| format!("{reserved:?}") == word)
        };
        for word in ALL_KEYWORDS {
            rows.add(cells![*word, i32::from(is_reserved(word))]);
        }
    });

    collation_character_set_applicability: collation_name Text, character_set_name Text
    => Now(|_, _, rows| {
        rows.add(cells!["utf8mb4_bin", "utf8mb4"]);
    });
};
