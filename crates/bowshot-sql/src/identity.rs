//! `GENERATED … AS IDENTITY (START WITH 5 INCREMENT BY 2)`: the options of an identity stand in any order, of which the parser
//! reads one alone, and not the usual one.

use sqlparser::ast::{ColumnOption, GeneratedAs, SequenceOptions};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// The option of a column, if it is an identity with options of its own.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Result<Option<ColumnOption>, ParserError> {
    if !parser.peek_keyword(Keyword::GENERATED) {
        return Ok(None);
    }
    let Some(generated_as) = parser.maybe_parse(kind)? else { return Ok(None) };
    let mut options = Vec::new();
    while !parser.consume_token(&Token::RParen) {
        options.push(option(parser)?);
    }
    Ok(Some(ColumnOption::Generated {
        generated_as,
        sequence_options: Some(options),
        generation_expr: None,
        generation_expr_mode: None,
        generated_keyword: true,
    }))
}

fn kind(parser: &mut Parser<'_>) -> Result<GeneratedAs, ParserError> {
    parser.expect_keyword_is(Keyword::GENERATED)?;
    let kind = if parser.parse_keyword(Keyword::ALWAYS) {
        GeneratedAs::Always
    } else {
        parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT])?;
        GeneratedAs::ByDefault
    };
    parser.expect_keywords(&[Keyword::AS, Keyword::IDENTITY])?;
    parser.expect_token(&Token::LParen)?;
    Ok(kind)
}

fn option(parser: &mut Parser<'_>) -> Result<SequenceOptions, ParserError> {
    if parser.parse_keyword(Keyword::START) {
        let with = parser.parse_keyword(Keyword::WITH);
        return Ok(SequenceOptions::StartWith(parser.parse_number()?, with));
    }
    if parser.parse_keyword(Keyword::INCREMENT) {
        let by = parser.parse_keyword(Keyword::BY);
        return Ok(SequenceOptions::IncrementBy(parser.parse_number()?, by));
    }
    if parser.parse_keyword(Keyword::MINVALUE) {
        return Ok(SequenceOptions::MinValue(Some(parser.parse_number()?)));
    }
    if parser.parse_keyword(Keyword::MAXVALUE) {
        return Ok(SequenceOptions::MaxValue(Some(parser.parse_number()?)));
    }
    if parser.parse_keyword(Keyword::CACHE) {
        return Ok(SequenceOptions::Cache(parser.parse_number()?));
    }
    // Of `Cycle` the parser's own tree says whether it is denied.
    if parser.parse_keyword(Keyword::CYCLE) {
        return Ok(SequenceOptions::Cycle(false));
    }
    if parser.parse_keywords(&[Keyword::NO, Keyword::MINVALUE]) {
        return Ok(SequenceOptions::MinValue(None));
    }
    if parser.parse_keywords(&[Keyword::NO, Keyword::MAXVALUE]) {
        return Ok(SequenceOptions::MaxValue(None));
    }
    if parser.parse_keywords(&[Keyword::NO, Keyword::CYCLE]) {
        return Ok(SequenceOptions::Cycle(true));
    }
    parser.expected_ref("an option of an identity or )", parser.peek_token_ref())
}
