//! Text to statement: what SQL is read as, before anything is planned. No engine and no catalog in it.
//!
//! [`parse`] in a [`Dialect`] gives [`Statement`]s as they were written; [`rewrite`] turns forms that the planner does not know, or
//! takes for something else, into forms that it plans right. What needs the columns of a table (the spelling of mixed-case names,
//! `COLUMNS('a.*')`) is not decided here.

mod access;
mod cache;
mod calls;
mod comment_on;
mod copy;
mod database;
mod dialect;
mod do_nothing;
mod exclusions;
mod explain;
mod external;
mod fetch_counts;
mod forms;
mod function;
mod iceberg_alter_table;
mod identity;
mod infix;
mod internal_sql;
mod intervals;
mod joins;
mod limits;
mod literal;
mod maintenance;
mod model;
pub mod mysql;
mod mysql_tokens;
mod numbers;
mod offsets;
mod parse;
mod partitions;
mod pipe;
mod pivot;
mod plain_select;
pub mod postgres;
mod prefix;
mod recursion_clauses;
mod redaction;
pub mod rewrite;
mod row_lock;
mod script;
mod secret;
mod source_tokens;
mod sqlparser_statement;
mod statement;
mod statement_tokens;
mod syntax_error;
mod template;
mod tokens;
mod transaction;
mod utility;
mod walk;

pub use access::{AccessStatement, Expiry, Object, Privilege, UserChange};
pub use cache::CacheStatement;
pub use comment_on::OF_CONSTRAINT;
pub use copy::{CopyStatement, Direction};
pub use database::{Attachment, DatabaseStatement};
pub use dialect::{Dialect, DialectName};
pub use do_nothing::DO_NOTHING;
pub use explain::Explain;
pub use forms::{BY_NAME, CLAUSES, REFRESH_OPTION};
pub use function::{
    Call, ExpansionBudget, FunctionBody, FunctionParameter, FunctionResult, FunctionStatement, NewFunction,
    Volatility,
};
pub use iceberg_alter_table::{LayoutChange, LayoutStatement, ReferenceKind};
pub use internal_sql::{read_expression, read_name, read_query, read_statement, read_type};
pub use intervals::{Interval, read_interval};
pub use limits::{check_limits, is_small};
pub use maintenance::{MaintenanceStatement, RefreshMode, refresh_mode};
pub use model::{ModelFile, ModelStatement};
pub use offsets::Offsets;
pub use parse::parse;
pub use partitions::{PartitionField, PartitionTransform};
pub use pipe::{PipeChange, PipeCopy, PipeStatement};
pub use plain_select::{PlainLiteral, PlainSelect};
pub use redaction::{holds_secrets, redact_secrets, repeats_secrets};
pub use row_lock::{LockClause, RowLock};
pub use script::{split, split_script, statement_spans};
pub use secret::SecretStatement;
pub use source_tokens::{first_word, replace_names, view_query};
pub use sqlparser_statement::parse_expression;
pub use statement::Statement;
pub use transaction::TransactionStatement;
pub use utility::{
    Assignment, CursorStatement, Discarded, Killed, Pragma, RowFilter, SessionStatement, Show, Shown,
    Utility, join_path,
};
pub use walk::Tree;
