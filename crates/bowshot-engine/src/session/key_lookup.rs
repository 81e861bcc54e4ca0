//! Answers `SELECT columns FROM table WHERE key = value`, also with ORDER BY columns and LIMIT, from the index of a key in memory,
//! without optimizing and planning a scan. Takes only authorized plans that read a table of this server as it is: behind a row
//! policy, a mask, a grant on columns, a view or a cast, a plan has another source. Whatever is not plain goes the ordinary way.

use crate::authorize::AuthorizedPlan;
use crate::authorize::lookup_form::{BoundLookup, LookupForm, LookupValue, RowLimit};
use crate::catalog::defaults::without_defaults;
use crate::execute::Execution;
use crate::execute::progress::ProgressMeter;
use crate::plan::{self, parameters};
use crate::reuse::SessionCache;
use crate::session::EngineSession;
use bowshot_api::{BatchStream, Layout, Result};
use bowshot_query_task::{QueryTask, run_blocking};
use bowshot_sql::DialectName;
use bowshot_tables::{FoundRows, Table, has_plain_equality};
use bowshot_types::declared::Declared;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::common::format::ExplainFormat;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    BinaryExpr, Explain, Expr, Filter, Limit, LogicalPlan, Operator, Projection, TableScan,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use std::sync::Arc;

/// Columns, or what is computed of them, of those rows of one scan that fulfil a condition.
pub(super) struct FilteredScan<'p> {
    pub(super) projection: &'p Projection,
    pub(super) filter: &'p Filter,
    pub(super) scan: &'p TableScan,
}

/// Whether a plan asks for rows by a key alone: it reads no files of others, so that it is as good as its snapshot.
pub fn is_key_lookup(plan: &AuthorizedPlan) -> bool {
    form_of(plan).is_some()
}

/// The form of such a plan.
pub(super) fn form_of(plan: &AuthorizedPlan) -> Option<&LookupForm> {
    plan.lookup(recognise)
}

/// The table that a lookup is on, and its literals. `plan` is such a plan.
pub(super) fn bound_by(plan: &LogicalPlan) -> Option<BoundLookup> {
    let FilteredScan { filter, scan, .. } = FilteredScan::recognise(ordered_rows(plan)?.1)?;
    let provider = source_as_provider(&scan.source).ok()?;
    let table = Arc::clone(Table::of_provider(without_defaults(provider.as_ref()))?);
    let mut literals = Vec::new();
    add_literals(&filter.predicate, &mut literals);
    Some(BoundLookup { table, literals })
}

impl EngineSession {
    /// The rows of a query that asks for them by a key, if an index tells them.
    ///
    /// # Errors
    /// `Invalid` for parameters that do not fit, as in the ordinary way.
    pub(super) async fn look_up(
        &self,
        plan: &AuthorizedPlan,
        bound: &[RecordBatch],
        layout: Layout,
    ) -> Result<Option<Execution>> {
        if self.scratch || plan.pinned().input().is_some() {
            return Ok(None);
        }
        let Some(form) = form_of(plan) else { return Ok(None) };
        let planned = plan.planned();
        let made = if plan.bound().is_some() { None } else { bound_by(planned.plan()) };
        let Some(lookup) = plan.bound().or(made.as_ref()) else { return Ok(None) };
        if !self.may_look_up_key(&lookup.table, form.key.iter().map(|(at, _)| *at)) {
            return Ok(None);
        }
        let values = match bound {
            [] if planned.parameters().fields().is_empty() => None,
            [rows] if rows.num_rows() == 1 => {
                Some(parameters::computed_values(&form.parameters, planned.parameters(), rows)?)
            }
            _ => return Ok(None),
        };
        let Some(rows) = self.found(form, lookup, values.as_ref()).await else { return Ok(None) };
        let schema = form.schema(planned.form(), layout);
        let count = rows.num_rows() as u64;
        let batches = if count > 0 { vec![layout.apply(rows, &schema)?] } else { Vec::new() };
        let streams = vec![BatchStream::from_batches(SchemaRef::clone(&schema), batches)];
        let (ordered, progress) = (planned.ordered(), ProgressMeter::default());
        Ok(Some(Execution { schema, streams, ordered, rows: Some(count), progress, opening: None }))
    }

    /// The rows, of which there are none without a match. `None` where the index does not tell.
    async fn found(
        &self,
        form: &LookupForm,
        BoundLookup { table, literals }: &BoundLookup,
        parameters: Option<&ParamValues>,
    ) -> Option<RecordBatch> {
        let key = form.key.iter().map(|(at, value)| match value {
            LookupValue::Literal(number) => Some((*at, literals.get(*number)?.clone())),
            LookupValue::Parameter(name) => Some((*at, parameter(name, parameters)?)),
        });
        if let RowLimit::Parameter(name) = &form.limit
            && !matches!(parameter(name, parameters)?, ScalarValue::Int64(Some(1..)))
        {
            return None;
        }
        let found = self.find_rows(table, &key.collect::<Option<Vec<_>>>()?, &form.columns).await?;
        // One row is in order, and within each limit.
        (form.limit == RowLimit::Any || found.rows.num_rows() <= 1).then_some(found.rows)
    }

    /// Whether a plan is a lookup whose literals are of the kind of their columns: other values of that kind make the same plan.
    pub(super) fn may_be_lookup_template(&self, plan: &AuthorizedPlan) -> bool {
        let lookup = form_of(plan).and_then(|form| Some((form, bound_by(plan.planned().plan())?)));
        let Some((form, lookup)) = lookup else { return false };
        let schema = lookup.table.schema();
        let is_of_kind = |(at, value): &(usize, LookupValue)| match value {
            LookupValue::Literal(number) => lookup
                .literals
                .get(*number)
                .is_some_and(|value| is_alike(&value.data_type(), schema.field(*at).data_type())),
            LookupValue::Parameter(_) => true,
        };
        self.may_look_up_key(&lookup.table, form.key.iter().map(|(at, _)| *at))
            && form.key.iter().all(is_of_kind)
    }

    /// Whether the session looks up keys of these columns: it has it on, and compares texts by their bytes.
    pub(super) fn may_look_up_key(&self, table: &Table, mut columns: impl Iterator<Item = usize>) -> bool {
        let options = self.options();
        let is_on = options.extensions.get::<SessionCache>().is_some_and(|session| session.key_lookups);
        let is_mysql = plan::dialect(&options).name() == DialectName::MySql;
        let schema = table.schema();
        is_on && !(is_mysql && columns.any(|at| schema.field(at).data_type().is_string()))
    }

    /// Columns of the rows with a key, of which there are none without a match. `None` where the index does not tell.
    pub(super) async fn find_rows(
        &self,
        table: &Table,
        key: &[(usize, ScalarValue)],
        columns: &[usize],
    ) -> Option<FoundRows> {
        let key = key.iter().map(|(at, value)| Some((*at, in_column(value, table, *at)?)));
        let key = key.collect::<Option<Vec<(usize, ArrayRef)>>>()?;
        let mut found = table.find_addressed_rows(&key, columns);
        if matches!(found, Ok(None)) {
            self.leave_connection().await;
            let task = QueryTask::current();
            let goes_on = || task.as_ref().is_none_or(|task| task.check().is_ok());
            found = run_blocking(|| table.index_and_find_rows(&key, columns, &goes_on));
        }
        // A scan of the same rows tells what is wrong with them.
        found.unwrap_or_else(|error| {
            tracing::debug!(%error, "rows cannot be looked up by their key");
            None
        })
    }

    /// What EXPLAIN shows, with a line about the key by which rows are looked up, or about a plan that is there. Formats for programs
    /// stay as they are.
    pub(super) fn with_key_lookup(
        &self,
        shown: Arc<dyn ExecutionPlan>,
        explain: &Explain,
    ) -> Arc<dyn ExecutionPlan> {
        let for_people = matches!(explain.explain_format, ExplainFormat::Indent | ExplainFormat::Tree);
        let Some(plans) = shown.downcast_ref::<ExplainExec>().filter(|_| for_people) else { return shown };
        let lookup = recognise(&explain.plan).and_then(|form| Some((form, bound_by(&explain.plan)?)));
        let lookup = lookup
            .filter(|(form, lookup)| self.may_look_up_key(&lookup.table, form.key.iter().map(|(at, _)| *at)));
        let line = match lookup {
            Some((form, lookup)) => {
                let schema = lookup.table.schema();
                let key = form.key.iter().map(|(at, _)| schema.field(*at).name().as_str());
                let key: Vec<&str> = key.collect();
                format!("KeyLookup: by ({}), once its index is in memory", key.join(", "))
            }
            None if self.has_plan(&explain.plan) => "plan: cached".to_owned(),
            None => return shown,
        };
        let mut all = plans.stringified_plans().to_vec();
        all.push(StringifiedPlan::new(PlanType::FinalLogicalPlan, line));
        Arc::new(ExplainExec::new(shown.schema(), all, plans.verbose()))
    }
}

/// Columns of one table of this server, where each column of one of its keys equals a literal or a parameter.
fn recognise(plan: &LogicalPlan) -> Option<LookupForm> {
    let (limit, rows) = ordered_rows(plan)?;
    let FilteredScan { projection, filter, scan } = FilteredScan::recognise(rows)?;
    let provider = source_as_provider(&scan.source).ok()?;
    let table = Table::of_provider(without_defaults(provider.as_ref()))?;
    let columns = projection.expr.iter().map(|expr| {
        let expr = match expr {
            Expr::Alias(alias) => alias.expr.as_ref(),
            expr => expr,
        };
        place(table, expr)
    });
    let columns = columns.collect::<Option<Vec<usize>>>()?;
    key_of(table, &provider.schema(), &filter.predicate)?;
    let parameters = plan.get_parameter_fields().ok()?;
    Some(LookupForm::new(columns, values_of_key(table, &filter.predicate)?, limit, parameters))
}

/// The columns of a key by their places, with what the text has for each: literals are numbered in its order.
fn values_of_key(table: &Table, condition: &Expr) -> Option<Vec<(usize, LookupValue)>> {
    let (mut conditions, mut literals) = (Vec::new(), 0..);
    add_conditions(table, condition, &mut conditions)?;
    let values = conditions.into_iter().map(|(at, value)| match value {
        Expr::Placeholder(placeholder) => Some((at, LookupValue::Parameter(placeholder.id.clone()))),
        _ => Some((at, LookupValue::Literal(literals.next()?))),
    });
    let mut values = values.collect::<Option<Vec<_>>>()?;
    values.sort_unstable_by_key(|(at, _)| *at);
    Some(values)
}

fn add_literals(condition: &Expr, literals: &mut Vec<ScalarValue>) {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            add_literals(left, literals);
            add_literals(right, literals);
        }
        Expr::Literal(value, _) => literals.push(value.clone()),
        _ => {}
    }
}

/// What is below LIMIT and ORDER BY columns, and how many of its rows are wanted. `None` for other limits than of one row or more.
fn ordered_rows(plan: &LogicalPlan) -> Option<(RowLimit, &LogicalPlan)> {
    let (limit, rows) = match plan {
        LogicalPlan::Limit(Limit { skip: None, fetch: Some(fetch), input }) => {
            let limit = match fetch.as_ref() {
                Expr::Literal(ScalarValue::Int64(Some(1..)), _) => RowLimit::NotZero,
                Expr::Placeholder(placeholder) => RowLimit::Parameter(placeholder.id.clone()),
                _ => return None,
            };
            (limit, input.as_ref())
        }
        LogicalPlan::Sort(_) => (RowLimit::NotZero, plan),
        _ => (RowLimit::Any, plan),
    };
    match rows {
        LogicalPlan::Sort(sort) => {
            let are_columns = sort.expr.iter().all(|key| matches!(key.expr, Expr::Column(_)));
            (are_columns && sort.fetch.is_none()).then_some((limit, sort.input.as_ref()))
        }
        rows => Some((limit, rows)),
    }
}

impl<'p> FilteredScan<'p> {
    pub(super) fn recognise(plan: &'p LogicalPlan) -> Option<Self> {
        let LogicalPlan::Projection(projection) = plan else { return None };
        let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return None };
        let scan = match filter.input.as_ref() {
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            input => input,
        };
        let LogicalPlan::TableScan(scan) = scan else { return None };
        let is_bare = scan.filters.is_empty() && scan.fetch.is_none();
        is_bare.then_some(Self { projection, filter, scan })
    }
}

/// The values that a condition asks of the columns of a key, by the places of these; `None` for other conditions. `schema` is that
/// of the columns as the condition sees them.
pub(super) fn key_of<'p>(
    table: &Table,
    schema: &SchemaRef,
    condition: &'p Expr,
) -> Option<Vec<(usize, &'p Expr)>> {
    let mut key = Vec::new();
    add_conditions(table, condition, &mut key)?;
    key.sort_unstable_by_key(|(at, _)| *at);
    // Metadata say that operators compare more than the bytes, as those of CHAR(n) and ENUM do.
    let is_plain = key.iter().all(|(at, _)| {
        schema
            .fields()
            .get(*at)
            .is_some_and(|field| field.metadata().is_empty() && has_plain_equality(field.data_type()))
    });
    (is_plain && is_key(table, &key)).then_some(key)
}

fn place(table: &Table, expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(column) => table.definition().position(&column.name),
        _ => None,
    }
}

/// Adds the columns and values of `column = value AND …`; `None` for other conditions.
fn add_conditions<'p>(table: &Table, predicate: &'p Expr, key: &mut Vec<(usize, &'p Expr)>) -> Option<()> {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            add_conditions(table, left, key)?;
            add_conditions(table, right, key)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let (column, value) =
                if matches!(left.as_ref(), Expr::Column(_)) { (left, right) } else { (right, left) };
            let is_value = matches!(value.as_ref(), Expr::Literal(..) | Expr::Placeholder(_));
            key.push((place(table, column).filter(|_| is_value)?, value.as_ref()));
            Some(())
        }
        _ => None,
    }
}

/// Whether these are all columns of a key, each once. `columns` are sorted.
fn is_key(table: &Table, columns: &[(usize, &Expr)]) -> bool {
    let definition = table.definition();
    definition.keys().any(|key| {
        let mut places: Vec<Option<usize>> =
            key.columns.iter().map(|name| definition.position(name)).collect();
        places.sort_unstable();
        places.len() == columns.len() && places.iter().zip(columns).all(|(key, (at, _))| *key == Some(*at))
    })
}

pub(super) fn value(expr: &Expr, parameters: Option<&ParamValues>) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Placeholder(placeholder) => parameter(&placeholder.id, parameters),
        _ => None,
    }
}

fn parameter(name: &str, values: Option<&ParamValues>) -> Option<ScalarValue> {
    Some(values?.get_placeholders_with_values(name).ok()?.value)
}

/// The value as a column has it; `None` for nulls, for values of another kind and for those that do not fit.
pub(super) fn in_column(value: &ScalarValue, table: &Table, at: usize) -> Option<ArrayRef> {
    let field = &table.definition().columns.get(at)?.field;
    if !is_alike(&value.data_type(), field.data_type()) {
        return None;
    }
    // What does not fit becomes a null.
    let value = cast(&value.to_array().ok()?, field.data_type()).ok()?;
    let value = match Declared::of(field) {
        Some(uuid @ Declared::Uuid) => uuid.cast(&value).ok()?,
        _ => value,
    };
    (!value.is_null(0)).then_some(value)
}

fn is_alike(given: &DataType, data_type: &DataType) -> bool {
    given == data_type
        || given.is_integer() && data_type.is_integer()
        || given.is_string() && data_type.is_string()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::session::engine::{Engine, EngineConfig, Sources};
    use bowshot_api::Principal;
    use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
    use bowshot_tables::{Column, Definition, Entry, EntryName, Key, TableStore};
    use datafusion::arrow::array::{Int32Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::catalog::MemorySchemaProvider;

    /// An engine with table `t`: a key of integers, and texts.
    pub(in crate::session) fn engine() -> Engine {
        let fields = [
            Arc::new(Field::new("id", DataType::Int32, false)),
            Arc::new(Field::new("word", DataType::Utf8, true)),
        ];
        let columns =
            fields.iter().map(|field| Column { field: Arc::clone(field), default: None, comment: None });
        let key = Key { name: None, columns: vec!["id".to_owned()], comment: None };
        let definition =
            Definition { columns: columns.collect(), primary_key: Some(key), ..Definition::default() };
        let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1000));
        let words: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..1000).map(|id| format!("word {id}"))));
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![ids, words]).unwrap();
        let store = TableStore::in_memory(DEFAULT_CATALOG, DEFAULT_SCHEMA, 1 << 20);
        let table = Table::new(definition).append(vec![store.segment(&rows).unwrap()]);
        let base = store.snapshot();
        let name = EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "t");
        let changed = base.with_entry(&name, Entry::Table(Arc::new(table))).unwrap();
        store.commit(&base, &Arc::new(changed)).unwrap();
        let config = EngineConfig { threads: 2, ..EngineConfig::default() };
        let sources = Sources { main: Arc::new(MemorySchemaProvider::new()), system: None, tables: store };
        Engine::new(&config, Engine::environment(&config).unwrap(), sources).unwrap()
    }

    pub(in crate::session) async fn planned(session: &EngineSession, sql: &str) -> AuthorizedPlan {
        session.plan(sql, &session.pin()).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    #[test]
    fn only_plain_lookups_are_recognised() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            for (sql, expected) in [
                ("SELECT word FROM t WHERE id = 7", true),
                ("SELECT * FROM t WHERE 7 = id", true),
                ("SELECT a.word AS w, a.id FROM t AS a WHERE a.id = $1", true),
                ("SELECT word FROM t WHERE word = 'word 7'", false),
                ("SELECT word FROM t WHERE id = 7 AND word = 'word 7'", false),
                ("SELECT word FROM t WHERE id = 7 AND id = 8", false),
                ("SELECT word FROM t WHERE id = 7 OR id = 8", false),
                ("SELECT word FROM t WHERE id > 7", false),
                ("SELECT word FROM t WHERE id = 7 + 1", false),
                ("SELECT upper(word) FROM t WHERE id = 7", false),
                ("SELECT DISTINCT word FROM t WHERE id = 7", false),
                ("SELECT count(*) FROM t WHERE id = 7", false),
                ("SELECT word FROM t WHERE id = 7 LIMIT 1", true),
                ("SELECT * FROM t WHERE id = $1 ORDER BY id, word DESC LIMIT $2", true),
                ("SELECT id FROM t WHERE id = 7 ORDER BY 1", true),
                ("SELECT word FROM t WHERE id = 7 LIMIT 0", false),
                ("SELECT word FROM t WHERE id = 7 LIMIT 1 OFFSET 1", false),
                ("SELECT word FROM t WHERE id = 7 OFFSET 0", false),
                ("SELECT id FROM t WHERE id = 7 ORDER BY id / 0", false),
                ("SELECT word FROM t LIMIT 1", false),
                ("SELECT t.word FROM t JOIN t AS u USING (id) WHERE t.id = 7", false),
                ("SELECT word FROM t", false),
            ] {
                assert_eq!(is_key_lookup(&planned(&session, sql).await), expected, "{sql}");
            }
        });
    }
}
