//! A Delta table with empty texts among the values that its files are grouped by. By the protocol ("Partition Value Serialization")
//! those are NULL; the library takes them for texts.

use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::{Column, binary, case, cast, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct WithoutEmptyTexts {
    pub(crate) inner: Arc<dyn TableProvider>,
    pub(crate) partitions: Vec<String>,
}

impl WithoutEmptyTexts {
    fn is_concerned(&self, name: &str) -> bool {
        self.partitions.iter().any(|known| known == name)
    }
}

#[async_trait]
impl TableProvider for WithoutEmptyTexts {
    bowshot_api::delegate! { inner:
        fn schema(&self) -> SchemaRef;
        fn table_type(&self) -> TableType;
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.inner.scan(state, projection, filters, limit).await?;
        let schema = plan.schema();
        let columns = schema.fields().iter().enumerate().map(|(place, field)| {
            let name = field.name().clone();
            let column: Arc<dyn datafusion::physical_plan::PhysicalExpr> =
                Arc::new(Column::new(&name, place));
            if !self.is_concerned(&name) || !is_text(field.data_type()) {
                return Ok(ProjectionExpr { expr: column, alias: name });
            }
            let text = cast(Arc::clone(&column), &schema, DataType::Utf8)?;
            let is_empty = binary(text, Operator::Eq, lit(""), &schema)?;
            let null = lit(ScalarValue::try_from(field.data_type())?);
            let expr = case(None, vec![(is_empty, null)], Some(column))?;
            Ok(ProjectionExpr { expr, alias: name })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
    }

    /// The library would rule out files by such a filter as if their empty texts were values.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let mut answers = self.inner.supports_filters_pushdown(filters)?;
        for (answer, filter) in answers.iter_mut().zip(filters) {
            if filter.column_refs().iter().any(|column| self.is_concerned(&column.name)) {
                *answer = TableProviderFilterPushDown::Unsupported;
            }
        }
        Ok(answers)
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_text(value),
        other => other.is_string(),
    }
}
