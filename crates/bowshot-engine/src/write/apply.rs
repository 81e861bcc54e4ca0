//! Runs the query of a statement that changes rows, and makes the next state of the table.

use crate::catalog::defaults::Computed;
use crate::catalog::identity;
use crate::catalog::lazy_state::LazyState;
use crate::catalog::names::Names;
use crate::error::classify;
use crate::write::change::FORMER;
use crate::write::constraints::{self, Casts, Fit};
use crate::write::ddl::{self, Ddl, Stores};
use crate::write::insertion::Insertion;
use crate::write::merge::{ACTION, PUT, TAKE, changed_twice, returned_definition};
use crate::write::refresh::{self, Extent, Refresh};
use crate::write::{Affected, NewTable, Write, key, models, returned_states};
use bowshot_api::{BatchStream, Error, LastWrite, Reason, Result};
use bowshot_policy::Touched;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{
    Definition, Entry, EntryName, Numbering, Segment, SegmentWriter, Storage, Table, TableStore,
};
use bowshot_types::storage_type;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::kernels::cmp::distinct;
use datafusion::arrow::compute::{cast, filter_record_batch, or};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt64Type};
use datafusion::common::ScalarValue;
use futures::{Stream, StreamExt};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// What applying a statement needs beside its rows.
pub(crate) struct Place<'a> {
    pub(crate) names: &'a Names,
    pub(crate) stores: &'a Stores,
    pub(crate) state: &'a LazyState,
}

/// The state after a statement, and the number of rows that it changed.
pub(crate) struct Applied {
    pub(crate) pinned: Pinned,
    pub(crate) rows: u64,
    /// The rows as the statement leaves them; those that it takes out as they were, if they were asked for.
    pub(crate) touched: Vec<Arc<Segment>>,
    /// Rows that became others, where the query gives what they were.
    pub(crate) changed: Option<u64>,
    /// The numbers of the first and the last row that came in, in a column that numbers itself.
    pub(crate) numbers: Option<(i64, i64)>,
    /// Whether the server gave these numbers.
    pub(crate) generated: bool,
}

impl Applied {
    fn new(pinned: Pinned, rows: u64) -> Self {
        Self { pinned, rows, touched: Vec::new(), changed: None, numbers: None, generated: false }
    }

    /// What clients are told of the rows beyond how many they are.
    pub(crate) fn last(&self) -> LastWrite {
        let (first, number) = self.numbers.unzip();
        LastWrite {
            changed: self.changed,
            generated: first.filter(|_| self.generated),
            number,
            ..LastWrite::default()
        }
    }
}

/// The numbers of rows that came in batches.
#[derive(Default)]
pub(super) struct Numbers(pub(super) Option<(i64, i64)>);

impl Numbers {
    pub(super) fn add(&mut self, fit: &Fit, rows: &RecordBatch) {
        if let Some((first, last)) = fit.numbers_in(rows) {
            self.0 = Some((self.0.map_or(first, |(first, _)| first), last));
        }
    }
}

/// Takes the rows of the statement's query in and applies it.
pub(crate) async fn apply(
    write: &Write,
    rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    match write {
        Write::Ddl(Ddl::CreateModel(new)) if new.is_sent() => {
            let file = models::gathered(rows).await?;
            let pinned = blocking(|| models::create(new, place.names, Some(file)))?;
            Ok(Applied::new(pinned, 0))
        }
        Write::Ddl(change) => {
            let (pinned, rows) = blocking(|| change.apply(place.names, place.stores))?;
            Ok(Applied::new(pinned, rows))
        }
        Write::CreateAs(new) => create_as(new, rows, place).await,
        Write::Insert(to) => {
            let table = place.names.table(&to.name)?;
            insert(&to.name, adding(&to.name, &table, place), Casts::Assign, rows, place).await
        }
        Write::Overwrite(name) => {
            let table = Arc::new(place.names.table(name)?.truncate());
            place.names.pinned.note_read(name);
            insert(name, adding(name, &table, place), Casts::Assign, rows, place).await
        }
        Write::Refresh(of) => Box::pin(refresh(of, rows, place)).await,
        Write::Delete(name) => delete(name, rows, place).await,
        Write::Update(of) => update(of, rows, place).await,
        Write::Merge(of) => merge(of, rows, place).await,
        Write::CopyOut(_)
        | Write::CopyIn(_)
        | Write::Load(_)
        | Write::DatabaseInsert(_)
        | Write::DatabaseDefine(_)
        | Write::DatabaseRewrite(_)
        | Write::Query => Err(Error::internal("rows from and to other places are written otherwise")),
    }
}

async fn create_as(
    new: &NewTable,
    rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    if ddl::room_for(place.names, &new.name, new.when_there, false)?.is_none() {
        return Ok(Applied::new(place.names.pinned.clone(), 0));
    }
    let (table, began) = (Arc::new(Table::new(new.definition.clone())), Instant::now());
    let made = insert(&new.name, adding(&new.name, &table, place), Casts::Assign, rows, place).await?;
    let Some(view) = &new.definition.materialized else { return Ok(made) };
    let extent = Extent::Full("the view was made".to_owned());
    let (sources, meaning) = (view.sources.clone(), view.meaning.clone());
    let refresh = Refresh { name: new.name.clone(), extent, sources, meaning };
    refreshed(&refresh, made, began)
}

async fn refresh(
    of: &Refresh,
    rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    let (name, began) = (&of.name, Instant::now());
    place.names.pinned.note_read(name);
    let applied = match of.extent {
        Extent::Nothing => Applied::new(place.names.pinned.clone(), 0),
        Extent::Changes => {
            merge(&Affected { name: name.clone(), touched: Touched::default() }, rows, place).await?
        }
        Extent::Full(_) => {
            let table = Arc::new(place.names.table(name)?.truncate());
            insert(name, adding(name, &table, place), Casts::Assign, rows, place).await?
        }
    };
    refreshed(of, applied, began)
}

/// Notes in the view what its rows show.
fn refreshed(of: &Refresh, applied: Applied, began: Instant) -> Result<Applied> {
    let Some(Entry::Table(table)) = applied.pinned.entry(&of.name) else { return Ok(applied) };
    let view = of.done(refresh::definition(&of.name, table)?, began.elapsed());
    let table = Entry::Table(Arc::new(table.with_materialized(view)));
    let pinned = ddl::put(&applied.pinned, &of.name, table)?;
    Ok(Applied { pinned, ..applied })
}

/// What takes rows that are added to a table.
pub(crate) fn adding(name: &EntryName, table: &Arc<Table>, place: &Place<'_>) -> SegmentWriter {
    SegmentWriter::new(place.stores.of(name), table)
}

/// Adds rows to a table, which is put under its name.
pub(crate) async fn insert(
    name: &EntryName,
    added: SegmentWriter,
    casts: Casts,
    rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    let mut insertion = Insertion::new(name, added, casts, place)?;
    insertion.add(rows).await?;
    insertion.finish(name, place).await
}

/// Whether rows that come into a table may have keys that others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    New,
    Unchanged,
}

impl Keys {
    /// Those of rows of which these columns have changed, and what is computed of them.
    fn of_updated(definition: &Definition, touched: &Touched) -> Self {
        let changes = |column: &String| {
            let assigned = touched.updates.as_ref().is_none_or(|assigned| assigned.contains(column));
            assigned || definition.generated(column).is_some()
        };
        if definition.keys().flat_map(|key| &key.columns).any(changes) { Self::New } else { Self::Unchanged }
    }
}

pub(super) async fn finish(
    name: &EntryName,
    keys: Keys,
    kept: Table,
    added: SegmentWriter,
    place: &Place<'_>,
) -> Result<Applied> {
    let rows = added.rows();
    let segments = added.finish().await?;
    let kept = Arc::new(kept);
    if keys == Keys::New && kept.definition().keys().next().is_some() {
        let new = Table::new(kept.definition().as_ref().clone()).append(segments.clone());
        key::check(name, &kept, &Arc::new(new), place.state).await?;
    }
    let after = kept.append(segments.clone());
    let pinned = ddl::put(&place.names.pinned, name, Entry::Table(Arc::new(after)))?;
    Ok(Applied { touched: segments, ..Applied::new(pinned, rows) })
}

async fn delete(
    name: &EntryName,
    mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    let table = place.names.table(name)?;
    let (mut addresses, mut seen) = (Vec::new(), HashSet::new());
    // What is returned is kept in memory, within its limit.
    let definition = Definition { storage: Storage::Memory, ..table.definition().as_ref().clone() };
    let mut gone = SegmentWriter::new(place.stores.of(name), &Arc::new(Table::new(definition)));
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        addresses.extend_from_slice(addresses_of(&batch)?.values());
        if batch.num_columns() > 1 {
            gone.write(columns_from(&first_of_each(&batch, &mut seen)?, 1)?).await?;
        }
    }
    let touched = gone.finish().await?;
    let (after, rows) = blocking(|| table.delete(place.stores.of(name), &addresses))?;
    let pinned = ddl::put(&place.names.pinned, name, Entry::Table(Arc::new(after)))?;
    Ok(Applied { touched, ..Applied::new(pinned, rows) })
}

async fn update(
    of: &Affected,
    mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    let name = &of.name;
    let table = place.names.table(name)?;
    let keys = Keys::of_updated(table.definition(), &of.touched);
    let fit = Fit::new(name, table.definition(), Casts::Assign, place.state)?;
    let mut added = SegmentWriter::new(place.stores.of(name), &table);
    let (mut seen, mut changed, mut returned) = (HashSet::new(), None, None);
    while let Some(batch) = rows.next().await {
        // A row that meets several rows of FROM is changed once, by the first of them.
        let batch = first_of_each(&batch?, &mut seen)?;
        let fitted = fit.fit(&columns_from(&batch, 1)?)?;
        if let Some(count) = count_changed(&batch, &fitted)? {
            changed = Some(changed.unwrap_or(0) + count);
        }
        if returned_states::are_in(&batch) {
            let definition = || returned_states::definition_with_old(table.definition());
            let to = returned.get_or_insert_with(|| returned_rows(name, definition(), place));
            to.write(returned_states::beside(&batch, &fitted, &to.table().schema())?).await?;
        }
        added.write(fitted).await?;
    }
    let applied = replace(name, (&table, keys), seen, added, place).await?;
    let touched = match returned {
        Some(returned) => returned.finish().await?,
        None => applied.touched,
    };
    Ok(Applied { changed, touched, ..applied })
}

/// How many rows become others; `None` if the query does not give what they were.
fn count_changed(rows: &RecordBatch, fitted: &RecordBatch) -> Result<Option<u64>> {
    let mut changed: Option<BooleanArray> = None;
    for (field, former) in rows.schema().fields().iter().zip(rows.columns()) {
        let Some(name) = field.name().strip_prefix(FORMER) else { continue };
        let Some(now) = fitted.column_by_name(name) else { continue };
        let former =
            storage_type::converted(former, now.data_type()).map_err(|error| classify(error.into()))?;
        // Lists and structs cannot be compared: they count as others.
        let differs = distinct(now, &former)
            .unwrap_or_else(|_| BooleanArray::new(BooleanBuffer::new_set(now.len()), None));
        changed = Some(match changed {
            Some(before) => or(&before, &differs).map_err(|error| classify(error.into()))?,
            None => differs,
        });
    }
    Ok(changed.map(|changed| changed.true_count() as u64))
}

async fn merge(
    of: &Affected,
    mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    place: &Place<'_>,
) -> Result<Applied> {
    let name = &of.name;
    let table = place.names.table(name)?;
    let fit = Fit::new(name, table.definition(), Casts::Assign, place.state)?;
    let mut added = SegmentWriter::new(place.stores.of(name), &table);
    let (mut seen, mut changed, mut numbers) = (HashSet::new(), 0, Numbers::default());
    let (mut counted, mut returned) = (None::<u64>, None);
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let returns = batch.schema().fields().get(2).is_some_and(|field| field.name() == ACTION);
        let first = if returns { 3 } else { 2 };
        let (new, met) = constraints::split_by_null(&batch)?;
        for address in addresses_of(&met)?.values() {
            if !seen.insert(*address) {
                return Err(changed_twice(name));
            }
        }
        changed += batch.num_rows() as u64;
        let put = acting(&met, PUT)?;
        let (inserted, updated) =
            (fit.fit(&columns_from(&new, first)?)?, fit.fit(&columns_from(&put, first)?)?);
        if let Some(others) = count_changed(&put, &updated)? {
            // As MySQL counts: a row that became another one twice; REPLACE has put one in even where it is the same.
            let same = if of.touched.deletes { put.num_rows() as u64 } else { others };
            *counted.get_or_insert(0) += inserted.num_rows() as u64 + same + others;
        }
        if returns {
            let definition = || returned_definition(table.definition());
            let gone = acting(&met, TAKE)?;
            let was = fit.fit(&columns_from(&gone, first)?)?;
            let to = returned.get_or_insert_with(|| returned_rows(name, definition(), place));
            for (rows, fitted) in [(&new, &inserted), (&put, &updated), (&gone, &was)] {
                to.write(with_action(rows, fitted, &to.table().schema())?).await?;
            }
        }
        numbers.add(&fit, &inserted);
        added.write(inserted).await?;
        added.write(updated).await?;
    }
    blocking(|| fit.settle(&place.stores.shared))?;
    let applied = replace(name, (&table, Keys::New), seen, added, place).await?;
    let touched = match returned {
        Some(returned) => returned.finish().await?,
        None => applied.touched,
    };
    Ok(Applied { rows: changed, changed: counted, numbers: numbers.0, touched, ..applied })
}

/// What takes rows that are returned and are not those of the table: in memory, within its limit.
fn returned_rows(name: &EntryName, definition: Definition, place: &Place<'_>) -> SegmentWriter {
    SegmentWriter::new(place.stores.of(name), &Arc::new(Table::new(definition)))
}

/// Rows of a table with the action that each of them met.
fn with_action(rows: &RecordBatch, fitted: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let actions = rows.columns().get(2).ok_or_else(|| Error::internal("a merge came without its actions"))?;
    let actions = cast(actions, &DataType::Utf8).map_err(|error| classify(error.into()))?;
    let columns = std::iter::once(actions).chain(fitted.columns().iter().cloned()).collect();
    RecordBatch::try_new(SchemaRef::clone(schema), columns).map_err(|error| classify(error.into()))
}

/// Takes rows out and puts others in; tells how many were put in.
async fn replace(
    name: &EntryName,
    (table, keys): (&Arc<Table>, Keys),
    gone: HashSet<u64>,
    added: SegmentWriter,
    place: &Place<'_>,
) -> Result<Applied> {
    if gone.is_empty() && added.rows() == 0 {
        return Ok(Applied::new(place.names.pinned.clone(), 0));
    }
    let gone: Vec<u64> = gone.into_iter().collect();
    let (kept, _) = blocking(|| table.delete(place.stores.of(name), &gone))?;
    finish(name, keys, kept, added, place).await
}

/// Work that reads and writes files: the other tasks of this thread go on elsewhere.
pub(super) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let several =
        Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { block_in_place(work) } else { work() }
}

fn addresses_of(rows: &RecordBatch) -> Result<&UInt64Array> {
    let addresses = rows.columns().first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
    addresses
        .filter(|addresses| addresses.null_count() == 0)
        .ok_or_else(|| Error::internal("a change of rows came without their addresses"))
}

fn first_of_each(rows: &RecordBatch, seen: &mut HashSet<u64>) -> Result<RecordBatch> {
    let addresses = addresses_of(rows)?;
    let first: BooleanArray = addresses.values().iter().map(|address| Some(seen.insert(*address))).collect();
    if first.false_count() == 0 {
        return Ok(rows.clone());
    }
    filter_record_batch(rows, &first).map_err(|error| classify(error.into()))
}

fn acting(rows: &RecordBatch, act: i64) -> Result<RecordBatch> {
    let acts = rows.columns().get(1).and_then(|column| column.as_primitive_opt::<Int64Type>());
    let acts = acts.ok_or_else(|| Error::internal("a merge came without its acts"))?;
    let mask: BooleanArray = acts.iter().map(|this| Some(this == Some(act))).collect();
    filter_record_batch(rows, &mask).map_err(|error| classify(error.into()))
}

fn columns_from(rows: &RecordBatch, first: usize) -> Result<RecordBatch> {
    let positions: Vec<usize> = (first..rows.num_columns()).collect();
    rows.project(&positions).map_err(|error| classify(error.into()))
}

/// The columns of a stream that go into the columns of a table, found by name.
///
/// # Errors
/// `Invalid`, naming the columns of either side that the other lacks.
pub(crate) fn by_name(
    schema: &SchemaRef,
    definition: &Definition,
    table: &EntryName,
) -> Result<Vec<Option<usize>>> {
    let mut given: HashMap<&str, usize> = HashMap::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        if given.insert(field.name(), at).is_some() {
            return Err(Error::invalid(format!("column `{}` is there twice", field.name()))
                .with_reason(Reason::DuplicateColumn));
        }
    }
    let there = || definition.columns.iter().map(|column| column.field.name().as_str());
    let known: HashSet<&str> = there().collect();
    if let Some(extra) = schema.fields().iter().find(|field| !known.contains(field.name().as_str())) {
        return Err(Error::invalid(format!("table `{table}` has no column `{}`", extra.name()))
            .with_reason(Reason::UndefinedColumn)
            .with_hint(format!("it has {}", there().collect::<Vec<_>>().join(", "))));
    }
    Ok(there().map(|name| given.get(name).copied()).collect())
}

/// What a column has in rows that do not bring it.
pub(crate) enum Absent {
    Null,
    Value(ScalarValue),
    /// Each row has one of its own.
    Each(Computed),
    Numbered(Numbering, Arc<TableStore>),
}

/// A stream of rows with the columns of a table in order: what is not given is the default, or null.
pub(crate) fn arranged(
    rows: BatchStream,
    positions: Vec<Option<usize>>,
    absent: Vec<Absent>,
    schema: SchemaRef,
) -> impl Stream<Item = Result<RecordBatch>> + Send + Unpin {
    Box::pin(rows.map(move |batch| {
        let batch = batch?;
        let columns =
            positions.iter().zip(&absent).zip(schema.fields()).map(|((position, absent), field)| {
                match (position.and_then(|position| batch.columns().get(position)), absent) {
                    (Some(column), _) => Ok(Arc::clone(column)),
                    (None, Absent::Value(value)) => {
                        value.to_array_of_size(batch.num_rows()).map_err(classify)
                    }
                    (None, Absent::Each(default)) => default.values(batch.num_rows()),
                    (None, Absent::Numbered(numbering, store)) => {
                        identity::next(store, numbering, batch.num_rows())
                    }
                    (None, Absent::Null) => Ok(new_null_array(field.data_type(), batch.num_rows())),
                }
            });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let fields: Vec<_> = columns
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| Field::new(field.name(), column.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| classify(error.into()))
    }))
}
