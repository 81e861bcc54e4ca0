//! Options set within a transaction. `SET LOCAL` ends with it. A rollback also undoes other settings, as in
//! PostgreSQL; in MySQL's dialect they stay.

use super::ClientSession;
use crate::options::{ISOLATION, Options};
use crate::setting_lookup::{self, SEARCH_PATH, SettingKind};
use crate::settings_view;
use bowshot_api::{Error, OptionValue, Reason, Result, TransactionEnd, TransactionId};
use bowshot_engine::{Assignment, DialectName, TransactionStatement};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct SettingChanges {
    /// Earlier values of options set with `SET LOCAL`.
    locals: Locals,
    /// The options before the first change after each savepoint, in order.
    earlier: Vec<EarlierSettings>,
}

type Locals = BTreeMap<&'static str, Assignment>;

#[derive(Debug)]
struct EarlierSettings {
    savepoints: usize,
    options: Arc<Options>,
    locals: Locals,
}

impl ClientSession {
    /// Sets an option; a rollback of the transaction restores it.
    pub(crate) fn set(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        self.remember_settings();
        self.change_setting(name, value)?;
        // A commit keeps it.
        self.setting_changes.lock().locals.remove(setting_lookup::find(name)?.name());
        Ok(())
    }

    pub(crate) fn set_local(&self, assignments: &[Assignment]) -> Result<()> {
        for Assignment { name, value } in assignments {
            self.remember_settings();
            let before = self.value_of(name)?;
            self.change_setting(name, value.clone().map(OptionValue::String))?;
            self.setting_changes.lock().locals.entry(setting_lookup::find(name)?.name()).or_insert(before);
        }
        Ok(())
    }

    pub(crate) async fn run_transaction(
        &self,
        statement: &TransactionStatement,
        named: Option<TransactionId>,
    ) -> Result<()> {
        let next = self.chained(statement, named)?;
        let ended = self.transactions.run(statement, named, &self.engine).await;
        // A failed COMMIT rolls back.
        let is_kept = ended.is_ok() && matches!(statement, TransactionStatement::Commit { .. });
        self.end_settings(if is_kept { TransactionEnd::Commit } else { TransactionEnd::Rollback });
        ended?;
        if let Some(begin) = &next {
            self.transactions.run(begin, None, &self.engine).await?;
        }
        match next.as_ref().unwrap_or(statement) {
            TransactionStatement::Begin { isolation: Some(level), .. } => self.begin_with(level)?,
            TransactionStatement::Release(_) if named.is_none() => {
                self.end_savepoint_settings(TransactionEnd::Commit);
            }
            TransactionStatement::RollbackTo(_) if named.is_none() => {
                self.end_savepoint_settings(TransactionEnd::Rollback);
            }
            _ => {}
        }
        Ok(())
    }

    /// The begin of the transaction that AND CHAIN asks for: of the level and mode of the one that ends.
    ///
    /// # Errors
    /// `Invalid` where BEGIN has begun none.
    fn chained(
        &self,
        statement: &TransactionStatement,
        named: Option<TransactionId>,
    ) -> Result<Option<TransactionStatement>> {
        let is_chained = matches!(
            statement,
            TransactionStatement::Commit { chain: true } | TransactionStatement::Rollback { chain: true }
        );
        if !is_chained || named.is_some() {
            return Ok(None);
        }
        if !self.transactions.is_begun() {
            return Err(Error::invalid("AND CHAIN needs an open transaction")
                .with_reason(Reason::NoTransaction)
                .with_hint("begin one with BEGIN"));
        }
        let isolation = self.current_options().parameters.get(ISOLATION).cloned();
        let read_only = self.transactions.is_read_only();
        Ok(Some(TransactionStatement::Begin { read_only, isolation }))
    }

    /// Sets the isolation of the transaction that just began; shown until it ends.
    pub(crate) fn begin_with(&self, level: &str) -> Result<()> {
        self.set_local(&[Assignment { name: ISOLATION.to_owned(), value: Some(level.to_owned()) }])
    }

    /// Isolation of later transactions does not apply to the open one.
    pub(super) fn defer_isolation(&self, before: &Options, changed: &mut Options) {
        match before.parameters.get(ISOLATION) {
            Some(level) => changed.parameters.insert(ISOLATION, level.clone()),
            None => changed.parameters.remove(ISOLATION),
        };
        let of_session = Assignment { name: ISOLATION.to_owned(), value: None };
        self.setting_changes.lock().locals.insert(ISOLATION, of_session);
    }

    /// Sets the isolation of a named transaction.
    pub(crate) fn isolate(&self, id: TransactionId, assignments: &[Assignment]) -> Result<()> {
        for Assignment { value, .. } in assignments.iter().filter(|assignment| assignment.name == ISOLATION) {
            let mut options = Options::clone(&self.current_options());
            let value = value.clone().map(OptionValue::String);
            options.set(ISOLATION, value.as_ref(), (&self.server.defaults, &self.server.context.limits))?;
            self.transactions.set_isolation(Some(id), options.isolation())?;
        }
        Ok(())
    }

    pub(crate) fn end_settings(&self, end: TransactionEnd) {
        if self.transactions.current().is_some() {
            return;
        }
        let SettingChanges { mut locals, earlier } = std::mem::take(&mut *self.setting_changes.lock());
        if end == TransactionEnd::Rollback
            && let Some(first) = earlier.into_iter().next()
        {
            self.put_back(&first.options);
            locals = first.locals;
        }
        for Assignment { name, value } in locals.into_values() {
            if let Err(error) = self.change_setting(&name, value.map(OptionValue::String)) {
                tracing::warn!(option = name, %error, "a session option was not set back");
            }
        }
    }

    /// Restores settings made after a savepoint on its rollback; after its release they belong to the enclosing one.
    pub(crate) fn end_savepoint_settings(&self, end: TransactionEnd) {
        let Some(savepoints) = self.transactions.current_savepoints() else { return };
        let mut changes = self.setting_changes.lock();
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
                self.put_back(&first.options);
            }
        }
    }

    /// Saves the options before a change in a transaction.
    pub(super) fn remember_settings(&self) {
        let Some(savepoints) = self.transactions.current_savepoints() else { return };
        let options = self.current_options();
        if DialectName::parse(&options.dialect) == Some(DialectName::MySql) {
            return;
        }
        let mut changes = self.setting_changes.lock();
        if changes.earlier.last().is_none_or(|last| last.savepoints < savepoints) {
            let locals = changes.locals.clone();
            changes.earlier.push(EarlierSettings { savepoints, options, locals });
        }
    }

    pub(super) fn forget_locals(&self) {
        self.setting_changes.lock().locals.clear();
    }

    /// An assignment of the current value; without value for a default parameter.
    fn value_of(&self, name: &str) -> Result<Assignment> {
        let options = self.current_options();
        Ok(match setting_lookup::find(name)? {
            SettingKind::Parameter(parameter) => Assignment {
                name: parameter.name.to_owned(),
                value: options.parameters.get(parameter.name).cloned(),
            },
            // The search path determines the schema.
            SettingKind::Option(option) if option.name == "schema" && !options.search_path.is_empty() => {
                Assignment { name: SEARCH_PATH.to_owned(), value: Some(options.search_path.clone()) }
            }
            SettingKind::Option(option) => {
                let settings = settings_view::settings(&options, &self.principal.name);
                let setting = settings.into_iter().find(|setting| setting.name == option.name);
                Assignment { name: option.name.to_owned(), value: setting.map(|setting| setting.value) }
            }
        })
    }
}
