//! The standard codes and their values.

use super::keywords;
use arrow_flight::sql::SqlInfo as Code;
use bowshot_api::{About, Limits};
use std::time::Duration;

/// A value, by union member.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Bool(bool),
    BigInt(i64),
    Bitmask(i32),
    Words(&'static [&'static str]),
    Conversions(&'static [(i32, &'static [i32])]),
}

pub(super) fn all(about: &About, limits: &Limits) -> Vec<(u32, Value)> {
    let mut rows = server(about, limits);
    rows.extend(syntax());
    rows.extend(TRUE.iter().map(|code| (*code, Value::Bool(true))));
    rows.extend(FALSE.iter().map(|code| (*code, Value::Bool(false))));
    rows.extend(MAXIMA.iter().map(|code| (*code, Value::BigInt(0))));
    rows.into_iter().filter_map(|(code, value)| Some((u32::try_from(code as i32).ok()?, value))).collect()
}

fn server(about: &About, limits: &Limits) -> Vec<(Code, Value)> {
    let text = |text: &str| Value::Text(text.to_owned());
    let [least, greatest] = match &about.languages.substrait {
        Some([least, greatest]) => [least.as_str(), greatest],
        None => [""; 2],
    };
    vec![
        (Code::FlightSqlServerName, text(&about.name)),
        (Code::FlightSqlServerVersion, text(&about.version)),
        (Code::FlightSqlServerArrowVersion, text(&about.arrow_version)),
        (Code::FlightSqlServerSql, Value::Bool(about.languages.sql)),
        (Code::FlightSqlServerSubstrait, Value::Bool(about.languages.substrait.is_some())),
        (Code::FlightSqlServerSubstraitMinVersion, text(least)),
        (Code::FlightSqlServerSubstraitMaxVersion, text(greatest)),
        (Code::FlightSqlServerTransaction, Value::Bitmask(TRANSACTIONS_AND_SAVEPOINTS)),
        // Statement handles live as long as their session.
        (Code::FlightSqlServerStatementTimeout, Value::Bitmask(millis(limits.session_timeout))),
        (Code::FlightSqlServerTransactionTimeout, Value::Bitmask(millis(limits.transaction_timeout))),
    ]
}

/// Zero means no timeout, as in the limits.
fn millis(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)
}

fn syntax() -> Vec<(Code, Value)> {
    let text = |text: &str| Value::Text(text.to_owned());
    vec![
        (Code::SqlIdentifierCase, Value::BigInt(LOWER_CASE)),
        (Code::SqlIdentifierQuoteChar, text("\"")),
        (Code::SqlQuotedIdentifierCase, Value::BigInt(AS_WRITTEN)),
        (Code::SqlNullOrdering, Value::BigInt(NULLS_HIGH)),
        (Code::SqlKeywords, Value::Words(keywords::KEYWORDS)),
        (Code::SqlNumericFunctions, Value::Words(keywords::NUMERIC_FUNCTIONS)),
        (Code::SqlStringFunctions, Value::Words(keywords::STRING_FUNCTIONS)),
        (Code::SqlSystemFunctions, Value::Words(keywords::SYSTEM_FUNCTIONS)),
        (Code::SqlDatetimeFunctions, Value::Words(keywords::DATETIME_FUNCTIONS)),
        (Code::SqlSearchStringEscape, text("\\")),
        (Code::SqlExtraNameCharacters, text("")),
        (Code::SqlSupportsConvert, Value::Conversions(CONVERSIONS)),
        (Code::SqlSupportedGroupBy, Value::Bitmask(bits(&[0, 1]))),
        // Minimum and core grammar; the extended one has positioned updates.
        (Code::SqlSupportedGrammar, Value::Bitmask(bits(&[0, 1]))),
        (Code::SqlAnsi92SupportedLevel, Value::Bitmask(bits(&[0]))),
        // Limited and full outer joins: drivers read bits, though the specification speaks of one ordinal.
        (Code::SqlOuterJoinsSupportLevel, Value::Bitmask(bits(&[1, 2]))),
        (Code::SqlSchemaTerm, text("schema")),
        (Code::SqlProcedureTerm, text("procedure")),
        (Code::SqlCatalogTerm, text("catalog")),
        // There are no procedure calls and indexes with schema and catalog names.
        (Code::SqlSchemasSupportedActions, Value::Bitmask(0)),
        (Code::SqlCatalogsSupportedActions, Value::Bitmask(0)),
        (Code::SqlSupportedPositionedCommands, Value::Bitmask(0)),
        // In comparisons, EXISTS and IN; not with ANY and ALL.
        (Code::SqlSupportedSubqueries, Value::Bitmask(bits(&[0, 1, 2]))),
        (Code::SqlSupportedUnions, Value::Bitmask(bits(&[0, 1]))),
        (Code::SqlDefaultTransactionIsolation, Value::BigInt(i64::from(REPEATABLE_READ))),
        (
            Code::SqlSupportedTransactionsIsolationLevels,
            Value::Bitmask(bits(&[READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE])),
        ),
        // Results are read once, forward, and cannot be changed.
        (Code::SqlSupportedResultSetTypes, Value::Bitmask(bits(&[1]))),
        (Code::SqlSupportedConcurrenciesForResultSetUnspecified, Value::Bitmask(0)),
        (Code::SqlSupportedConcurrenciesForResultSetForwardOnly, Value::Bitmask(bits(&[1]))),
        (Code::SqlSupportedConcurrenciesForResultSetScrollSensitive, Value::Bitmask(0)),
        (Code::SqlSupportedConcurrenciesForResultSetScrollInsensitive, Value::Bitmask(0)),
    ]
}

fn bits(positions: &[u32]) -> i32 {
    positions.iter().fold(0, |mask, position| mask | 1 << position)
}

/// `SQL_CASE_SENSITIVITY_LOWERCASE`
const LOWER_CASE: i64 = 3;
/// `SQL_CASE_SENSITIVITY_UNKNOWN`, which drivers take for "compared as written".
const AS_WRITTEN: i64 = 0;
/// `SQL_NULLS_SORTED_HIGH`
const NULLS_HIGH: i64 = 0;
/// `SQL_SUPPORTED_TRANSACTION_SAVEPOINT`
const TRANSACTIONS_AND_SAVEPOINTS: i32 = 2;
/// `SQL_TRANSACTION_READ_COMMITTED`.
const READ_COMMITTED: u32 = 2;
/// `SQL_TRANSACTION_REPEATABLE_READ`: snapshot isolation is at least that.
const REPEATABLE_READ: u32 = 3;
/// `SQL_TRANSACTION_SERIALIZABLE`, which a session asks for.
const SERIALIZABLE: u32 = 4;

const TRUE: &[Code] = &[
    Code::FlightSqlServerCancel,
    Code::FlightSqlServerBulkIngestion,
    Code::FlightSqlServerIngestTransactionsSupported,
    Code::SqlDdlSchema,
    Code::SqlDdlTable,
    Code::SqlTransactionsSupported,
    Code::SqlBatchUpdatesSupported,
    Code::SqlSavepointsSupported,
    Code::SqlAllTablesAreSelectable,
    Code::SqlSupportsColumnAliasing,
    Code::SqlNullPlusNullIsNull,
    Code::SqlSupportsTableCorrelationNames,
    Code::SqlSupportsExpressionsInOrderBy,
    Code::SqlSupportsOrderByUnrelated,
    Code::SqlSupportsLikeEscapeClause,
    Code::SqlSupportsNonNullableColumns,
    Code::SqlCatalogAtStart,
    Code::SqlCorrelatedSubqueriesSupported,
];

const FALSE: &[Code] = &[
    Code::FlightSqlServerReadOnly,
    Code::SqlDdlCatalog,
    Code::SqlSupportsDifferentTableCorrelationNames,
    Code::SqlSupportsIntegrityEnhancementFacility,
    Code::SqlSelectForUpdateSupported,
    Code::SqlStoredProceduresSupported,
    Code::SqlMaxRowSizeIncludesBlobs,
    Code::SqlDataDefinitionCausesTransactionCommit,
    Code::SqlDataDefinitionsInTransactionsIgnored,
    Code::SqlNamedParametersSupported,
    Code::SqlLocatorsUpdateCopy,
    Code::SqlStoredFunctionsUsingCallSyntaxSupported,
];

/// Maximum lengths and counts: zero for no limit.
const MAXIMA: &[Code] = &[
    Code::SqlMaxBinaryLiteralLength,
    Code::SqlMaxCharLiteralLength,
    Code::SqlMaxColumnNameLength,
    Code::SqlMaxColumnsInGroupBy,
    Code::SqlMaxColumnsInIndex,
    Code::SqlMaxColumnsInOrderBy,
    Code::SqlMaxColumnsInSelect,
    Code::SqlMaxColumnsInTable,
    Code::SqlMaxConnections,
    Code::SqlMaxCursorNameLength,
    Code::SqlMaxIndexLength,
    Code::SqlDbSchemaNameLength,
    Code::SqlMaxProcedureNameLength,
    Code::SqlMaxCatalogNameLength,
    Code::SqlMaxRowSize,
    Code::SqlMaxStatementLength,
    Code::SqlMaxStatements,
    Code::SqlMaxTableNameLength,
    Code::SqlMaxTablesInSelect,
    Code::SqlMaxUsernameLength,
];

/// `CAST` from the first to each of the second, in the numbers of `SqlSupportsConvert`: 0 bigint, 2 bit, 3 char, 4 date,
/// 5 decimal, 6 float, 7 integer, 11 long varchar, 12 numeric, 13 real, 14 smallint, 15 time, 16 timestamp,
/// 17 tinyint, 18 varbinary, 19 varchar.
const CONVERSIONS: &[(i32, &[i32])] = &[
    (0, &[0, 2, 3, 5, 6, 7, 11, 12, 13, 14, 16, 17, 19]),
    (2, &[0, 2, 3, 6, 7, 11, 13, 14, 17, 19]),
    (3, TEXT),
    (4, &[3, 4, 11, 16, 19]),
    (5, NUMBER),
    (6, NUMBER),
    (7, &[0, 2, 3, 5, 6, 7, 11, 12, 13, 14, 17, 19]),
    (11, TEXT),
    (12, NUMBER),
    (13, NUMBER),
    (14, &[0, 2, 3, 5, 6, 7, 11, 12, 13, 14, 17, 19]),
    (15, &[3, 11, 15, 19]),
    (16, &[0, 3, 4, 11, 15, 16, 19]),
    (17, &[0, 2, 3, 5, 6, 7, 11, 12, 13, 14, 17, 19]),
    (18, &[18]),
    (19, TEXT),
];

const TEXT: &[i32] = &[0, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16, 17, 18, 19];
const NUMBER: &[i32] = &[0, 3, 5, 6, 7, 11, 12, 13, 14, 17, 19];
