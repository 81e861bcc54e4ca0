//! Settings that the client changes, and session values that the engine asks for.

use super::ClientSession;
use crate::options::{DEFAULT_ISOLATION, ISOLATION, Options};
use crate::query;
use crate::session_statements::stop_by_number;
use crate::setting_lookup::{self, SEARCH_PATH, TIME_ZONE};
use crate::settings_view;
use bowshot_api::{Error, ErrorKind, Layout, OptionValue, Reason, Result, TransactionId};
use bowshot_engine::{Assignment, DialectName, SESSION_SEARCH_PATH, explicit_schemas, join_path, split_path};
use bowshot_policy::snapshot::Isolation;
use bowshot_system_catalog::client::{Client, NamedStatement, OpenCursor, Setting};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// PostgreSQL's default schema.
const PUBLIC: &str = "public";
const READ_ONLY: &str = "transaction_read_only";
const MAX_SCHEMAS: usize = 64;

/// The session behind the engine's trait.
pub(super) fn asked(session: &Weak<ClientSession>) -> Arc<dyn Client> {
    Arc::new(Me(Weak::clone(session)))
}

impl ClientSession {
    /// How long a statement may run; zero for no limit.
    pub(crate) fn timeout(&self) -> Duration {
        query::timeout(&self.options.lock(), self)
    }

    pub(super) fn layout(&self) -> Layout {
        self.options.lock().layout
    }

    /// Whether `SET name` is a session option; others go to the engine.
    pub(crate) fn owns_option(&self, name: &str) -> bool {
        !self.engine.is_scratch() || (setting_lookup::exact(name).is_some() && name != "time_zone")
    }

    /// Sets an option here and in the engine.
    pub(super) fn change_setting(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        let value = match value {
            Some(OptionValue::String(list)) if name.eq_ignore_ascii_case(SEARCH_PATH) => {
                return self.set_search_path(&list);
            }
            Some(OptionValue::String(text)) => {
                Some(OptionValue::String(setting_lookup::translated(name, &text)?))
            }
            other => other,
        };
        let mut options = self.options.lock();
        let mut changed = Options::clone(&options);
        let setting =
            changed.set(name, value.as_ref(), (&self.server.defaults, &self.server.context.limits))?;
        self.check_names(&options, &changed)?;
        if name.eq_ignore_ascii_case(DEFAULT_ISOLATION) && self.transactions.current().is_some() {
            self.defer_isolation(&options, &mut changed);
        }
        // Another dialect may have another level, which is not that of the open transaction.
        let is_chosen = changed.parameters.get(ISOLATION) != options.parameters.get(ISOLATION);
        if is_chosen && changed.isolation() != options.isolation() {
            self.transactions.set_isolation(None, changed.isolation())?;
        }
        if let Some((key, value)) = setting {
            self.engine.set_config(key, &value)?;
        }
        if changed.search_path != options.search_path {
            self.engine.set_config(SESSION_SEARCH_PATH, &changed.search_path)?;
        }
        self.put_options(&mut options, changed);
        Ok(())
    }

    /// Sets options. A new search path invalidates the plans of prepared statements.
    fn put_options(&self, options: &mut Arc<Options>, changed: Options) {
        if options.names() != changed.names() {
            self.prepared.expire_plans();
        }
        *options = Arc::new(changed);
    }

    /// Sets the search path. A single schema is the option `schema`; `public` means the default, unless such a schema
    /// exists.
    fn set_search_path(&self, list: &str) -> Result<()> {
        let names = explicit_schemas(list);
        let one = match names.as_slice() {
            [] => None,
            [one] if one == PUBLIC && !self.has_schema(one) => None,
            [one] if self.is_postgres() && !self.has_schema(one) => {
                return self.set_schemas(one, &split_path(list), list);
            }
            [one] => Some(OptionValue::String(one.clone())),
            [first, ..] => return self.set_schemas(first, &split_path(list), list),
        };
        self.change_setting("schema", one)
    }

    fn set_schemas(&self, written_first: &str, names: &[String], list: &str) -> Result<()> {
        if names.len() > MAX_SCHEMAS {
            let message =
                format!("`search_path` has {} schemas, and the limit is {MAX_SCHEMAS}", names.len());
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("name tables of other schemas by `schema.table`"));
        }
        let mut options = self.options.lock();
        let found = self.engine.schemas_of_path(list, &self.engine.pin());
        let schema = match found.into_iter().next() {
            Some(schema) => schema,
            // As in PostgreSQL, where names are then found nowhere, until such a schema is made.
            None if is_postgres(&options) => written_first.to_owned(),
            None => return Err(schema_not_found(written_first)),
        };
        let search_path = join_path(names);
        self.engine.set_config("datafusion.catalog.default_schema", &schema)?;
        self.engine.set_config(SESSION_SEARCH_PATH, &search_path)?;
        let changed = Options { schema, search_path, ..Options::clone(&options) };
        self.put_options(&mut options, changed);
        Ok(())
    }

    fn is_postgres(&self) -> bool {
        is_postgres(&self.options.lock())
    }

    fn has_schema(&self, schema: &str) -> bool {
        let catalog = self.options.lock().catalog.clone();
        let schemas = self.engine.schemas(Some(&catalog), None, &self.engine.pin());
        schemas.iter().any(|(_, there)| there == schema)
    }

    pub(crate) fn use_names(&self, catalog: &str, schema: &str) -> Result<()> {
        self.remember_settings();
        let mut options = self.options.lock();
        self.engine.set_config("datafusion.catalog.default_catalog", catalog)?;
        self.engine.set_config("datafusion.catalog.default_schema", schema)?;
        self.engine.set_config(SESSION_SEARCH_PATH, "")?;
        let (catalog, schema) = (catalog.to_owned(), schema.to_owned());
        let changed = Options { catalog, schema, search_path: String::new(), ..Options::clone(&options) };
        self.put_options(&mut options, changed);
        Ok(())
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.options.lock().isolation()
    }

    /// Resets all options to those of a new session.
    pub(crate) fn reset_all(&self) {
        self.remember_settings();
        self.forget_locals();
        self.put_back(&Options::new(&self.server.defaults));
    }

    /// Restores earlier options, here and in the engine.
    pub(crate) fn put_back(&self, earlier: &Options) {
        let mut options = self.options.lock();
        let current = options.engine_settings();
        // A value that is set again would count as another configuration in the keys of cached joins.
        let changed = earlier.engine_settings().into_iter().filter(|setting| !current.contains(setting));
        for (key, value) in changed {
            if let Err(error) = self.engine.set_config(key, &value) {
                tracing::warn!(option = key, %error, "a session option was not set back");
            }
        }
        self.put_options(&mut options, earlier.clone());
    }

    /// Catalog and schema must exist, or every later statement would fail.
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
            return Err(schema_not_found(&new.schema));
        }
        Ok(())
    }

    /// The options with the effective schema and the transaction's mode.
    fn effective_options(&self) -> Options {
        let mut options = Options::clone(&self.current_options());
        if self.transactions.is_read_only() {
            options.parameters.insert(READ_ONLY, "on".to_owned());
        }
        if !options.search_path.is_empty() {
            options.schema = self.engine.default_schema();
        }
        options
    }
}

fn is_postgres(options: &Options) -> bool {
    DialectName::parse(&options.dialect) == Some(DialectName::Postgres)
}

fn schema_not_found(schema: &str) -> Error {
    Error::invalid(format!("schema `{schema}` not found"))
        .with_reason(Reason::UndefinedSchema)
        .with_hint("list the schemas with `SELECT schema_name FROM information_schema.schemata`")
}

/// A weak reference for the engine.
#[derive(Debug)]
struct Me(Weak<ClientSession>);

impl Client for Me {
    fn settings(&self) -> Vec<Setting> {
        self.0
            .upgrade()
            .map(|me| settings_view::settings(&me.effective_options(), &me.principal.name))
            .unwrap_or_default()
    }

    fn setting(&self, name: &str) -> Result<Setting> {
        let known = setting_lookup::find(name)?;
        let wanted = match known.name() {
            _ if name.eq_ignore_ascii_case(SEARCH_PATH) => SEARCH_PATH,
            option @ "time_zone" if !name.eq_ignore_ascii_case(option) => TIME_ZONE,
            option => option,
        };
        let settings = self.settings().into_iter();
        let mut found = settings.filter(|setting| setting.name == wanted);
        found.next().ok_or_else(|| Error::internal(format!("session option `{wanted}` is not shown")))
    }

    fn set(&self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        let assignment = &Assignment { name: name.to_owned(), value: value.map(str::to_owned) };
        let Some(me) = self.0.upgrade() else { return Ok(()) };
        if local && me.transactions.current().is_some() {
            return me.set_local(std::slice::from_ref(assignment));
        }
        if local {
            // It would be restored at once.
            return Ok(());
        }
        me.set(&assignment.name, assignment.value.clone().map(OptionValue::String))
    }

    fn named(&self, name: &str) -> Option<NamedStatement> {
        self.0.upgrade()?.named.get(name)
    }

    fn cursors(&self) -> Vec<OpenCursor> {
        self.0.upgrade().map(|me| me.transactions.cursors().list()).unwrap_or_default()
    }

    fn number(&self) -> i32 {
        self.0.upgrade().map_or(0, |me| me.number())
    }

    fn transaction(&self) -> Option<TransactionId> {
        self.0.upgrade()?.transactions.current()
    }

    fn is_read_only(&self) -> bool {
        self.0.upgrade().is_some_and(|me| me.transactions.is_read_only())
    }

    fn cancel_statements(&self, number: i32) -> bool {
        self.0.upgrade().is_some_and(|me| stop_by_number(&me, number).is_some())
    }

    fn end_session(&self, number: i32) -> bool {
        let ended = self.0.upgrade().and_then(|me| stop_by_number(&me, number));
        ended.inspect(|session| session.end()).is_some()
    }

    fn changed_rows(&self) -> i64 {
        self.0.upgrade().map_or(-1, |me| me.changed_rows.load(Ordering::Relaxed))
    }

    fn generated_number(&self) -> i64 {
        self.0.upgrade().map_or(0, |me| me.last_generated())
    }

    fn set_generated_number(&self, number: i64) {
        if let Some(me) = self.0.upgrade() {
            me.set_last_generated(number);
        }
    }
}
