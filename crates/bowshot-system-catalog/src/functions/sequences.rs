//! Sequences, and those that columns have which number themselves (`t_id_seq`): `nextval` and its kind. Their numbers are outside of
//! transactions; what a session was given last, it knows itself.

use super::about_tables::written;
use crate::functions::{Call, FunctionSpec, LONG, TEXT, relations, spec, text};
use crate::listing::external;
use crate::pg_catalog::attributes::sequence_of;
use crate::pg_catalog::oids;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PG_TEMP, TEMPORARY_CATALOG};
use bowshot_api::{Error, Reason};
use bowshot_policy::access::denied;
use bowshot_sql::Privilege;
use bowshot_tables::{Definition, Entry, EntryName, Identity, IdentityKind, Numbering};
use datafusion::error::{DataFusionError, Result};
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The function that has another value in each row.
pub(super) const NEXT: &str = "nextval";
/// Sequences of which a session knows what it was given.
const MAX_KNOWN: usize = 10_000;

pub(crate) static FUNCTIONS: &[FunctionSpec] =
    &[spec("pg_get_serial_sequence", (2, 2), TEXT, serial_sequence)];

/// Functions that change something, or tell what the session has changed.
pub(crate) static CHANGING: &[FunctionSpec] = &[
    spec(NEXT, (1, 1), LONG, next),
    spec("currval", (1, 1), LONG, current),
    spec("lastval", (0, 0), LONG, last),
    spec("setval", (2, 3), LONG, set),
];

/// What a session was given by each sequence, and by which of them last.
#[derive(Debug, Clone, Default)]
pub struct GivenNumbers(Arc<Mutex<Given>>);

#[derive(Debug, Default)]
struct Given {
    /// By the ids of their identities.
    numbers: HashMap<u128, i64>,
    last: Option<u128>,
}

impl GivenNumbers {
    /// Notes a number that an identity has given.
    pub fn note(&self, identity: &Identity, number: i64) {
        self.keep(identity, number);
        self.0.lock().last = Some(identity.id.as_u128());
    }

    fn keep(&self, identity: &Identity, number: i64) {
        let mut given = self.0.lock();
        if given.numbers.len() >= MAX_KNOWN {
            given.numbers.clear();
        }
        given.numbers.insert(identity.id.as_u128(), number);
    }
}

/// A sequence, or what numbers a column.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// The table of the column; the sequence itself.
    pub(crate) table: EntryName,
    pub(crate) identity: Identity,
    is_durable: bool,
}

impl Sequence {
    pub(crate) fn name(&self) -> String {
        match self.identity.kind {
            IdentityKind::Sequence => self.table.name.clone(),
            _ => sequence_of(&self.table.name, &self.identity.column),
        }
    }

    pub(crate) fn oid(&self) -> i64 {
        match self.identity.kind {
            IdentityKind::Sequence => oids::table(&self.table),
            _ => oids::constraint(&self.table, &self.name()),
        }
    }

    fn numbering(&self) -> Numbering {
        let Identity { id, start, step, .. } = self.identity;
        Numbering { id, start, step, durable: self.is_durable }
    }

    fn is_named(&self, full: &EntryName) -> bool {
        let Self { table, .. } = self;
        table.catalog == full.catalog && table.schema == full.schema && self.name() == full.name
    }
}

/// All that the statement sees.
pub(super) fn all(call: &Call<'_>) -> Vec<Sequence> {
    let pinned = call.pinned();
    let tables = pinned.own().tables().chain(pinned.shared().tables());
    tables.flat_map(|(table, there)| of_table(&table, there.definition())).collect()
}

/// The sequence that a table is, or those of its columns.
pub(crate) fn of_table(table: &EntryName, definition: &Definition) -> Vec<Sequence> {
    let identities = definition.identities.iter();
    let sequence = |identity: &Identity| Sequence {
        table: table.clone(),
        identity: identity.clone(),
        is_durable: definition.is_durable(),
    };
    identities.map(sequence).collect()
}

/// One of a name, as it is written in a text. The session's own come first.
pub(crate) fn by_name(call: &Call<'_>, name: &str) -> Option<Sequence> {
    let full = written(call, name)?;
    let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &full.name);
    let is_bare = relations::parts(name).is_some_and(|parts| parts.len() == 1);
    let find = |full: &EntryName| call.sequences().iter().find(|sequence| sequence.is_named(full));
    let own = if is_bare { find(&own) } else { None };
    own.or_else(|| find(&full)).cloned()
}

pub(crate) fn by_number(call: &Call<'_>, oid: i64) -> Option<Sequence> {
    call.sequences().iter().find(|sequence| sequence.oid() == oid).cloned()
}

/// The sequence that the first argument names, or is the number of; `None` for null.
fn asked(call: &Call<'_>) -> Result<Option<Sequence>> {
    let Some(name) = call.text(0) else { return Ok(None) };
    let found = match name.trim().parse() {
        Ok(oid) => by_number(call, oid),
        Err(_) => by_name(call, name.trim()),
    };
    found.map(Some).ok_or_else(|| {
        let error = Error::not_found(format!("sequence `{name}` not found"));
        external(error.with_reason(Reason::UndefinedTable))
    })
}

fn check(call: &Call<'_>, sequence: &Sequence, privilege: Privilege) -> Result<()> {
    if call.facts.client.get().is_some_and(|client| client.is_read_only()) {
        let error = Error::invalid("a sequence gives no numbers in a read-only transaction");
        return Err(external(error.with_reason(Reason::ReadOnlyTransaction)));
    }
    if call.access().may_table(privilege, &sequence.table) {
        return Ok(());
    }
    let user = &call.facts.principal.name;
    Err(external(denied(&format!("`{user}` may not use the sequence `{}`", sequence.name()))))
}

fn failed(error: bowshot_tables::Error) -> DataFusionError {
    external(error.into())
}

/// The next number. Who may insert rows may take it.
fn next(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(sequence) = asked(call)? else { return Ok(ScalarValue::Int64(None)) };
    check(call, &sequence, Privilege::Insert)?;
    let store = call.facts.session_access.store();
    let number = store.next_numbers(&sequence.numbering(), 1).map_err(|error| match error {
        bowshot_tables::Error::Exhausted { end, limit } => {
            let message =
                format!("nextval: reached {end} value of sequence \"{}\" ({limit})", sequence.name());
            external(Error::invalid(message).with_reason(Reason::SequenceLimit))
        }
        error => failed(error),
    })?;
    call.facts.numbers.note(&sequence.identity, number);
    Ok(ScalarValue::from(number))
}

/// The number that this session was given last.
fn current(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(sequence) = asked(call)? else { return Ok(ScalarValue::Int64(None)) };
    let given = call.facts.numbers.0.lock().numbers.get(&sequence.identity.id.as_u128()).copied();
    let none = || not_yet(&format!("`{}` has given this session no number yet", sequence.name()));
    given.map(ScalarValue::from).ok_or_else(none)
}

fn last(call: &Call<'_>) -> Result<ScalarValue> {
    let given = call.facts.numbers.0.lock();
    let number = given.last.and_then(|id| given.numbers.get(&id).copied());
    number.map(ScalarValue::from).ok_or_else(|| not_yet("no sequence has given this session a number yet"))
}

fn not_yet(message: &str) -> DataFusionError {
    external(Error::invalid(message).with_reason(Reason::WrongState).with_hint("call `nextval` first"))
}

/// Lets a sequence go on behind a number, or with it if the last argument is false.
fn set(call: &Call<'_>) -> Result<ScalarValue> {
    let is_null = call.arguments.iter().any(ScalarValue::is_null);
    let (Some(sequence), false) = (asked(call)?, is_null) else { return Ok(ScalarValue::Int64(None)) };
    check(call, &sequence, Privilege::Update)?;
    let wrong = || external(Error::invalid("`setval` takes a whole number within the bounds of BIGINT"));
    let number = call.number(1).ok_or_else(wrong)?;
    let was_given = call.truth(2) != Some(false);
    let next = if was_given { number.checked_add(sequence.identity.step) } else { Some(number) };
    call.facts.session_access.store().set_numbers(&sequence.numbering(), next).map_err(failed)?;
    if was_given {
        call.facts.numbers.keep(&sequence.identity, number);
    }
    Ok(ScalarValue::from(number))
}

/// The sequence of a column, as a name for the other functions; null where no such column numbers itself.
fn serial_sequence(call: &Call<'_>) -> Result<ScalarValue> {
    let (Some(table), Some(column)) = (call.text(0), call.text(1)) else {
        return Ok(ScalarValue::Utf8(None));
    };
    let (name, pinned) = (written(call, &table), call.pinned());
    // Clients ask about tables of all kinds at once.
    let Some(name) = name.filter(|name| match pinned.entry(name) {
        Some(Entry::Table(there)) => there.definition().identity(&column).is_some(),
        _ => false,
    }) else {
        return Ok(ScalarValue::Utf8(None));
    };
    let schema = if name.catalog == TEMPORARY_CATALOG { PG_TEMP } else { name.schema.as_str() };
    let sequence = relations::quoted(&sequence_of(&name.name, &column));
    text(format!("{}.{sequence}", relations::quoted(schema)))
}
