//! The sums of many groups at once.

use super::{Number, Range};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::Decimal128Type;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::NullState;
use std::sync::Arc;

pub(super) struct Groups<T: Number> {
    range: Range,
    totals: Vec<i128>,
    seen: NullState,
    over: bool,
    of: std::marker::PhantomData<T>,
}

impl<T: Number> Groups<T> {
    pub(super) fn new(range: Range) -> Self {
        Self { range, totals: Vec::new(), seen: NullState::new(), over: false, of: std::marker::PhantomData }
    }

    fn add<N: Number>(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let values = values.first().and_then(|values| values.as_primitive_opt::<N>());
        let Some(values) = values else { return Err(internal_datafusion_err!("sum of another type")) };
        self.totals.resize(total, 0);
        let (totals, mut over) = (&mut self.totals, false);
        self.seen.accumulate(groups, values, filter, total, |group, value| {
            if let Some(sum) = totals.get_mut(group) {
                let (new, more) = sum.overflowing_add(value.into());
                *sum = new;
                over |= more;
            }
        });
        self.over |= over;
        Ok(())
    }

    fn emit(&mut self, emit: EmitTo) -> Result<(Vec<i128>, Option<NullBuffer>)> {
        if self.over {
            return Err(self.range.overflow());
        }
        Ok((emit.take_needed(&mut self.totals), self.seen.build(emit)))
    }

    fn as_state(&self, totals: Vec<i128>, nulls: Option<NullBuffer>) -> ArrayRef {
        let states = PrimitiveArray::<Decimal128Type>::new(totals.into(), nulls);
        Arc::new(states.with_data_type(self.range.state()))
    }
}

impl<T: Number> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.add::<T>(values, groups, filter, total)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.add::<Decimal128Type>(states, groups, None, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (totals, nulls) = self.emit(emit)?;
        let sums = totals.into_iter().map(|total| self.range.fits::<T>(total)).collect::<Result<Vec<_>>>()?;
        let sums = PrimitiveArray::<T>::new(sums.into(), nulls);
        Ok(Arc::new(sums.with_data_type(self.range.of.clone())))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (totals, nulls) = self.emit(emit)?;
        Ok(vec![self.as_state(totals, nulls)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values.first().and_then(|values| values.as_primitive_opt::<T>());
        let Some(values) = values else { return Err(internal_datafusion_err!("sum of another type")) };
        let kept = filter.map(|filter| {
            let known = filter
                .nulls()
                .map_or_else(|| filter.values().clone(), |nulls| nulls.inner() & filter.values());
            NullBuffer::new(known)
        });
        let nulls = NullBuffer::union(values.nulls(), kept.as_ref());
        let totals = values.values().iter().map(|value| (*value).into()).collect();
        Ok(vec![self.as_state(totals, nulls)])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<i128>() + self.seen.size()
    }
}
