//! `COMMENT ON CONSTRAINT name ON table IS 'text'`, which the parser does not know: it becomes a comment on a column that no table has,
//! which the engine takes for what it is.

use crate::template::{meaning, quoted};
use sqlparser::ast::{CommentObject, ObjectNamePart, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// What the name of the column begins with; that of the constraint follows.
pub const OF_CONSTRAINT: &str = "\u{3}constraint ";

/// Reads such a statement, if it comes next.
pub(crate) fn read(parser: &mut Parser<'_>) -> Result<Option<Statement>, ParserError> {
    if !parser.parse_keywords(&[Keyword::COMMENT, Keyword::ON, Keyword::CONSTRAINT]) {
        return Ok(None);
    }
    let constraint = meaning(&parser.parse_identifier()?);
    parser.expect_keyword(Keyword::ON)?;
    let mut object_name = parser.parse_object_name(false)?;
    let column = quoted(&format!("{OF_CONSTRAINT}{constraint}"));
    object_name.0.push(ObjectNamePart::Identifier(column));
    parser.expect_keyword(Keyword::IS)?;
    let comment =
        if parser.parse_keyword(Keyword::NULL) { None } else { Some(parser.parse_literal_string()?) };
    Ok(Some(Statement::Comment {
        object_type: CommentObject::Column,
        object_name,
        comment,
        if_exists: false,
    }))
}
