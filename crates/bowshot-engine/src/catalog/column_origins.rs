//! Which result columns are unchanged columns of tables, for clients that write to them. Computed columns have no origin.

use crate::catalog::names::Names;
use bowshot_api::ColumnOrigin;
use bowshot_system_catalog::pg_catalog::oids;
use bowshot_tables::{Entry, EntryName};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, TableScan};

/// Plans that are deeper are not looked through.
const DEEPEST: usize = 100;

/// One for each column of a plan.
type Origins = Vec<Option<ColumnOrigin>>;

/// The origin of each column of a plan.
pub(crate) fn origins(plan: &LogicalPlan, names: &Names) -> Origins {
    below(plan, names, 0)
}

fn below(plan: &LogicalPlan, names: &Names, depth: usize) -> Origins {
    let count = plan.schema().fields().len();
    let inner = |input: &LogicalPlan| below(input, names, depth + 1);
    let found = match plan {
        _ if depth > DEEPEST => Origins::new(),
        LogicalPlan::TableScan(scan) => of_scan(scan, names),
        LogicalPlan::Projection(projection) => {
            let known = inner(&projection.input);
            let schema = projection.input.schema();
            let of = |column: &Column| {
                schema.maybe_index_of_column(column).and_then(|at| known.get(at).copied().flatten())
            };
            projection.expr.iter().map(|expr| column_of(expr).and_then(of)).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => inner(&alias.input),
        LogicalPlan::Filter(filter) => inner(&filter.input),
        LogicalPlan::Sort(sort) => inner(&sort.input),
        LogicalPlan::Limit(limit) => inner(&limit.input),
        LogicalPlan::Join(join) => of_join(join, inner),
        _ => Origins::new(),
    };
    if found.len() == count { found } else { vec![None; count] }
}

fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => column_of(&alias.expr),
        _ => None,
    }
}

fn of_join(join: &Join, inner: impl Fn(&LogicalPlan) -> Origins) -> Origins {
    match join.join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            inner(&join.left).into_iter().chain(inner(&join.right)).collect()
        }
        JoinType::LeftSemi | JoinType::LeftAnti => inner(&join.left),
        JoinType::RightSemi | JoinType::RightAnti => inner(&join.right),
        JoinType::LeftMark | JoinType::RightMark => Origins::new(),
    }
}

fn of_scan(scan: &TableScan, names: &Names) -> Origins {
    let name = match &scan.table_name {
        TableReference::Bare { table } => names.unqualified(table),
        TableReference::Partial { schema, table } => {
            EntryName::new(&names.default_catalog, schema.as_ref(), table.as_ref())
        }
        TableReference::Full { catalog, schema, table } => {
            EntryName::new(catalog.as_ref(), schema.as_ref(), table.as_ref())
        }
    };
    let Some(Entry::Table(table)) = names.entry(&name) else { return Origins::new() };
    let Ok(number) = u32::try_from(oids::table(&name)) else { return Origins::new() };
    let fields = scan.projected_schema.fields().iter();
    let places = fields.map(|field| {
        let place = u16::try_from(table.definition().position(field.name())?).ok()?.checked_add(1)?;
        Some(ColumnOrigin { table: number, place })
    });
    places.collect()
}
