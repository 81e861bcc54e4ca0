//! Options that are set within a transaction. What `SET LOCAL` has set is set back when it ends. When it is rolled back, so is
//! everything else that was set in it, as in PostgreSQL; in MySQL's dialect that stays.

use super::ClientSession;
use crate::known::{self, Known, SEARCH_PATH};
use crate::options::{ISOLATION, Options};
use crate::shown;
use bowshot_api::{OptionValue, Result, TransactionEnd, TransactionId};
use bowshot_engine::{Assignment, DialectName};
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

/// What is to be set back of the transaction that the session has begun.
#[derive(Debug, Default)]
pub(super) struct SettingChanges {
    /// Options that `SET LOCAL` has set, by their own names, as they were before.
    locals: Locals,
    /// The options before the first change after each savepoint, in the order of the savepoints.
    earlier: Vec<EarlierSettings>,
}

type Locals = BTreeMap<&'static str, Assignment>;

#[derive(Debug)]
struct EarlierSettings {
    /// How many savepoints there were.
    savepoints: usize,
    options: Options,
    locals: Locals,
}

impl ClientSession {
    /// Sets an option, which a rollback of the transaction undoes.
    pub(crate) fn set(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        self.remember_settings();
        self.change_setting(name, value)?;
        // It stays when the transaction is committed.
        self.lock_changes().locals.remove(known::find(name)?.name());
        Ok(())
    }

    /// Sets what is set back when the transaction ends.
    pub(crate) fn set_local(&self, assignments: &[Assignment]) -> Result<()> {
        for Assignment { name, value } in assignments {
            self.remember_settings();
            let before = self.value_of(name)?;
            self.change_setting(name, value.clone().map(OptionValue::String))?;
            self.lock_changes().locals.entry(known::find(name)?.name()).or_insert(before);
        }
        Ok(())
    }

    /// Gives the transaction that was just begun its level, which is shown until it ends.
    pub(crate) fn begin_with(&self, level: &str) -> Result<()> {
        self.set_local(&[Assignment { name: ISOLATION.to_owned(), value: Some(level.to_owned()) }])
    }

    /// The level of later transactions is not that of the open one, which keeps its own until it ends.
    pub(super) fn defer_isolation(&self, before: &Options, changed: &mut Options) {
        match before.parameters.get(ISOLATION) {
            Some(level) => changed.parameters.insert(ISOLATION, level.clone()),
            None => changed.parameters.remove(ISOLATION),
        };
        let of_session = Assignment { name: ISOLATION.to_owned(), value: None };
        self.lock_changes().locals.insert(ISOLATION, of_session);
    }

    /// Gives a transaction that its caller names the level that a statement in it asks for.
    pub(crate) fn isolate(&self, id: TransactionId, assignments: &[Assignment]) -> Result<()> {
        for Assignment { value, .. } in assignments.iter().filter(|assignment| assignment.name == ISOLATION) {
            let (mut options, value) = (self.current_options(), value.clone().map(OptionValue::String));
            options.set(ISOLATION, value.as_ref(), (&self.server.defaults, &self.server.house.limits))?;
            self.transactions.set_isolation(Some(id), options.isolation())?;
        }
        Ok(())
    }

    /// Sets back what a transaction has set, once none is open any more.
    pub(crate) fn end_settings(&self, end: TransactionEnd) {
        if self.transactions.current().is_some() {
            return;
        }
        let SettingChanges { mut locals, earlier } = std::mem::take(&mut *self.lock_changes());
        if end == TransactionEnd::Rollback
            && let Some(first) = earlier.into_iter().next()
        {
            self.put_back(first.options);
            locals = first.locals;
        }
        for Assignment { name, value } in locals.into_values() {
            if let Err(error) = self.change_setting(&name, value.map(OptionValue::String)) {
                tracing::warn!(option = name, %error, "a session option was not set back");
            }
        }
    }

    /// Sets back what was set after a savepoint that was rolled back to; what was set after one that was released belongs to
    /// the savepoint before it.
    pub(crate) fn end_savepoint_settings(&self, end: TransactionEnd) {
        let Some(savepoints) = self.transactions.current_savepoints() else { return };
        let mut changes = self.lock_changes();
        match end {
            TransactionEnd::Commit => {
                for earlier in &mut changes.earlier {
                    earlier.savepoints = earlier.savepoints.min(savepoints);
                }
                changes.earlier.dedup_by_key(|earlier| earlier.savepoints);
            }
            TransactionEnd::Rollback => {
                let before = changes.earlier.partition_point(|earlier| earlier.savepoints < savepoints);
                let undone = changes.earlier.split_off(before);
                let Some(first) = undone.into_iter().next() else { return };
                changes.locals = first.locals;
                drop(changes);
                self.put_back(first.options);
            }
        }
    }

    /// Remembers the options before they are changed in a transaction.
    pub(super) fn remember_settings(&self) {
        let Some(savepoints) = self.transactions.current_savepoints() else { return };
        let options = self.current_options();
        if DialectName::parse(&options.dialect) == Some(DialectName::MySql) {
            return;
        }
        let mut changes = self.lock_changes();
        if changes.earlier.last().is_none_or(|last| last.savepoints < savepoints) {
            let locals = changes.locals.clone();
            changes.earlier.push(EarlierSettings { savepoints, options, locals });
        }
    }

    pub(super) fn forget_locals(&self) {
        self.lock_changes().locals.clear();
    }

    fn lock_changes(&self) -> MutexGuard<'_, SettingChanges> {
        self.setting_changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An option under its own name with its value; without one where that is the default of a parameter.
    fn value_of(&self, name: &str) -> Result<Assignment> {
        let options = self.current_options();
        Ok(match known::find(name)? {
            Known::Parameter(parameter) => Assignment {
                name: parameter.name.to_owned(),
                value: options.parameters.get(parameter.name).cloned(),
            },
            // The list says which schema is the first.
            Known::Option(option) if option.name == "schema" && !options.search_path.is_empty() => {
                Assignment { name: SEARCH_PATH.to_owned(), value: Some(options.search_path) }
            }
            Known::Option(option) => {
                let settings = shown::settings(&options, &self.principal.name);
                let setting = settings.into_iter().find(|setting| setting.name == option.name);
                Assignment { name: option.name.to_owned(), value: setting.map(|setting| setting.value) }
            }
        })
    }
}
