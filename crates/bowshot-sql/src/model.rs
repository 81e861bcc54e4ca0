//! `CREATE [OR REPLACE] MODEL [IF NOT EXISTS] m FROM 'file' [FORMAT f]` and `DROP MODEL [IF EXISTS] m`.

use crate::statement_tokens::{StatementTokens, expect_end};
use crate::syntax_error::syntax_error;
use bowshot_api::Result;
use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// CREATE MODEL or DROP MODEL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelStatement {
    /// `CREATE MODEL`
    Create {
        name: ObjectName,
        file: ModelFile,
        /// What the file is said to be, in lower case.
        format: Option<String>,
        replace: bool,
        if_not_exists: bool,
    },
    /// `DROP MODEL`
    Drop { name: ObjectName, if_exists: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFile {
    /// In the exchange folder, under this path.
    Named(String),
    /// In the rows of the client, which the statement calls so.
    Sent(String),
}

/// Whether the words up to MODEL stand here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    let replaces = words.is_at(0, "create") && words.is_at(1, "or") && words.is_at(2, "replace");
    (words.is_at(0, "create") || words.is_at(0, "drop")) && words.is_at(if replaces { 3 } else { 1 }, "model")
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<ModelStatement> {
    let parser = &mut words.parser;
    let (read, form) = if parser.parse_keyword(Keyword::DROP) {
        (dropped(parser), "DROP MODEL [IF EXISTS] name")
    } else {
        let form =
            "CREATE [OR REPLACE] MODEL [IF NOT EXISTS] name FROM 'file' [FORMAT xgboost | lightgbm | onnx]";
        (created(parser), form)
    };
    let read = read.and_then(|statement| expect_end(parser).map(|()| statement));
    read.map_err(|error| syntax_error(&error).with_hint(format!("write `{form}`")))
}

fn dropped(parser: &mut Parser<'_>) -> Result<ModelStatement, ParserError> {
    parser.advance_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    Ok(ModelStatement::Drop { name: parser.parse_object_name(false)?, if_exists })
}

fn created(parser: &mut Parser<'_>) -> Result<ModelStatement, ParserError> {
    parser.advance_token();
    let replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    if replace && if_not_exists {
        return Err(ParserError::ParserError("OR REPLACE and IF NOT EXISTS exclude each other".to_owned()));
    }
    let name = parser.parse_object_name(false)?;
    parser.expect_keyword(Keyword::FROM)?;
    let file = file(parser)?;
    let format = if parser.parse_keyword(Keyword::FORMAT) {
        Some(parser.parse_identifier()?.value.to_ascii_lowercase())
    } else {
        None
    };
    Ok(ModelStatement::Create { name, file, format, replace, if_not_exists })
}

fn file(parser: &mut Parser<'_>) -> Result<ModelFile, ParserError> {
    if !matches!(parser.peek_token_ref().token, Token::Word(_)) {
        return parser.parse_literal_string().map(ModelFile::Named);
    }
    let name = parser.parse_identifier()?;
    Ok(ModelFile::Sent(if name.quote_style.is_none() { name.value.to_lowercase() } else { name.value }))
}
