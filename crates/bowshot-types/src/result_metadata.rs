//! Result metadata: what the columns of a result are beyond their Arrow types, such as JSON, UUIDs, geometries or varchar. It is
//! followed through the logical plan from the tables up: a column that is passed on keeps it, a computed one has none, and
//! behind a mask a column is a plain text. Only the schema for clients has all of it.

use crate::are_uuids;
use crate::declared::{DECLARED, Declared, is_kept, without_labels, without_marks};
use crate::layered_table::source_of;
use bowshot_api::Layout;
use bowshot_tables::Table;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Unnest};
use std::collections::HashMap;
use std::sync::Arc;

/// Plans that are deeper are not looked through.
const DEEPEST: usize = 100;
/// How deep a view counts whose query is behind a guard, and is planned for each look: there are few within one another.
const OF_VIEW: usize = 20;
/// Functions of rows that give one of the values that they are given.
const PASSING: [&str; 8] =
    ["min", "max", "any_value", "first_value", "last_value", "nth_value", "lag", "lead"];
/// Those of them that compare.
const EXTREMES: [&str; 2] = ["min", "max"];
/// Functions that give one of their arguments.
const CHOOSING: [&str; 5] = ["coalesce", "greatest", "ifnull", "least", "nvl"];
/// Functions that make UUIDs, and what a cast to one becomes.
const MAKING_UUIDS: [&str; 3] = ["uuid", "uuidv7", "cast_as_uuid"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Json,
    Jsonb,
    Uuid,
    /// A text that PostgreSQL calls otherwise, of any length.
    Varchar,
}

/// What a column is beyond its type: the metadata that its field has, and the fields within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMetadata {
    data_type: DataType,
    metadata: HashMap<String, String>,
}

/// One for each column of a plan.
type Described = Vec<Option<Arc<ColumnMetadata>>>;

impl ColumnMetadata {
    /// What a field says, of a column of this type.
    fn of(field: &Field, data_type: &DataType) -> Option<Arc<Self>> {
        let kind = Kind::of(field);
        // What is declared for an array is about its elements.
        let data_type = match (Declared::of(field), data_type) {
            (Some(Declared::Items(of)), DataType::List(item)) if *of == Declared::Uuid => {
                DataType::List(Kind::mark(Some(Kind::Uuid), item))
            }
            (_, data_type) => data_type.clone(),
        };
        let metadata = field.metadata().iter().filter(|(key, value)| match key.as_str() {
            DECLARED => kind.is_some(),
            key => is_kept(key, value),
        });
        let metadata = metadata.map(|(key, value)| match kind {
            Some(kind) if key == DECLARED => (key.clone(), kind.declared().to_string()),
            _ => (key.clone(), value.clone()),
        });
        let described = Self { data_type, metadata: metadata.collect() };
        let says_more = !described.metadata.is_empty() || has_metadata(&described.data_type);
        says_more.then(|| Arc::new(described))
    }

    fn of_kind(kind: Kind) -> Arc<Self> {
        let metadata = HashMap::from([(DECLARED.to_owned(), kind.declared().to_string())]);
        Arc::new(Self { data_type: DataType::Utf8, metadata })
    }

    /// Whether it is a text of a type of its own.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of(&self.field(""))
    }

    fn field(&self, name: &str) -> Field {
        Field::new(name, self.data_type.clone(), true).with_metadata(self.metadata.clone())
    }

    /// The elements of such lists.
    pub(super) fn element(&self) -> Option<Arc<Self>> {
        match &self.data_type {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::of(item, item.data_type())
            }
            _ => None,
        }
    }

    /// A list of such values.
    fn list(&self) -> Arc<Self> {
        let item = Arc::new(self.field(Field::LIST_FIELD_DEFAULT_NAME));
        Arc::new(Self { data_type: DataType::List(item), metadata: HashMap::new() })
    }

    /// The field with what is described of its values.
    pub fn mark(&self, field: &FieldRef) -> FieldRef {
        let field = Kind::mark(self.kind(), field);
        let mut metadata = field.metadata().clone();
        if is_same(&self.data_type, field.data_type()) {
            for (key, value) in self.metadata.iter().filter(|(key, _)| *key != DECLARED) {
                metadata.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        let data_type = marked_within(field.data_type(), &self.data_type);
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
    }
}

fn has_metadata(data_type: &DataType) -> bool {
    let within = |field: &FieldRef| !field.metadata().is_empty() || has_metadata(field.data_type());
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => within(item),
        DataType::Struct(fields) => fields.iter().any(within),
        _ => false,
    }
}

/// Whether values of both types are the same: texts and bytes come in several forms.
fn is_same(one: &DataType, other: &DataType) -> bool {
    let is_bytes =
        |of: &DataType| matches!(of, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    one.equals_datatype(other) || (is_text(one) && is_text(other)) || (is_bytes(one) && is_bytes(other))
}

/// The type with what is described of its fields.
fn marked_within(data_type: &DataType, described: &DataType) -> DataType {
    let field =
        |field: &FieldRef, described: &FieldRef| match ColumnMetadata::of(described, described.data_type()) {
            Some(described) => described.mark(field),
            None => Arc::clone(field),
        };
    match (data_type, described) {
        (DataType::List(item), DataType::List(described)) => DataType::List(field(item, described)),
        (DataType::LargeList(item), DataType::LargeList(described)) => {
            DataType::LargeList(field(item, described))
        }
        (DataType::Struct(fields), DataType::Struct(described)) if fields.len() == described.len() => {
            DataType::Struct(
                fields.iter().zip(described).map(|(one, described)| field(one, described)).collect(),
            )
        }
        _ => data_type.clone(),
    }
}

impl Kind {
    fn declared(self) -> Declared {
        match self {
            Self::Json => Declared::Json,
            Self::Jsonb => Declared::Jsonb,
            Self::Uuid => Declared::Uuid,
            Self::Varchar => Declared::PlainVarchar,
        }
    }

    pub fn of(field: &Field) -> Option<Self> {
        match Declared::of(field)? {
            Declared::Json => Some(Self::Json),
            Declared::Jsonb => Some(Self::Jsonb),
            Declared::Uuid => Some(Self::Uuid),
            Declared::Varchar(_) | Declared::PlainVarchar => Some(Self::Varchar),
            _ => None,
        }
    }

    /// The field with the mark, if its values are texts, or lists of such.
    fn mark(kind: Option<Self>, field: &FieldRef) -> FieldRef {
        if let DataType::List(item) = field.data_type() {
            let marked = DataType::List(Self::mark(kind, item));
            return Arc::new(field.as_ref().clone().with_data_type(marked));
        }
        let Some(kind) = kind.filter(|_| is_text(field.data_type())) else { return Arc::clone(field) };
        let mut metadata = field.metadata().clone();
        metadata.insert(DECLARED.to_owned(), kind.declared().to_string());
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    }
}

/// Whether values are texts.
pub fn is_text(data_type: &DataType) -> bool {
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
pub fn result_schema(state: &SessionState, plan: &LogicalPlan, layout: Layout) -> SchemaRef {
    layout.schema(&analysed_schema(state, plan))
}

/// The same before it is laid out.
pub fn analysed_schema(state: &SessionState, plan: &LogicalPlan) -> SchemaRef {
    let analysed = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {});
    let schema = analysed.as_ref().unwrap_or(plan).schema().inner();
    describe(schema, &describe_plan(plan, 0))
}

/// The same for a plan whose parameters have no values yet.
pub fn unbound_schema(plan: &LogicalPlan, layout: Layout) -> SchemaRef {
    layout.schema(&describe(plan.schema().inner(), &describe_plan(plan, 0)))
}

/// The columns of a table, as a query that gives them all has them.
pub fn table_schema(table: &dyn TableProvider) -> SchemaRef {
    let schema = table.schema();
    describe(&schema, &describe_table(table, schema.fields(), 0))
}

fn describe(schema: &SchemaRef, kinds: &[Option<Arc<ColumnMetadata>>]) -> SchemaRef {
    let kinds: &[Option<Arc<ColumnMetadata>>] =
        if kinds.len() == schema.fields().len() { kinds } else { &[] };
    let fields = schema.fields().iter().enumerate().map(|(at, field)| {
        let field = without_labels(&without_marks(field));
        match kinds.get(at).and_then(Option::as_ref) {
            Some(described) => described.mark(&field),
            None => field,
        }
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
}

/// A schema whose columns say what they are.
pub fn marked(schema: &SchemaRef, kinds: &[Option<Kind>]) -> SchemaRef {
    if kinds.len() != schema.fields().len() || kinds.iter().all(Option::is_none) {
        return Arc::clone(schema);
    }
    let fields: Fields =
        kinds.iter().zip(schema.fields()).map(|(kind, field)| Kind::mark(*kind, field)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// What the columns of a plan are.
pub(crate) fn describe_plan(plan: &LogicalPlan, depth: usize) -> Described {
    let count = plan.schema().fields().len();
    let below = |input: &LogicalPlan| describe_plan(input, depth + 1);
    let found = match plan {
        _ if depth > DEEPEST => Described::new(),
        LogicalPlan::TableScan(scan) => match source_as_provider(&scan.source) {
            Ok(provider) => describe_table(provider.as_ref(), scan.projected_schema.fields(), depth),
            Err(_) => Described::new(),
        },
        LogicalPlan::Projection(projection) => {
            InputColumns::by(&projection.input, depth).all(&projection.expr).collect()
        }
        LogicalPlan::Aggregate(aggregate) => describe_aggregate(aggregate, depth),
        LogicalPlan::Window(window) => {
            let seen = InputColumns::by(&window.input, depth);
            let more: Described = seen.all(&window.window_expr).collect();
            seen.kinds.iter().cloned().chain(more).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => below(&alias.input),
        LogicalPlan::Filter(filter) => below(&filter.input),
        LogicalPlan::Sort(sort) => below(&sort.input),
        LogicalPlan::Limit(limit) => below(&limit.input),
        LogicalPlan::Repartition(repartition) => below(&repartition.input),
        LogicalPlan::Distinct(Distinct::All(input)) => below(input),
        LogicalPlan::Distinct(Distinct::On(on)) => {
            InputColumns::by(&on.input, depth).all(&on.select_expr).collect()
        }
        LogicalPlan::Join(join) => describe_join(join, depth),
        LogicalPlan::Unnest(unnest) => describe_unnest(unnest, &below(&unnest.input)),
        LogicalPlan::Union(union) => {
            let inputs: Vec<Described> = union.inputs.iter().map(|input| below(input)).collect();
            (0..count).map(|at| agreed(inputs.iter().map(|kinds| kinds.get(at).cloned().flatten()))).collect()
        }
        // Both terms have the columns of the first.
        LogicalPlan::RecursiveQuery(query) => below(&query.static_term),
        // Checks and policies see the row that is written as one.
        LogicalPlan::EmptyRelation(row) => {
            row.schema.fields().iter().map(|field| ColumnMetadata::of(field, field.data_type())).collect()
        }
        _ => Described::new(),
    };
    if found.len() == count { found } else { vec![None; count] }
}

fn describe_aggregate(aggregate: &Aggregate, depth: usize) -> Described {
    let Ok(groups) = grouping_set_to_exprlist(&aggregate.group_expr) else { return Described::new() };
    let columns = InputColumns::by(&aggregate.input, depth);
    // The grouping id.
    let id = matches!(aggregate.group_expr.first(), Some(Expr::GroupingSet(_))).then_some(None);
    columns.all(groups).chain(id).chain(columns.all(&aggregate.aggr_expr)).collect()
}

fn describe_join(join: &Join, depth: usize) -> Described {
    let (left, right) = (|| describe_plan(&join.left, depth + 1), || describe_plan(&join.right, depth + 1));
    let with = |kinds: Described, more: Described| kinds.into_iter().chain(more).collect();
    match join.join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => with(left(), right()),
        JoinType::LeftSemi | JoinType::LeftAnti => left(),
        JoinType::RightSemi | JoinType::RightAnti => right(),
        JoinType::LeftMark => with(left(), vec![None]),
        JoinType::RightMark => with(right(), vec![None]),
    }
}

fn describe_table(provider: &dyn TableProvider, fields: &Fields, depth: usize) -> Described {
    // All columns that pass through the layers come from one table.
    let source = |field: &FieldRef| source_of(provider, field.name());
    let Some(table) = fields.iter().find_map(source) else { return Described::new() };
    let known = TableColumns::of(table, depth);
    fields.iter().map(|field| source(field).and_then(|_| known.metadata(field))).collect()
}

enum TableColumns {
    /// Fields that may be more than their types say. A search for each column in turn would take too long in wide tables.
    Given(HashMap<String, FieldRef>),
    /// Those of a view, as its query gives them.
    Planned(HashMap<String, Option<Arc<ColumnMetadata>>>),
}

impl TableColumns {
    fn of(table: &dyn TableProvider, depth: usize) -> Self {
        if let Some(table) = Table::read_by(table) {
            return Self::given(table.definition().columns.iter().map(|column| &column.field));
        }
        // Files have JSON by the extension alone.
        let Some(plan) = table.get_logical_plan() else { return Self::given(table.schema().fields().iter()) };
        let names = plan.schema().fields().iter().map(|field| field.name().clone());
        Self::Planned(names.zip(describe_plan(&plan, depth + OF_VIEW)).collect())
    }

    fn given<'f>(fields: impl Iterator<Item = &'f FieldRef>) -> Self {
        let says_more = |field: &&FieldRef| !field.metadata().is_empty() || field.data_type().is_nested();
        let named = fields.filter(says_more).map(|field| (field.name().clone(), Arc::clone(field)));
        Self::Given(named.collect())
    }

    fn metadata(&self, field: &Field) -> Option<Arc<ColumnMetadata>> {
        match self {
            Self::Given(fields) => ColumnMetadata::of(fields.get(field.name())?, field.data_type()),
            Self::Planned(all) => all.get(field.name()).cloned().flatten(),
        }
    }
}

/// A field of structures of a type, of which so much is described.
fn field_within(
    of: &DataType,
    described: &ColumnMetadata,
    name: &Expr,
) -> Option<(DataType, Arc<ColumnMetadata>)> {
    let Expr::Literal(name, _) = name else { return None };
    let (DataType::Struct(fields), DataType::Struct(within)) = (of, &described.data_type) else {
        return None;
    };
    let (place, field) = fields.find(name.try_as_str()??)?;
    let described = within.get(place)?;
    Some((field.data_type().clone(), ColumnMetadata::of(described, described.data_type())?))
}

/// Elements of lists are what the lists have in them; other columns are passed on.
fn describe_unnest(unnest: &Unnest, kinds: &[Option<Arc<ColumnMetadata>>]) -> Described {
    let columns = unnest.schema.columns();
    let of_column = |(column, place): (&Column, &usize)| {
        let described = kinds.get(*place)?.clone().filter(|_| !unnest.struct_type_columns.contains(place))?;
        let mut lists = unnest.list_type_columns.iter().filter(|(of, _)| of == place);
        match lists.find(|(_, list)| list.output_column.name == column.name) {
            Some((_, list)) => (0..list.depth).try_fold(described, |described, _| described.element()),
            None => Some(described),
        }
    };
    columns.iter().zip(&unnest.dependency_indices).map(of_column).collect()
}

/// What all are, if they are the same.
fn agreed(mut kinds: impl Iterator<Item = Option<Arc<ColumnMetadata>>>) -> Option<Arc<ColumnMetadata>> {
    let first = kinds.next()??;
    kinds.all(|kind| kind.as_ref() == Some(&first)).then_some(first)
}

/// The columns that the expressions of a node see.
pub struct InputColumns<'a> {
    schema: &'a DFSchema,
    kinds: Described,
    knows_any: bool,
    depth: usize,
}

impl<'a> InputColumns<'a> {
    /// Those of the one input of a node, which is so deep in its plan.
    pub fn by(input: &'a LogicalPlan, depth: usize) -> Self {
        let kinds = describe_plan(input, depth + 1);
        Self { schema: input.schema(), knows_any: kinds.iter().any(Option::is_some), kinds, depth: depth + 1 }
    }

    fn all<'s>(
        &'s self,
        exprs: impl IntoIterator<Item = &'s Expr> + 's,
    ) -> impl Iterator<Item = Option<Arc<ColumnMetadata>>> + 's {
        exprs.into_iter().map(|expr| self.of(expr))
    }

    /// What all of these are that are not NULL.
    fn agreed<'s>(&'s self, exprs: impl IntoIterator<Item = &'s Expr> + 's) -> Option<Arc<ColumnMetadata>> {
        let is_null = |expr: &&Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
        let all: Described = self.all(exprs.into_iter().filter(move |expr| !is_null(expr))).collect();
        // A text beside UUIDs that are bytes is read as one.
        let uuids = all.iter().flatten().find(|described| are_uuids(&described.field(""))).cloned();
        uuids.or_else(|| agreed(all.into_iter()))
    }

    /// What the value of an expression is.
    pub fn of(&self, expr: &Expr) -> Option<Arc<ColumnMetadata>> {
        match expr {
            Expr::Column(column) => self.column(column),
            Expr::OuterReferenceColumn(field, _) => ColumnMetadata::of(field, field.data_type()),
            Expr::Alias(alias) => self.of(&alias.expr),
            Expr::Cast(cast) => ColumnMetadata::of(&cast.field, cast.field.data_type()),
            Expr::ScalarFunction(call) => self.of_call(call),
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                self.agreed(results.chain(case.else_expr.as_deref()))
            }
            Expr::AggregateFunction(call) if PASSING.contains(&call.func.name()) => {
                let described = call.params.args.first().and_then(|value| self.of(value));
                // PostgreSQL has these of texts alone.
                described.filter(|described| {
                    !EXTREMES.contains(&call.func.name()) || described.kind() != Some(Kind::Varchar)
                })
            }
            Expr::AggregateFunction(call) if call.func.name() == "array_agg" => {
                call.params.args.first().and_then(|value| self.of(value)).map(|described| described.list())
            }
            // `lag` and `lead` may have a value for where there is no row.
            Expr::WindowFunction(call) if PASSING.contains(&call.fun.name()) => match call.params.args.get(2)
            {
                None => call.params.args.first().and_then(|value| self.of(value)),
                Some(other) => self.agreed(call.params.args.first().into_iter().chain([other])),
            },
            Expr::ScalarSubquery(query) => {
                describe_plan(&query.subquery, self.depth + 1).first().cloned().flatten()
            }
            _ => None,
        }
    }

    fn of_call(&self, call: &ScalarFunction) -> Option<Arc<ColumnMetadata>> {
        match call.name() {
            name if MAKING_UUIDS.contains(&name) => Some(ColumnMetadata::of_kind(Kind::Uuid)),
            "nullif" => call.args.first().and_then(|value| self.of(value)),
            name if CHOOSING.contains(&name) => self.agreed(&call.args),
            "make_array" => self.agreed(&call.args).map(|described| described.list()),
            "named_struct" => self.of_struct(call.args.chunks(2).filter_map(|pair| pair.get(1))),
            "struct" => self.of_struct(call.args.iter()),
            "array_element" => self.of(call.args.first()?)?.element(),
            "get_field" => {
                let (value, path) = call.args.split_first()?;
                let known = (value.get_type(self.schema).ok()?, self.of(value)?);
                path.iter()
                    .try_fold(known, |(of, described), name| field_within(&of, &described, name))
                    .map(|known| known.1)
            }
            _ => None,
        }
    }

    /// A structure of these values, whose names are of no account.
    fn of_struct<'s>(&'s self, values: impl Iterator<Item = &'s Expr>) -> Option<Arc<ColumnMetadata>> {
        let field = |value: &Expr| match self.of(value) {
            Some(described) => described.field(""),
            None => Field::new("", DataType::Null, true),
        };
        let fields: Fields = values.map(field).collect();
        let data_type = DataType::Struct(fields);
        has_metadata(&data_type).then(|| Arc::new(ColumnMetadata { data_type, metadata: HashMap::new() }))
    }

    fn column(&self, column: &Column) -> Option<Arc<ColumnMetadata>> {
        if !self.knows_any {
            return None;
        }
        self.schema.maybe_index_of_column(column).and_then(|at| self.kinds.get(at).cloned().flatten())
    }
}
