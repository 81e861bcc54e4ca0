//! Comments in forms that the parser does not know. `COMMENT ON CONSTRAINT name ON table IS 'text'` becomes a comment on a column that
//! no table has, which the engine takes for what it is; MySQL's `ALTER TABLE t COMMENT 'text'` is one on the table.

use crate::template::{meaning, quoted};
use sqlparser::ast::{CommentObject, ObjectName, ObjectNamePart, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// What the name of the column begins with; that of the constraint follows.
pub const OF_CONSTRAINT: &str = "\u{3}constraint ";

/// Reads such a statement, if it comes next.
pub(crate) fn read(parser: &mut Parser<'_>) -> Result<Option<Statement>, ParserError> {
    if parser.parse_keywords(&[Keyword::COMMENT, Keyword::ON, Keyword::CONSTRAINT]) {
        return on_constraint(parser).map(Some);
    }
    if parser.peek_keyword(Keyword::ALTER) { parser.maybe_parse(of_table) } else { Ok(None) }
}

fn on_constraint(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let constraint = meaning(&parser.parse_identifier()?);
    parser.expect_keyword(Keyword::ON)?;
    let mut table = parser.parse_object_name(false)?;
    let column = quoted(&format!("{OF_CONSTRAINT}{constraint}"));
    table.0.push(ObjectNamePart::Identifier(column));
    parser.expect_keyword(Keyword::IS)?;
    let text = if parser.parse_keyword(Keyword::NULL) { None } else { Some(parser.parse_literal_string()?) };
    Ok(comment(CommentObject::Column, table, text))
}

/// An empty text is none, as in MySQL.
fn of_table(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    parser.expect_keywords(&[Keyword::ALTER, Keyword::TABLE])?;
    let table = parser.parse_object_name(false)?;
    parser.expect_keyword(Keyword::COMMENT)?;
    let _ = parser.consume_token(&Token::Eq);
    let text = parser.parse_literal_string()?;
    // Other changes beside it are not read here.
    match parser.peek_token_ref().token {
        Token::EOF | Token::SemiColon => {
            Ok(comment(CommentObject::Table, table, Some(text).filter(|text| !text.is_empty())))
        }
        _ => parser.expected_ref("the end of the statement", parser.peek_token_ref()),
    }
}

fn comment(object_type: CommentObject, object_name: ObjectName, comment: Option<String>) -> Statement {
    Statement::Comment { object_type, object_name, comment, if_exists: false }
}
