//! System tables whose rows are made when they are read. Nothing is made while a statement is planned.

use crate::CatalogView;
use crate::client::Flavour;
use crate::listing::About;
use async_trait::async_trait;
use bowshot_types::{OIDS, VECTOR};
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Float64Array, ListArray, ListBuilder, PrimitiveArray,
    RecordBatch, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{
    DataType, Field, Int16Type, Int32Type, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
    UInt64Type,
};
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
    Real,
    Bool,
    /// A moment, from its microseconds since 1970.
    Time,
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

/// Tables, by name, columns and what makes their rows: `tables! { pg_am: oid Long, amname Text => Now(methods); }`. Without
/// the latter they have none.
macro_rules! tables {
    (@rows) => { $crate::lazy_table::Make::Now(|_, _, _| {}) };
    (@rows $rows:expr) => { $rows };
    ($($table:ident: $($name:ident $kind:ident),* $(=> $rows:expr)?;)*) => {
        &[$($crate::lazy_table::Defined {
            name: stringify!($table),
            columns: $crate::lazy_table::columns![$($name $kind),*],
            rows: $crate::lazy_table::tables!(@rows $($rows)?),
        }),*]
    };
}
pub(crate) use tables;

/// The values of a row: `cells!["heap", 2, Cell::Null]`.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { [$($crate::lazy_table::Cell::from($cell)),*] };
}
pub(crate) use cells;

/// A table: its name, its columns, and what makes its rows.
pub struct Defined {
    pub name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
    pub(crate) rows: Make,
}

/// Adds the rows that somebody asks about.
pub(crate) enum Make {
    Now(fn(&CatalogView, &About, &mut Rows)),
    /// With the columns of views, which are planned for that.
    Later(for<'a> fn(&'a CatalogView, &'a About, &'a mut Rows) -> BoxFuture<'a, Result<()>>),
}

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

impl Kind {
    fn arrow(self, flavour: Flavour) -> DataType {
        match self {
            Self::Count if flavour == Flavour::MySql => DataType::UInt64,
            Self::Count => DataType::Int32,
            Self::Text => DataType::Utf8,
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Real => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
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
    Real(f64),
    Bool(bool),
    Numbers(Vec<i64>),
    Texts(Vec<Option<String>>),
}

/// `cell_from! { text: &str => Self::Text(text.to_owned()) }`
macro_rules! cell_from {
    ($($value:ident: $kind:ty => $cell:expr;)*) => {
        $(impl From<$kind> for Cell {
            fn from($value: $kind) -> Self {
                $cell
            }
        })*
    };
}
cell_from! {
    text: &str => Self::Text(text.to_owned());
    text: &String => Self::Text(text.clone());
    text: String => Self::Text(text);
    number: i64 => Self::Number(number);
    number: i32 => Self::Number(i64::from(number));
    number: usize => Self::Number(i64::try_from(number).unwrap_or(i64::MAX));
    number: u64 => Self::Number(number.cast_signed());
    number: f64 => Self::Real(number);
    truth: bool => Self::Bool(truth);
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Cell {
    fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    fn real(&self) -> Option<f64> {
        if let Self::Real(number) = self { Some(*number) } else { None }
    }

    fn truth(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }
}

/// Puts other values at some places of a row.
pub(crate) fn replace<const N: usize>(cells: &mut [Cell], changes: [(usize, Cell); N]) {
    for (place, cell) in changes {
        if let Some(there) = cells.get_mut(place) {
            *there = cell;
        }
    }
}

/// Rows of a table while they are made.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    /// `None` for columns that nobody reads.
    columns: Vec<Option<Vec<Cell>>>,
}

impl Rows {
    fn new(schema: SchemaRef, read: &[usize]) -> Self {
        let columns = (0..schema.fields().len()).map(|place| read.contains(&place).then(Vec::new));
        Self { columns: columns.collect(), schema }
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
                column.push(cell);
            }
        }
    }

    /// The columns that are read, in that order.
    fn finish(mut self, read: &[usize]) -> Result<RecordBatch> {
        let schema = Arc::new(self.schema.project(read)?);
        let columns = read.iter().filter_map(|place| self.columns.get_mut(*place)?.take());
        let columns = columns.zip(schema.fields()).map(|(cells, field)| array(cells, field.data_type()));
        let columns = columns.collect();
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

/// The columns of a table whose rows are there. What a row does not have is null.
pub(crate) fn arrays<R: IntoIterator<Item = Cell>>(
    columns: &'static [(&'static str, Kind)],
    rows: impl IntoIterator<Item = R>,
) -> impl Iterator<Item = (&'static str, ArrayRef)> {
    let mut cells: Vec<Vec<Cell>> = columns.iter().map(|_| Vec::new()).collect();
    for row in rows {
        let mut row = row.into_iter();
        for column in &mut cells {
            column.push(row.next().unwrap_or(Cell::Null));
        }
    }
    let columns = columns.iter().zip(cells);
    columns.map(|((name, kind), cells)| (*name, array(cells, &kind.arrow(Flavour::Bowshot))))
}

/// The values of a column; null where they are not of its type.
fn array(cells: Vec<Cell>, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::UInt64 => Arc::new(numbers::<UInt64Type>(cells)),
        DataType::Int16 => Arc::new(numbers::<Int16Type>(cells)),
        DataType::Int32 => Arc::new(numbers::<Int32Type>(cells)),
        DataType::Int64 => Arc::new(numbers::<Int64Type>(cells)),
        DataType::Float64 => Arc::new(cells.iter().map(Cell::real).collect::<Float64Array>()),
        DataType::Boolean => Arc::new(cells.iter().map(Cell::truth).collect::<BooleanArray>()),
        DataType::Timestamp(..) => Arc::new(numbers::<TimestampMicrosecondType>(cells).with_timezone("UTC")),
        DataType::List(item) => match item.data_type() {
            DataType::Int16 => Arc::new(lists::<Int16Type>(cells)),
            DataType::Int32 => Arc::new(lists::<Int32Type>(cells)),
            DataType::Int64 => Arc::new(lists::<Int64Type>(cells)),
            _ => {
                let mut builder = ListBuilder::new(StringBuilder::new());
                for cell in cells {
                    match cell {
                        Cell::Texts(texts) => builder.append_value(texts),
                        // Lists of rights and options, which nothing here has.
                        _ => builder.append_null(),
                    }
                }
                Arc::new(builder.finish())
            }
        },
        _ => Arc::new(cells.iter().map(Cell::text).collect::<StringArray>()),
    }
}

fn numbers<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(cells: Vec<Cell>) -> PrimitiveArray<T> {
    let number = |cell| match cell {
        Cell::Number(number) => T::Native::try_from(number).ok(),
        _ => None,
    };
    cells.into_iter().map(number).collect()
}

fn lists<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(cells: Vec<Cell>) -> ListArray {
    let list = |cell| match cell {
        Cell::Numbers(all) => Some(all.into_iter().map(|number| T::Native::try_from(number).ok())),
        _ => None,
    };
    ListArray::from_iter_primitive::<T, _, _>(cells.into_iter().map(list))
}

/// A table of which nothing has been made yet.
pub(crate) struct LazyTable {
    defined: &'static Defined,
    schema: SchemaRef,
    visible: Arc<CatalogView>,
}

impl LazyTable {
    /// Whether it is the table of this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.defined.name == name
    }

    /// What its rows are about.
    pub(crate) fn visible(&self) -> &CatalogView {
        &self.visible
    }
}

bowshot_api::debug_fields!(LazyTable { schema });

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
        let mut rows = Rows::new(Arc::clone(&self.schema), &read);
        match self.defined.rows {
            Make::Now(make) => make(&self.visible, &about, &mut rows),
            Make::Later(make) => make(&self.visible, &about, &mut rows).await?,
        }
        let rows = rows.finish(&read)?;
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        table.scan(state, projection.filter(|read| read.is_empty()), &[], limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // The filter stays above: here it only saves looking at what it takes out.
        let pushed = |filter: &&Expr| match About::knows(self.defined.name, filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(pushed).collect())
    }
}
