//! Tables about the server whose rows are made when they are read. Nothing is made while a statement is planned: a view
//! over such a table would need its own columns for them, and so on.

use crate::catalog::Visible;
use crate::catalog::listing::About;
use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Int16Builder, Int32Builder, Int64Builder, ListBuilder, RecordBatch,
    StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;
use std::sync::Arc;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Short,
    Int,
    Long,
    Bool,
    Texts,
    Shorts,
    Longs,
    /// Small numbers that PostgreSQL's clients read as `1 2`.
    Vector,
}

/// Tells the front end of PostgreSQL's protocol of such a column.
const VECTOR: &str = "bowshot:int2vector";

/// A table: its name, its columns, and what makes its rows.
pub(crate) struct Defined {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
    pub(crate) rows: Make,
}

/// Adds the rows that somebody asks about.
pub(crate) type Make = for<'a> fn(&'a Visible, &'a About, &'a mut Rows) -> BoxFuture<'a, Result<()>>;

impl Defined {
    pub(crate) fn schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|(name, kind)| {
            let field = Field::new(*name, kind.arrow(), true);
            if *kind == Kind::Vector {
                field.with_metadata([(VECTOR.to_owned(), String::new())].into())
            } else {
                field
            }
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    pub(crate) fn provider(&'static self, visible: &Arc<Visible>) -> Arc<dyn TableProvider> {
        Arc::new(LazyTable { defined: self, schema: self.schema(), visible: Arc::clone(visible) })
    }
}

/// A table without rows.
pub(crate) fn nothing<'a>(_: &'a Visible, _: &'a About, _: &'a mut Rows) -> BoxFuture<'a, Result<()>> {
    Box::pin(async { Ok(()) })
}

impl Kind {
    fn arrow(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Bool => DataType::Boolean,
            Self::Texts => DataType::new_list(DataType::Utf8, true),
            Self::Shorts | Self::Vector => DataType::new_list(DataType::Int16, true),
            Self::Longs => DataType::new_list(DataType::Int64, true),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Number(i64),
    Bool(bool),
    Numbers(Vec<i64>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Cell {
    fn from(number: i32) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Cell {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Rows of a table while they are made.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    columns: Vec<Builder>,
}

#[derive(Debug)]
enum Builder {
    Text(StringBuilder),
    Short(Int16Builder),
    Int(Int32Builder),
    Long(Int64Builder),
    Bool(BooleanBuilder),
    Texts(ListBuilder<StringBuilder>),
    Shorts(ListBuilder<Int16Builder>),
    Longs(ListBuilder<Int64Builder>),
}

impl Rows {
    fn new(defined: &Defined, schema: SchemaRef) -> Self {
        let columns = defined.columns.iter().map(|(_, kind)| Builder::new(*kind)).collect();
        Self { schema, columns }
    }

    /// Adds a row; columns that are not given are null.
    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            column.add(cells.next().unwrap_or(Cell::Null));
        }
    }

    fn finish(self) -> Result<RecordBatch> {
        let columns = self.columns.into_iter().map(Builder::finish).collect();
        Ok(RecordBatch::try_new(self.schema, columns)?)
    }
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Short => Self::Short(Int16Builder::new()),
            Kind::Int => Self::Int(Int32Builder::new()),
            Kind::Long => Self::Long(Int64Builder::new()),
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Texts => Self::Texts(ListBuilder::new(StringBuilder::new())),
            Kind::Shorts | Kind::Vector => Self::Shorts(ListBuilder::new(Int16Builder::new())),
            Kind::Longs => Self::Longs(ListBuilder::new(Int64Builder::new())),
        }
    }

    fn add(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Short(builder), Cell::Number(number)) => builder.append_option(i16::try_from(number).ok()),
            (Self::Short(builder), _) => builder.append_null(),
            (Self::Int(builder), Cell::Number(number)) => builder.append_option(i32::try_from(number).ok()),
            (Self::Int(builder), _) => builder.append_null(),
            (Self::Long(builder), Cell::Number(number)) => builder.append_value(number),
            (Self::Long(builder), _) => builder.append_null(),
            (Self::Bool(builder), Cell::Bool(truth)) => builder.append_value(truth),
            (Self::Bool(builder), _) => builder.append_null(),
            // Lists of rights and options, which nothing here has.
            (Self::Texts(builder), _) => builder.append(false),
            (Self::Shorts(builder), Cell::Numbers(numbers)) => {
                let shorts = numbers.iter().map(|number| i16::try_from(*number).ok());
                shorts.for_each(|short| builder.values().append_option(short));
                builder.append(true);
            }
            (Self::Shorts(builder), _) => builder.append(false),
            (Self::Longs(builder), Cell::Numbers(numbers)) => {
                numbers.iter().for_each(|number| builder.values().append_value(*number));
                builder.append(true);
            }
            (Self::Longs(builder), _) => builder.append(false),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Short(mut builder) => Arc::new(builder.finish()),
            Self::Int(mut builder) => Arc::new(builder.finish()),
            Self::Long(mut builder) => Arc::new(builder.finish()),
            Self::Bool(mut builder) => Arc::new(builder.finish()),
            Self::Texts(mut builder) => Arc::new(builder.finish()),
            Self::Shorts(mut builder) => Arc::new(builder.finish()),
            Self::Longs(mut builder) => Arc::new(builder.finish()),
        }
    }
}

struct LazyTable {
    defined: &'static Defined,
    schema: SchemaRef,
    visible: Arc<Visible>,
}

impl std::fmt::Debug for LazyTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyTable").field("name", &self.defined.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for LazyTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let about = About::of(filters);
        let mut rows = Rows::new(self.defined, Arc::clone(&self.schema));
        (self.defined.rows)(&self.visible, &about, &mut rows).await?;
        let table = MemTable::try_new(Arc::clone(&self.schema), vec![vec![rows.finish()?]])?;
        table.scan(state, projection, &[], limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // The filter stays above: here it only saves looking at what it takes out.
        Ok(filters
            .iter()
            .map(|filter| {
                if About::knows(filter) {
                    TableProviderFilterPushDown::Inexact
                } else {
                    TableProviderFilterPushDown::Unsupported
                }
            })
            .collect())
    }
}
