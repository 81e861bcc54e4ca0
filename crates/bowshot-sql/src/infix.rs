//! Operators that the parser reads as something else: `?` on JSON where `?` is a parameter too, `DIV`, `MOD`, `||` and `&&` of
//! MySQL, and lists behind IN that begin with a query.

use crate::dialect::DialectName;
use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::Precedence;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// How tight the next token binds, if it is such an operator: so much tighter than another one.
pub(crate) fn precedence(parser: &Parser<'_>, dialect: DialectName) -> Option<(Precedence, u8)> {
    let is_mysql = dialect == DialectName::MySql;
    match &parser.peek_token_ref().token {
        token if is_question(token) => Some((Precedence::PgOther, 0)),
        token if division(token, dialect).is_some() => Some((Precedence::MulDivModOp, 0)),
        Token::StringConcat if is_mysql => Some((Precedence::Or, 0)),
        Token::Word(word) if is_mysql && word.keyword == Keyword::XOR => Some((Precedence::Or, 1)),
        Token::Overlap if is_mysql => Some((Precedence::And, 0)),
        Token::Word(_) if is_div(parser, dialect) => Some((Precedence::MulDivModOp, 0)),
        Token::Colon if takes_part(parser) => Some((Precedence::DoubleColon, 0)),
        _ => None,
    }
}

/// The expression with its right side, if such an operator comes next. `precedence` is how tight it binds.
pub(crate) fn parse(
    parser: &mut Parser<'_>,
    left: &Expr,
    precedence: u8,
    dialect: DialectName,
) -> Option<Result<Expr, ParserError>> {
    if let Some(negated) = list_with_query(parser) {
        return Some(in_list(parser, left, negated));
    }
    let token = &parser.peek_token_ref().token;
    let op = match token {
        token if is_question(token) => BinaryOperator::Question,
        Token::Word(_) if is_div(parser, dialect) => BinaryOperator::MyIntegerDivide,
        Token::StringConcat if dialect == DialectName::MySql => BinaryOperator::Or,
        token => division(token, dialect)?,
    };
    parser.advance_token();
    let op = if op == BinaryOperator::Question { of_keys(parser) } else { op };
    let right = parser.parse_subexpr(precedence);
    Some(right.map(|right| Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) }))
}

/// A parameter cannot stand behind an expression.
fn is_question(token: &Token) -> bool {
    matches!(token, Token::Placeholder(name) if name == "?")
}

/// `?`, `?|` or `?&`, whose first character has been read.
fn of_keys(parser: &mut Parser<'_>) -> BinaryOperator {
    let op = match parser.peek_token_no_skip().token {
        Token::Pipe => BinaryOperator::QuestionPipe,
        Token::Ampersand => BinaryOperator::QuestionAnd,
        _ => return BinaryOperator::Question,
    };
    parser.advance_token();
    op
}

/// The parser takes all that follows for the right side of `DIV`, and does not know `MOD` between two numbers.
fn division(token: &Token, dialect: DialectName) -> Option<BinaryOperator> {
    let Token::Word(word) = token else { return None };
    if dialect != DialectName::MySql || word.quote_style.is_some() {
        return None;
    }
    match word.value.to_ascii_uppercase().as_str() {
        "DIV" => Some(BinaryOperator::MyIntegerDivide),
        "MOD" => Some(BinaryOperator::Modulo),
        _ => None,
    }
}

/// `a DIV b` in dialect `ansi`, where the word may be a name as well: something that is no keyword has to follow.
fn is_div(parser: &Parser<'_>, dialect: DialectName) -> bool {
    let Token::Word(word) = &parser.peek_token_ref().token else { return false };
    dialect == DialectName::Ansi
        && word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("div")
        && match &parser.peek_nth_token_ref(1).token {
            Token::Number(..) | Token::LParen | Token::Placeholder(_) => true,
            Token::Word(next) => next.keyword == Keyword::NoKeyword,
            _ => false,
        }
}

/// Whether `[NOT] IN ((SELECT …), …)` comes next, and whether with NOT. The parser takes the first element for the whole.
fn list_with_query(parser: &Parser<'_>) -> Option<bool> {
    let keyword = |at: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
    let bracket = |at: usize| parser.peek_nth_token_ref(at).token == Token::LParen;
    let negated = keyword(0, Keyword::NOT);
    let at = usize::from(negated);
    let query = |at: usize| keyword(at, Keyword::SELECT) || keyword(at, Keyword::WITH);
    if !keyword(at, Keyword::IN) || !bracket(at + 1) || !bracket(at + 2) || !query(at + 3) {
        return None;
    }
    goes_on(parser).then_some(negated)
}

/// Whether the first element in the brackets is not all that there is.
fn goes_on(parser: &Parser<'_>) -> bool {
    let (mut depth, mut closed) = (0_usize, false);
    for at in parser.get_current_index() + 1.. {
        match &parser.token_at(at).token {
            Token::Whitespace(_) => {}
            Token::Comma | Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::DoubleColon
                if closed =>
            {
                return true;
            }
            _ if closed => return false,
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                closed = depth == 1;
            }
            Token::EOF | Token::SemiColon => return false,
            _ => {}
        }
    }
    false
}

fn in_list(parser: &mut Parser<'_>, left: &Expr, negated: bool) -> Result<Expr, ParserError> {
    (0..usize::from(negated) + 1).for_each(|_| parser.advance_token());
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr: Box::new(left.clone()), list, negated })
}

/// What a `:` is.
#[derive(PartialEq)]
enum Colon {
    /// It takes a part of a VARIANT, as in `v:a`.
    Part,
    /// It stands behind a key of `JSON_OBJECT(…)`.
    Key,
    /// Within `[…]` and `{…}` it may stand between bounds, or behind a key.
    Bracket,
}

/// Whether the `:` that comes next takes a part of a VARIANT, and binds as `::` does.
fn takes_part(parser: &Parser<'_>) -> bool {
    let names_part = matches!(parser.peek_nth_token_ref(1).token, Token::Word(_) | Token::LBracket);
    names_part && colon(parser) == Colon::Part
}

/// Whether the `:` that comes next ends a key of `JSON_OBJECT`, whatever the value begins with.
pub(crate) fn ends_key(parser: &Parser<'_>) -> bool {
    colon(parser) == Colon::Key
}

/// What the `:` that comes next is, by the bracket around it and what stands in front of it there.
fn colon(parser: &Parser<'_>) -> Colon {
    let last = parser.get_current_index();
    let (mut closed, mut is_value) = (0_usize, None);
    for at in (0..=last).rev() {
        match &parser.token_at(at).token {
            Token::RParen | Token::RBracket | Token::RBrace => closed += 1,
            Token::LParen | Token::LBracket | Token::LBrace if closed > 0 => closed -= 1,
            Token::LParen if is_value != Some(true) && is_of_json_object(parser, at) => return Colon::Key,
            Token::LBracket | Token::LBrace => return Colon::Bracket,
            Token::LParen | Token::SemiColon => break,
            _ if closed > 0 => {}
            Token::Word(word) if word.keyword == Keyword::SELECT => break,
            Token::Word(word) if word.keyword == Keyword::VALUE && at < last => {
                is_value.get_or_insert(true);
            }
            Token::Colon => {
                is_value.get_or_insert(true);
            }
            Token::Comma => {
                is_value.get_or_insert(false);
            }
            _ => {}
        }
    }
    Colon::Part
}

/// Whether the bracket at a place opens the members of `JSON_OBJECT`.
fn is_of_json_object(parser: &Parser<'_>, bracket: usize) -> bool {
    let before = (0..bracket).rev().map(|at| &parser.token_at(at).token);
    let mut before = before.filter(|token| !matches!(token, Token::Whitespace(_)));
    matches!(before.next(), Some(Token::Word(word)) if word.value.to_ascii_lowercase().starts_with("json_object"))
}

/// Words that are operators in PostgreSQL or DuckDB, and unknown to the parser.
#[derive(Clone, Copy)]
pub(crate) enum OperatorWord {
    IsNull,
    Glob,
}

impl OperatorWord {
    pub(crate) fn precedence(self) -> Precedence {
        match self {
            Self::IsNull => Precedence::Is,
            Self::Glob => Precedence::Like,
        }
    }
}

/// The next word, if it is one of them; `GLOB` may be a name where no pattern follows.
pub(crate) fn operator_word(parser: &Parser<'_>) -> Option<OperatorWord> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    if word.quote_style.is_some() {
        return None;
    }
    let pattern = || matches!(parser.peek_nth_token_ref(1).token, Token::SingleQuotedString(_));
    if word.value.eq_ignore_ascii_case("isnull") {
        Some(OperatorWord::IsNull)
    } else if word.value.eq_ignore_ascii_case("glob") && pattern() {
        Some(OperatorWord::Glob)
    } else {
        None
    }
}
