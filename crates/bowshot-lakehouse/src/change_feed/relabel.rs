//! Nested values with the names that their fields have in the table, in the place of those in files. No value is touched.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::PhysicalExpr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An expression whose values have another type, of the same values.
#[derive(Debug)]
pub(super) struct Relabelled {
    inner: Arc<dyn PhysicalExpr>,
    data_type: DataType,
}

impl Relabelled {
    pub(super) fn new(inner: Arc<dyn PhysicalExpr>, data_type: &DataType) -> Self {
        Self { inner, data_type: data_type.clone() }
    }
}

// By hand, since deriving fails for an `Arc` of a trait (rust-lang/rust#78808).
impl PartialEq for Relabelled {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner) && self.data_type == other.data_type
    }
}

impl Eq for Relabelled {}

impl Hash for Relabelled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
        self.data_type.hash(state);
    }
}

impl PhysicalExpr for Relabelled {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    bowshot_api::delegate! { inner:
        fn nullable(&self, schema: &Schema) -> Result<bool>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.inner.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(relabelled(&values, &self.data_type)?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let inner =
            children.pop().ok_or_else(|| internal_datafusion_err!("values of nothing have no names"))?;
        Ok(Arc::new(Self::new(inner, &self.data_type)))
    }
}

impl fmt::Display for Relabelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

fn relabelled(values: &ArrayRef, data_type: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    if values.data_type() == data_type {
        return Ok(Arc::clone(values));
    }
    let nulls = values.nulls().cloned();
    Ok(match (data_type, values.data_type()) {
        (DataType::Struct(fields), DataType::Struct(there)) if fields.len() == there.len() => {
            let columns = values.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| relabelled(column, field.data_type()));
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, values.len())?)
        }
        (DataType::List(item), DataType::List(_)) => {
            let list = values.as_list::<i32>();
            let items = relabelled(list.values(), item.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(item), list.offsets().clone(), items, nulls)?)
        }
        (DataType::Map(entries, sorted), DataType::Map(..)) => {
            let map = values.as_map();
            let pairs: ArrayRef = Arc::new(map.entries().clone());
            let pairs = relabelled(&pairs, entries.data_type())?.as_struct().clone();
            let offsets = map.offsets().clone();
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *sorted)?)
        }
        _ => cast(values, data_type)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::{Field, Fields};

    fn of_structs(name: &str) -> (Fields, DataType) {
        let fields = Fields::from(vec![Field::new(name, DataType::Int64, true)]);
        let item = Field::new("element", DataType::Struct(fields.clone()), true);
        (fields, DataType::List(Arc::new(item)))
    }

    #[test]
    fn names_change_and_values_do_not() {
        let (fields, there) = of_structs("col-2");
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let structs =
            StructArray::try_new(fields, vec![numbers], Some(NullBuffer::from(vec![true, true, false])));
        let DataType::List(item) = &there else { unreachable!("it is a list") };
        let offsets = OffsetBuffer::from_lengths([2, 0, 1]);
        let nulls = Some(NullBuffer::from(vec![true, false, true]));
        let list = ListArray::try_new(Arc::clone(item), offsets, Arc::new(structs.unwrap()), nulls).unwrap();
        let values: ArrayRef = Arc::new(list);
        let (_, wanted) = of_structs("x");
        let found = relabelled(&values, &wanted).unwrap();
        assert_eq!(found.data_type(), &wanted);
        let (before, after) = (values.as_list::<i32>(), found.as_list::<i32>());
        assert_eq!(before.offsets(), after.offsets());
        assert_eq!(before.nulls(), after.nulls());
        let inner = |list: &ListArray| Arc::clone(list.values().as_struct().column(0));
        assert_eq!(&inner(before), &inner(after));
        assert_eq!(relabelled(&found, &there).unwrap().as_ref(), values.as_ref());
    }
}
