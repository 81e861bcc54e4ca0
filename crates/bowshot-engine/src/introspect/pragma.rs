//! `PRAGMA …`: the ones of SQLite and DuckDB that ask about tables.

use super::asked::{Asked, named, parsed, quoted};
use super::parse::Words;
use super::{Expanded, describe};
use bowshot_api::{Error, Result};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The statement with its first word taken.
pub(super) fn recognise(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Expanded> {
    let Some(name) = words.word() else { return Err(words.unexpected()) };
    let rows = match name.as_str() {
        "version" => {
            ended(&mut words)?;
            let version = quoted(env!("CARGO_PKG_VERSION"));
            parsed(&format!("SELECT {version} AS library_version, '' AS source_id"))?
        }
        "table_info" | "table_xinfo" => table_info(words, asked)?,
        "show_tables" => {
            ended(&mut words)?;
            super::show_tables::tables(words, asked, super::show::Modifier::None)?
        }
        "show_tables_expanded" => {
            ended(&mut words)?;
            super::show_tables::all(words)?
        }
        "database_list" => {
            ended(&mut words)?;
            let sql = "SELECT row_number() OVER (ORDER BY name) - 1 AS seq, name, CAST(NULL AS VARCHAR) AS file \
                       FROM (SELECT DISTINCT catalog_name AS name FROM information_schema.schemata) ORDER BY name";
            parsed(sql)?
        }
        name => {
            return Err(Error::unsupported(format!("PRAGMA {name} is not supported"))
                .with_hint("`SHOW ALL` lists what a session can set, with `SET name = value`"));
        }
    };
    Ok(Expanded::Rows(Box::new(rows)))
}

fn ended(words: &mut Words<'_>) -> Result<()> {
    if words.take_token(&Token::LParen) && !words.take_token(&Token::RParen) {
        return Err(words.unexpected());
    }
    words.end()
}

/// With SQLite's columns.
fn table_info(mut words: Words<'_>, asked: &Asked<'_>) -> Result<datafusion::sql::parser::Statement> {
    let in_parentheses = words.take_token(&Token::LParen);
    if !in_parentheses && !words.take_token(&Token::Eq) {
        return Err(words.unexpected().with_hint("write `PRAGMA table_info('table')`"));
    }
    let name = match words.string() {
        Some(text) => ObjectName::from(text.split('.').map(Ident::new).collect::<Vec<_>>()),
        None => words.name()?,
    };
    if in_parentheses && !words.take_token(&Token::RParen) {
        return Err(words.unexpected());
    }
    words.end()?;
    let table = asked.table(&name)?;
    parsed(&format!(
        "SELECT CAST(ordinal_position - 1 AS INTEGER) AS cid, column_name AS name, column_type AS type, \
         is_nullable = 'NO' AS {}, column_default AS dflt_value, column_key = 'PRI' AS pk \
         FROM information_schema.columns WHERE {} ORDER BY ordinal_position",
        named("notnull"),
        describe::is(&table)
    ))
}
