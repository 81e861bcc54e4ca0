//! Which row a row of a file is (Iceberg specification, "Row Lineage"): its number, which it keeps wherever it is moved, the change that
//! was the last one to change it, and its place in the file. Whoever writes rows again sees that as columns; nobody else does.

use super::columns::{LakeColumn, number, numbered};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub const ROW_ID: &str = "__bowshot_row_id";
/// The column with the number of the change that was the last one to change the row; NULL for one that changes with the commit.
pub const LAST_CHANGE: &str = "__bowshot_last_change";
pub const ROW_PLACE: &str = "__bowshot_row_place";

/// The columns that files have: their names in rows, their names in files, and the numbers that the format reserves.
const STORED: [(&str, &str, i32); 2] =
    [(ROW_ID, "_row_id", 2_147_483_540), (LAST_CHANGE, "_last_updated_sequence_number", 2_147_483_539)];

#[derive(Debug, Clone, Copy)]
pub(super) struct RowLineage {
    /// The number of the first one; of a table whose rows have no numbers yet there is none.
    pub(super) first_row: Option<i64>,
    /// Of the change that has added the file.
    pub(super) sequence: i64,
    pub(super) rows: u64,
}

pub fn is_hidden(name: &str) -> bool {
    [ROW_ID, LAST_CHANGE, ROW_PLACE].contains(&name)
}

pub(super) fn table_columns() -> [LakeColumn; 2] {
    STORED.map(|(name, _, number)| LakeColumn {
        field: Arc::new(Field::new(name, DataType::Int64, true).with_metadata(numbered(number))),
        number,
        default: ScalarValue::Int64(None),
    })
}

pub(super) fn file_fields() -> [FieldRef; 2] {
    STORED.map(|(_, name, number)| {
        Arc::new(Field::new(name, DataType::Int64, true).with_metadata(numbered(number)))
    })
}

pub(super) fn name_in_rows(field: &Field) -> &str {
    match STORED.iter().find(|(.., reserved)| number(field) == Some(*reserved)) {
        Some((name, ..)) => name,
        None => field.name(),
    }
}

/// The column with the places, which no file has.
pub(super) fn place_field() -> FieldRef {
    Arc::new(Field::new(ROW_PLACE, DataType::Int64, false))
}

pub(super) fn deleted_places(left: Option<&RowSelection>) -> RoaringTreemap {
    let (mut places, mut at) = (RoaringTreemap::new(), 0_u64);
    for selector in left.into_iter().flat_map(RowSelection::iter) {
        let end = at.saturating_add(selector.row_count as u64);
        if selector.skip {
            places.insert_range(at..end);
        }
        at = end;
    }
    places
}

/// Adds the places of rows, and the numbers and changes that a file lacks. Its input gives all rows that are left, in order.
#[derive(Debug)]
pub(super) struct LineageExec {
    input: Arc<dyn ExecutionPlan>,
    lineage: RowLineage,
    left: Option<RowSelection>,
    properties: Arc<PlanProperties>,
}

impl LineageExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        lineage: RowLineage,
        left: Option<RowSelection>,
    ) -> Self {
        let schema = input.schema();
        let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain([place_field()]).collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(Schema::new(fields))),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { input, lineage, left, properties: Arc::new(properties) }
    }
}

impl DisplayAs for LineageExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineageExec")
    }
}

impl ExecutionPlan for LineageExec {
    fn name(&self) -> &'static str {
        "LineageExec"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    /// Rows are counted.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, self.lineage, self.left.clone()))),
            _ => internal_err!("this operator has one input"),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let (schema, lineage) = (self.schema(), self.lineage);
        let mut places = Places::new(self.left.as_ref());
        let rows = rows.map(move |batch| with_lineage(&batch?, &schema, lineage, &mut places));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

fn with_lineage(
    batch: &RecordBatch,
    schema: &SchemaRef,
    lineage: RowLineage,
    places: &mut Places,
) -> Result<RecordBatch> {
    let places = places.take(batch.num_rows());
    let places =
        places.ok_or_else(|| internal_datafusion_err!("a file has more rows than are left of it"))?;
    let mut columns = batch.columns().to_vec();
    for (field, column) in schema.fields().iter().zip(&mut columns) {
        let inherited: Option<Int64Array> = match field.name().as_str() {
            ROW_ID => lineage.first_row.map(|first| places.unary(|place| first.saturating_add(place))),
            LAST_CHANGE => lineage.first_row.map(|_| places.unary(|_| lineage.sequence)),
            _ => None,
        };
        if let Some(inherited) = inherited {
            *column = own_or(column, &inherited)?;
        }
    }
    columns.push(Arc::new(places));
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn own_or(own: &ArrayRef, inherited: &Int64Array) -> Result<ArrayRef> {
    let own = own.as_primitive_opt::<Int64Type>();
    let own = own.ok_or_else(|| internal_datafusion_err!("the row lineage is not a number"))?;
    if own.null_count() == 0 {
        return Ok(Arc::new(own.clone()));
    }
    let values = own.iter().zip(inherited.values()).map(|(own, inherited)| own.or(Some(*inherited)));
    Ok(Arc::new(values.collect::<Int64Array>()))
}

/// The places of the rows that are left, in their order.
#[derive(Debug)]
struct Places {
    run: Range<i64>,
    later: std::vec::IntoIter<Range<i64>>,
}

impl Places {
    fn new(left: Option<&RowSelection>) -> Self {
        let (mut runs, mut at) = (Vec::new(), 0_i64);
        match left {
            None => runs.push(0..i64::MAX),
            Some(left) => {
                for selector in left.iter() {
                    let end = at.saturating_add(i64::try_from(selector.row_count).unwrap_or(i64::MAX));
                    if !selector.skip {
                        runs.push(at..end);
                    }
                    at = end;
                }
            }
        }
        Self { run: 0..0, later: runs.into_iter() }
    }

    /// Those of the next rows; `None` if there are fewer.
    fn take(&mut self, rows: usize) -> Option<Int64Array> {
        let mut places = Vec::with_capacity(rows);
        while places.len() < rows {
            match self.run.next() {
                Some(place) => places.push(place),
                None => self.run = self.later.next()?,
            }
        }
        Some(places.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deletes::without;

    #[test]
    fn rows_that_are_left_keep_their_places() {
        let left = without(&[0, 3, 4], 7);
        let mut places = Places::new(Some(&left));
        assert_eq!(places.take(3).unwrap().values().to_vec(), [1, 2, 5]);
        assert_eq!(places.take(1).unwrap().values().to_vec(), [6]);
        assert!(places.take(1).is_none());
        assert_eq!(deleted_places(Some(&left)).iter().collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!(Places::new(None).take(2).unwrap().values().to_vec(), [0, 1]);
        assert!(deleted_places(None).is_empty());
    }

    #[test]
    fn what_a_file_does_not_say_is_told_from_where_rows_are() {
        let hidden = table_columns().map(|column| column.field);
        let schema = Arc::new(Schema::new(hidden.iter().cloned().chain([place_field()]).collect::<Vec<_>>()));
        let columns = [vec![Some(7), None, None], vec![None, Some(2), None]];
        let columns = columns.map(|values| -> ArrayRef { Arc::new(Int64Array::from(values)) });
        let batch = RecordBatch::try_new(Arc::new(Schema::new(hidden.to_vec())), columns.to_vec()).unwrap();
        let of = |first_row| {
            let lineage = RowLineage { first_row, sequence: 5, rows: 4 };
            let mut places = Places::new(Some(&without(&[1], 4)));
            let rows = with_lineage(&batch, &schema, lineage, &mut places).unwrap();
            let column = |at: usize| rows.column(at).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
            [column(0), column(1), column(2)]
        };
        let places = vec![Some(0), Some(2), Some(3)];
        assert_eq!(
            of(Some(100)),
            [vec![Some(7), Some(102), Some(103)], vec![Some(5), Some(2), Some(5)], places.clone()]
        );
        assert_eq!(of(None), [vec![Some(7), None, None], vec![None, Some(2), None], places]);
    }
}
