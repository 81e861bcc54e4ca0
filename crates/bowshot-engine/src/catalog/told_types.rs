//! What the columns of a result are beyond their Arrow types, for clients that have types of their own for it: JSON and UUIDs are texts here, and a table says in its definition which is which.
//!
//! It is followed through the plan from the tables up, as the statement was written, so that it is the same before and after
//! parameters are bound: a column that is passed on stays what it is, and what is computed of it is text. Only the schema that
//! clients are told has it. Tables, operators and batches within a plan do not, and run as they would without it. Who sees a
//! column through a mask is told a text.

use crate::catalog::defaults::without_defaults;
use crate::execute;
use crate::policy::behind_guard;
use crate::types::declared::{DECLARED, Declared};
use bowshot_api::Layout;
use bowshot_storage::tables::{Definition, Table};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, TableScan};
use std::sync::Arc;

/// Plans that are deeper are not looked through.
const DEEPEST: usize = 100;
/// How deep a view counts whose query is behind a guard, and is planned for each look: there are few within one another.
const OF_VIEW: usize = 20;
/// Functions of rows that give one of the values that they are given.
const PASSING: [&str; 8] =
    ["min", "max", "any_value", "first_value", "last_value", "nth_value", "lag", "lead"];
/// Functions that make UUIDs.
const MAKING_UUIDS: [&str; 2] = ["uuid", "uuidv7"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Jsonb,
    Uuid,
}

/// One for each column of a plan.
type Kinds = Vec<Option<Kind>>;

impl Kind {
    pub(crate) fn of(field: &Field) -> Option<Self> {
        match Declared::of(field)? {
            Declared::Json => Some(Self::Json),
            Declared::Jsonb => Some(Self::Jsonb),
            Declared::Uuid => Some(Self::Uuid),
            _ => None,
        }
    }

    /// The field with the mark, if its values are texts, or lists of such.
    fn mark(kind: Option<Self>, field: &FieldRef) -> FieldRef {
        if let DataType::List(item) = field.data_type() {
            let marked = DataType::List(Self::mark(kind, item));
            return Arc::new(field.as_ref().clone().with_data_type(marked));
        }
        let declared = match kind.filter(|_| is_text(field.data_type())) {
            Some(Self::Json) => Declared::Json,
            Some(Self::Jsonb) => Declared::Jsonb,
            Some(Self::Uuid) => Declared::Uuid,
            None => return Arc::clone(field),
        };
        let mut metadata = field.metadata().clone();
        metadata.insert(DECLARED.to_owned(), declared.to_string());
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    }
}

/// Whether values are texts.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_text(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        _ => false,
    }
}

/// The result schema of a plan: what GetSchema, FlightInfo, prepared statements and the encoder all use.
///
/// The types are those after coercion (`SELECT 1 UNION SELECT 'a'` is text), so the plan is analysed for them. A plan
/// that cannot be analysed shows its own types; running it gives the error.
pub(crate) fn result_schema(state: &SessionState, plan: &LogicalPlan, layout: Layout) -> SchemaRef {
    layout.schema(&analysed_schema(state, plan))
}

/// The same before it is laid out.
pub(crate) fn analysed_schema(state: &SessionState, plan: &LogicalPlan) -> SchemaRef {
    marked(&execute::analysed_schema(state, plan), &of_plan(plan, 0))
}

/// The same for a plan whose parameters have no values yet.
pub(crate) fn unbound_schema(plan: &LogicalPlan, layout: Layout) -> SchemaRef {
    layout.schema(&marked(plan.schema().inner(), &of_plan(plan, 0)))
}

/// A schema whose columns say what they are.
pub(crate) fn marked(schema: &SchemaRef, kinds: &[Option<Kind>]) -> SchemaRef {
    if kinds.len() != schema.fields().len() || kinds.iter().all(Option::is_none) {
        return Arc::clone(schema);
    }
    let fields: Fields =
        kinds.iter().zip(schema.fields()).map(|(kind, field)| Kind::mark(*kind, field)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// What the columns of a plan are.
fn of_plan(plan: &LogicalPlan, depth: usize) -> Kinds {
    let count = plan.schema().fields().len();
    let below = |input: &LogicalPlan| of_plan(input, depth + 1);
    let found = match plan {
        _ if depth > DEEPEST => Kinds::new(),
        LogicalPlan::TableScan(scan) => of_scan(scan, depth),
        LogicalPlan::Projection(projection) => {
            Seen::by(&projection.input, depth).all(&projection.expr).collect()
        }
        LogicalPlan::Aggregate(aggregate)
            if !aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) =>
        {
            let exprs = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
            Seen::by(&aggregate.input, depth).all(exprs).collect()
        }
        LogicalPlan::Window(window) => {
            let seen = Seen::by(&window.input, depth);
            let more: Kinds = seen.all(&window.window_expr).collect();
            seen.kinds.iter().copied().chain(more).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => below(&alias.input),
        LogicalPlan::Filter(filter) => below(&filter.input),
        LogicalPlan::Sort(sort) => below(&sort.input),
        LogicalPlan::Limit(limit) => below(&limit.input),
        LogicalPlan::Repartition(repartition) => below(&repartition.input),
        LogicalPlan::Distinct(Distinct::All(input)) => below(input),
        LogicalPlan::Distinct(Distinct::On(on)) => Seen::by(&on.input, depth).all(&on.select_expr).collect(),
        LogicalPlan::Join(join) => of_join(join, depth),
        LogicalPlan::Union(union) => {
            let inputs: Vec<Kinds> = union.inputs.iter().map(|input| below(input)).collect();
            (0..count).map(|at| agreed(inputs.iter().map(|kinds| kinds.get(at).copied().flatten()))).collect()
        }
        _ => Kinds::new(),
    };
    if found.len() == count { found } else { vec![None; count] }
}

fn of_join(join: &Join, depth: usize) -> Kinds {
    let (left, right) = (|| of_plan(&join.left, depth + 1), || of_plan(&join.right, depth + 1));
    let with = |kinds: Kinds, more: Kinds| kinds.into_iter().chain(more).collect();
    match join.join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => with(left(), right()),
        JoinType::LeftSemi | JoinType::LeftAnti => left(),
        JoinType::RightSemi | JoinType::RightAnti => right(),
        JoinType::LeftMark => with(left(), vec![None]),
        JoinType::RightMark => with(right(), vec![None]),
    }
}

fn of_scan(scan: &TableScan, depth: usize) -> Kinds {
    let Ok(provider) = source_as_provider(&scan.source) else { return Kinds::new() };
    let provider: &dyn TableProvider = provider.as_ref();
    let fields = scan.projected_schema.fields();
    // Texts that are shown as they are. Behind a guard there is one table for all of them.
    let behind = |field: &FieldRef| {
        if is_text(field.data_type()) { behind_guard(provider, field.name()) } else { None }
    };
    let Some(table) = fields.iter().find_map(behind) else { return Kinds::new() };
    let known = Columns::of(without_defaults(table), depth);
    fields.iter().map(|field| behind(field).and_then(|_| known.kind(field.name()))).collect()
}

/// What the columns of a table are known by.
enum Columns {
    Defined(Arc<Definition>),
    /// Those of a view, as its query gives them.
    Planned(Vec<(String, Option<Kind>)>),
}

impl Columns {
    fn of(table: &dyn TableProvider, depth: usize) -> Self {
        if let Some(table) = Table::read_by(table) {
            return Self::Defined(Arc::clone(table.definition()));
        }
        let Some(plan) = table.get_logical_plan() else { return Self::Planned(Vec::new()) };
        let names = plan.schema().fields().iter().map(|field| field.name().clone());
        Self::Planned(names.zip(of_plan(&plan, depth + OF_VIEW)).collect())
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        match self {
            Self::Defined(definition) => of_definition(definition, name),
            Self::Planned(all) => all.iter().find(|(column, _)| column == name).and_then(|(_, kind)| *kind),
        }
    }
}

fn of_definition(definition: &Definition, name: &str) -> Option<Kind> {
    definition.columns.get(definition.position(name)?).and_then(|column| Kind::of(&column.field))
}

/// What all are, if they are the same.
fn agreed(mut kinds: impl Iterator<Item = Option<Kind>>) -> Option<Kind> {
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

/// The columns that the expressions of a node see.
pub(crate) struct Seen<'a> {
    schema: &'a DFSchema,
    kinds: Kinds,
    depth: usize,
}

impl<'a> Seen<'a> {
    /// Those of the one input of a node, which is so deep in its plan.
    pub(crate) fn by(input: &'a LogicalPlan, depth: usize) -> Self {
        Self { schema: input.schema(), kinds: of_plan(input, depth + 1), depth: depth + 1 }
    }

    fn all<'s>(
        &'s self,
        exprs: impl IntoIterator<Item = &'s Expr> + 's,
    ) -> impl Iterator<Item = Option<Kind>> + 's {
        exprs.into_iter().map(|expr| self.of(expr))
    }

    /// What the value of an expression is.
    pub(crate) fn of(&self, expr: &Expr) -> Option<Kind> {
        match expr {
            Expr::Column(column) => self.column(column),
            Expr::Alias(alias) => self.of(&alias.expr),
            Expr::Cast(cast) => Kind::of(&cast.field),
            Expr::ScalarFunction(call) if MAKING_UUIDS.contains(&call.name()) => Some(Kind::Uuid),
            Expr::ScalarFunction(call) if call.name() == "coalesce" => agreed(self.all(&call.args)),
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                agreed(self.all(results.chain(case.else_expr.as_deref())))
            }
            Expr::AggregateFunction(call) if PASSING.contains(&call.func.name()) => {
                call.params.args.first().and_then(|value| self.of(value))
            }
            // `lag` and `lead` may have a value for where there is no row.
            Expr::WindowFunction(call) if PASSING.contains(&call.fun.name()) => match call.params.args.get(2)
            {
                None => call.params.args.first().and_then(|value| self.of(value)),
                Some(other) => agreed(self.all(call.params.args.first().into_iter().chain([other]))),
            },
            Expr::ScalarSubquery(query) => {
                of_plan(&query.subquery, self.depth + 1).first().copied().flatten()
            }
            _ => None,
        }
    }

    fn column(&self, column: &Column) -> Option<Kind> {
        if self.kinds.iter().all(Option::is_none) {
            return None;
        }
        self.schema.maybe_index_of_column(column).and_then(|at| self.kinds.get(at).copied().flatten())
    }
}
