//! Drivers of other databases, by the kind of database.

use bowshot_databases::Kind;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Paths of shared libraries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drivers {
    pub(super) postgres: Option<PathBuf>,
    pub(super) sqlite: Option<PathBuf>,
    pub(super) duckdb: Option<PathBuf>,
    pub(super) flightsql: Option<PathBuf>,
}

impl Drivers {
    /// Those that are named. Drivers are loaded by absolute paths, which a relative one becomes here.
    pub(super) fn named(&self) -> BTreeMap<Kind, PathBuf> {
        let all = [
            (Kind::Postgres, &self.postgres),
            (Kind::Sqlite, &self.sqlite),
            (Kind::DuckDb, &self.duckdb),
            (Kind::FlightSql, &self.flightsql),
        ];
        let named = all.into_iter().filter_map(|(kind, path)| Some((kind, path.as_ref()?)));
        named.map(|(kind, path)| (kind, std::path::absolute(path).unwrap_or_else(|_| path.clone()))).collect()
    }
}
