//! Locks that clients take among themselves ([`crate::named_locks`]).

use super::sleep::wait_until;
use crate::functions::{BOOL, Call, FunctionSpec, LONG, TEXT, spec, text};
use crate::listing::external;
use crate::named_locks::{LockKey, LockMode, Release};
use bowshot_api::Error;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use std::time::{Duration, Instant};

/// Characters of a name, as MySQL has it.
const MAX_NAME: usize = 64;
/// Seconds from which on a wait is one without an end.
const ENDLESS: f64 = 1e9;

/// Keys of PostgreSQL: a number, or two.
const KEYS: (usize, usize) = (1, 2);

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    spec("get_lock", (2, 2), LONG, get_lock),
    spec("is_free_lock", (1, 1), LONG, |call| {
        Ok(ScalarValue::from(i64::from(call.facts.locks.is_free(&name(call)?))))
    }),
    spec("release_lock", (1, 1), LONG, release_lock),
    spec("release_all_locks", (0, 0), LONG, |call| {
        Ok(ScalarValue::from(i64::try_from(call.facts.locks.release_all()).unwrap_or(i64::MAX)))
    }),
    spec("pg_advisory_lock", KEYS, TEXT, |call| wait_for(call, Taken::EXCLUSIVE)),
    spec("pg_advisory_lock_shared", KEYS, TEXT, |call| wait_for(call, Taken::SHARED)),
    spec("pg_advisory_xact_lock", KEYS, TEXT, |call| wait_for(call, Taken::EXCLUSIVE.in_transaction())),
    spec("pg_advisory_xact_lock_shared", KEYS, TEXT, |call| wait_for(call, Taken::SHARED.in_transaction())),
    spec("pg_try_advisory_lock", KEYS, BOOL, |call| try_now(call, Taken::EXCLUSIVE)),
    spec("pg_try_advisory_lock_shared", KEYS, BOOL, |call| try_now(call, Taken::SHARED)),
    spec("pg_try_advisory_xact_lock", KEYS, BOOL, |call| try_now(call, Taken::EXCLUSIVE.in_transaction())),
    spec("pg_try_advisory_xact_lock_shared", KEYS, BOOL, |call| {
        try_now(call, Taken::SHARED.in_transaction())
    }),
    spec("pg_advisory_unlock", KEYS, BOOL, |call| unlock(call, LockMode::Exclusive)),
    spec("pg_advisory_unlock_shared", KEYS, BOOL, |call| unlock(call, LockMode::Shared)),
    spec("pg_advisory_unlock_all", (0, 0), TEXT, |call| {
        call.facts.locks.release_all();
        // A function without a value shows an empty text.
        text("")
    }),
];

/// What a lock ends with, if nobody releases it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Session,
    Transaction,
}

/// How a lock is taken.
#[derive(Clone, Copy)]
struct Taken {
    mode: LockMode,
    scope: Scope,
}

impl Taken {
    const EXCLUSIVE: Self = Self { mode: LockMode::Exclusive, scope: Scope::Session };
    const SHARED: Self = Self { mode: LockMode::Shared, scope: Scope::Session };

    fn in_transaction(self) -> Self {
        Self { scope: Scope::Transaction, ..self }
    }

    fn by(self, call: &Call<'_>, key: &LockKey) -> Result<bool> {
        let (locks, client) = (&call.facts.locks, &call.facts.client);
        let transaction = match self.scope {
            Scope::Session => None,
            Scope::Transaction => {
                let id = client.get().and_then(|client| client.transaction());
                // Without one, the statement is a transaction, which ends at once.
                let Some(id) = id else { return Ok(true) };
                Some((id, client.clone()))
            }
        };
        locks.take(key, self.mode, transaction).map_err(external)
    }
}

/// The key of an advisory lock; `None` where a part of it is null.
fn number_key(call: &Call<'_>) -> Option<LockKey> {
    Some(match call.arguments.len() {
        1 => LockKey::Number(call.number(0)?),
        _ => LockKey::Pair(call.number(0)?, call.number(1)?),
    })
}

fn wait_for(call: &Call<'_>, taken: Taken) -> Result<ScalarValue> {
    let Some(key) = number_key(call) else { return Ok(ScalarValue::Utf8(None)) };
    if !taken.by(call, &key)? {
        wait_until(None, || taken.by(call, &key))?;
    }
    text("")
}

fn try_now(call: &Call<'_>, taken: Taken) -> Result<ScalarValue> {
    let Some(key) = number_key(call) else { return Ok(ScalarValue::Boolean(None)) };
    Ok(ScalarValue::from(taken.by(call, &key)?))
}

fn unlock(call: &Call<'_>, mode: LockMode) -> Result<ScalarValue> {
    let Some(key) = number_key(call) else { return Ok(ScalarValue::Boolean(None)) };
    Ok(ScalarValue::from(call.facts.locks.release(&key, mode) == Release::Released))
}

/// The name of a lock of MySQL, in which the case of letters does not count.
fn name(call: &Call<'_>) -> Result<LockKey> {
    let name = call.text(0).unwrap_or_default();
    if name.is_empty() || name.chars().count() > MAX_NAME {
        let error = Error::invalid("incorrect name of a lock")
            .with_hint(format!("it has 1 to {MAX_NAME} characters"));
        return Err(external(error));
    }
    Ok(LockKey::Name(name.to_lowercase()))
}

/// 1 for a lock that was taken within so many seconds, 0 for one that others hold.
fn get_lock(call: &Call<'_>) -> Result<ScalarValue> {
    let (key, taken) = (name(call)?, Taken::EXCLUSIVE);
    let seconds = match call.arguments.get(1).map(|value| value.cast_to(&DataType::Float64)).transpose()? {
        Some(ScalarValue::Float64(Some(seconds))) => seconds,
        _ => return Ok(ScalarValue::Int64(None)),
    };
    if taken.by(call, &key)? {
        return Ok(ScalarValue::from(1_i64));
    }
    let is_endless = !(0.0..ENDLESS).contains(&seconds);
    let end = if is_endless { None } else { Duration::try_from_secs_f64(seconds).ok() };
    let end = end.and_then(|time| Instant::now().checked_add(time));
    Ok(ScalarValue::from(i64::from(wait_until(end, || taken.by(call, &key))?)))
}

/// 1 for a lock that was released, 0 for one of others, null for one that nobody holds.
fn release_lock(call: &Call<'_>) -> Result<ScalarValue> {
    Ok(ScalarValue::Int64(match call.facts.locks.release(&name(call)?, LockMode::Exclusive) {
        Release::Released => Some(1),
        Release::HeldByOthers => Some(0),
        Release::NotHeld => None,
    }))
}
