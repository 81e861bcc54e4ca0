//! Functions that describe the session, and what the server knows of tables and types. Each session has its own, with its facts in
//! them; they are stable, so that no result with them in it is cached for another session.

mod about_tables;
mod about_types;
mod administration;
mod locks;
mod nullary;
mod objects;
mod oid_lookup;
mod privileges;
mod random;
pub mod relations;
pub mod sequences;
mod settings;
mod sleep;
mod unsupported;

use crate::client::{ClientSlot, Flavour};
use crate::named_locks::SessionLocks;
use crate::pg_catalog::oids;
use crate::statement_tables::StatementTables;
use bowshot_api::Principal;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_policy::Access;
use bowshot_policy::SessionAccess;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::EntryName;
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::scalar::ScalarValue;
use oid_lookup::OidLookup;
pub use random::SeededRandom;
use sequences::GivenNumbers;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What the functions of a session tell about.
#[derive(Debug, Clone)]
pub struct Facts {
    pub principal: Principal,
    pub session_access: Arc<SessionAccess>,
    pub tables: Arc<dyn TableLookup>,
    pub client: ClientSlot,
    pub seeded: SeededRandom,
    pub locks: SessionLocks,
    pub numbers: GivenNumbers,
}

/// Tables that are not in the snapshot of the session: those of files, of the server and of external databases.
pub trait TableLookup: std::fmt::Debug + Send + Sync {
    /// Whether a table or view has this name, in the snapshot or elsewhere. May wait for an external database.
    fn has(&self, name: &EntryName, pinned: &Pinned, caller: &Principal) -> bool;

    /// Whether a table of files has this name.
    fn is_file_table(&self, name: &EntryName) -> bool;

    /// The name by which rights on a table of files go.
    fn file_table(&self, name: &EntryName) -> EntryName;

    fn file_names(&self) -> Vec<String>;

    /// Names of the tables in schema `system`.
    fn system_names(&self) -> Vec<String>;

    /// The schemas in which names without a schema are looked up, as far as they are there.
    fn search_path(&self, options: &ConfigOptions, pinned: &Pinned, access: &Access) -> Vec<String>;
}

/// What one call knows.
pub(crate) struct Call<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) options: &'a ConfigOptions,
    pub(crate) arguments: &'a [ScalarValue],
    pub(crate) numbered: &'a OidLookup,
}

/// A function: its name, how many arguments it takes at least and at most, its type, and what gives its value.
pub(crate) struct FunctionSpec {
    pub(crate) name: &'static str,
    pub(crate) arguments: (usize, usize),
    pub(crate) returns: fn() -> DataType,
    pub(crate) value: fn(&Call<'_>) -> Result<ScalarValue>,
}

pub(crate) const fn spec(
    name: &'static str,
    arguments: (usize, usize),
    returns: fn() -> DataType,
    value: fn(&Call<'_>) -> Result<ScalarValue>,
) -> FunctionSpec {
    FunctionSpec { name, arguments, returns, value }
}

impl Call<'_> {
    /// A text argument; `None` for null.
    pub(crate) fn text(&self, n: usize) -> Option<String> {
        match self.arguments.get(n)? {
            ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
                text.clone()
            }
            other if other.is_null() => None,
            other => Some(other.to_string()),
        }
    }

    /// A number argument; `None` for null and for what is none.
    pub(crate) fn number(&self, n: usize) -> Option<i64> {
        match self.arguments.get(n)?.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        }
    }

    /// The elements of a list argument; `None` for null.
    pub(crate) fn elements(&self, n: usize) -> Option<Vec<ScalarValue>> {
        let list = match self.arguments.get(n)? {
            ScalarValue::List(list) if list.is_valid(0) => list.value(0),
            ScalarValue::LargeList(list) if list.is_valid(0) => list.value(0),
            ScalarValue::FixedSizeList(list) if list.is_valid(0) => list.value(0),
            _ => return None,
        };
        (0..list.len()).map(|at| ScalarValue::try_from_array(&list, at).ok()).collect()
    }

    pub(crate) fn truth(&self, n: usize) -> Option<bool> {
        match self.arguments.get(n)? {
            ScalarValue::Boolean(truth) => *truth,
            _ => None,
        }
    }

    pub(crate) fn flavour(&self) -> Flavour {
        Flavour::of(self.options)
    }

    pub(crate) fn catalog(&self) -> &str {
        &self.options.catalog.default_catalog
    }

    pub(crate) fn schema(&self) -> &str {
        &self.options.catalog.default_schema
    }

    /// The tables that the statement sees, as far as the session may see them.
    pub(crate) fn pinned(&self) -> Pinned {
        let session = &self.facts.session_access;
        match StatementTables::find(self.options) {
            Some(tables) => session.seen(tables, &session.access(tables)),
            None => session.pin(),
        }
    }

    /// What the session may do now, with what its transaction has made.
    pub(crate) fn access(&self) -> Access {
        let session = &self.facts.session_access;
        StatementTables::find(self.options).map_or_else(|| session.newest(), |tables| session.access(tables))
    }

    /// The schemas that are there of those in which names are looked for that do not say theirs.
    pub(crate) fn schemas(&self) -> Vec<String> {
        self.facts.tables.search_path(self.options, &self.pinned(), &self.access())
    }

    /// The table that a name without a schema means, or would mean if it were there.
    pub(crate) fn unqualified(&self, name: &str) -> EntryName {
        let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, name);
        if self.pinned().entry(&own).is_some() {
            return own;
        }
        let first = EntryName::new(self.catalog(), self.schema(), name);
        let schemas = self.schemas();
        if schemas.len() < 2 {
            return first;
        }
        let of_schema = |schema: String| EntryName::new(self.catalog(), schema, name);
        let is_there = |full: &EntryName| self.table(oids::table(full)) == Some(full);
        schemas.into_iter().map(of_schema).find(is_there).unwrap_or(first)
    }
}

/// The functions for one session.
pub fn of_session(facts: &Arc<Facts>) -> Vec<ScalarUDF> {
    let spec = nullary::FUNCTIONS
        .iter()
        .chain(about_tables::FUNCTIONS)
        .chain(about_types::FUNCTIONS)
        .chain(privileges::FUNCTIONS)
        .chain(settings::FUNCTIONS)
        .chain(unsupported::FUNCTIONS);
    let spec = spec.chain(administration::FUNCTIONS).chain(objects::FUNCTIONS).chain(relations::FUNCTIONS);
    let spec = spec.chain(sequences::FUNCTIONS);
    let stable = spec.map(|spec| (spec, Volatility::Stable));
    let changing = settings::CHANGING.iter().chain(random::CHANGING).chain(sleep::FUNCTIONS);
    let changing = changing.chain(administration::CHANGING).chain(locks::FUNCTIONS);
    let changing = changing.chain(sequences::CHANGING);
    let all = stable.chain(changing.map(|spec| (spec, Volatility::Volatile)));
    let all = all.map(|(spec, volatility)| ScalarUDF::from(SessionFunction::new(spec, facts, volatility)));
    all.chain([random::function(facts)]).collect()
}

/// What `version()` tells clients of each kind.
pub fn version(flavour: Flavour) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match flavour {
        Flavour::Postgres => format!("PostgreSQL 16.0 (Bowshot {version})"),
        Flavour::MySql => format!("8.0.36-Bowshot-{version}"),
        Flavour::Bowshot => {
            format!("Bowshot {version} on {}-{}", std::env::consts::ARCH, std::env::consts::OS)
        }
    }
}

struct SessionFunction {
    spec: &'static FunctionSpec,
    facts: Arc<Facts>,
    signature: Signature,
}

impl SessionFunction {
    fn new(spec: &'static FunctionSpec, facts: &Arc<Facts>, volatility: Volatility) -> Self {
        let (least, most) = spec.arguments;
        let forms = (least..=most)
            .map(|count| if count == 0 { TypeSignature::Nullary } else { TypeSignature::Any(count) })
            .collect();
        Self { spec, facts: Arc::clone(facts), signature: Signature::one_of(forms, volatility) }
    }
}

impl std::fmt::Debug for SessionFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionFunction").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl PartialEq for SessionFunction {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name && Arc::ptr_eq(&self.facts, &other.facts)
    }
}

impl Eq for SessionFunction {}

impl Hash for SessionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.spec.name.hash(state);
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.spec.name
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok((self.spec.returns)())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        // The next number is another one in each row.
        let rows =
            if is_constant && self.spec.name != sequences::NEXT { None } else { Some(args.number_rows) };
        let numbered = OidLookup::default();
        let value = |row: usize| {
            let arguments = args.args.iter().map(|value| match value {
                ColumnarValue::Scalar(scalar) => Ok(scalar.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            });
            let arguments = arguments.collect::<Result<Vec<_>>>()?;
            let (facts, options) = (self.facts.as_ref(), args.config_options.as_ref());
            let call = Call { facts, options, arguments: &arguments, numbered: &numbered };
            (self.spec.value)(&call)
        };
        match rows {
            None => Ok(ColumnarValue::Scalar(value(0)?)),
            Some(0) => {
                Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(&(self.spec.returns)())))
            }
            Some(rows) => {
                let values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
                Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
            }
        }
    }
}

pub(crate) const TEXT: fn() -> DataType = || DataType::Utf8;
pub(crate) const INT: fn() -> DataType = || DataType::Int32;
pub(crate) const LONG: fn() -> DataType = || DataType::Int64;
pub(crate) const BOOL: fn() -> DataType = || DataType::Boolean;
pub(crate) const LONGS: fn() -> DataType = || DataType::new_list(DataType::Int64, true);
pub(crate) const TEXTS: fn() -> DataType = || DataType::new_list(DataType::Utf8, true);

pub(crate) fn text(value: impl Into<String>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(Some(value.into())))
}

pub(crate) fn texts(values: &[&str]) -> Result<ScalarValue> {
    let values: Vec<ScalarValue> = values.iter().map(|value| ScalarValue::from(*value)).collect();
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8)))
}
