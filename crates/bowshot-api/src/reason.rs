//! Detailed error reasons, for clients that distinguish more than [`ErrorKind`].

use crate::ErrorKind;

/// A detailed error condition with a SQLSTATE of its own. Without one, clients see the code of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No table or view of that name.
    UndefinedTable,
    /// No column of that name.
    UndefinedColumn,
    /// No function with that name and these argument types.
    UndefinedFunction,
    /// No operator for these types.
    UndefinedOperator,
    /// No schema of that name.
    UndefinedSchema,
    /// No catalog of that name.
    UndefinedCatalog,
    /// No prepared statement of that name.
    UndefinedStatement,
    /// No savepoint of that name.
    UndefinedSavepoint,
    /// No cursor of that name.
    UndefinedCursor,
    /// No session option of that name.
    UndefinedOption,
    /// No running query, result or session of that id.
    UndefinedQuery,
    /// No file of that name.
    UndefinedFile,
    /// A table or view has that name.
    DuplicateTable,
    /// A column has that name.
    DuplicateColumn,
    /// A schema has that name.
    DuplicateSchema,
    /// A catalog has that name.
    DuplicateCatalog,
    /// A prepared statement has that name.
    DuplicateStatement,
    /// A cursor has that name.
    DuplicateCursor,
    /// Two tables of a FROM have the same name.
    DuplicateAlias,
    /// A file has that name.
    DuplicateFile,
    /// A column that several tables have.
    AmbiguousColumn,
    /// A key would be there twice.
    UniqueViolation,
    /// A NOT NULL column has no value.
    NotNullViolation,
    /// A row is against a constraint.
    CheckViolation,
    /// A statement would change one row twice.
    CardinalityViolation,
    /// Division by zero.
    DivisionByZero,
    /// A number is beyond its type.
    OutOfRange,
    /// A point in time or an interval is beyond its type.
    DatetimeOutOfRange,
    /// A text that is no value of the type.
    InvalidText,
    /// A text that is no date, time or timestamp.
    InvalidDatetime,
    /// A regular expression that cannot be read.
    InvalidPattern,
    /// A value that an option or an argument does not take.
    InvalidValue,
    /// There is no cast between the types.
    CannotCoerce,
    /// A value or an expression of another type than is needed.
    DatatypeMismatch,
    /// A column that is neither grouped nor aggregated.
    Grouping,
    /// A name that stands for another sort of thing.
    WrongObject,
    /// A thing that is not in a state for the statement.
    WrongState,
    /// The object to drop is not empty, or others depend on it.
    DependentObjects,
    /// A transaction is open, or the statement cannot run in one.
    ActiveTransaction,
    /// No transaction is open.
    NoTransaction,
    /// The transaction only reads.
    ReadOnlyTransaction,
    /// As many values were bound as the statement does not have parameters.
    WrongParameters,
    /// The statement nests too deeply, or is too large.
    TooComplex,
    /// There is no memory or disk for more.
    InsufficientResources,
}

impl Reason {
    /// All reasons, in the order of the documentation.
    pub const ALL: [Self; 44] = [
        Self::UndefinedTable,
        Self::UndefinedColumn,
        Self::UndefinedFunction,
        Self::UndefinedOperator,
        Self::UndefinedSchema,
        Self::UndefinedCatalog,
        Self::UndefinedStatement,
        Self::UndefinedSavepoint,
        Self::UndefinedCursor,
        Self::UndefinedOption,
        Self::UndefinedQuery,
        Self::UndefinedFile,
        Self::DuplicateTable,
        Self::DuplicateColumn,
        Self::DuplicateSchema,
        Self::DuplicateCatalog,
        Self::DuplicateStatement,
        Self::DuplicateCursor,
        Self::DuplicateAlias,
        Self::DuplicateFile,
        Self::AmbiguousColumn,
        Self::UniqueViolation,
        Self::NotNullViolation,
        Self::CheckViolation,
        Self::CardinalityViolation,
        Self::DivisionByZero,
        Self::OutOfRange,
        Self::DatetimeOutOfRange,
        Self::InvalidText,
        Self::InvalidDatetime,
        Self::InvalidPattern,
        Self::InvalidValue,
        Self::CannotCoerce,
        Self::DatatypeMismatch,
        Self::Grouping,
        Self::WrongObject,
        Self::WrongState,
        Self::DependentObjects,
        Self::ActiveTransaction,
        Self::NoTransaction,
        Self::ReadOnlyTransaction,
        Self::WrongParameters,
        Self::TooComplex,
        Self::InsufficientResources,
    ];

    /// The name that protocols with names give it, in lower case.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The SQLSTATE, as PostgreSQL gives it out (its manual, appendix "PostgreSQL Error Codes").
    pub fn sqlstate(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::UndefinedTable => ("undefined_table", "42P01"),
            Self::UndefinedColumn => ("undefined_column", "42703"),
            Self::UndefinedFunction => ("undefined_function", "42883"),
            Self::UndefinedOperator => ("undefined_operator", "42883"),
            Self::UndefinedSchema => ("undefined_schema", "3F000"),
            Self::UndefinedCatalog => ("undefined_catalog", "3D000"),
            Self::UndefinedStatement => ("undefined_statement", "26000"),
            Self::UndefinedSavepoint => ("undefined_savepoint", "3B001"),
            Self::UndefinedCursor => ("undefined_cursor", "34000"),
            Self::UndefinedOption => ("undefined_option", "42704"),
            Self::UndefinedQuery => ("undefined_query", "42704"),
            Self::UndefinedFile => ("undefined_file", "58P01"),
            Self::DuplicateTable => ("duplicate_table", "42P07"),
            Self::DuplicateColumn => ("duplicate_column", "42701"),
            Self::DuplicateSchema => ("duplicate_schema", "42P06"),
            Self::DuplicateCatalog => ("duplicate_catalog", "42P04"),
            Self::DuplicateStatement => ("duplicate_statement", "42P05"),
            Self::DuplicateCursor => ("duplicate_cursor", "42P03"),
            Self::DuplicateAlias => ("duplicate_alias", "42712"),
            Self::DuplicateFile => ("duplicate_file", "58P02"),
            Self::AmbiguousColumn => ("ambiguous_column", "42702"),
            Self::UniqueViolation => ("unique_violation", "23505"),
            Self::NotNullViolation => ("not_null_violation", "23502"),
            Self::CheckViolation => ("check_violation", "23514"),
            Self::CardinalityViolation => ("cardinality_violation", "21000"),
            Self::DivisionByZero => ("division_by_zero", "22012"),
            Self::OutOfRange => ("out_of_range", "22003"),
            Self::DatetimeOutOfRange => ("datetime_out_of_range", "22008"),
            Self::InvalidText => ("invalid_text", "22P02"),
            Self::InvalidDatetime => ("invalid_datetime", "22007"),
            Self::InvalidPattern => ("invalid_pattern", "2201B"),
            Self::InvalidValue => ("invalid_value", "22023"),
            Self::CannotCoerce => ("cannot_coerce", "42846"),
            Self::DatatypeMismatch => ("datatype_mismatch", "42804"),
            Self::Grouping => ("grouping", "42803"),
            Self::WrongObject => ("wrong_object", "42809"),
            Self::WrongState => ("wrong_state", "55000"),
            Self::DependentObjects => ("dependent_objects", "2BP01"),
            Self::ActiveTransaction => ("active_transaction", "25001"),
            Self::NoTransaction => ("no_transaction", "25P01"),
            Self::ReadOnlyTransaction => ("read_only_transaction", "25006"),
            Self::WrongParameters => ("wrong_parameters", "08P01"),
            Self::TooComplex => ("too_complex", "54001"),
            Self::InsufficientResources => ("insufficient_resources", "53000"),
        }
    }
}

impl ErrorKind {
    /// The SQLSTATE of an error that has no finer reason.
    pub fn sqlstate(self) -> &'static str {
        match self {
            Self::Syntax => "42601",
            Self::Invalid => "42000",
            Self::NotFound => "42704",
            Self::AlreadyExists => "42710",
            Self::Unauthenticated => "28P01",
            Self::Denied => "42501",
            Self::Unsupported => "0A000",
            Self::Conflict => "40001",
            Self::LimitReached => "53400",
            Self::Timeout | Self::Cancelled => "57014",
            Self::Unavailable => "57P03",
            Self::Corrupt => "XX001",
            Self::Internal => "XX000",
        }
    }

    /// The name that protocols with names give it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::Conflict => "conflict",
            Self::LimitReached => "limit_reached",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }
}

/// A position in a statement: line and column from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl Position {
    /// The same in characters of the whole text, from 1 on; nothing if the text has no such place.
    pub fn within(self, statement: &str) -> Option<usize> {
        let lines = usize::try_from(self.line.checked_sub(1)?).ok()?;
        let column = usize::try_from(self.column).ok()?;
        let before: usize = statement.split('\n').take(lines).map(|line| line.chars().count() + 1).sum();
        let at = before.checked_add(column)?;
        (at <= statement.chars().count() + 1).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_and_kind_has_a_name_and_a_code() {
        let names: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        let codes = Reason::ALL.iter().map(|reason| reason.sqlstate());
        assert!(codes.chain(ErrorKind::ALL.iter().map(|kind| kind.sqlstate())).all(|code| code.len() == 5));
    }

    #[test]
    fn positions_count_characters_over_lines() {
        let within = |line, column, text| Position { line, column }.within(text);
        assert_eq!(within(1, 8, "SELECT FROM"), Some(8));
        assert_eq!(within(2, 3, "ä\nab c"), Some(5));
        assert_eq!(within(9, 3, "a"), None);
        assert_eq!(within(0, 3, "a"), None);
        assert_eq!(within(1, u64::MAX, "a"), None);
    }
}
