//! What users read of errors of DataFusion.

use super::{about, closest};

#[test]
fn messages_speak_sql() {
    for (given, message, hint) in [
        (
            "Invalid function 'uper'. Did you mean 'upper'?",
            "function `uper` does not exist",
            "did you mean `upper`?",
        ),
        (
            "Invalid function 'frobnicate'. Did you mean 'concat'?",
            "function `frobnicate` does not exist",
            "the functions are listed by `SHOW FUNCTIONS`",
        ),
        (
            "Cast error: Cannot cast string 'x' to value of Int64 type",
            "invalid input syntax for type bigint: `x`",
            "",
        ),
        (
            "Cannot coerce arithmetic expression Int64 + Utf8 to valid types",
            "no such operator: bigint + text",
            "cast one side with CAST(… AS type)",
        ),
        ("MyInt64 is no Int64", "MyInt64 is no bigint", ""),
        ("no List(List(Int64)) and Utf8", "no bigint[][] and text", ""),
        (
            "Cannot infer common argument type for comparison operation Interval(MonthDayNano) = Int64",
            "values of these types cannot be compared: interval = bigint",
            "cast one side with CAST(… AS type)",
        ),
        (
            "This feature is not implemented: Unsupported SQL binary operator Custom(\"~<~\")",
            "Unsupported SQL binary operator",
            "",
        ),
        ("Unsupported join: Join { relation: Table { name: 1 } }", "Unsupported join", ""),
        (
            "regex parse error:\n    (\n    ^\nerror: unclosed group",
            "invalid regular expression: unclosed group",
            "",
        ),
        (
            "Compute error: Regular expression did not compile: Syntax(\n~~\nregex parse error:\n    (\n    ^\nerror: unclosed group\n~~)",
            "invalid regular expression: unclosed group",
            "",
        ),
        (
            "Cast error: Cannot cast string '24:00' to value of Time64(µs) type",
            "`24:00` cannot be kept: a time of day ends before 24:00",
            "use '00:00' of the next day, or an INTERVAL",
        ),
        (
            "Cast error: Cannot cast string '0044-03-15 BC' to value of Date32 type",
            "`0044-03-15 BC` cannot be kept: a date has no year before 1",
            "keep the year as a number, or the whole as a text",
        ),
        (
            "Cast error: Cannot cast string 'NaN' to value of Decimal128(38, 10) type",
            "cannot store `NaN`: a numeric cannot be NaN or infinity",
            "use DOUBLE PRECISION",
        ),
        ("Cannot compare Struct(\"a\": Int64) here", "Cannot compare Struct(\"a\": bigint) here", ""),
    ] {
        assert_eq!(about(given), (message.to_owned(), Some(hint.to_owned()).filter(|hint| !hint.is_empty())));
    }
}

#[test]
fn calls_that_fit_no_function_are_told_as_such() {
    let matches = "No function matches the given name and argument types 'upper(Int64, Int64)'. You might";
    let (message, _) = about(&format!("Function 'upper' expects 1 arguments but received 2 {matches} need"));
    assert_eq!(message, "function upper(bigint, bigint) does not exist");
    let (message, _) =
        about("Function 'substr' failed to match any signature, errors: Error during planning");
    assert_eq!(message, "function substr with these arguments does not exist");
    let (message, _) = about(&format!(
        "Function 'sum' requires Numeric, but received String (DataType: Utf8). {} need",
        matches.replace("upper(Int64, Int64)", "sum(Utf8)")
    ));
    assert_eq!(message, "function sum(text) does not exist");
    let (message, _) = about(
        "Function 'sum' user-defined coercion failed with: Error during planning: function sum(Utf8) does not exist",
    );
    assert_eq!(message, "function sum(text) does not exist");
    let (message, _) = about("[return_type] SUM not supported for Utf8");
    assert_eq!(message, "function sum(text) does not exist");
    let own = "Function 'f' user-defined coercion failed with: Execution error: f takes a text";
    assert_eq!(about(own).0, "f takes a text");
    assert_eq!(about(&format!("{own} {matches} need")).0, "f takes a text");
    let named = "Function 'f' does not support named arguments";
    assert_eq!(about(named).0, named);
}

#[test]
fn groups_are_spoken_of_in_words_of_sql() {
    let (message, hint) = about(
        "Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column \"t.b\" must \
         appear in the GROUP BY clause or must be part of an aggregate function, currently only \"t.a\" appears in the \
         SELECT clause satisfies this requirement",
    );
    assert_eq!(message, "`t.b` must appear in GROUP BY or be used in an aggregate function");
    assert_eq!(hint.as_deref(), Some("add it to GROUP BY, or use `any_value(t.b)`"));
    assert_eq!(about("Invalid qualifier x").0, "table `x` not found in FROM");
}

#[test]
fn only_close_names_are_suggested() {
    assert_eq!(closest("nmae", ["name", "age"].into_iter()), Some("name"));
    assert_eq!(closest("salary", ["name", "age"].into_iter()), None);
    assert_eq!(closest("a", ["b"].into_iter()), None);
}
