//! Collations. Texts are compared by their bytes; where one is to be compared otherwise, another text is compared in its place:
//! in capitals without accents for MySQL's collations that know neither case nor accents, in capitals for those that know accents,
//! in lower case for SQLite's. A collation of one side of a comparison is that of the other, too.
//!
//! MySQL's tables about tables know no case, and its clients rely on it (`IS_NULLABLE = 'yes'`). In its dialect that is so for those
//! columns of `information_schema` that hold words; names are as they are everywhere.

use crate::dialect::DialectName;
use crate::literal::literal;
use crate::template;
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, SetExpr, TableFactor, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// Columns of MySQL's `information_schema` that hold words.
const WORDS: [&str; 7] =
    ["column_key", "constraint_type", "data_type", "extra", "is_nullable", "routine_type", "table_type"];
/// Their collation.
const OF_WORDS: &str = "utf8mb3_general_ci";

pub(super) fn rewrite(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    let is_mysql = dialect == DialectName::MySql;
    statement.try_walk(&mut Collations { is_mysql, about_tables: Vec::new() })
}

struct Collations {
    is_mysql: bool,
    /// Whether the queries around an expression read MySQL's tables about tables.
    about_tables: Vec<bool>,
}

impl VisitorMut for Collations {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.about_tables.push(self.is_mysql && reads_about_tables(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.about_tables.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let mut sides = sides(expr);
        let said = sides.iter().find_map(|side| collation_of(side)).cloned();
        let of_words = || {
            let knows_no_case = self.about_tables.last() == Some(&true)
                && sides.iter().any(|side| is_word(side))
                && sides.iter().all(|side| is_word(side) || is_text(side));
            knows_no_case.then(|| ObjectName::from(vec![Ident::new(OF_WORDS)]))
        };
        let Some(collation) = said.or_else(of_words) else { return ControlFlow::Continue(()) };
        for side in sides.iter_mut().filter(|side| collation_of(side).is_none()) {
            let side: &mut Expr = side;
            let bare = std::mem::replace(side, Expr::value(Value::Null));
            *side = Expr::Collate { expr: Box::new(bare), collation: collation.clone() };
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Collate { expr: text, collation } = expr else { return ControlFlow::Continue(()) };
        match collated(text, collation) {
            Ok(compared) => {
                *expr = compared;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// What an expression compares with one another; nothing for one that does not.
fn sides(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, op, right } if compares(op) => vec![left.as_mut(), right.as_mut()],
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            vec![left.as_mut(), right.as_mut()]
        }
        Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
            vec![expr.as_mut(), pattern.as_mut()]
        }
        Expr::InList { expr, list, .. } => std::iter::once(expr.as_mut()).chain(list.iter_mut()).collect(),
        Expr::Between { expr, low, high, .. } => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
        _ => Vec::new(),
    }
}

fn compares(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::Spaceship
    )
}

fn collation_of(expr: &Expr) -> Option<&ObjectName> {
    match expr {
        Expr::Nested(inner) => collation_of(inner),
        Expr::Collate { collation, .. } => Some(collation),
        _ => None,
    }
}

fn is_word(expr: &Expr) -> bool {
    let name = match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    name.is_some_and(|name| WORDS.iter().any(|word| name.value.eq_ignore_ascii_case(word)))
}

fn is_text(expr: &Expr) -> bool {
    matches!(literal(expr), Some(Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)))
}

fn reads_about_tables(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let read = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let is_about_tables = |table: &TableFactor| match table {
        TableFactor::Table { name, .. } => {
            let parts = name.0.iter().filter_map(|part| part.as_ident());
            parts.into_iter().any(|part| part.value.eq_ignore_ascii_case("information_schema"))
        }
        _ => false,
    };
    read.into_iter().any(is_about_tables)
}

/// What is compared in the place of a text.
fn collated(text: &Expr, collation: &ObjectName) -> Result<Expr> {
    let name =
        collation.0.last().and_then(|part| part.as_ident()).map(|name| name.value.to_ascii_lowercase());
    let name = name.unwrap_or_default();
    match name.as_str() {
        "c" | "posix" | "binary" | "default" | "ucs_basic" | "pg_c_utf8" => Ok(text.clone()),
        "nocase" => template::expression("lower(x)", &[("x", text)]),
        mysql if is_of_unicode(mysql) && mysql.ends_with("_bin") => Ok(text.clone()),
        mysql if is_of_unicode(mysql) && mysql.ends_with("_as_ci") => {
            template::expression("upper(x)", &[("x", text)])
        }
        mysql if is_of_unicode(mysql) && mysql.ends_with("_ci") => {
            template::expression("upper(strip_accents(x))", &[("x", text)])
        }
        _ => Err(Error::unsupported(format!("collation {collation} is not supported")).with_hint(
            "texts are ordered by their bytes, as with COLLATE \"C\"; NOCASE and MySQL's `utf8mb4_…_ci` know no case",
        )),
    }
}

/// Whether it is one of MySQL's that are made for no language.
fn is_of_unicode(name: &str) -> bool {
    let rest = ["utf8mb4_", "utf8mb3_", "utf8_"].iter().find_map(|set| name.strip_prefix(set));
    rest.is_some_and(|rest| {
        matches!(rest, "bin" | "0900_bin" | "0900_as_ci")
            || matches!(rest, "general_ci" | "unicode_ci" | "unicode_520_ci" | "0900_ai_ci")
    })
}

#[cfg(test)]
mod tests {
    use crate::DialectName::{Ansi, MySql};
    use crate::rewrite::tests::rewritten_in;

    #[test]
    fn both_sides_have_one_collation() {
        for (sql, expected) in [
            ("SELECT 1 AS a FROM t WHERE b COLLATE \"C\" = 'x'", "SELECT 1 AS a FROM t WHERE b = 'x'"),
            (
                "SELECT 1 AS a FROM t WHERE b COLLATE NOCASE = 'X'",
                "SELECT 1 AS a FROM t WHERE lower((b)) = lower(('X'))",
            ),
            (
                "SELECT 1 AS a FROM t WHERE 'X' IN (b COLLATE utf8mb4_0900_as_ci, c)",
                "SELECT 1 AS a FROM t WHERE upper(('X')) IN (upper((b)), upper((c)))",
            ),
            (
                "SELECT 1 AS a FROM t WHERE b COLLATE utf8mb4_general_ci LIKE '%ä'",
                "SELECT 1 AS a FROM t WHERE upper(strip_accents((b))) LIKE upper(strip_accents(('%ä')))",
            ),
            ("SELECT b AS a FROM t ORDER BY b COLLATE utf8mb4_bin", "SELECT b AS a FROM t ORDER BY b"),
        ] {
            assert_eq!(rewritten_in(sql, Ansi), expected, "{sql}");
        }
        let refused = rewritten_in("SELECT 1 AS a FROM t WHERE b COLLATE utf8mb4_sv_0900_ai_ci = 'x'", Ansi);
        assert!(refused.starts_with("collation utf8mb4_sv_0900_ai_ci is not supported"), "{refused}");
    }

    #[test]
    fn words_about_tables_have_no_case_in_mysql() {
        let sql =
            "SELECT 1 AS a FROM information_schema.columns WHERE is_nullable = 'yes' AND table_name = 't'";
        let words = "SELECT 1 AS a FROM information_schema.columns WHERE \
            upper(CAST((strip_accents((is_nullable))) AS VARCHAR)) = \
            upper(CAST((strip_accents(('yes'))) AS VARCHAR)) AND table_name = 't'";
        assert_eq!(rewritten_in(sql, MySql), words);
        for (sql, dialect) in [
            (sql, Ansi),
            ("SELECT 1 AS a FROM t WHERE extra = 'x'", MySql),
            ("SELECT 1 AS a FROM information_schema.columns WHERE extra = concat(data_type, 'x')", MySql),
        ] {
            assert_eq!(rewritten_in(sql, dialect), sql, "{sql}");
        }
    }
}
