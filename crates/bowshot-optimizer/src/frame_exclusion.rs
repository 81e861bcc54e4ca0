//! Window frames with `EXCLUDE`, unless several frames can express them (`bowshot-sql`, `rewrite/frames.rs`): the function is
//! computed for each row from the rows left in its frame, as in PostgreSQL. What is excluded is a call among the keys of
//! PARTITION BY. Each row costs as much as its frame has rows.

use super::window_marks::change_window_calls;
use bowshot_api::Error;
use bowshot_query_task::step;
use bowshot_sql::rewrite::EXCLUDING;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{cast, filter, partition};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, Schema};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    AggregateUDF, Expr, LogicalPlan, PartitionEvaluator, Signature, Volatility, WindowFunctionDefinition,
    WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

/// Rows of frames that are read before the statement is asked whether it is over.
const ROWS_OF_A_STEP: usize = 1 << 16;

pub(super) fn without_excluded_rows(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    change_window_calls(plan, without_mark)
}

/// Takes the mark off a call, and lets its function look at it; says whether it has one.
fn without_mark(call: &mut WindowFunction) -> Result<bool> {
    let place = call.params.partition_by.iter().position(|key| marked(key).is_some());
    let Some(place) = place else { return Ok(false) };
    let excluded = marked(&call.params.partition_by.remove(place));
    let Some(excluded) = excluded else { return Ok(false) };
    let of = match (&call.fun, call.fun.name()) {
        (_, "first_value") => Of::First,
        (_, "last_value") => Of::Last,
        (_, "nth_value") => Of::Nth,
        (WindowFunctionDefinition::AggregateUDF(function), _) => Of::Aggregate(Arc::clone(function)),
        // Ranks and the like have no frame.
        (WindowFunctionDefinition::WindowUDF(_), _) => return Ok(true),
    };
    if call.params.distinct {
        let error = Error::unsupported("DISTINCT is not supported over a frame with EXCLUDE");
        return Err(DataFusionError::External(Box::new(error)));
    }
    let arguments = call.params.args.len();
    let condition = call.params.filter.take();
    let signature = Signature::variadic_any(Volatility::Immutable);
    let function = Excluding { of, excluded, arguments, filtered: condition.is_some(), signature };
    call.params.args.extend(condition.map(|condition| *condition));
    call.fun = WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function)));
    Ok(true)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Excluded {
    Row,
    Group,
    Ties,
}

fn marked(key: &Expr) -> Option<Excluded> {
    let Expr::ScalarFunction(call) = key else { return None };
    let [Expr::Literal(what, _)] = call.args.as_slice() else { return None };
    match what.try_as_str().flatten()? {
        _ if call.name() != EXCLUDING => None,
        "current row" => Some(Excluded::Row),
        "group" => Some(Excluded::Group),
        "ties" => Some(Excluded::Ties),
        _ => None,
    }
}

/// What is computed of the rows that are left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    Aggregate(Arc<AggregateUDF>),
    First,
    Last,
    Nth,
}

/// A function whose last argument is the condition of its FILTER, if it has one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Excluding {
    of: Of,
    excluded: Excluded,
    arguments: usize,
    filtered: bool,
    signature: Signature,
}

impl WindowUDFImpl for Excluding {
    fn name(&self) -> &'static str {
        "over_frame_with_exclude"
    }

    bowshot_api::getters!(signature: &Signature);

    fn field(&self, given: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let fields = given.input_fields().get(..self.arguments).unwrap_or_default();
        let field = match (&self.of, fields.first()) {
            (Of::Aggregate(function), _) => function.return_field(fields)?,
            (_, Some(value)) => Arc::new(value.as_ref().clone().with_nullable(true)),
            (_, None) => return internal_err!("a value of a frame has no expression"),
        };
        Ok(Arc::new(field.as_ref().clone().with_name(given.name())))
    }

    fn partition_evaluator(&self, given: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = given.input_fields().get(..self.arguments).unwrap_or_default().to_vec();
        let result = match &self.of {
            Of::Aggregate(function) => Some(function.return_field(&fields)?),
            _ => None,
        };
        Ok(Box::new(Evaluator {
            of: self.of.clone(),
            excluded: self.excluded,
            filtered: self.filtered,
            exprs: given.input_exprs().get(..self.arguments).unwrap_or_default().to_vec(),
            schema: Schema::new(fields.clone()),
            fields,
            result,
            ignores_nulls: given.ignore_nulls(),
            row: 0,
            rows_read: 0,
            groups: None,
            group: 0,
            last: None,
        }))
    }
}

/// The rows of one partition, which are asked for in their order.
#[derive(Debug)]
struct Evaluator {
    of: Of,
    excluded: Excluded,
    filtered: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    schema: Schema,
    /// Of an aggregate.
    result: Option<FieldRef>,
    ignores_nulls: bool,
    row: usize,
    /// Rows of frames since the last step.
    rows_read: usize,
    /// Rows that are equal to the order, and which of these the row is in.
    groups: Option<Vec<Range<usize>>>,
    group: usize,
    /// What was computed last, and of which rows: it is the same for all rows of a group.
    last: Option<(Vec<Range<usize>>, ScalarValue)>,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        let row = self.row;
        self.row += 1;
        let excluded = match self.excluded {
            Excluded::Row => row..row + 1,
            Excluded::Group | Excluded::Ties => self.peers(values, row)?,
        };
        let this = match self.excluded {
            Excluded::Ties if frame.contains(&row) => row..row + 1,
            _ => 0..0,
        };
        let before = frame.start..frame.end.min(excluded.start);
        let behind = frame.start.max(excluded.end)..frame.end;
        let parts: Vec<_> = [before, this, behind].into_iter().filter(|part| !part.is_empty()).collect();
        if let Some((same, value)) = &self.last
            && *same == parts
            && !matches!(self.of, Of::Nth)
        {
            return Ok(value.clone());
        }
        self.rows_read += parts.iter().map(ExactSizeIterator::len).sum::<usize>();
        let value = if self.rows_read < ROWS_OF_A_STEP {
            self.value(values, &parts, row)?
        } else {
            self.rows_read = 0;
            step(|| self.value(values, &parts, row))?
        };
        self.last = Some((parts, value.clone()));
        Ok(value)
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}

impl Evaluator {
    /// The rows that the order does not tell from a row. The keys of the order come behind the arguments.
    fn peers(&mut self, values: &[ArrayRef], row: usize) -> Result<Range<usize>> {
        if self.groups.is_none() {
            let keys = values.get(self.fields.len() + usize::from(self.filtered)..).unwrap_or_default();
            let rows = values.first().map_or(0, |value| value.len());
            let all = std::iter::once(0..rows).collect();
            self.groups = Some(if keys.is_empty() { all } else { partition(keys)?.ranges() });
        }
        let groups = self.groups.as_deref().unwrap_or_default();
        while groups.get(self.group).is_some_and(|group| group.end <= row) {
            self.group += 1;
        }
        match groups.get(self.group) {
            Some(group) => Ok(group.clone()),
            None => internal_err!("a row is in no group of its window"),
        }
    }

    fn value(&self, values: &[ArrayRef], parts: &[Range<usize>], row: usize) -> Result<ScalarValue> {
        let Of::Aggregate(function) = &self.of else { return self.picked(values, parts, row) };
        let Some(result) = &self.result else { return internal_err!("an aggregate has no result") };
        let mut aggregate = function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(result),
            schema: &self.schema,
            ignore_nulls: self.ignores_nulls,
            order_bys: &[],
            is_reversed: false,
            name: function.name(),
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })?;
        for part in parts {
            let mut rows = Vec::with_capacity(self.fields.len());
            for value in values.iter().take(self.fields.len()) {
                let value = value.slice(part.start, part.len());
                rows.push(match values.get(self.fields.len()).filter(|_| self.filtered) {
                    Some(condition) => filter(&value, condition.slice(part.start, part.len()).as_boolean())?,
                    None => value,
                });
            }
            aggregate.update_batch(&rows)?;
        }
        aggregate.evaluate()
    }

    fn picked(&self, values: &[ArrayRef], parts: &[Range<usize>], row: usize) -> Result<ScalarValue> {
        let Some(value) = values.first() else { return internal_err!("a value of a frame is missing") };
        let mut rows = parts.iter().cloned().flatten();
        let counts = |row: &usize| !self.ignores_nulls || value.is_valid(*row);
        let found = match self.of {
            Of::Last => rows.rfind(counts),
            Of::Nth => match place(values, row)? {
                Some(place) => rows.filter(counts).nth(place),
                None => None,
            },
            Of::First | Of::Aggregate(_) => rows.find(counts),
        };
        match found {
            Some(row) => ScalarValue::try_from_array(value, row),
            None => ScalarValue::try_from(value.data_type()),
        }
    }
}

/// Which of the rows `nth_value` asks for, from zero.
fn place(values: &[ArrayRef], row: usize) -> Result<Option<usize>> {
    let Some(places) = values.get(1) else { return internal_err!("nth_value has two arguments") };
    let places = cast(places, &DataType::Int64)?;
    let places = places.as_primitive::<Int64Type>();
    if !places.is_valid(row) {
        return Ok(None);
    }
    match usize::try_from(places.value(row)).ok().and_then(|place| place.checked_sub(1)) {
        Some(place) => Ok(Some(place)),
        None => {
            let error = Error::invalid("argument of nth_value must be greater than zero");
            Err(DataFusionError::External(Box::new(error)))
        }
    }
}
