//! Text to statement: what SQL is read as, before anything is planned. No engine and no catalog in it.
//!
//! A text takes this road: [`parse`] in a [`Dialect`] gives statements as they were written; [`rewrite`] turns forms that the
//! planner does not know, or takes for something else, into forms that it plans right. What needs the columns of a table
//! (the spelling of mixed-case names, `COLUMNS('a.*')`) is not decided here.

mod access;
mod cache;
mod database;
mod dialect;
mod do_nothing;
mod exclusions;
mod external;
mod identity;
mod infix;
mod intervals;
mod joins;
mod mysql_tokens;
mod numbers;
mod offsets;
mod parse;
mod pivot;
mod prefix;
mod recursion_clauses;
mod redaction;
pub mod rewrite;
mod secret;
mod template;
mod tokens;
mod walk;
mod words;

pub use access::{AccessStatement, Expiry, Object, Privilege, UserChange, access};
pub use cache::{CacheStatement, cache_statement};
pub use database::{Attachment, DatabaseStatement, database_statement};
pub use dialect::{Dialect, DialectName};
pub use do_nothing::DO_NOTHING;
pub use intervals::{Interval, read_interval};
pub use offsets::{Offsets, split, stands_at, view_query};
pub use parse::{Explain, Parsed, parse, parse_expression};
pub use redaction::{holds_secrets, redact_secrets, repeats_secrets};
pub use secret::{SecretStatement, secret_statement};
pub use walk::Tree;
pub use words::{begins_with, first_words};
