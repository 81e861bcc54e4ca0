//! The eight tables of TPC-H: names, sizes, and generators of their rows.

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use std::sync::Arc;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

const BATCH_ROWS: usize = 8_192;

bowshot_api::named! {
    /// A table; largest first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Table: name {
        LineItem = "lineitem",
        Orders = "orders",
        PartSupp = "partsupp",
        Part = "part",
        Customer = "customer",
        Supplier = "supplier",
        Nation = "nation",
        Region = "region",
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TablePart {
    pub(super) table: Table,
    pub(super) part: i32,
    pub(super) parts: i32,
}

pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

impl Table {
    /// Number of rows; approximate for `lineitem`, whose orders have 1 to 7 lines.
    pub(super) fn rows(self, scale: f64) -> u64 {
        let rows = match self {
            Self::LineItem => 4 * OrderGenerator::calculate_row_count(scale, 1, 1),
            Self::Orders => OrderGenerator::calculate_row_count(scale, 1, 1),
            Self::PartSupp => 4 * PartGenerator::calculate_row_count(scale, 1, 1),
            Self::Part => PartGenerator::calculate_row_count(scale, 1, 1),
            Self::Customer => CustomerGenerator::calculate_row_count(scale, 1, 1),
            Self::Supplier => SupplierGenerator::calculate_row_count(scale, 1, 1),
            Self::Nation => 25,
            Self::Region => 5,
        };
        u64::try_from(rows).unwrap_or(0)
    }

    /// The written schema: plain strings instead of views, which not every reader supports.
    pub(super) fn schema(self) -> SchemaRef {
        let schema = match self {
            Self::LineItem => LineItemArrow::schema_ref(),
            Self::Orders => OrderArrow::schema_ref(),
            Self::PartSupp => PartSuppArrow::schema_ref(),
            Self::Part => PartArrow::schema_ref(),
            Self::Customer => CustomerArrow::schema_ref(),
            Self::Supplier => SupplierArrow::schema_ref(),
            Self::Nation => NationArrow::schema_ref(),
            Self::Region => RegionArrow::schema_ref(),
        };
        Arc::new(Schema::new(schema.fields().iter().map(|field| plain(field)).collect::<Vec<_>>()))
    }
}

impl TablePart {
    /// The rows, still with string views.
    pub(super) fn batches(self, scale: f64) -> Batches {
        let Self { table, part, parts } = self;
        macro_rules! rows {
            ($rows:ident, $generator:ident) => {
                Box::new($rows::new($generator::new(scale, part, parts)).with_batch_size(BATCH_ROWS))
            };
        }
        match table {
            Table::LineItem => rows!(LineItemArrow, LineItemGenerator),
            Table::Orders => rows!(OrderArrow, OrderGenerator),
            Table::PartSupp => rows!(PartSuppArrow, PartSuppGenerator),
            Table::Part => rows!(PartArrow, PartGenerator),
            Table::Customer => rows!(CustomerArrow, CustomerGenerator),
            Table::Supplier => rows!(SupplierArrow, SupplierGenerator),
            Table::Nation => rows!(NationArrow, NationGenerator),
            Table::Region => rows!(RegionArrow, RegionGenerator),
        }
    }
}

fn plain(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        other => other.clone(),
    };
    Field::new(field.name(), data_type, field.is_nullable())
}
