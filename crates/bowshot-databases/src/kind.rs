//! Kinds of other databases.

use bowshot_api::{Error, Result};

/// The kind of a database: decides on driver and SQL dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// PostgreSQL 12 and later.
    Postgres,
    /// A file of SQLite.
    Sqlite,
    /// A file of DuckDB.
    DuckDb,
    /// A server that speaks Flight SQL.
    FlightSql,
    /// MySQL 5.7 and later, and MariaDB.
    Mysql,
}

/// What MySQL's invalid dates, such as `0000-00-00`, become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZeroDates {
    Error,
    Null,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Postgres, Self::Sqlite, Self::DuckDb, Self::FlightSql, Self::Mysql];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::DuckDb => "duckdb",
            Self::FlightSql => "flightsql",
            Self::Mysql => "mysql",
        }
    }

    /// # Errors
    /// `Invalid` for an unknown kind.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.to_ascii_lowercase();
        let known = match text.as_str() {
            "postgresql" => Some(Self::Postgres),
            "mariadb" => Some(Self::Mysql),
            _ => Self::ALL.into_iter().find(|kind| kind.name() == text),
        };
        known.ok_or_else(|| {
            Error::invalid("unknown kind of database").with_hint(
                "the kinds are postgres, mysql, sqlite, duckdb, flightsql and ducklake, and iceberg in the configuration file",
            )
        })
    }
}
