//! `SHOW INDEX FROM t`: keys, since there are no indexes.

use super::describe;
use super::show::{Listing, filtered};
use super::utility_context::UtilityContext;
use bowshot_api::Result;
use bowshot_sql::RowFilter;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::ObjectName;

/// With MySQL's columns.
pub(super) fn keys(table: &ObjectName, filter: RowFilter, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let table = asked.table(table)?;
    let from = format!(
        "FROM information_schema.key_column_usage AS k JOIN information_schema.table_constraints AS c \
         ON k.constraint_catalog = c.constraint_catalog AND k.constraint_schema = c.constraint_schema \
         AND k.table_name = c.table_name AND k.constraint_name = c.constraint_name \
         WHERE {} AND c.constraint_type IN ('PRIMARY KEY', 'UNIQUE')",
        describe::is_of(&table, "k.")
    );
    let shown = Listing {
        items: "k.table_name AS \"Table\", CAST(0 AS BIGINT) AS \"Non_unique\", \
                CASE WHEN c.constraint_type = 'PRIMARY KEY' THEN 'PRIMARY' ELSE k.constraint_name END AS \"Key_name\", \
                k.ordinal_position AS \"Seq_in_index\", k.column_name AS \"Column_name\", 'A' AS \"Collation\", \
                CAST(NULL AS BIGINT) AS \"Cardinality\", CAST(NULL AS BIGINT) AS \"Sub_part\", \
                CAST(NULL AS VARCHAR) AS \"Packed\", '' AS \"Null\", 'HASH' AS \"Index_type\", '' AS \"Comment\", \
                '' AS \"Index_comment\", 'YES' AS \"Visible\", CAST(NULL AS VARCHAR) AS \"Expression\"",
        from: &from,
        order: "concat(c.constraint_type, k.constraint_name, '/', lpad(CAST(k.ordinal_position AS VARCHAR), 6, '0'))",
    };
    filtered(&shown, filter)
}
