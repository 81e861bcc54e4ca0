//! Detailed error reasons, for clients that distinguish more than [`ErrorKind`](crate::ErrorKind).

/// Defines an enum from one row for each variant: its name and its SQLSTATE.
macro_rules! codes {
    (
        $(#[$about:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $variant:ident($name:literal, $sqlstate:literal),)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            /// All of them, in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in protocols that use names, in lower case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The SQLSTATE (PostgreSQL manual, "PostgreSQL Error Codes").
            pub fn sqlstate(self) -> &'static str {
                match self {
                    $(Self::$variant => $sqlstate,)*
                }
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// A detailed error condition with a SQLSTATE of its own. Without one, clients see the code of the kind.
    pub enum Reason {
        /// No table or view of that name.
        UndefinedTable("undefined_table", "42P01"),
        /// No column of that name.
        UndefinedColumn("undefined_column", "42703"),
        /// No function with that name and these argument types.
        UndefinedFunction("undefined_function", "42883"),
        /// No operator for these types.
        UndefinedOperator("undefined_operator", "42883"),
        /// No schema of that name.
        UndefinedSchema("undefined_schema", "3F000"),
        /// No catalog of that name.
        UndefinedCatalog("undefined_catalog", "3D000"),
        /// No prepared statement of that name.
        UndefinedStatement("undefined_statement", "26000"),
        /// No savepoint of that name.
        UndefinedSavepoint("undefined_savepoint", "3B001"),
        /// No cursor of that name.
        UndefinedCursor("undefined_cursor", "34000"),
        /// No session option of that name.
        UndefinedOption("undefined_option", "42704"),
        /// No running query, result or session of that id.
        UndefinedQuery("undefined_query", "42704"),
        /// No file of that name.
        UndefinedFile("undefined_file", "58P01"),
        /// A table or view has that name.
        DuplicateTable("duplicate_table", "42P07"),
        /// A column has that name.
        DuplicateColumn("duplicate_column", "42701"),
        /// A schema has that name.
        DuplicateSchema("duplicate_schema", "42P06"),
        /// A catalog has that name.
        DuplicateCatalog("duplicate_catalog", "42P04"),
        /// A prepared statement has that name.
        DuplicateStatement("duplicate_statement", "42P05"),
        /// A cursor has that name.
        DuplicateCursor("duplicate_cursor", "42P03"),
        /// Two tables of a FROM have the same name.
        DuplicateAlias("duplicate_alias", "42712"),
        /// A file has that name.
        DuplicateFile("duplicate_file", "58P02"),
        /// A column that several tables have.
        AmbiguousColumn("ambiguous_column", "42702"),
        /// Duplicate key.
        UniqueViolation("unique_violation", "23505"),
        /// A NOT NULL column has no value.
        NotNullViolation("not_null_violation", "23502"),
        /// A constraint is violated.
        CheckViolation("check_violation", "23514"),
        /// A statement would change one row twice.
        CardinalityViolation("cardinality_violation", "21000"),
        DivisionByZero("division_by_zero", "22012"),
        /// A number exceeds its type.
        OutOfRange("out_of_range", "22003"),
        /// A sequence has given its last number.
        SequenceLimit("sequence_limit", "2200H"),
        /// A date, time or interval exceeds its type.
        DatetimeOutOfRange("datetime_out_of_range", "22008"),
        /// A text is not a value of the type.
        InvalidText("invalid_text", "22P02"),
        /// A text is not a date, time or timestamp.
        InvalidDatetime("invalid_datetime", "22007"),
        /// A text or binary value is longer than its column.
        ValueTooLong("value_too_long", "22001"),
        /// A value for a column that is always computed.
        GeneratedAlways("generated_always", "428C9"),
        /// An invalid regular expression.
        InvalidPattern("invalid_pattern", "2201B"),
        /// An invalid value of an option or argument.
        InvalidValue("invalid_value", "22023"),
        /// There is no cast between the types.
        CannotCoerce("cannot_coerce", "42846"),
        /// A value or expression has the wrong type.
        DatatypeMismatch("datatype_mismatch", "42804"),
        /// A column is neither grouped nor aggregated.
        Grouping("grouping", "42803"),
        /// An object has the wrong kind.
        WrongObject("wrong_object", "42809"),
        /// An object is in the wrong state.
        WrongState("wrong_state", "55000"),
        /// The object to drop is not empty, or others depend on it.
        DependentObjects("dependent_objects", "2BP01"),
        /// A transaction is open, or the statement cannot run in one.
        ActiveTransaction("active_transaction", "25001"),
        NoTransaction("no_transaction", "25P01"),
        ReadOnlyTransaction("read_only_transaction", "25006"),
        /// Transactions wait for rows of one another.
        Deadlock("deadlock_detected", "40P01"),
        /// Another transaction has locked the row.
        LockNotAvailable("lock_not_available", "55P03"),
        /// Wrong number of parameters.
        WrongParameters("wrong_parameters", "08P01"),
        /// The statement is too deeply nested, or too large.
        TooComplex("too_complex", "54001"),
        /// Out of memory or disk space.
        InsufficientResources("insufficient_resources", "53000"),
    }
}

/// A position in a statement: line and column from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u64,
    /// Character in the line.
    pub column: u64,
}

impl Position {
    /// The offset in characters of the whole text, from 1; `None` if the text has no such position.
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
    use crate::ErrorKind;
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
