//! What DataFusion reports, in words of SQL: names as the user wrote them, types by their SQL names, a suggestion only where
//! it is close.

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;

/// Columns that a hint lists.
const LISTED: usize = 12;

/// What is put before messages by the layers that they pass through.
const PREFIXES: [&str; 16] = [
    "Error during planning: ",
    "Execution error: ",
    "External error: ",
    "Arrow error: ",
    "Schema error: ",
    "SQL error: ",
    "This feature is not implemented: ",
    "Internal error: ",
    "Compute error: ",
    "Cast error: ",
    "Parser error: ",
    "Invalid argument error: ",
    "Arithmetic overflow: ",
    "Not yet implemented: ",
    "type_coercion caused by ",
    "sql parser error: ",
];

/// What the planner puts before the call that fits no function.
const NO_MATCH: &str = "No function matches the given name and argument types '";

/// Arrow's names of types, each with SQL's. Longer names come before those that they begin with.
const TYPES: [(&str, &str); 29] = [
    ("LargeUtf8", "text"),
    ("Utf8View", "text"),
    ("Utf8", "text"),
    ("LargeBinary", "bytea"),
    ("BinaryView", "bytea"),
    ("Boolean", "boolean"),
    ("UInt8", "utinyint"),
    ("UInt16", "usmallint"),
    ("UInt32", "uinteger"),
    ("UInt64", "ubigint"),
    ("Int8", "tinyint"),
    ("Int16", "smallint"),
    ("Int32", "integer"),
    ("Int64", "bigint"),
    ("Float16", "real"),
    ("Float32", "real"),
    ("Float64", "double precision"),
    ("Date32", "date"),
    ("Date64", "date"),
    ("Decimal128", "numeric"),
    ("Decimal256", "numeric"),
    ("Timestamp(µs)", "timestamp"),
    ("Timestamp(ns)", "timestamp"),
    ("Time64(µs)", "time"),
    ("Time64(ns)", "time"),
    ("Interval(MonthDayNano)", "interval"),
    ("Interval(DayTime)", "interval"),
    ("Interval(YearMonth)", "interval"),
    ("Null", "null"),
];

/// The message and what to do about it, if that can be said.
pub(crate) fn wording(root: &DataFusionError) -> (String, Option<String>) {
    match root {
        DataFusionError::SchemaError(error, _) => about_columns(error),
        DataFusionError::ArrowError(error, _) => about_values(error),
        DataFusionError::SQL(error, _) => (format!("syntax error: {}", bare(&error.to_string())), None),
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Configuration(text)
        | DataFusionError::NotImplemented(text)
        | DataFusionError::ResourcesExhausted(text)
        | DataFusionError::Internal(text) => about(text),
        other => {
            let text = other.strip_backtrace();
            (about_a_pattern(bare(&text)).unwrap_or_else(|| in_sql(bare(&text))), None)
        }
    }
}

fn about_columns(error: &SchemaError) -> (String, Option<String>) {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let message = format!("column `{}` does not exist", written(field));
            (message, Some(columns_hint(&field.name, valid_fields)).filter(|hint| !hint.is_empty()))
        }
        SchemaError::AmbiguousReference { field } => (
            format!("column `{}` is ambiguous", written(field)),
            Some(format!("name its table, as in `t.{}`", field.name)),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            let name = bowshot_api::display_name(name);
            (
                format!("column `{name}` is there twice"),
                Some("give one of them another name with AS".to_owned()),
            )
        }
    }
}

fn written(column: &Column) -> String {
    match &column.relation {
        Some(relation) => format!("{}.{}", relation.table(), column.name),
        // The row of a table that is not there.
        None => column.name.trim_start_matches(bowshot_sql::rewrite::WHOLE_ROW).to_owned(),
    }
}

fn columns_hint(name: &str, there: &[Column]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for column in there {
        let name = bowshot_api::display_name(&column.name);
        if !name.starts_with("__") && !names.contains(&name) {
            names.push(name);
        }
    }
    if let Some(close) = closest(name, names.iter().copied()) {
        return format!("did you mean `{close}`?");
    }
    match names.len() {
        0 => String::new(),
        count if count <= LISTED => format!("there are: {}", names.join(", ")),
        _ => format!("there are: {}, …", names.get(..LISTED).unwrap_or_default().join(", ")),
    }
}

/// The name that a slip of the hand could have made the other one of. Names of the server's own are never meant.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let near = names.map(|other| (strsim::damerau_levenshtein(&name, &other.to_lowercase()), other));
    near.filter(|(_, other)| !other.starts_with("__"))
        .filter(|(distance, other)| *distance <= allowed && *distance < other.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

fn about_values(error: &ArrowError) -> (String, Option<String>) {
    let text = error.to_string();
    match error {
        ArrowError::DivideByZero => ("division by zero".to_owned(), Some("guard it with NULLIF".to_owned())),
        ArrowError::ArithmeticOverflow(text) => {
            (format!("{} out of range", overflown(text)), Some("cast to a wider type first".to_owned()))
        }
        _ => about(&text),
    }
}

/// The type whose range was left: the kernels name only the values.
fn overflown(text: &str) -> &'static str {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    if text.contains('.') || text.to_lowercase().contains("decimal") {
        "numeric"
    } else if digits > 24 || text.to_lowercase().contains("int64") {
        "bigint"
    } else {
        "integer"
    }
}

fn about(text: &str) -> (String, Option<String>) {
    let text = bare(text);
    if let Some(rest) = text.strip_prefix("Invalid function '") {
        let name = rest.split('\'').next().unwrap_or(rest);
        let guess = rest.split("Did you mean '").nth(1).and_then(|rest| rest.split('\'').next());
        let close = guess.and_then(|guess| closest(name, std::iter::once(guess)));
        let hint = close.map_or_else(
            || "the functions are listed by `SHOW FUNCTIONS`".to_owned(),
            |close| format!("did you mean `{close}`?"),
        );
        return (format!("function `{name}` does not exist"), Some(hint));
    }
    // What functions of our own say of their arguments is kept.
    if let Some((_, own)) = text.split_once("' user-defined coercion failed with: ")
        && unmatched_call(text).is_none()
    {
        return about(own.split(NO_MATCH).next().unwrap_or(own).trim());
    }
    if let Some(found) = about_groups(text) {
        return found;
    }
    if let Some(call) = unmatched_call(text) {
        let hint = "what functions take is listed by `SHOW FUNCTIONS`";
        return (format!("function {} does not exist", in_sql(&call)), Some(hint.to_owned()));
    }
    if let Some(rest) = text.strip_prefix("Cannot cast string '") {
        return about_a_text(rest);
    }
    if let Some(wrong) = about_a_pattern(text) {
        return (wrong, None);
    }
    if let Some(types) = text.strip_prefix("Cannot infer common argument type for comparison operation ") {
        return (
            format!("values of these types cannot be compared: {}", in_sql(types)),
            Some("cast one side with CAST(… AS type)".to_owned()),
        );
    }
    if let Some(rest) = text.strip_prefix("Cannot coerce arithmetic expression ") {
        let rest = rest.trim_end_matches(" to valid types");
        return (
            format!("no such operator: {}", in_sql(rest)),
            Some("cast one side with CAST(… AS type)".to_owned()),
        );
    }
    if text.contains("Divide by zero") {
        return ("division by zero".to_owned(), Some("guard it with NULLIF".to_owned()));
    }
    (in_sql(without_trees(text)), None)
}

/// Columns outside of aggregates that no group has, and stars of tables that are not there.
fn about_groups(text: &str) -> Option<(String, Option<String>)> {
    if let Some((_, rest)) = text.split_once(": While expanding wildcard, column \"") {
        let column = in_sql(rest.split("\" must appear in the GROUP BY clause").next()?);
        let hint = format!("add it to GROUP BY, or use `any_value({column})`");
        let message = format!("`{column}` must appear in GROUP BY or be used in an aggregate function");
        return Some((message, Some(hint)));
    }
    if text.starts_with("HAVING clause references: ") {
        let hint = "filter rows with WHERE".to_owned();
        return Some(("HAVING without GROUP BY takes aggregate functions only".to_owned(), Some(hint)));
    }
    let table = in_sql(text.strip_prefix("Invalid qualifier ")?);
    let message = format!("table `{table}` not found in FROM");
    Some((message, Some("name the table as FROM does".to_owned())))
}

/// The call of a function with arguments that it does not take: `left(Utf8, Date32)`, without them where they are not told.
fn unmatched_call(text: &str) -> Option<String> {
    const SUBJECTS: [&str; 5] = [
        "Function '",
        "The function '",
        "function '",
        "For function '",
        "Failed to coerce arguments to satisfy a call to '",
    ];
    // `[return_type] SUM not supported for Utf8`.
    if let Some((name, given)) =
        text.strip_prefix("[return_type] ").and_then(|rest| rest.split_once(" not supported for "))
    {
        return Some(format!("{}({given})", name.to_lowercase()));
    }
    let rest = SUBJECTS.iter().find_map(|subject| text.strip_prefix(subject))?;
    let (name, why) = rest.split_once('\'')?;
    let is_known = match why.split_once(" user-defined coercion failed with: ") {
        Some((_, own)) => {
            // Functions of our own tell the call.
            let call = own.strip_prefix("Error during planning: function ");
            if let Some((call, _)) = call.and_then(|call| call.split_once(" does not exist")) {
                return Some(call.to_owned());
            }
            own.contains("Fail to find the coerced type")
        }
        None => {
            let begins = [" expect", " require", " failed to match", " has signature ", " could not coerce "];
            let ends = ["does not support zero arguments", "coerc", "is not comparable"];
            !why.contains("lambda")
                && (begins.iter().any(|begin| why.starts_with(begin))
                    || ends.iter().any(|end| why.contains(end)))
        }
    };
    let call = text.split_once(NO_MATCH).and_then(|(_, rest)| rest.split_once("'. You might"));
    is_known.then(|| call.map_or_else(|| format!("{name} with these arguments"), |(call, _)| call.to_owned()))
}

/// A text that is no value of a type: `24:00' to value of Time64(µs) type`.
fn about_a_text(rest: &str) -> (String, Option<String>) {
    let (value, to) = rest.split_once("' to value of ").unwrap_or((rest, ""));
    let kinds = [("Timestamp", "timestamp"), ("Time", "time"), ("Date", "date")];
    if let Some((_, kind)) = kinds.iter().find(|(name, _)| to.starts_with(name))
        && let Some(error) = bowshot_api::unsupported_time(kind, value)
    {
        return (error.message().to_owned(), error.hint().map(ToOwned::to_owned));
    }
    let number = value.trim().trim_start_matches(['+', '-']);
    let is_no_number = ["nan", "inf", "infinity"].iter().any(|word| number.eq_ignore_ascii_case(word));
    if to.starts_with("Decimal") && is_no_number {
        let message = format!("cannot store `{value}`: a numeric cannot be NaN or infinity");
        return (message, Some("use DOUBLE PRECISION".to_owned()));
    }
    (format!("invalid input syntax for type {}: `{value}`", in_sql(to.trim_end_matches(" type"))), None)
}

/// What libraries of regular expressions say of one that is wrong, without their picture of it.
fn about_a_pattern(text: &str) -> Option<String> {
    let why = if text.contains("regex parse error") {
        text.rsplit_once("error: ")?.1.lines().next()?.trim()
    } else if text.contains("Compiled regex exceeds size limit") || text.contains("CompiledTooBig") {
        "it is too large"
    } else {
        return text
            .strip_prefix("Regular expression did not compile: ")
            .map(|pattern| format!("invalid regular expression `{pattern}`"));
    };
    Some(format!("invalid regular expression: {why}"))
}

/// What a message of the planner says before a part of a tree, which nobody who writes SQL can read: `Unsupported SQL binary
/// operator Custom("~<~")`.
fn without_trees(text: &str) -> &str {
    // Types look alike, and say something.
    const TYPES: [&str; 14] = [
        "Decimal",
        "Dictionary",
        "Duration",
        "FixedSize",
        "Interval",
        "Large",
        "List",
        "Map",
        "RunEnd",
        "Struct",
        "Time",
        "Timestamp",
        "Union",
        "Utf8",
    ];
    let mut from = 0;
    for word in text.split_inclusive(' ') {
        let name = word.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let behind = text.get(from + name.len()..).unwrap_or_default();
        let is_tree = [" {", "(\"", "(Some(", "([", "(Ident", "(On(", "(BinaryOp", "(Value", "(Identifier"]
            .iter()
            .any(|begin| behind.starts_with(begin));
        let is_name = name.starts_with(|c: char| c.is_ascii_uppercase()) && name.len() > 1;
        if from > 0 && is_name && is_tree && !TYPES.iter().any(|known| name.starts_with(known)) {
            let said = text.get(..from).unwrap_or_default();
            return said.trim_end_matches([' ', ':', '`', '\'', '"', '(']);
        }
        from += word.len();
    }
    text
}

/// Without what the layers have put before it, and without DataFusion's request to report it.
fn bare(text: &str) -> &str {
    let mut text = text;
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text.split("This issue was likely caused by a bug in DataFusion").next().unwrap_or(text).trim()
}

/// With SQL's names of types, and names of tables as they are mostly written.
fn in_sql(text: &str) -> String {
    let text = text.replace("bowshot.main.", "");
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(next) = rest.chars().next() {
        let after_word = shown.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let named = TYPES.iter().find(|(arrow, _)| !after_word && is_word(rest, arrow));
        match named {
            Some((arrow, sql)) => {
                shown.push_str(sql);
                rest = rest.get(arrow.len()..).unwrap_or_default();
            }
            None => {
                shown.push(next);
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
            }
        }
    }
    with_arrays(shown)
}

/// `List(integer)` as `integer[]`, the innermost first.
fn with_arrays(mut text: String) -> String {
    const LIST: &str = "List(";
    while let Some((before, rest)) = text.rsplit_once(LIST) {
        let mut depth = 0_i32;
        let close = rest.find(|character: char| {
            depth += i32::from(character == '(') - i32::from(character == ')');
            depth < 0
        });
        let item = close.and_then(|close| Some((rest.get(..close)?, rest.get(close + 1..)?)));
        let Some((item, after)) = item.filter(|_| !before.ends_with(char::is_alphanumeric)) else { break };
        text = format!("{before}{item}[]{after}");
    }
    text
}

fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests;
