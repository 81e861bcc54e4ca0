//! Views that would answer groupings of many queries: the same tables and joins, whatever the other conditions compare with. What
//! is drafted here is believed only where it is planned and has answered the queries that it was made for.

use crate::materialized::block::Block;
use bowshot_sql::DialectName;
use bowshot_tables::EntryName;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::unparser::Unparser;
use datafusion::sql::unparser::dialect::{CustomDialect, CustomDialectBuilder};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Expressions that a view groups by, and aggregates that it has.
const MAX_GROUPS: usize = 8;
const MAX_AGGREGATES: usize = 24;

/// What a query groups, with the columns that its conditions compare among its groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grouping {
    /// Ids of the tables, in order.
    pub(crate) tables: Vec<Uuid>,
    /// What joins them.
    joins: Vec<Expr>,
    groups: Vec<Expr>,
    aggregates: Vec<Expr>,
}

/// A view that may answer queries.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) grouping: Grouping,
    pub(crate) dialect: DialectName,
    /// The numbers of these queries, those together that group the same: it answers all of them or none.
    pub(crate) alike: Vec<BTreeSet<usize>>,
}

impl Grouping {
    /// The groupings of a plan that is not optimized, whose parameters may have any values.
    pub(crate) fn all(plan: &LogicalPlan) -> Vec<Self> {
        let mut found = Vec::new();
        let walked = plan.apply_with_subqueries(|node| {
            if matches!(node, LogicalPlan::Aggregate(_))
                && let Some(grouping) = Self::read(node)
            {
                found.push(grouping);
                return Ok(TreeNodeRecursion::Jump);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        if walked.is_ok() { found } else { Vec::new() }
    }

    fn read(node: &LogicalPlan) -> Option<Self> {
        let Block { tables, conditions, groups, columns } = Block::read(node)?;
        let mut groups = groups?;
        let aggregates = columns.get(groups.len()..)?.to_vec();
        let asked = groups.len();
        let (joins, filters): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_join);
        let compared = filters.iter().flat_map(Expr::column_refs);
        let compared: BTreeMap<String, &Column> =
            compared.map(|column| (column.flat_name(), column)).collect();
        for column in compared.into_values() {
            let column = Expr::Column(column.clone());
            if !groups.contains(&column) {
                groups.push(column);
            }
        }
        // Aggregates of finer groups must add up to those that are asked for.
        let are_enough = groups.len() == asked || aggregates.iter().all(adds_up);
        groups.retain(|group| !matches!(group, Expr::Literal(..)));
        groups.sort_by_key(ToString::to_string);
        groups.dedup();
        let is_small = (1..=MAX_GROUPS).contains(&groups.len()) && aggregates.len() <= MAX_AGGREGATES;
        (is_small && are_enough).then_some(Self { tables, joins, groups, aggregates })
    }

    /// Whether this has all groups of another one over the same rows.
    fn is_finer_than(&self, other: &Self) -> bool {
        let has = |all: &[Expr], some: &[Expr]| some.iter().all(|expr| all.contains(expr));
        self.tables == other.tables
            && has(&self.joins, &other.joins)
            && has(&other.joins, &self.joins)
            && has(&self.groups, &other.groups)
    }

    fn add_aggregates(&mut self, other: &Self) {
        for aggregate in &other.aggregates {
            if self.aggregates.len() < MAX_AGGREGATES && !self.aggregates.contains(aggregate) {
                self.aggregates.push(aggregate.clone());
            }
        }
    }
}

/// A condition between tables that has the same rows each time.
fn is_join(condition: &Expr) -> bool {
    let columns = condition.column_refs();
    let tables: BTreeSet<&str> =
        columns.iter().filter_map(|column| column.relation.as_ref()).map(TableReference::table).collect();
    let has_value = condition.exists(|part| Ok(matches!(part, Expr::Literal(..))));
    tables.len() > 1 && matches!(has_value, Ok(false))
}

fn adds_up(aggregate: &Expr) -> bool {
    let Expr::AggregateFunction(call) = aggregate else { return false };
    let is_known = matches!(call.func.name(), "count" | "sum" | "min" | "max");
    is_known && !call.params.distinct && call.params.order_by.is_empty()
}

/// The plan of a query whose parameters have no values yet: any stand in their place.
pub(crate) fn with_any_parameters(plan: LogicalPlan) -> Result<LogicalPlan> {
    let any = |part: Expr| -> Result<Transformed<Expr>> {
        Ok(match part {
            Expr::Placeholder(_) => Transformed::yes(Expr::Literal(ScalarValue::Null, None)),
            other => Transformed::no(other),
        })
    };
    let replaced =
        plan.transform_down_with_subqueries(|node| node.map_expressions(|expr| expr.transform_up(any)))?;
    Ok(replaced.data)
}

/// One draft for each kind of grouping, which has the queries of all coarser ones too.
pub(crate) fn drafts(found: &[(usize, DialectName, Grouping)]) -> Vec<Draft> {
    let mut asked: Vec<(DialectName, &Grouping, BTreeSet<usize>)> = Vec::new();
    for (query, dialect, grouping) in found {
        match asked.iter_mut().find(|(of, there, _)| of == dialect && *there == grouping) {
            Some((_, _, queries)) => {
                queries.insert(*query);
            }
            None => asked.push((*dialect, grouping, BTreeSet::from([*query]))),
        }
    }
    let mut drafts: Vec<Draft> = Vec::new();
    for (dialect, grouping, _) in &asked {
        let is_there = |draft: &Draft| {
            draft.dialect == *dialect
                && draft.grouping.is_finer_than(grouping)
                && grouping.is_finer_than(&draft.grouping)
        };
        if !drafts.iter().any(is_there) {
            drafts.push(Draft { grouping: Grouping::clone(grouping), dialect: *dialect, alike: Vec::new() });
        }
    }
    for draft in &mut drafts {
        for (dialect, grouping, queries) in &asked {
            if draft.dialect == *dialect && draft.grouping.is_finer_than(grouping) {
                draft.alike.push(queries.clone());
                draft.grouping.add_aggregates(grouping);
            }
        }
    }
    drafts
}

impl Draft {
    /// All queries that it may answer.
    pub(crate) fn queries(&self) -> BTreeSet<usize> {
        self.alike.iter().flatten().copied().collect()
    }

    /// The query of the view; `None` where a table is gone, or an expression has no text.
    pub(crate) fn text(&self, names: &BTreeMap<Uuid, EntryName>) -> Option<String> {
        let writer = Writer::new(self);
        let Grouping { groups, aggregates, .. } = &self.grouping;
        let columns = writer.columns(groups.iter().chain(aggregates))?;
        Some(format!("SELECT {columns} {} GROUP BY {}", writer.source(names)?, writer.list(groups)?))
    }

    /// A query that counts the groups of the first rows: how many there are, how many of one row, and of how many rows.
    pub(crate) fn sample_text(&self, names: &BTreeMap<Uuid, EntryName>, rows: u64) -> Option<String> {
        let writer = Writer::new(self);
        let groups = &self.grouping.groups;
        let keys = groups.iter().enumerate();
        let keys = keys.map(|(at, group)| Some(format!("{} AS k{at}", writer.sql(group)?)));
        let keys = keys.collect::<Option<Vec<_>>>()?.join(", ");
        let names_of_keys: Vec<String> = (0..groups.len()).map(|at| format!("k{at}")).collect();
        Some(format!(
            "SELECT count(*) AS all_groups, count(CASE WHEN c = 1 THEN 1 END) AS single_groups, sum(c) AS all_rows FROM (\
             SELECT count(*) AS c FROM (SELECT {keys} {} LIMIT {rows}) AS sampled GROUP BY {}) AS counted",
            writer.source(names)?,
            names_of_keys.join(", ")
        ))
    }
}

/// Writes expressions over columns of tables as SQL of a dialect.
struct Writer<'a> {
    draft: &'a Draft,
    dialect: CustomDialect,
    quote: char,
}

impl<'a> Writer<'a> {
    fn new(draft: &'a Draft) -> Self {
        let quote = if draft.dialect == DialectName::MySql { '`' } else { '"' };
        let dialect = CustomDialectBuilder::new().with_identifier_quote_style(quote).build();
        Self { draft, dialect, quote }
    }

    fn quoted(&self, name: &str) -> String {
        let quote = self.quote;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }

    fn sql(&self, expr: &Expr) -> Option<String> {
        if !is_written_alike(expr) {
            return None;
        }
        let tables = &self.draft.grouping.tables;
        let renamed = expr.clone().transform_up(|part| {
            Ok(match part {
                Expr::Column(column) => {
                    let at = tables.iter().position(|table| {
                        column.relation.as_ref().is_some_and(|of| of.table() == table.to_string())
                    });
                    let table = at.map(|at| TableReference::bare(format!("t{at}")));
                    Transformed::yes(Expr::Column(Column::new(table, column.name)))
                }
                other => Transformed::no(other),
            })
        });
        let written = Unparser::new(&self.dialect).expr_to_sql(&renamed.ok()?.data);
        written.ok().map(|written| written.to_string())
    }

    fn list(&self, exprs: &[Expr]) -> Option<String> {
        let all: Option<Vec<String>> = exprs.iter().map(|expr| self.sql(expr)).collect();
        all.map(|all| all.join(", "))
    }

    /// A select list whose columns have names of their own.
    fn columns<'e>(&self, exprs: impl Iterator<Item = &'e Expr>) -> Option<String> {
        let (mut names, mut columns) = (BTreeSet::new(), Vec::new());
        for (at, expr) in exprs.enumerate() {
            let name = match expr {
                Expr::Column(column) if !names.contains(&column.name) => column.name.clone(),
                _ => format!("column {}", at + 1),
            };
            columns.push(format!("{} AS {}", self.sql(expr)?, self.quoted(&name)));
            names.insert(name);
        }
        Some(columns.join(", "))
    }

    /// From FROM on, up to what groups.
    fn source(&self, names: &BTreeMap<Uuid, EntryName>) -> Option<String> {
        let Grouping { tables, joins, .. } = &self.draft.grouping;
        let tables = tables.iter().enumerate().map(|(at, table)| {
            let EntryName { catalog, schema, name } = names.get(table)?;
            let parts = [catalog, schema, name].map(|part| self.quoted(part));
            Some(format!("{} AS t{at}", parts.join(".")))
        });
        let tables = tables.collect::<Option<Vec<_>>>()?.join(", ");
        let joins: Option<Vec<String>> = joins.iter().map(|join| self.sql(join)).collect();
        let joins = joins?;
        let condition =
            if joins.is_empty() { String::new() } else { format!(" WHERE {}", joins.join(" AND ")) };
        Some(format!("FROM {tables}{condition}"))
    }
}

/// Whether an expression is read again as it is written. The writer of texts takes quotes behind a backslash, and two quotes, for
/// escaped: whoever writes such a text or name would write a part of a statement, which runs with the rights of the server.
fn is_written_alike(expr: &Expr) -> bool {
    let has_marks = |text: &str| text.contains(['\'', '"', '`', '\\']);
    let is_other = expr.exists(|part| {
        Ok(match part {
            Expr::Column(column) => has_marks(&column.name),
            Expr::Literal(value, _) => {
                value.data_type().is_nested() || value.try_as_str().flatten().is_some_and(has_marks)
            }
            Expr::Like(like) | Expr::SimilarTo(like) => like.escape_char.is_some(),
            _ => false,
        })
    });
    matches!(is_other, Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_tables::{Column as TableColumn, Definition, Table};
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::datasource::provider_as_source;
    use datafusion::functions_aggregate::expr_fn::{avg, count, max, sum};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
    use std::sync::Arc;

    fn table() -> Arc<Table> {
        let column = |name: &str| {
            let field = Arc::new(Field::new(name, DataType::Int64, true));
            TableColumn { field, default: None, comment: None }
        };
        let columns = ["day", "store", "price"].map(column).into();
        Arc::new(Table::new(Definition { columns, ..Definition::default() }))
    }

    fn grouping(
        table: &Arc<Table>,
        condition: Expr,
        groups: &[&str],
        aggregates: Vec<Expr>,
    ) -> Vec<Grouping> {
        let scan = LogicalPlanBuilder::scan("sales", provider_as_source(table.provider()), None);
        let groups: Vec<Expr> = groups.iter().map(|name| col(*name)).collect();
        let plan = scan.and_then(|scan| scan.filter(condition)?.aggregate(groups, aggregates)?.build());
        Grouping::all(&plan.expect("a plan"))
    }

    #[test]
    fn queries_that_differ_in_values_share_a_view_with_coarser_ones() {
        let table = table();
        let asked = [
            (col("day").lt(lit(3_i64)), vec!["store"], vec![sum(col("price"))]),
            (col("day").lt(lit(7_i64)), vec!["store"], vec![sum(col("price"))]),
            (col("day").eq(lit(7_i64)), vec![], vec![count(lit(1_i64))]),
        ];
        let mut found = Vec::new();
        for (at, (condition, groups, aggregates)) in asked.into_iter().enumerate() {
            let groupings = grouping(&table, condition, &groups, aggregates);
            found.extend(groupings.into_iter().map(|grouping| (at, DialectName::Ansi, grouping)));
        }
        let drafts = drafts(&found);
        let alike: Vec<usize> = drafts.iter().map(|draft| draft.alike.len()).collect();
        assert_eq!(alike, [2, 1]);
        let names = BTreeMap::from([(table.id(), EntryName::new("c", "s", "sales"))]);
        assert_eq!(
            drafts.first().and_then(|draft| draft.text(&names)).expect("a text"),
            "SELECT \"t0\".\"day\" AS \"day\", \"t0\".\"store\" AS \"store\", sum(\"t0\".\"price\") AS \"column 3\", \
             count(1) AS \"column 4\" FROM \"c\".\"s\".\"sales\" AS t0 GROUP BY \"t0\".\"day\", \"t0\".\"store\""
        );
    }

    #[test]
    fn what_would_be_read_otherwise_is_not_written() {
        let table = table();
        let names = BTreeMap::from([(table.id(), EntryName::new("c", "s", "sales"))]);
        for (text, is_written) in [("it", true), (r"\' || 'x", false), ("''", false), (r#"\""#, false)] {
            let found = grouping(&table, lit(true), &["store"], vec![max(lit(text))]).into_iter();
            let found: Vec<_> = found.map(|grouping| (0, DialectName::Ansi, grouping)).collect();
            let draft = drafts(&found).pop().expect("a draft");
            assert_eq!(draft.text(&names).is_some(), is_written, "{text}");
        }
        assert!(!is_written_alike(&Expr::Column(Column::from_name(r#"a\" b"#))), "the name of a column");
    }

    #[test]
    fn what_does_not_add_up_needs_the_groups_that_are_asked_for() {
        let table = table();
        let mean = || vec![avg(col("price"))];
        assert!(grouping(&table, col("day").lt(lit(3_i64)), &["store"], mean()).is_empty());
        assert_eq!(grouping(&table, col("store").lt(lit(3_i64)), &["store"], mean()).len(), 1);
        assert!(
            grouping(&table, lit(true), &[], vec![count(lit(1_i64))]).is_empty(),
            "one row is soon computed"
        );
    }
}
