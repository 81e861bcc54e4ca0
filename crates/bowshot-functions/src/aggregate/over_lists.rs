//! Aggregates over the list of a group's values: DataFusion's `array_agg` collects it, with ORDER BY, DISTINCT, partial states and windows. It
//! costs memory for each row.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray, new_empty_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;
use std::sync::Arc;

/// The types that the arguments are brought to.
pub(crate) type Takes = fn(&str, &[DataType]) -> Result<Vec<DataType>>;
/// The field of the result; its name does not count.
pub(crate) type Gives = fn(&[FieldRef]) -> Result<Field>;
/// The result from the columns of a group's values, in their order.
pub(crate) type Finish = fn(&Call, &[ArrayRef]) -> Result<ScalarValue>;

/// A row of the table of such aggregates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// How many of the arguments are gathered; the others are constants.
    pub(crate) gathered: usize,
    pub(crate) takes: Takes,
    pub(crate) gives: Gives,
    pub(crate) finish: Finish,
    /// Whether it is written with WITHIN GROUP, too. Then order means nothing but ascending or descending.
    pub(crate) within_group: bool,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<FieldRef>,
    pub(crate) result: FieldRef,
    pub(crate) constants: Vec<ScalarValue>,
    pub(crate) descending: bool,
    /// Whether the values come in an order that was asked for.
    pub(crate) ordered: bool,
}

impl Call {
    pub(crate) fn constant(&self, index: usize) -> Option<&ScalarValue> {
        self.constants.get(index)
    }

    /// What the result is of no rows, or of none that count.
    pub(crate) fn none(&self) -> Result<ScalarValue> {
        ScalarValue::try_from(self.result.data_type())
    }
}

#[derive(Debug)]
pub(crate) struct Collected {
    row: Row,
    signature: Signature,
}

/// Rows of the table of functions: names, and what [`Row`] says of them.
macro_rules! collected_rows {
    ($($name:literal $($alias:literal)*: $gathered:literal, $takes:expr, $gives:expr, $finish:expr, $within:literal
        => $about:literal;)+) => {
        &[$($crate::define::aggregate($name, $about, || {
            $crate::aggregate::over_lists::collected($crate::aggregate::over_lists::Row {
                name: $name,
                gathered: $gathered,
                takes: $takes,
                gives: $gives,
                finish: $finish,
                within_group: $within,
            })
        })
        .aliases(&[$($alias),*])),+]
    };
}
pub(crate) use collected_rows;

pub(crate) fn collected(row: Row) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Collected { row, signature: Signature::user_defined(Volatility::Immutable) }))
}

crate::define::same_by!(Collected, row.name);

impl Collected {
    /// The one field of what is gathered: that of the argument, or one with all of them.
    fn gathered(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        match fields.get(..self.row.gathered) {
            Some([one]) => Ok(Arc::clone(one)),
            Some(several) => {
                let columns = several.iter().enumerate();
                // Two arguments may have one name.
                let columns =
                    columns.map(|(index, field)| field.as_ref().clone().with_name(index.to_string()));
                let columns: Fields = columns.map(|field| field.with_nullable(true)).collect();
                Ok(Arc::new(Field::new("", DataType::Struct(columns), true)))
            }
            None => internal_err!("{} lacks arguments", self.row.name),
        }
    }

    fn call(&self, given: &AccumulatorArgs<'_>) -> Result<Call> {
        let constants = given.exprs.iter().skip(self.row.gathered).map(|constant| {
            constant.downcast_ref::<Literal>().map(|literal| literal.value().clone()).ok_or_else(|| {
                exec_datafusion_err!("the further arguments of {} have to be constants", self.row.name)
            })
        });
        Ok(Call {
            name: self.row.name,
            fields: given.expr_fields.to_vec(),
            result: Arc::clone(&given.return_field),
            constants: constants.collect::<Result<_>>()?,
            descending: given.order_bys.first().is_some_and(|sort| sort.options.descending)
                != given.is_reversed,
            ordered: !given.order_bys.is_empty(),
        })
    }
}

impl AggregateUDFImpl for Collected {
    fn name(&self) -> &str {
        self.row.name
    }

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        (self.row.takes)(self.row.name, given)
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        internal_err!("the result of {} depends on more than types", self.row.name)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        (self.row.gives)(fields).map(|field| Arc::new(field.with_name(self.row.name)))
    }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = self.gathered(given.input_fields)?;
        let list = DataType::List(Arc::new(Field::new_list_field(field.data_type().clone(), true)));
        array_agg_udaf().state_fields(StateFieldsArgs {
            input_fields: &[field],
            return_field: Arc::new(Field::new("", list, true)),
            ordering_fields: if self.row.within_group { &[] } else { given.ordering_fields },
            ..given
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        if self.row.within_group {
            AggregateOrderSensitivity::Insensitive
        } else {
            AggregateOrderSensitivity::SoftRequirement
        }
    }

    // Without this DataFusion refuses aggregates that an order would serve.
    fn with_beneficial_ordering(self: Arc<Self>, _served: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let call = self.call(&given)?;
        let field = self.gathered(given.expr_fields)?;
        let list = DataType::List(Arc::new(Field::new_list_field(field.data_type().clone(), true)));
        let arguments = given.exprs.len();
        let inner = array_agg_udaf().accumulator(AccumulatorArgs {
            return_field: Arc::new(Field::new("", list, true)),
            order_bys: if self.row.within_group { &[] } else { given.order_bys },
            exprs: given.exprs.get(..1).unwrap_or_default(),
            expr_fields: &[Arc::clone(&field)],
            ..given
        })?;
        Ok(Box::new(Gathering { row: self.row, call, field, arguments, inner }))
    }

    fn supports_null_handling_clause(&self) -> bool {
        true
    }

    fn supports_within_group_clause(&self) -> bool {
        self.row.within_group
    }
}

#[derive(Debug)]
struct Gathering {
    row: Row,
    call: Call,
    field: FieldRef,
    arguments: usize,
    inner: Box<dyn Accumulator>,
}

impl Gathering {
    /// What the inner one takes: the gathered arguments as one column, then what the order is by.
    fn packed(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let gathered = values.get(..self.row.gathered).unwrap_or_default();
        let first = match (gathered, self.field.data_type()) {
            ([one], _) => Arc::clone(one),
            (several, DataType::Struct(fields)) => {
                Arc::new(StructArray::try_new(fields.clone(), several.to_vec(), None)?) as ArrayRef
            }
            _ => return internal_err!("{} gathers no columns", self.row.name),
        };
        let order = values.get(self.arguments..).unwrap_or_default().iter().map(Arc::clone);
        let order = order.take(if self.row.within_group { 0 } else { usize::MAX });
        Ok(std::iter::once(first).chain(order).collect())
    }
}

impl Accumulator for Gathering {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let packed = self.packed(values)?;
        self.inner.update_batch(&packed)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let packed = self.packed(values)?;
        self.inner.retract_batch(&packed)
    }

    bowshot_api::delegate! { inner:
        fn supports_retract_batch(&self) -> bool;
        fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()>;
        fn state(&mut self) -> Result<Vec<ScalarValue>>;
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = match self.inner.evaluate()? {
            ScalarValue::List(list) if !list.is_empty() && list.is_valid(0) => list.value(0),
            ScalarValue::List(_) => new_empty_array(self.field.data_type()),
            other => return internal_err!("{} gathered {}", self.row.name, other.data_type()),
        };
        let columns = match values.as_struct_opt() {
            Some(columns) if self.row.gathered > 1 => columns.columns().to_vec(),
            _ => vec![values],
        };
        (self.row.finish)(&self.call, &columns)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// The rows of the columns whose first value is not NULL.
pub(crate) fn without_nulls(columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let Some(nulls) =
        columns.first().and_then(|first| first.logical_nulls()).filter(|nulls| nulls.null_count() > 0)
    else {
        return Ok(columns.to_vec());
    };
    let valid = datafusion::arrow::array::BooleanArray::new(nulls.inner().clone(), None);
    columns.iter().map(|column| Ok(datafusion::arrow::compute::filter(column, &valid)?)).collect()
}
