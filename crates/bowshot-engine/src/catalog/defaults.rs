//! Tables with the defaults of their columns, where the planner of INSERT looks for them.

use crate::catalog::identity;
use crate::error::classify;
use crate::plan::{self, row_expressions};
use async_trait::async_trait;
use bowshot_tables::{Column, Definition};
use bowshot_types::layered_table::{LayeredTable, TableLayer};
use bowshot_types::storage_type;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Fields, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, ScalarValue, Statistics};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, ExprSchemable, TableProviderFilterPushDown, TableType, cast};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// A table and the parsed defaults of its columns.
#[derive(Debug)]
pub(crate) struct WithDefaults {
    schema: SchemaRef,
    table: Arc<dyn TableProvider>,
    defaults: HashMap<String, Expr>,
}

/// The table below the defaults of its columns, if it has some.
pub fn without_defaults(provider: &dyn TableProvider) -> &dyn TableProvider {
    LayeredTable::layer::<WithDefaults>(provider).map_or(provider, |defaults| defaults.table.as_ref())
}

impl WithDefaults {
    /// The table itself if no column has a default.
    pub(crate) fn wrap(
        table: Arc<dyn TableProvider>,
        definition: &Definition,
        context: &SessionContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let defaults = defaults_of(definition, context)?;
        Ok(if defaults.is_empty() {
            table
        } else {
            LayeredTable::wrap(Self { schema: table.schema(), table, defaults })
        })
    }

    /// Other rows, with the defaults of `provider` if it has some.
    pub(crate) fn on(provider: &dyn TableProvider, rows: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        match LayeredTable::layer::<Self>(provider) {
            Some(Self { schema, defaults, .. }) => {
                let (schema, defaults) = (Arc::clone(schema), defaults.clone());
                LayeredTable::wrap(Self { schema, table: rows, defaults })
            }
            None => rows,
        }
    }

    /// The table as INSERT is planned on it: nulls may come to every column, since whether they may stay is decided where
    /// the column can be named.
    pub(crate) fn to_insert(
        table: Arc<dyn TableProvider>,
        definition: &Definition,
        context: &SessionContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let fields = storage_type::schema(definition);
        let fields = fields.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
        let defaults = defaults_of(definition, context)?;
        Ok(LayeredTable::wrap(Self { schema, table, defaults }))
    }
}

fn defaults_of(definition: &Definition, context: &SessionContext) -> Result<HashMap<String, Expr>> {
    let columns = definition.columns.iter();
    let given = columns.filter_map(|column| Some((column.field.name().clone(), of(definition, column)?)));
    given.map(|(name, sql)| Ok((name, parse(&sql, &context.state_ref().read())?))).collect()
}

/// The SQL of the value that a column gets that is not named: the next number of one that numbers itself.
pub(crate) fn of<'a>(definition: &Definition, column: &'a Column) -> Option<Cow<'a, str>> {
    match definition.identity(column.field.name()) {
        Some(identity) => Some(Cow::Owned(identity::call(identity, definition.is_durable()))),
        None => column.default.as_deref().map(Cow::Borrowed),
    }
}

/// A default, which may use functions and no columns.
pub(crate) fn parse(sql: &str, state: &SessionState) -> Result<Expr> {
    plan::kept_expression(state, sql, &DFSchema::empty())
}

/// An expression without columns that was planned, in a type.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    expr: Arc<dyn PhysicalExpr>,
    data_type: DataType,
    /// Whether each row has a value of its own.
    pub(crate) is_volatile: bool,
}

impl Computed {
    /// # Errors
    /// For an expression that is none, or that cannot be in the type.
    pub(crate) fn plan(sql: &str, data_type: &DataType, state: &SessionState) -> bowshot_api::Result<Self> {
        let plan = || -> Result<Self> {
            let none = DFSchema::empty();
            let parsed = parse(sql, state)?;
            let is_volatile = parsed.is_volatile();
            let is_text = matches!(data_type, DataType::List(_)) && parsed.get_type(&none)?.is_string();
            let wanted = if is_text { DataType::Utf8 } else { data_type.clone() };
            let expr = row_expressions::physical(state, cast(parsed, wanted), &none)?;
            Ok(Self { expr, data_type: data_type.clone(), is_volatile })
        };
        plan().map_err(classify)
    }

    /// The values of so many rows.
    ///
    /// # Errors
    /// For a value that does not fit the type.
    pub(crate) fn values(&self, rows: usize) -> bowshot_api::Result<ArrayRef> {
        let values = || -> Result<ArrayRef> {
            let count = RecordBatchOptions::new().with_row_count(Some(rows));
            let rows_alone =
                RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &count)?;
            let values = self.expr.evaluate(&rows_alone)?.into_array(rows)?;
            // An array may be written as a text, which is read as that of a row is.
            Ok(storage_type::converted(&values, &self.data_type)?)
        };
        values().map_err(classify)
    }

    /// The value of one row.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub(crate) fn value(&self) -> bowshot_api::Result<ScalarValue> {
        ScalarValue::try_from_array(&self.values(1)?, 0).map_err(classify)
    }
}

impl TableLayer for WithDefaults {
    fn below(&self, _column: &str) -> Option<&dyn TableProvider> {
        Some(self.table.as_ref())
    }
}

#[async_trait]
impl TableProvider for WithDefaults {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.table.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics()
    }
}
