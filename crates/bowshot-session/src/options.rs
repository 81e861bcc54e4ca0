//! The typed options of one session. All values are parsed here.

use crate::running_statements::Language;
use crate::setting_lookup::{self, SettingKind};
use arrow::array::timezone::Tz;
use bowshot_api::{
    CompatibilityParameter, Compression, Endpoints, Error, Layout, Limits, OptionValue, Reason, Result,
    SESSION_OPTIONS, SessionOption,
};
use bowshot_engine::{
    DialectName, SESSION_CACHE, SESSION_KEY_LOOKUPS, SESSION_PLANS, SESSION_RESULTS, SESSION_SEARCH_PATH,
    SESSION_STALENESS, SESSION_VIEWS,
};
use bowshot_optimizer::SESSION_JOIN_ORDER;
use bowshot_optimizer::common_subplans::{
    SESSION_EAGER_AGGREGATION, SESSION_GROUPING_SETS, SESSION_HASHED_WINDOWS, SESSION_RANKED_WINDOWS,
    SESSION_SUBPLANS,
};
use bowshot_policy::snapshot::Isolation;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ISOLATION: &str = "transaction_isolation";
/// PostgreSQL's parameter for the isolation of later transactions.
pub(crate) const DEFAULT_ISOLATION: &str = "default_transaction_isolation";

/// How long statements of MySQL's dialect wait for a lock.
const LOCK_SECONDS: u64 = 50;

const TAG_CHARS: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) catalog: String,
    pub(crate) schema: String,
    /// The search path, if it has several schemas; `schema` is the first existing one.
    pub(crate) search_path: String,
    pub(crate) dialect: String,
    pub(crate) time_zone: String,
    pub(crate) endpoints: Endpoints,
    pub(crate) layout: Layout,
    pub(crate) retryable_results: bool,
    pub(crate) statement_timeout: Duration,
    pub(crate) join_cache: bool,
    pub(crate) result_cache: bool,
    pub(crate) key_lookups: bool,
    pub(crate) plan_cache: bool,
    pub(crate) view_rewriting: bool,
    pub(crate) max_staleness: Duration,
    pub(crate) joins_by_statistics: bool,
    pub(crate) common_subplans: bool,
    pub(crate) grouping_set_cascade: bool,
    pub(crate) eager_aggregation: bool,
    pub(crate) ranked_windows: bool,
    pub(crate) hashed_windows: bool,
    pub(crate) query_tag: Arc<str>,
    /// Compatibility parameters with changed values.
    pub(crate) parameters: BTreeMap<&'static str, String>,
}

/// The isolation level of sessions in a dialect that choose none, where it is not that of all.
pub(crate) fn default_isolation(dialect: &str) -> Option<&'static str> {
    matches!(dialect, "postgres" | "postgresql").then_some("read committed")
}

pub(crate) type EngineSetting = (&'static str, String);

impl Options {
    /// The defaults, with the operator's dialect.
    pub(crate) fn new(defaults: &Defaults) -> Self {
        Self {
            catalog: defaults.catalog.clone(),
            schema: defaults.schema.clone(),
            search_path: String::new(),
            dialect: defaults.dialect.clone(),
            time_zone: "+00:00".to_owned(),
            endpoints: Endpoints::Exactly(1),
            layout: Layout::default(),
            retryable_results: false,
            statement_timeout: Duration::ZERO,
            join_cache: true,
            result_cache: true,
            key_lookups: true,
            plan_cache: true,
            view_rewriting: true,
            max_staleness: Duration::ZERO,
            joins_by_statistics: true,
            common_subplans: true,
            grouping_set_cascade: true,
            eager_aggregation: true,
            ranked_windows: true,
            hashed_windows: true,
            query_tag: Arc::default(),
            parameters: BTreeMap::new(),
        }
    }

    /// Sets one option from any type of value, or back to its default with `None`.
    ///
    /// # Errors
    /// `NotFound` for an unknown name, `Invalid` for a value that does not fit.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: Option<&OptionValue>,
        context: (&Defaults, &Limits),
    ) -> Result<Option<EngineSetting>> {
        let (defaults, limits) = context;
        let option = match setting_lookup::find(name)? {
            SettingKind::Option(option) => option,
            SettingKind::Parameter(parameter) => return self.keep(parameter, value).map(|()| None),
        };
        let (text, fresh) = (value.map(text), Self::new(defaults));
        let given = text.as_deref();
        let name = |text: &str| Some(text.to_owned());
        let taken = match option.name {
            "catalog" => put(&mut self.catalog, fresh.catalog, given, name),
            "schema" => {
                self.search_path.clear();
                put(&mut self.schema, fresh.schema, given, name)
            }
            "dialect" => put(&mut self.dialect, fresh.dialect, given, |text| {
                engine_dialect(text).map(|_| text.to_ascii_lowercase())
            }),
            "time_zone" => put(&mut self.time_zone, fresh.time_zone, given, |text| {
                text.parse::<Tz>().ok().map(|_| text.to_owned())
            }),
            "endpoints" => put(&mut self.endpoints, fresh.endpoints, given, |text| endpoints(text, limits)),
            "views" => put(&mut self.layout.views, fresh.layout.views, given, boolean),
            "dictionaries" => put(&mut self.layout.dictionaries, fresh.layout.dictionaries, given, boolean),
            "wide_numbers" => put(&mut self.layout.wide_numbers, fresh.layout.wide_numbers, given, boolean),
            "json_variants" => {
                put(&mut self.layout.json_variants, fresh.layout.json_variants, given, boolean)
            }
            "compression" => put(&mut self.layout.compression, fresh.layout.compression, given, compression),
            "retryable_results" => put(&mut self.retryable_results, fresh.retryable_results, given, boolean),
            "statement_timeout_ms" => {
                put(&mut self.statement_timeout, fresh.statement_timeout, given, |text| {
                    text.trim().parse().ok().map(Duration::from_millis)
                })
            }
            "join_cache" => put(&mut self.join_cache, fresh.join_cache, given, boolean),
            "result_cache" => put(&mut self.result_cache, fresh.result_cache, given, boolean),
            "key_lookups" => put(&mut self.key_lookups, fresh.key_lookups, given, boolean),
            "plan_cache" => put(&mut self.plan_cache, fresh.plan_cache, given, boolean),
            "materialized_view_rewrite" => {
                put(&mut self.view_rewriting, fresh.view_rewriting, given, boolean)
            }
            "max_staleness_ms" => put(&mut self.max_staleness, fresh.max_staleness, given, |text| {
                text.trim().parse().ok().map(Duration::from_millis)
            }),
            "join_order" => {
                put(&mut self.joins_by_statistics, fresh.joins_by_statistics, given, by_statistics)
            }
            "common_subplans" => put(&mut self.common_subplans, fresh.common_subplans, given, boolean),
            "grouping_set_cascade" => {
                put(&mut self.grouping_set_cascade, fresh.grouping_set_cascade, given, boolean)
            }
            "eager_aggregation" => put(&mut self.eager_aggregation, fresh.eager_aggregation, given, boolean),
            "ranked_windows" => put(&mut self.ranked_windows, fresh.ranked_windows, given, boolean),
            "hashed_windows" => put(&mut self.hashed_windows, fresh.hashed_windows, given, boolean),
            "query_tag" => put(&mut self.query_tag, fresh.query_tag, given, query_tag),
            other => return Err(Error::internal(format!("option `{other}` has no setter"))),
        };
        taken.ok_or_else(|| wrong(option, given.unwrap_or_default()))?;
        Ok(self.engine_setting(option.name))
    }

    pub(crate) fn names(&self) -> [&str; 3] {
        [&self.catalog, &self.schema, &self.search_path]
    }

    pub(crate) fn engine_settings(&self) -> Vec<EngineSetting> {
        let settings = SESSION_OPTIONS.iter().filter_map(|option| self.engine_setting(option.name));
        settings.chain([(SESSION_SEARCH_PATH, self.search_path.clone())]).collect()
    }

    fn engine_setting(&self, option: &str) -> Option<EngineSetting> {
        Some(match option {
            "catalog" => ("datafusion.catalog.default_catalog", self.catalog.clone()),
            "schema" => ("datafusion.catalog.default_schema", self.schema.clone()),
            "dialect" => ("datafusion.sql_parser.dialect", engine_dialect(&self.dialect)?),
            "time_zone" => ("datafusion.execution.time_zone", self.time_zone.clone()),
            "join_cache" => (SESSION_CACHE, self.join_cache.to_string()),
            "result_cache" => (SESSION_RESULTS, self.result_cache.to_string()),
            "key_lookups" => (SESSION_KEY_LOOKUPS, self.key_lookups.to_string()),
            "plan_cache" => (SESSION_PLANS, self.plan_cache.to_string()),
            "materialized_view_rewrite" => (SESSION_VIEWS, self.view_rewriting.to_string()),
            "max_staleness_ms" => (SESSION_STALENESS, self.max_staleness.as_millis().to_string()),
            "join_order" => (SESSION_JOIN_ORDER, self.joins_by_statistics.to_string()),
            "common_subplans" => (SESSION_SUBPLANS, self.common_subplans.to_string()),
            "grouping_set_cascade" => (SESSION_GROUPING_SETS, self.grouping_set_cascade.to_string()),
            "eager_aggregation" => (SESSION_EAGER_AGGREGATION, self.eager_aggregation.to_string()),
            "ranked_windows" => (SESSION_RANKED_WINDOWS, self.ranked_windows.to_string()),
            "hashed_windows" => (SESSION_HASHED_WINDOWS, self.hashed_windows.to_string()),
            _ => return None,
        })
    }

    /// What a query means that is logged; not with a search path, by which each name is in another schema.
    pub(crate) fn language(&self) -> Option<Language> {
        let dialect = DialectName::parse(&self.dialect).filter(|_| self.search_path.is_empty())?;
        Some(Language { catalog: self.catalog.clone(), schema: self.schema.clone(), dialect })
    }

    pub(crate) fn isolation(&self) -> Isolation {
        let chosen = self.parameters.get(ISOLATION).map(String::as_str);
        match chosen.or_else(|| default_isolation(&self.dialect)) {
            Some("serializable") => Isolation::Serializable,
            Some("read committed" | "read-committed" | "read uncommitted" | "read-uncommitted") => {
                Isolation::ReadCommitted
            }
            _ => Isolation::Snapshot,
        }
    }

    /// How long a statement waits for a lock; without a limit if `None`.
    pub(crate) fn lock_timeout(&self) -> Option<Duration> {
        let number = |name: &str| self.parameters.get(name).and_then(|value| value.parse::<u64>().ok());
        if self.dialect == "mysql" {
            let seconds = number("innodb_lock_wait_timeout").unwrap_or(LOCK_SECONDS);
            return Some(Duration::from_secs(seconds));
        }
        number("lock_timeout").filter(|limit| *limit > 0).map(Duration::from_millis)
    }

    fn keep(
        &mut self,
        parameter: &'static CompatibilityParameter,
        value: Option<&OptionValue>,
    ) -> Result<()> {
        // The session's level applies to the next transaction.
        let names = [Some(parameter.name), (parameter.name == DEFAULT_ISOLATION).then_some(ISOLATION)];
        let Some(value) = value else {
            names.iter().flatten().for_each(|name| drop(self.parameters.remove(name)));
            if parameter.name == ISOLATION
                && let Some(level) = self.parameters.get(DEFAULT_ISOLATION).cloned()
            {
                self.parameters.insert(ISOLATION, level);
            }
            return Ok(());
        };
        let value = text(value);
        let kept = parameter.accept(&value).ok_or_else(|| refused(parameter, &value))?;
        names.into_iter().flatten().for_each(|name| drop(self.parameters.insert(name, kept.clone())));
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<(String, OptionValue)> {
        let named = |option: &SessionOption| Some((option.name.to_owned(), self.value(option.name)?));
        SESSION_OPTIONS.iter().filter_map(named).collect()
    }

    /// The value of one option; `None` for an unknown name.
    pub(crate) fn value(&self, name: &str) -> Option<OptionValue> {
        let text = |text: &str| OptionValue::String(text.to_owned());
        let milliseconds =
            |time: Duration| OptionValue::Int64(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        Some(match name {
            "catalog" => text(&self.catalog),
            "schema" => text(&self.schema),
            "dialect" => text(&self.dialect),
            "time_zone" => text(&self.time_zone),
            "endpoints" => match self.endpoints {
                Endpoints::Auto => text("auto"),
                Endpoints::Exactly(count) => OptionValue::String(count.to_string()),
            },
            "views" => OptionValue::Bool(self.layout.views),
            "dictionaries" => OptionValue::Bool(self.layout.dictionaries),
            "wide_numbers" => OptionValue::Bool(self.layout.wide_numbers),
            "json_variants" => OptionValue::Bool(self.layout.json_variants),
            "compression" => text(match self.layout.compression {
                Compression::None => "none",
                Compression::Lz4 => "lz4",
                Compression::Zstd => "zstd",
            }),
            "retryable_results" => OptionValue::Bool(self.retryable_results),
            "statement_timeout_ms" => milliseconds(self.statement_timeout),
            "join_cache" => OptionValue::Bool(self.join_cache),
            "result_cache" => OptionValue::Bool(self.result_cache),
            "key_lookups" => OptionValue::Bool(self.key_lookups),
            "plan_cache" => OptionValue::Bool(self.plan_cache),
            "materialized_view_rewrite" => OptionValue::Bool(self.view_rewriting),
            "max_staleness_ms" => milliseconds(self.max_staleness),
            "join_order" => text(if self.joins_by_statistics { "statistics" } else { "query" }),
            "common_subplans" => OptionValue::Bool(self.common_subplans),
            "grouping_set_cascade" => OptionValue::Bool(self.grouping_set_cascade),
            "eager_aggregation" => OptionValue::Bool(self.eager_aggregation),
            "ranked_windows" => OptionValue::Bool(self.ranked_windows),
            "hashed_windows" => OptionValue::Bool(self.hashed_windows),
            "query_tag" => text(&self.query_tag),
            _ => return None,
        })
    }
}

/// The operator's defaults for new sessions.
#[derive(Debug, Clone)]
pub(crate) struct Defaults {
    pub(crate) catalog: String,
    pub(crate) schema: String,
    pub(crate) dialect: String,
}

fn engine_dialect(name: &str) -> Option<String> {
    bowshot_engine::parser_dialect(name).map(|dialect| dialect.to_string())
}

/// Sets an option to what a text stands for, or to its default without one.
fn put<T>(slot: &mut T, default: T, given: Option<&str>, read: impl FnOnce(&str) -> Option<T>) -> Option<()> {
    *slot = given.map_or(Some(default), read)?;
    Some(())
}

pub(crate) fn text(value: &OptionValue) -> String {
    match value {
        OptionValue::String(text) => text.clone(),
        OptionValue::Bool(value) => value.to_string(),
        OptionValue::Int64(value) => value.to_string(),
        OptionValue::Double(value) => value.to_string(),
        OptionValue::StringList(list) => list.join(","),
    }
}

fn wrong(option: &SessionOption, value: &str) -> Error {
    Error::invalid(format!("invalid value `{value}` for session option `{}`", option.name))
        .with_reason(Reason::InvalidValue)
        .with_hint(format!("it is a {}: {}", option.kind, option.text))
}

fn refused(parameter: &CompatibilityParameter, value: &str) -> Error {
    let error = Error::invalid(format!("invalid value `{value}` for `{}`", parameter.name))
        .with_reason(Reason::InvalidValue);
    match parameter.name {
        "autocommit" => error.with_hint("begin a transaction with BEGIN"),
        _ => error.with_hint(format!("it takes {}: {}", parameter.takes(), parameter.text)),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Some(true),
        "false" | "off" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// Whether joins are reordered by statistics.
fn by_statistics(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "statistics" => Some(true),
        "query" => Some(false),
        _ => None,
    }
}

fn query_tag(text: &str) -> Option<Arc<str>> {
    let fits = text.chars().count() <= TAG_CHARS && !text.chars().any(char::is_control);
    fits.then(|| Arc::from(text))
}

fn compression(text: &str) -> Option<Compression> {
    match text.trim().to_ascii_lowercase().as_str() {
        "none" | "off" | "" => Some(Compression::None),
        "lz4" | "lz4_frame" => Some(Compression::Lz4),
        "zstd" => Some(Compression::Zstd),
        _ => None,
    }
}

fn endpoints(text: &str, limits: &Limits) -> Option<Endpoints> {
    if text.trim().eq_ignore_ascii_case("auto") {
        return Some(Endpoints::Auto);
    }
    let count: usize = text.trim().parse().ok()?;
    (1..=limits.max_endpoints).contains(&count).then_some(Endpoints::Exactly(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Defaults {
        Defaults { catalog: "bowshot".into(), schema: "main".into(), dialect: "ansi".into() }
    }

    #[test]
    fn every_option_can_be_set_listed_and_reset() {
        let (defaults, limits) = (defaults(), Limits::default());
        let fresh = Options::new(&defaults);
        for (name, value) in [
            ("catalog", "other"),
            ("schema", "other"),
            ("dialect", "mysql"),
            ("time_zone", "+02:00"),
            ("endpoints", "4"),
            ("views", "true"),
            ("dictionaries", "on"),
            ("wide_numbers", "on"),
            ("json_variants", "on"),
            ("compression", "zstd"),
            ("retryable_results", "1"),
            ("statement_timeout_ms", "1500"),
            ("join_cache", "off"),
            ("result_cache", "off"),
            ("key_lookups", "off"),
            ("plan_cache", "off"),
            ("materialized_view_rewrite", "off"),
            ("max_staleness_ms", "1500"),
            ("join_order", "query"),
            ("common_subplans", "off"),
            ("grouping_set_cascade", "off"),
            ("eager_aggregation", "off"),
            ("ranked_windows", "off"),
            ("hashed_windows", "off"),
            ("query_tag", "nightly report"),
        ] {
            let mut options = fresh.clone();
            options.set(name, Some(&OptionValue::String(value.into())), (&defaults, &limits)).expect(name);
            assert_ne!(options, fresh, "{name} changed nothing");
            assert!(options.list().iter().any(|(listed, _)| listed == name), "{name} is not listed");
            options.set(name, None, (&defaults, &limits)).expect(name);
            assert_eq!(options, fresh, "{name} was not reset");
        }
        assert_eq!(fresh.list().len(), bowshot_api::SESSION_OPTIONS.len());
    }

    #[test]
    fn parameters_are_kept_and_reset() {
        let (defaults, limits) = (defaults(), Limits::default());
        let mut options = Options::new(&defaults);
        options
            .set("APPLICATION_NAME", Some(&OptionValue::String("x".into())), (&defaults, &limits))
            .expect("is kept");
        assert_eq!(options.parameters.get("application_name").map(String::as_str), Some("x"));
        options.set("application_name", None, (&defaults, &limits)).expect("is reset");
        assert_eq!(options, Options::new(&defaults));
        let error = options.set("autocommit", Some(&OptionValue::String("0".into())), (&defaults, &limits));
        assert_eq!(error.expect_err("not so").kind(), bowshot_api::ErrorKind::Invalid);
    }

    #[test]
    fn tags_are_short_texts_of_one_line() {
        let (defaults, limits) = (defaults(), Limits::default());
        let mut options = Options::new(&defaults);
        let (longest, longer) = ("é".repeat(256), "é".repeat(257));
        for (tag, is_taken) in [
            ("", true),
            ("team=finance; job 'x'", true),
            (longest.as_str(), true),
            (longer.as_str(), false),
            ("two\nlines", false),
            ("\u{1b}[31m", false),
            ("\u{85}", false),
        ] {
            let set = options.set("query_tag", Some(&OptionValue::String(tag.into())), (&defaults, &limits));
            assert_eq!(set.is_ok(), is_taken, "{tag:?}");
            assert_eq!(&*options.query_tag == tag, is_taken, "{tag:?}");
        }
        assert!(
            options.engine_setting("query_tag").is_none(),
            "neither plans nor cached results depend on it"
        );
    }

    #[test]
    fn wrong_names_and_values_are_refused() {
        let (defaults, limits) = (defaults(), Limits::default());
        let mut options = Options::new(&defaults);
        for (name, value) in [
            ("endpoints", "0"),
            ("endpoints", "65"),
            ("views", "maybe"),
            ("compression", "gzip"),
            ("dialect", "oracle"),
            ("time_zone", "nonsense"),
        ] {
            let error = options.set(name, Some(&OptionValue::String(value.into())), (&defaults, &limits));
            assert_eq!(error.expect_err(value).kind(), bowshot_api::ErrorKind::Invalid);
        }
        let error = options.set("datafusion.runtime.memory_limit", None, (&defaults, &limits));
        assert_eq!(error.expect_err("not settable").kind(), bowshot_api::ErrorKind::NotFound);
    }
}
