//! Names of catalogs, schemas and tables with a fixed meaning.

/// Catalog of names that do not say theirs.
pub const DEFAULT_CATALOG: &str = "bowshot";
/// Schema of names that do not say theirs.
pub const DEFAULT_SCHEMA: &str = "main";
/// Another name of [`DEFAULT_SCHEMA`], where nothing is called so.
pub const PUBLIC: &str = "public";
/// Schema of the tables about the server itself.
pub const SYSTEM_SCHEMA: &str = "system";
/// Schema that exists only while a statement that changes rows is planned; holds [`TARGET`].
pub const CHANGE_SCHEMA: &str = "__bowshot_change";
/// The table whose rows are changed, with the addresses of its rows.
pub const TARGET: &str = "target";
/// The new rows of an INSERT, beside [`TARGET`].
pub const SOURCE: &str = "source";
/// What the names of tables with the rows of a query of WITH begin with, beside [`TARGET`].
pub const RETURNED: &str = "returned_";
/// Catalog of the tables that belong to one session. Its schema is [`DEFAULT_SCHEMA`].
pub const TEMPORARY_CATALOG: &str = "temp";
/// The schema of those tables, as PostgreSQL's clients call it.
pub const PG_TEMP: &str = "pg_temp";
/// Schema in [`DEFAULT_CATALOG`] of the materialized views that the server makes by itself. Rights on the catalog are none on it.
pub const SERVER_VIEWS: &str = "bowshot_views";
/// Schema of PostgreSQL's own tables.
pub const PG_CATALOG: &str = "pg_catalog";
