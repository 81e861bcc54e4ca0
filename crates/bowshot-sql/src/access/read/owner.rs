//! `ALTER … OWNER TO`, which is told from all other changes of a thing before it is read.

use super::{Parsed, grantee, name_of, word};
use crate::access::{AccessStatement, Object};
use crate::statement_tokens::StatementTokens;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

const KINDS: [&str; 6] = ["table", "view", "schema", "catalog", "database", "model"];

/// Whether the statement is `ALTER kind [IF EXISTS] name OWNER TO …`.
pub(super) fn is_said(words: &StatementTokens<'_>) -> bool {
    let is = |n: usize, word: &str| words.is_at(n, word);
    let mut name = if is(1, "materialized") && is(2, "view") {
        3
    } else if KINDS.iter().any(|kind| is(1, kind)) {
        2
    } else {
        return false;
    };
    if is(name, "if") && is(name + 1, "exists") {
        name += 2;
    }
    while words.nth_is(name + 1, &Token::Period) {
        name += 2;
    }
    is(name + 1, "owner") && is(name + 2, "to")
}

/// The statement behind `ALTER`.
pub(super) fn owner(parser: &mut Parser<'_>) -> Parsed<AccessStatement> {
    let _ = parser.parse_keyword(Keyword::MATERIALIZED);
    let kind = parser.parse_identifier()?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let object = match name_of(&kind).as_str() {
        "schema" => Object::Schema(name),
        "catalog" | "database" => Object::Catalog(name),
        "model" => Object::Model(name),
        _ => Object::Table(name),
    };
    if !word(parser, "owner") {
        return parser.expected("OWNER", parser.peek_token());
    }
    parser.expect_keyword(Keyword::TO)?;
    Ok(AccessStatement::Owner { object, owner: grantee(parser)?, if_exists })
}
