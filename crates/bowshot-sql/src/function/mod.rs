//! Functions that SQL makes:
//!
//! ```text
//! CREATE [OR REPLACE] [TEMPORARY] FUNCTION [IF NOT EXISTS] f(a INT, b TEXT DEFAULT 'x') RETURNS type {RETURN expr | AS 'SELECT …'}
//! CREATE [OR REPLACE] [TEMPORARY] MACRO [IF NOT EXISTS] f(a, b := 1) AS {expr | TABLE query}
//! DROP {FUNCTION | MACRO} [IF EXISTS] f
//! ```

mod body;
mod call;

pub use body::FunctionBody;
pub use call::{Call, ExpansionBudget};

use crate::statement_tokens::StatementTokens;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

/// Parameters of one function, and columns of one table function, as PostgreSQL has it for parameters.
const MAX_PARAMETERS: usize = 100;

/// CREATE FUNCTION or DROP FUNCTION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionStatement {
    /// `CREATE FUNCTION`, `CREATE MACRO`
    Create(Box<NewFunction>),
    /// `DROP FUNCTION`, `DROP MACRO`
    Drop { name: ObjectName, if_exists: bool },
}

/// A function to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFunction {
    pub name: ObjectName,
    pub replace: bool,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub parameters: Vec<FunctionParameter>,
    pub returns: FunctionResult,
    /// A query as it was written: `SELECT expr` for `RETURN expr`.
    pub body: String,
    pub volatility: Volatility,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionParameter {
    pub name: String,
    /// The type that arguments are cast to, as SQL.
    pub data_type: Option<String>,
    /// The expression for an argument that is left out.
    pub default: Option<String>,
}

/// What a function gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionResult {
    /// One value, cast to a type where there is one.
    Value(Option<String>),
    /// Rows of these columns, names with types; without any, rows as its query gives them.
    Rows(Vec<(String, String)>),
}

bowshot_api::named! {
    /// What a definition says of how values change, with the letter of `pg_proc.provolatile`. Nothing follows from it, since functions are
    /// expanded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Volatility: letter {
        Immutable = "i",
        Stable = "s",
        #[default]
        Volatile = "v",
    }
}

impl Volatility {
    /// The reverse of [`Self::letter`].
    pub fn parse(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }
}

/// Whether the words up to FUNCTION or MACRO stand here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    let is_create = words.is_at(0, "create");
    let mut at = if is_create && words.is_at(1, "or") && words.is_at(2, "replace") { 3 } else { 1 };
    if is_create && ["temporary", "temp"].iter().any(|word| words.is_at(at, word)) {
        at += 1;
    }
    (is_create || words.is_at(0, "drop")) && (words.is_at(at, "function") || words.is_at(at, "macro"))
}

/// Reads a statement that [begins](begins) so.
///
/// # Errors
/// `Syntax` for one that is not complete, `Unsupported` for functions of other languages.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<FunctionStatement> {
    if words.take("drop") {
        return dropped(&mut words).map_err(|error| with_form(error, "DROP FUNCTION [IF EXISTS] name"));
    }
    words.take("create");
    let replace = words.take_all(&["or", "replace"]);
    let temporary = words.take_any(&["temporary", "temp"]);
    let is_macro = words.take("macro");
    if !is_macro {
        words.take("function");
    }
    let form = if is_macro {
        "CREATE MACRO name(a, b := 1) AS expression"
    } else {
        "CREATE FUNCTION name(a INT, b INT DEFAULT 1) RETURNS INT RETURN a + b"
    };
    let created = created(&mut words, is_macro).map_err(|error| with_form(error, form))?;
    if replace && created.if_not_exists {
        return Err(Error::new(ErrorKind::Syntax, "OR REPLACE and IF NOT EXISTS exclude each other"));
    }
    Ok(FunctionStatement::Create(Box::new(NewFunction { replace, temporary, ..created })))
}

fn with_form(error: Error, form: &str) -> Error {
    if error.hint().is_some() { error } else { error.with_hint(format!("write `{form}`")) }
}

fn dropped(words: &mut StatementTokens<'_>) -> Result<FunctionStatement> {
    words.token();
    words.take("table");
    let if_exists = words.take_all(&["if", "exists"]);
    let name = words.name()?;
    // Each name is that of one function, so its types tell nothing more.
    if words.take_token(&Token::LParen) {
        while !words.take_token(&Token::RParen) {
            if words.at_end() {
                return Err(words.unexpected());
            }
            words.token();
        }
    }
    words.take_any(&["restrict", "cascade"]);
    words.end()?;
    Ok(FunctionStatement::Drop { name, if_exists })
}

fn created(words: &mut StatementTokens<'_>, is_macro: bool) -> Result<NewFunction> {
    let if_not_exists = words.take_all(&["if", "not", "exists"]);
    let name = words.name()?;
    let parameters = parameters(words)?;
    // Without a type of its result, a function is a macro.
    let is_macro = is_macro || words.is_at(0, "as");
    let returns = returns(words, is_macro)?;
    let mut made = NewFunction {
        name,
        replace: false,
        if_not_exists,
        temporary: false,
        parameters,
        returns,
        body: String::new(),
        volatility: Volatility::default(),
    };
    while !words.at_end() {
        property(words, &mut made, is_macro)?;
    }
    if made.body.is_empty() {
        return Err(words.unexpected());
    }
    Ok(made)
}

fn parameters(words: &mut StatementTokens<'_>) -> Result<Vec<FunctionParameter>> {
    let mut parameters: Vec<FunctionParameter> = Vec::new();
    expect(words, &Token::LParen)?;
    if words.take_token(&Token::RParen) {
        return Ok(parameters);
    }
    loop {
        words.take("in");
        let name = words.single()?;
        if parameters.iter().any(|other| other.name == name) {
            return Err(Error::invalid(format!("parameter name `{name}` is used more than once")));
        }
        check_count(parameters.len())?;
        let data_type = if ends_name(words) { None } else { Some(words.data_type()?) };
        let default = default_of(words)?;
        if default.is_none() && parameters.last().is_some_and(|before| before.default.is_some()) {
            return Err(Error::invalid(format!(
                "parameter `{name}` needs a default, because one before it has one"
            )));
        }
        parameters.push(FunctionParameter { name, data_type, default });
        if words.take_token(&Token::RParen) {
            return Ok(parameters);
        }
        expect(words, &Token::Comma)?;
    }
}

fn check_count(there: usize) -> Result<()> {
    if there < MAX_PARAMETERS {
        return Ok(());
    }
    let message = format!("a function has at most {MAX_PARAMETERS} parameters and columns");
    Err(Error::new(ErrorKind::LimitReached, message))
}

/// Whether a parameter has no type.
fn ends_name(words: &StatementTokens<'_>) -> bool {
    matches!(words.token_at(0), Token::Comma | Token::RParen | Token::Assignment | Token::Eq)
        || words.is_at(0, "default")
}

fn default_of(words: &mut StatementTokens<'_>) -> Result<Option<String>> {
    if !(words.take("default") || words.take_token(&Token::Assignment) || words.take_token(&Token::Eq)) {
        return Ok(None);
    }
    let from = words.rest();
    words.expression()?;
    let text = from.strip_suffix(words.rest()).unwrap_or(from);
    Ok(Some(text.trim().to_owned()))
}

fn returns(words: &mut StatementTokens<'_>, is_macro: bool) -> Result<FunctionResult> {
    if is_macro || !words.take("returns") {
        return Ok(FunctionResult::Value(None));
    }
    if words.is_at(0, "setof") {
        return Err(Error::unsupported("RETURNS SETOF is not supported")
            .with_hint("name the columns: `RETURNS TABLE (a INT, b TEXT)`"));
    }
    if !words.take("table") {
        return Ok(FunctionResult::Value(Some(words.data_type()?)));
    }
    let mut columns: Vec<(String, String)> = Vec::new();
    expect(words, &Token::LParen)?;
    loop {
        let name = words.single()?;
        if columns.iter().any(|(other, _)| *other == name) {
            return Err(Error::invalid(format!("column `{name}` is there twice")));
        }
        check_count(columns.len())?;
        columns.push((name, words.data_type()?));
        if words.take_token(&Token::RParen) {
            return Ok(FunctionResult::Rows(columns));
        }
        expect(words, &Token::Comma)?;
    }
}

/// Reads one property of a function, its body among them.
fn property(words: &mut StatementTokens<'_>, made: &mut NewFunction, is_macro: bool) -> Result<()> {
    if words.take("return") || is_macro && words.is_at(0, "as") && body_of_macro(words, made) {
        let rest = words.rest().trim().trim_end_matches(';').trim_end();
        set_body(made, rest, true)?;
        words.skip_to_end();
        return Ok(());
    }
    if words.take("as") {
        let text = words.string().ok_or_else(|| words.unexpected())?;
        return set_body(made, text.trim().trim_end_matches(';').trim_end(), false);
    }
    if words.take("language") {
        let language = words.string().or_else(|| words.word()).unwrap_or_default();
        if !language.eq_ignore_ascii_case("sql") {
            return Err(Error::unsupported(format!("functions in `{language}` are not supported"))
                .with_hint("write the function in SQL: `LANGUAGE SQL`"));
        }
        return Ok(());
    }
    if words.is_at(0, "strict") || words.is_at(0, "returns") {
        return Err(Error::unsupported("STRICT is not supported: functions are called for NULL, too")
            .with_hint("write `CASE WHEN a IS NOT NULL THEN … END` in the place of STRICT"));
    }
    if words.take_all(&["security", "definer"]) || words.take_all(&["sql", "security", "definer"]) {
        return Err(Error::unsupported(
            "SECURITY DEFINER is not supported: functions run with the rights of their caller",
        )
        .with_hint("leave it out; a materialized view shows rows that only its owner may read"));
    }
    if words.take_all(&["begin", "atomic"]) {
        return Err(Error::unsupported("a function has one query, not a block")
            .with_hint("write `RETURN expression` or `AS $$ SELECT … $$`"));
    }
    let volatility = [
        ("immutable", Volatility::Immutable),
        ("stable", Volatility::Stable),
        ("volatile", Volatility::Volatile),
        ("deterministic", Volatility::Immutable),
    ];
    if let Some((_, volatility)) = volatility.into_iter().find(|(word, _)| words.take(word)) {
        made.volatility = volatility;
        return Ok(());
    }
    if HARMLESS.iter().any(|property| words.take_all(property)) { Ok(()) } else { Err(words.unexpected()) }
}

/// Properties that say nothing which matters for a query that is expanded.
const HARMLESS: [&[&str]; 10] = [
    &["not", "deterministic"],
    &["contains", "sql"],
    &["reads", "sql", "data"],
    &["no", "sql"],
    &["security", "invoker"],
    &["sql", "security", "invoker"],
    &["called", "on", "null", "input"],
    &["parallel", "safe"],
    &["parallel", "restricted"],
    &["parallel", "unsafe"],
];

/// Takes `AS`, and `TABLE` where the macro gives rows. A text in quotes is a value of a macro, not its body.
fn body_of_macro(words: &mut StatementTokens<'_>, made: &mut NewFunction) -> bool {
    words.take("as");
    if words.take("table") {
        made.returns = FunctionResult::Rows(Vec::new());
    }
    true
}

/// `is_bare`: whether an expression stands for itself, as behind RETURN.
fn set_body(made: &mut NewFunction, text: &str, is_bare: bool) -> Result<()> {
    if text.is_empty() || !made.body.is_empty() {
        return Err(Error::new(ErrorKind::Syntax, "syntax error: a function has one body"));
    }
    made.body = match made.returns {
        FunctionResult::Value(_) if is_bare => format!("SELECT {text}"),
        _ => text.to_owned(),
    };
    Ok(())
}

fn expect(words: &mut StatementTokens<'_>, token: &Token) -> Result<()> {
    if words.take_token(token) { Ok(()) } else { Err(words.unexpected()) }
}
