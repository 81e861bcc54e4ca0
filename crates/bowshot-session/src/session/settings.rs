//! What a session's client sets, and what the engine asks of it.

use super::ClientSession;
use crate::known::{self, Known};
use crate::options::Options;
use crate::shown;
use bowshot_api::{Error, OptionValue, Reason, Result};
use bowshot_engine::{Assignment, Client, NamedStatement, Setting};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

/// The session as the engine asks it.
pub(super) fn asked(session: &Weak<ClientSession>) -> Arc<dyn Client> {
    Arc::new(Me(Weak::clone(session)))
}

impl ClientSession {
    /// Whether `SET name` means one of the session options; scratch sessions hand the rest to the engine.
    pub(crate) fn owns_option(&self, name: &str) -> bool {
        !self.engine.is_scratch() || (known::exact(name).is_some() && name != "time_zone")
    }

    /// Sets an option here and in the engine.
    pub(crate) fn set(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        let value = match value {
            Some(OptionValue::String(text)) => {
                known::translated(name, &text, |schema| self.has_schema(schema))?.map(OptionValue::String)
            }
            other => other,
        };
        let mut options = self.lock_options();
        let mut changed = options.clone();
        let setting =
            changed.set(name, value.as_ref(), (&self.server.defaults, &self.server.house.limits))?;
        self.check_names(&options, &changed)?;
        if let Some((key, value)) = setting {
            self.engine.set_config(key, &value)?;
        }
        *options = changed;
        Ok(())
    }

    fn has_schema(&self, schema: &str) -> bool {
        let catalog = self.lock_options().catalog.clone();
        let schemas = self.engine.schemas(Some(&catalog), None, &self.engine.pin());
        schemas.iter().any(|(_, there)| there == schema)
    }

    /// Sets catalog and schema together: the schema need not be in the catalog that was in force before.
    pub(crate) fn use_names(&self, catalog: &str, schema: &str) -> Result<()> {
        let mut options = self.lock_options();
        self.engine.set_config("datafusion.catalog.default_catalog", catalog)?;
        self.engine.set_config("datafusion.catalog.default_schema", schema)?;
        (options.catalog, options.schema) = (catalog.to_owned(), schema.to_owned());
        Ok(())
    }

    /// Sets what is set back when the transaction ends.
    pub(crate) fn set_local(&self, assignments: &[Assignment]) -> Result<()> {
        for Assignment { name, value } in assignments {
            let before = self.value_of(name)?;
            self.set(name, value.clone().map(OptionValue::String))?;
            self.lock_locals().push(before);
        }
        Ok(())
    }

    /// Sets back what `SET LOCAL` has set, once no transaction is open any more.
    pub(crate) fn end_locals(&self) {
        if self.transactions.current().is_some() {
            return;
        }
        let locals = std::mem::take(&mut *self.lock_locals());
        for Assignment { name, value } in locals.into_iter().rev() {
            if let Err(error) = self.set(&name, value.map(OptionValue::String)) {
                tracing::warn!(option = name, %error, "a session option was not set back");
            }
        }
    }

    fn lock_locals(&self) -> MutexGuard<'_, Vec<Assignment>> {
        self.locals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An option under its own name with its value; without one where that is the default of a parameter.
    fn value_of(&self, name: &str) -> Result<Assignment> {
        let options = self.current_options();
        Ok(match known::find(name)? {
            Known::Parameter(parameter) => Assignment {
                name: parameter.name.to_owned(),
                value: options.parameters.get(parameter.name).cloned(),
            },
            Known::Option(option) => {
                let settings = shown::settings(&options, &self.principal.name);
                let setting = settings.into_iter().find(|setting| setting.name == option.name);
                Assignment { name: option.name.to_owned(), value: setting.map(|setting| setting.value) }
            }
        })
    }

    /// Sets everything back to what a new session has.
    pub(crate) fn reset_all(&self) {
        self.lock_locals().clear();
        self.put_back(Options::new(&self.server.defaults));
    }

    /// Puts other options in the place of those in force, here and in the engine.
    pub(crate) fn put_back(&self, earlier: Options) {
        let mut options = self.lock_options();
        for (key, value) in earlier.engine_settings() {
            if let Err(error) = self.engine.set_config(key, &value) {
                tracing::warn!(option = key, %error, "a session option was not set back");
            }
        }
        *options = earlier;
    }

    /// Names of catalog and schema must exist, else every later statement would fail in a puzzling way.
    fn check_names(&self, old: &Options, new: &Options) -> Result<()> {
        let pinned = self.engine.pin();
        if new.catalog != old.catalog && !self.engine.catalogs(&pinned).contains(&new.catalog) {
            return Err(Error::invalid(format!("catalog `{}` not found", new.catalog))
                .with_reason(Reason::UndefinedCatalog)
                .with_hint(
                    "list the catalogs with `SELECT DISTINCT table_catalog FROM information_schema.tables`",
                ));
        }
        let schemas = || self.engine.schemas(Some(&new.catalog), None, &pinned);
        if new.schema != old.schema && !schemas().iter().any(|(_, schema)| *schema == new.schema) {
            return Err(Error::invalid(format!("schema `{}` not found", new.schema))
                .with_reason(Reason::UndefinedSchema)
                .with_hint("list the schemas with `SELECT schema_name FROM information_schema.schemata`"));
        }
        Ok(())
    }
}

/// The session as the engine asks it, which must not keep it.
#[derive(Debug)]
struct Me(Weak<ClientSession>);

impl Client for Me {
    fn settings(&self) -> Vec<Setting> {
        self.0
            .upgrade()
            .map(|me| shown::settings(&me.current_options(), &me.principal.name))
            .unwrap_or_default()
    }

    fn setting(&self, name: &str) -> Result<Setting> {
        let wanted = match known::find(name)? {
            Known::Option(option) => option.name,
            Known::Parameter(parameter) => parameter.name,
        };
        let settings = self.settings().into_iter();
        let mut found = settings.filter(|setting| setting.name == wanted);
        found.next().ok_or_else(|| Error::internal(format!("session option `{wanted}` is not shown")))
    }

    fn set(&self, assignment: &Assignment, local: bool) -> Result<()> {
        let Some(me) = self.0.upgrade() else { return Ok(()) };
        if local && me.transactions.current().is_some() {
            return me.set_local(std::slice::from_ref(assignment));
        }
        if local {
            // It would be set back at once.
            return Ok(());
        }
        me.set(&assignment.name, assignment.value.clone().map(OptionValue::String))
    }

    fn named(&self, name: &str) -> Option<NamedStatement> {
        self.0.upgrade()?.named.get(name)
    }

    fn number(&self) -> i32 {
        self.0.upgrade().map_or(0, |me| me.number)
    }

    fn changed_rows(&self) -> i64 {
        self.0.upgrade().map_or(-1, |me| me.changed_rows.load(Ordering::Relaxed))
    }

    fn generated_number(&self) -> i64 {
        self.0.upgrade().map_or(0, |me| me.last_generated())
    }
}
