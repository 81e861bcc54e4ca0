//! The forms in which PostgreSQL and MySQL ask for plans: `EXPLAIN (ANALYZE, FORMAT JSON) …`, `EXPLAIN FORMAT=JSON …`.
//! They become the one form that DataFusion takes.

use super::Expanded;
use super::asked::Asked;
use super::parse::Words;
use bowshot_api::{Error, ErrorKind, Result};
use datafusion::sql::sqlparser::tokenizer::Token;

/// What is asked of a plan.
#[derive(Debug, Default)]
struct Options {
    analyze: bool,
    verbose: bool,
    format: Option<&'static str>,
}

/// The same statement in another form; `None` if it is in that form already, or no such statement.
pub(super) fn recognise(sql: &str, first: &str, asked: &Asked<'_>) -> Result<Option<Expanded>> {
    let Some(mut words) = Words::of(sql, asked.dialect, asked.recursion) else { return Ok(None) };
    if first != "explain" || !words.take(first) {
        return Ok(None);
    }
    let mut options = Options::default();
    let mut rewritten = false;
    if words.is(&Token::LParen) && has_option(&words) {
        listed(&mut words, &mut options)?;
        rewritten = true;
    } else {
        // In any order, as their servers have them.
        loop {
            if words.take_any(&["analyze", "analyse"]) {
                options.analyze = true;
            } else if words.take("verbose") {
                options.verbose = true;
            } else if words.take("extended") {
                rewritten = true;
            } else if words.peek().as_deref() == Some("format") {
                words.take("format");
                let _ = words.take_token(&Token::Eq);
                let format = words.word().or_else(|| words.string()).ok_or_else(|| words.unexpected())?;
                options.format = Some(self::format(&format)?);
                rewritten = true;
            } else {
                break;
            }
        }
    }
    if !rewritten || words.at_end() {
        return Ok(None);
    }
    // A format that is asked for is one of those without details.
    let verbose = options.verbose && options.format.is_none();
    let mut text = "EXPLAIN".to_owned();
    text.push_str(if options.analyze { " ANALYZE" } else { "" });
    text.push_str(if verbose { " VERBOSE" } else { "" });
    if let Some(format) = options.format {
        text.push_str(" FORMAT ");
        text.push_str(format);
    }
    text.push(' ');
    text.push_str(words.rest());
    // In that form already: it must not be rewritten again and again.
    Ok((text != sql).then_some(Expanded::Instead(text)))
}

/// Whether the parentheses hold options and no query.
fn has_option(words: &Words<'_>) -> bool {
    words.peek_nth(1).is_some_and(|word| OPTIONS.contains(&word.as_str()))
}

/// Options of PostgreSQL, and those whose meaning is in the plan anyway.
const OPTIONS: &[&str] = &[
    "analyze",
    "analyse",
    "verbose",
    "format",
    "costs",
    "settings",
    "generic_plan",
    "buffers",
    "serialize",
    "wal",
    "timing",
    "summary",
    "memory",
];

fn listed(words: &mut Words<'_>, options: &mut Options) -> Result<()> {
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
            name if OPTIONS.contains(&name) => {}
            name => {
                return Err(Error::new(ErrorKind::Syntax, format!("`{name}` is no option of EXPLAIN"))
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

fn value(words: &mut Words<'_>) -> Result<String> {
    if let Some(text) = words.string() {
        return Ok(text.to_ascii_lowercase());
    }
    match words.token() {
        Token::Word(word) => Ok(word.value.to_ascii_lowercase()),
        Token::Number(number, _) => Ok(number),
        _ => Err(words.unexpected()),
    }
}

fn format(name: &str) -> Result<&'static str> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "text" | "traditional" | "indent" => "INDENT",
        "json" | "pgjson" => "PGJSON",
        "tree" => "TREE",
        "graphviz" => "GRAPHVIZ",
        other => {
            return Err(Error::unsupported(format!("plans have no format `{other}`"))
                .with_hint("the formats are TEXT, TREE, JSON and GRAPHVIZ"));
        }
    })
}
