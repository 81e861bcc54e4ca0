//! `EXPLAIN` in the forms of DataFusion, PostgreSQL and MySQL: `EXPLAIN ANALYZE …`, `EXPLAIN (ANALYZE, FORMAT JSON) …`,
//! `EXPLAIN FORMAT=JSON …`. Of a table it is `DESCRIBE`, as in MySQL.

use crate::sqlparser_statement::sql_statement;
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use crate::utility::describe;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// What is to be told about a statement.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Whether it runs, and is told with what it took.
    pub analyze: bool,
    /// Whether all is told.
    pub verbose: bool,
    /// `tree`, `pgjson` or `graphviz`; `None` for the usual one.
    pub format: Option<String>,
    pub statement: Box<ast::Statement>,
}

/// What is asked of a plan.
#[derive(Debug, Default)]
struct Options {
    analyze: bool,
    verbose: bool,
    format: Option<&'static str>,
}

/// Reads a statement that begins with EXPLAIN.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("explain");
    let mut options = Options::default();
    if words.is(&Token::LParen) && has_options(&words) {
        listed(&mut words, &mut options)?;
    } else {
        // In any order, as their servers have them.
        loop {
            if words.take_any(&["analyze", "analyse"]) {
                options.analyze = is_on(&mut words);
            } else if words.take("verbose") {
                options.verbose = is_on(&mut words);
            } else if words.take("format") {
                let _ = words.take_token(&Token::Eq);
                let format = words.word().or_else(|| words.string()).ok_or_else(|| words.unexpected())?;
                options.format = Some(self::format(&format)?);
            } else if !words.take("extended") {
                break;
            }
        }
    }
    let Options { analyze, verbose, format } = options;
    let asks_for_plan = analyze || verbose || format.is_some();
    if !asks_for_plan && !describe::is_query(&words) && !explains(&words) {
        return describe::read_behind(words);
    }
    // A format that is asked for is one of those without details.
    let verbose = verbose && format.is_none();
    let format = format.filter(|format| *format != "indent").map(str::to_owned);
    let (tokens, text) = words.into_rest();
    let statement = sql_statement(tokens, text)?;
    Ok(Statement::Explain(Explain { analyze, verbose, format, statement }))
}

/// Whether a statement follows that is no query.
fn explains(words: &StatementTokens<'_>) -> bool {
    words.peek().is_some_and(|word| STATEMENTS.contains(&word.as_str()))
}

/// What EXPLAIN explains beside queries.
const STATEMENTS: &[&str] = &[
    "analyze", "call", "copy", "create", "delete", "estimate", "explain", "format", "insert", "merge",
    "query", "replace", "truncate", "update", "verbose",
];

/// Whether the parentheses hold options and no query.
fn has_options(words: &StatementTokens<'_>) -> bool {
    let is_query = |word: &str| ["select", "with", "values", "from"].contains(&word);
    words.peek_nth(1).is_some_and(|word| !is_query(&word))
}

/// Options of PostgreSQL whose meaning is in the plan anyway.
const WITHOUT_EFFECT: &[&str] =
    &["costs", "settings", "generic_plan", "buffers", "serialize", "wal", "timing", "summary", "memory"];

fn listed(words: &mut StatementTokens<'_>, options: &mut Options) -> Result<()> {
    words.token();
    loop {
        let name = words.word().ok_or_else(|| words.unexpected())?;
        let value =
            if words.is(&Token::Comma) || words.is(&Token::RParen) { None } else { Some(value(words)?) };
        let on = !matches!(value.as_deref(), Some("off" | "false" | "0"));
        match name.as_str() {
            "analyze" | "analyse" => options.analyze = on,
            "verbose" => options.verbose = on,
            "format" => options.format = Some(format(value.as_deref().unwrap_or_default())?),
            name if WITHOUT_EFFECT.contains(&name) => {}
            name => {
                return Err(Error::new(ErrorKind::Syntax, format!("unknown option `{name}` of EXPLAIN"))
                    .with_hint("the options are ANALYZE, VERBOSE and FORMAT"));
            }
        }
        if words.take_token(&Token::RParen) {
            return Ok(());
        }
        if !words.take_token(&Token::Comma) {
            return Err(words.unexpected());
        }
    }
}

fn value(words: &mut StatementTokens<'_>) -> Result<String> {
    if let Some(text) = words.string() {
        return Ok(text.to_ascii_lowercase());
    }
    match words.token() {
        Token::Word(word) => Ok(word.value.to_ascii_lowercase()),
        Token::Number(number, _) => Ok(number),
        _ => Err(words.unexpected()),
    }
}

/// `ANALYZE off`
fn is_on(words: &mut StatementTokens<'_>) -> bool {
    let _ = words.take_any(&["on", "true"]);
    !words.take_any(&["off", "false"])
}

fn format(name: &str) -> Result<&'static str> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "text" | "traditional" | "indent" => "indent",
        "json" | "pgjson" => "pgjson",
        "tree" => "tree",
        "graphviz" => "graphviz",
        other => {
            return Err(Error::unsupported(format!("plans have no format `{other}`"))
                .with_hint("the formats are TEXT, TREE, JSON and GRAPHVIZ"));
        }
    })
}
