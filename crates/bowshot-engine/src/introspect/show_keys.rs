//! `SHOW INDEX FROM t`: keys, since there are no indexes.

use super::asked::Asked;
use super::describe;
use super::parse::Words;
use super::show::{Shown, filtered, wanted};
use bowshot_api::Result;
use datafusion::sql::parser::Statement as Parsed;

/// With MySQL's columns.
pub(super) fn keys(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    if !words.take_any(&["from", "in"]) {
        return Err(words.unexpected().with_hint("write `SHOW INDEX FROM table`"));
    }
    let mut name = words.name()?;
    if words.take_any(&["from", "in"]) {
        let mut full = words.name()?;
        full.0.append(&mut name.0);
        name = full;
    }
    let table = asked.table(&name)?;
    let wanted = wanted(&mut words)?;
    let from = format!(
        "FROM information_schema.key_column_usage AS k JOIN information_schema.table_constraints AS c \
         ON k.constraint_catalog = c.constraint_catalog AND k.constraint_schema = c.constraint_schema \
         AND k.table_name = c.table_name AND k.constraint_name = c.constraint_name \
         WHERE {} AND c.constraint_type IN ('PRIMARY KEY', 'UNIQUE')",
        describe::is_of(&table, "k.")
    );
    let shown = Shown {
        items: "k.table_name AS \"Table\", CAST(0 AS BIGINT) AS \"Non_unique\", \
                CASE WHEN c.constraint_type = 'PRIMARY KEY' THEN 'PRIMARY' ELSE k.constraint_name END AS \"Key_name\", \
                k.ordinal_position AS \"Seq_in_index\", k.column_name AS \"Column_name\", 'A' AS \"Collation\", \
                CAST(NULL AS BIGINT) AS \"Cardinality\", CAST(NULL AS BIGINT) AS \"Sub_part\", \
                CAST(NULL AS VARCHAR) AS \"Packed\", '' AS \"Null\", 'HASH' AS \"Index_type\", '' AS \"Comment\", \
                '' AS \"Index_comment\", 'YES' AS \"Visible\", CAST(NULL AS VARCHAR) AS \"Expression\"",
        from: &from,
        order: "concat(c.constraint_type, k.constraint_name, '/', lpad(CAST(k.ordinal_position AS VARCHAR), 6, '0'))",
    };
    filtered(&shown, wanted)
}
