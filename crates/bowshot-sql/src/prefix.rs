//! Expressions whose beginning the parser would read as something else: lambdas in the arguments of functions over lists,
//! lists that are made of others, `current_user` as a word and as a call, calls in `pg_catalog`, and NOT before EXISTS.

use crate::calls::{call, call_with};
use sqlparser::ast::{
    Expr, FunctionArguments, Ident, LambdaFunction, LambdaFunctionParameter, LambdaSyntax, ObjectName,
    OneOrManyWithParens, UnaryOperator,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Functions whose arguments may be lambdas. Elsewhere `a -> b` reads JSON.
const OVER_LISTS: &[&str] = bowshot_api::words! {
    aggregate any_match all_match apply array_any_match array_all_match array_apply array_filter array_map
    array_reduce array_transform exists filter list_apply list_any_match list_all_match list_filter
    list_reduce list_transform map_filter none_match reduce transform zip_with
};

/// Functions without arguments that are words of their own, and calls as well.
const WORDS: [&str; 5] =
    ["current_user", "session_user", "current_catalog", "current_schema", "current_role"];

/// The same, where the word alone is the parser's to read: it may be a column.
const CALLED: [&str; 1] = ["user"];

/// Words that begin forms of the parser's, with the functions that they are behind a schema: `extract('year', d)`.
const FORMS: [(&str, &str); 8] = [
    ("ceil", "ceil"),
    ("extract", "date_part"),
    ("floor", "floor"),
    ("overlay", "overlay"),
    ("position", "strpos"),
    ("substr", "substr"),
    ("substring", "substr"),
    ("trim", "btrim"),
];

/// Names of a lambda in brackets. To look at a token takes time with how far away it is.
const MAX_PARAMETERS: usize = 64;

/// Arrows and lambdas that are passed on the way back to a bracket, so that each token is passed as often at most. Lists may be as
/// long as they are.
const MAX_PASSED: usize = 100;

/// `None` where nothing of the kind begins.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if is_comprehension(parser) {
        return Some(comprehension(parser));
    }
    let Token::Word(word) = &parser.peek_token_ref().token else {
        return parameters_in_brackets(parser).then(|| lambda(parser));
    };
    if word.value.eq_ignore_ascii_case("pg_catalog") {
        return call_in_catalog(parser);
    }
    if word.quote_style.is_none() {
        let named = |names: &[&str]| names.iter().any(|name| word.value.eq_ignore_ascii_case(name));
        if named(&WORDS) || named(&CALLED) && parser.peek_nth_token_ref(1).token == Token::LParen {
            return user(parser);
        }
    }
    let arrow = parser.peek_nth_token_ref(1).token == Token::Arrow;
    let keyword =
        word.keyword == Keyword::LAMBDA && matches!(parser.peek_nth_token_ref(1).token, Token::Word(_));
    ((arrow || keyword) && in_list_function(parser)).then(|| lambda(parser))
}

/// `pg_catalog.ceil(x)`.
fn call_in_catalog(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let is = |at: usize, token: &Token| parser.peek_nth_token_ref(at).token == *token;
    let Token::Word(word) = &parser.peek_nth_token_ref(2).token else { return None };
    let form = FORMS.iter().find(|(form, _)| word.value.eq_ignore_ascii_case(form));
    let function = form.map(|(_, function)| *function)?;
    if !is(1, &Token::Period) || !is(3, &Token::LParen) {
        return None;
    }
    (0..3).for_each(|_| parser.advance_token());
    Some(parser.parse_function(ObjectName::from(vec![Ident::new(function)])))
}

/// `NOT EXISTS (…) IS NULL` is `NOT (EXISTS (…) IS NULL)`: the parser takes the first two words for one.
/// `None` where they do not come next.
pub(crate) fn not_exists(parser: &mut Parser<'_>, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let is = |at: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
    if !is(0, Keyword::NOT) || !is(1, Keyword::EXISTS) {
        return None;
    }
    parser.advance_token();
    Some(parser.parse_subexpr(precedence).map(|of| match of {
        Expr::Exists { subquery, negated } => Expr::Exists { subquery, negated: !negated },
        other => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(other))) },
    }))
}

/// `!a` of MySQL, which binds tighter than all other operators.
pub(crate) fn bang(parser: &mut Parser<'_>, precedence: u8) -> Result<Expr, ParserError> {
    parser.advance_token();
    let of = Box::new(Expr::Nested(Box::new(parser.parse_subexpr(precedence)?)));
    Ok(Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: of })))
}

/// `current_user`, with or without empty brackets.
fn user(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let is = |at: usize, token: &Token| parser.peek_nth_token_ref(at).token == *token;
    let called = is(1, &Token::LParen);
    if is(1, &Token::Period) || called && !is(2, &Token::RParen) {
        return None;
    }
    let name = match parser.parse_identifier() {
        Ok(name) => Ident { quote_style: None, ..name },
        Err(error) => return Some(Err(error)),
    };
    if called {
        parser.advance_token();
        parser.advance_token();
    }
    Some(Ok(call_with(name, FunctionArguments::None)))
}

/// Whether `[… for x in …]` comes next.
fn is_comprehension(parser: &Parser<'_>) -> bool {
    if parser.peek_token_ref().token != Token::LBracket {
        return false;
    }
    let mut depth = 0_usize;
    let mut last = Keyword::NoKeyword;
    for at in parser.get_current_index() + 1.. {
        match &parser.token_at(at).token {
            Token::Whitespace(_) => continue,
            Token::LBracket | Token::LParen | Token::LBrace => depth += 1,
            Token::RBracket | Token::RParen | Token::RBrace if depth > 1 => depth -= 1,
            Token::RBracket | Token::RParen | Token::RBrace | Token::EOF | Token::SemiColon => break,
            Token::Comma if depth == 1 => break,
            Token::Word(_) if last == Keyword::FOR => return true,
            Token::Word(word) if depth == 1 && word.quote_style.is_none() => {
                last = word.keyword;
                continue;
            }
            _ => {}
        }
        last = Keyword::NoKeyword;
    }
    false
}

/// `[f(x) FOR x IN list IF p(x)]` is `list_transform(list_filter(list, x -> p(x)), x -> f(x))`.
fn comprehension(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LBracket)?;
    let body = parser.parse_expr()?;
    parser.expect_keyword_is(Keyword::FOR)?;
    let variable = parser.parse_identifier()?;
    parser.expect_keyword_is(Keyword::IN)?;
    let mut list = parser.parse_expr()?;
    if parser.parse_keyword(Keyword::IF) {
        let condition = parser.parse_expr()?;
        list = over_list("list_filter", list, &variable, condition);
    }
    parser.expect_token(&Token::RBracket)?;
    Ok(over_list("list_transform", list, &variable, body))
}

fn over_list(function: &str, list: Expr, variable: &Ident, body: Expr) -> Expr {
    let lambda = Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(vec![LambdaFunctionParameter {
            name: variable.clone(),
            data_type: None,
        }]),
        body: Box::new(body),
        syntax: LambdaSyntax::Arrow,
    });
    call(function, [list, lambda])
}

/// Whether `(a, b) ->` comes next, in the arguments of a function over lists.
fn parameters_in_brackets(parser: &Parser<'_>) -> bool {
    if parser.peek_token_ref().token != Token::LParen {
        return false;
    }
    let mut at = 1;
    while at < 2 * MAX_PARAMETERS && matches!(parser.peek_nth_token_ref(at).token, Token::Word(_)) {
        match parser.peek_nth_token_ref(at + 1).token {
            Token::Comma => at += 2,
            Token::RParen => {
                return parser.peek_nth_token_ref(at + 2).token == Token::Arrow && in_list_function(parser);
            }
            _ => return false,
        }
    }
    false
}

/// Whether the innermost open bracket belongs to a call of one of [`OVER_LISTS`]. Behind many arrows it does not.
fn in_list_function(parser: &Parser<'_>) -> bool {
    let (mut depth, mut passed) = (0_usize, 0_usize);
    let mut at = parser.get_current_index() + 1;
    while at > 0 && passed < MAX_PASSED {
        at -= 1;
        match &parser.token_at(at).token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return is_over_lists(parser, at),
            Token::LParen => depth -= 1,
            Token::SemiColon => return false,
            Token::Arrow => passed += 1,
            Token::Word(word) if word.keyword == Keyword::LAMBDA => passed += 1,
            _ => {}
        }
    }
    false
}

fn is_over_lists(parser: &Parser<'_>, bracket: usize) -> bool {
    let before = (0..bracket).rev().map(|at| &parser.token_at(at).token);
    let name = before.into_iter().find(|token| !matches!(token, Token::Whitespace(_)));
    matches!(name, Some(Token::Word(word))
        if OVER_LISTS.iter().any(|known| word.value.eq_ignore_ascii_case(known)))
}

/// `x -> …`, `(x, y) -> …` or `LAMBDA x, y : …`.
fn lambda(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let keyword = parser.parse_keyword(Keyword::LAMBDA);
    let brackets = parser.consume_token(&Token::LParen);
    let mut params = vec![parameter(parser)?];
    while (keyword || brackets) && parser.consume_token(&Token::Comma) {
        params.push(parameter(parser)?);
    }
    if brackets {
        parser.expect_token(&Token::RParen)?;
    }
    parser.expect_token(if keyword { &Token::Colon } else { &Token::Arrow })?;
    let body = Box::new(parser.parse_expr()?);
    Ok(Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(params),
        body,
        syntax: LambdaSyntax::Arrow,
    }))
}

fn parameter(parser: &mut Parser<'_>) -> Result<LambdaFunctionParameter, ParserError> {
    Ok(LambdaFunctionParameter { name: parser.parse_identifier()?, data_type: None })
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, DialectName, parse};

    /// The statement as it was read.
    fn read(sql: &str) -> String {
        match parse(sql, Dialect::new(DialectName::Ansi), 50).map(|mut parsed| parsed.pop()) {
            Ok(Some(crate::Statement::Sql(statement))) => statement.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn long_lists_are_read_once() {
        let names = vec!["a"; 90_000].join(", ");
        assert!(read(&format!("SELECT ({names})")).ends_with(", a)"));
        let fields = vec!["j -> 'x'"; 90_000].join(", ");
        let lambda = "list_filter(l, (x) -> x > 1)";
        let sql = read(&format!("SELECT f({fields}), list_filter(l, x -> x > 1)"));
        assert!(sql.ends_with(&format!("j -> 'x'), {lambda}")));
        let numbers = vec!["1"; 100_000].join(", ");
        let sql = read(&format!("SELECT list_filter([{numbers}], x -> x > 1)"));
        assert!(sql.ends_with("1], (x) -> x > 1)"));
    }
}
