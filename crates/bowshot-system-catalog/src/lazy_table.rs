//! System tables whose rows are made when they are read. Nothing is made while a statement is planned.

use crate::CatalogView;
use crate::client::Flavour;
use crate::listing::About;
use async_trait::async_trait;
use bowshot_types::{OIDS, VECTOR};
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Int16Builder, Int32Builder, Int64Builder, ListBuilder, RecordBatch,
    StringBuilder, UInt64Builder,
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
    /// A number that is not below zero: in MySQL such columns are `BIGINT UNSIGNED`, and some of its clients take no others.
    Count,
    /// Small numbers that PostgreSQL's clients read as `1 2`.
    Vector,
    /// Numbers of things, written in the same way.
    Oids,
}

/// Columns by name and type: `columns![oid Long, relname Text]`.
macro_rules! columns {
    ($($name:ident $kind:ident),*) => { &[$((stringify!($name), $crate::lazy_table::Kind::$kind)),*] };
}
pub(crate) use columns;

/// Tables without rows, by name and columns: `absent! { pg_policy: oid Long, polname Text; }`.
macro_rules! absent {
    ($($table:ident: $($name:ident $kind:ident),*;)*) => {
        &[$($crate::lazy_table::Defined {
            name: stringify!($table),
            columns: $crate::lazy_table::columns![$($name $kind),*],
            rows: $crate::lazy_table::nothing,
        }),*]
    };
}
pub(crate) use absent;

/// A table: its name, its columns, and what makes its rows.
pub struct Defined {
    pub name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
    pub(crate) rows: Make,
}

/// Adds the rows that somebody asks about.
pub(crate) type Make = for<'a> fn(&'a CatalogView, &'a About, &'a mut Rows) -> BoxFuture<'a, Result<()>>;

impl Defined {
    fn schema(&self, flavour: Flavour) -> SchemaRef {
        let fields = self.columns.iter().map(|(name, kind)| {
            let field = Field::new(*name, kind.arrow(flavour), true);
            match kind {
                Kind::Vector => field.with_metadata([(VECTOR.to_owned(), String::new())].into()),
                Kind::Oids => field.with_metadata([(OIDS.to_owned(), String::new())].into()),
                _ => field,
            }
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    pub fn provider(&'static self, visible: &Arc<CatalogView>) -> Arc<dyn TableProvider> {
        let schema = self.schema(visible.flavour());
        Arc::new(LazyTable { defined: self, schema, visible: Arc::clone(visible) })
    }
}

/// A table without rows.
pub(crate) fn nothing<'a>(_: &'a CatalogView, _: &'a About, _: &'a mut Rows) -> BoxFuture<'a, Result<()>> {
    Box::pin(async { Ok(()) })
}

impl Kind {
    fn arrow(self, flavour: Flavour) -> DataType {
        match self {
            Self::Count if flavour == Flavour::MySql => DataType::UInt64,
            Self::Count => DataType::Int32,
            Self::Text => DataType::Utf8,
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Bool => DataType::Boolean,
            Self::Texts => DataType::new_list(DataType::Utf8, true),
            Self::Shorts | Self::Vector => DataType::new_list(DataType::Int16, true),
            Self::Longs => DataType::new_list(DataType::Int64, true),
            Self::Oids => DataType::new_list(DataType::Int32, true),
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
    Texts(Vec<String>),
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
    /// `None` for columns that nobody reads.
    columns: Vec<Option<Builder>>,
}

#[derive(Debug)]
enum Builder {
    Count(UInt64Builder),
    Text(StringBuilder),
    Short(Int16Builder),
    Int(Int32Builder),
    Long(Int64Builder),
    Bool(BooleanBuilder),
    Texts(ListBuilder<StringBuilder>),
    Shorts(ListBuilder<Int16Builder>),
    Longs(ListBuilder<Int64Builder>),
    Ints(ListBuilder<Int32Builder>),
}

impl Rows {
    fn new(defined: &Defined, schema: SchemaRef, read: &[usize]) -> Self {
        let columns = defined.columns.iter().zip(schema.fields()).enumerate();
        let columns = columns.map(|(place, ((_, kind), field))| {
            read.contains(&place).then(|| Builder::new(*kind, field.data_type()))
        });
        let columns = columns.collect();
        Self { schema, columns }
    }

    /// Whether a column is read: what takes long to find out can be left out of others.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.schema.index_of(name).is_ok_and(|place| self.columns.get(place).is_some_and(Option::is_some))
    }

    /// Adds a row; columns that are not given are null.
    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            let cell = cells.next().unwrap_or(Cell::Null);
            if let Some(column) = column {
                column.add(cell);
            }
        }
    }

    /// The columns that are read, in that order.
    fn finish(mut self, read: &[usize]) -> Result<RecordBatch> {
        let schema = Arc::new(self.schema.project(read)?);
        let columns = read.iter().filter_map(|place| self.columns.get_mut(*place)?.take());
        Ok(RecordBatch::try_new(schema, columns.map(Builder::finish).collect())?)
    }
}

impl Builder {
    fn new(kind: Kind, data_type: &DataType) -> Self {
        match kind {
            Kind::Count if *data_type == DataType::UInt64 => Self::Count(UInt64Builder::new()),
            Kind::Count => Self::Int(Int32Builder::new()),
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Short => Self::Short(Int16Builder::new()),
            Kind::Int => Self::Int(Int32Builder::new()),
            Kind::Long => Self::Long(Int64Builder::new()),
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Texts => Self::Texts(ListBuilder::new(StringBuilder::new())),
            Kind::Shorts | Kind::Vector => Self::Shorts(ListBuilder::new(Int16Builder::new())),
            Kind::Longs => Self::Longs(ListBuilder::new(Int64Builder::new())),
            Kind::Oids => Self::Ints(ListBuilder::new(Int32Builder::new())),
        }
    }

    fn add(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Count(builder), Cell::Number(number)) => builder.append_option(u64::try_from(number).ok()),
            (Self::Count(builder), _) => builder.append_null(),
            (Self::Short(builder), Cell::Number(number)) => builder.append_option(i16::try_from(number).ok()),
            (Self::Short(builder), _) => builder.append_null(),
            (Self::Int(builder), Cell::Number(number)) => builder.append_option(i32::try_from(number).ok()),
            (Self::Int(builder), _) => builder.append_null(),
            (Self::Long(builder), Cell::Number(number)) => builder.append_value(number),
            (Self::Long(builder), _) => builder.append_null(),
            (Self::Bool(builder), Cell::Bool(truth)) => builder.append_value(truth),
            (Self::Bool(builder), _) => builder.append_null(),
            (Self::Texts(builder), Cell::Texts(texts)) => {
                texts.iter().for_each(|text| builder.values().append_value(text));
                builder.append(true);
            }
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
            (Self::Ints(builder), Cell::Numbers(numbers)) => {
                let ints = numbers.iter().map(|number| i32::try_from(*number).ok());
                ints.for_each(|int| builder.values().append_option(int));
                builder.append(true);
            }
            (Self::Ints(builder), _) => builder.append(false),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Count(mut builder) => Arc::new(builder.finish()),
            Self::Short(mut builder) => Arc::new(builder.finish()),
            Self::Int(mut builder) => Arc::new(builder.finish()),
            Self::Long(mut builder) => Arc::new(builder.finish()),
            Self::Bool(mut builder) => Arc::new(builder.finish()),
            Self::Texts(mut builder) => Arc::new(builder.finish()),
            Self::Shorts(mut builder) => Arc::new(builder.finish()),
            Self::Longs(mut builder) => Arc::new(builder.finish()),
            Self::Ints(mut builder) => Arc::new(builder.finish()),
        }
    }
}

/// A table of which nothing has been made yet.
pub(crate) struct LazyTable {
    defined: &'static Defined,
    schema: SchemaRef,
    visible: Arc<CatalogView>,
}

impl LazyTable {
    /// Whether it is this table.
    pub(crate) fn is(&self, defined: &'static Defined) -> bool {
        std::ptr::eq(self.defined, defined)
    }

    /// What its rows are about.
    pub(crate) fn visible(&self) -> &CatalogView {
        &self.visible
    }
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
        let about = About::of(self.defined.name, filters, state);
        let read = match projection {
            // Rows that are only counted have a column all the same.
            Some(read) if read.is_empty() => vec![0],
            Some(read) => read.clone(),
            None => (0..self.defined.columns.len()).collect(),
        };
        let mut rows = Rows::new(self.defined, Arc::clone(&self.schema), &read);
        (self.defined.rows)(&self.visible, &about, &mut rows).await?;
        let rows = rows.finish(&read)?;
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        table.scan(state, projection.filter(|read| read.is_empty()), &[], limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // The filter stays above: here it only saves looking at what it takes out.
        Ok(filters
            .iter()
            .map(|filter| {
                if About::knows(self.defined.name, filter) {
                    TableProviderFilterPushDown::Inexact
                } else {
                    TableProviderFilterPushDown::Unsupported
                }
            })
            .collect())
    }
}
