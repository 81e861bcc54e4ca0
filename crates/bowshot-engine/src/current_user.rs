//! `current_user` and `session_user`: who asks. A view that compares it with a column shows everybody their own rows.
//!
//! Each session has the functions with its own name in them, and the optimiser puts the name in their place. A cached join is
//! looked up with that name in its conditions: either it has the very same one, or it has the rows of all, and the
//! condition is applied to them. Whole results are found by plans that are not optimised yet, and are kept of functions
//! that always give the same only, which these are not.

use crate::as_of::{next, previous};
use crate::plan::{Offsets, stands_at};
use bowshot_api::Principal;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::dialect::{Dialect, MySqlDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::borrow::Cow;
use std::sync::Arc;

const NAMES: [&str; 2] = ["current_user", "session_user"];

/// The functions for sessions of one principal.
pub(crate) fn functions(principal: &Principal) -> [ScalarUDF; 2] {
    NAMES.map(|name| {
        let (user, signature) = (principal.name.clone(), Signature::nullary(Volatility::Stable));
        CurrentUser { name, user, signature }.into()
    })
}

/// The text with these functions as the parser takes them in a dialect: words of their own in most, calls in that of MySQL.
/// Views, defaults and checks are kept as texts, and read in the dialect of whoever uses them.
pub(crate) fn spelled<'sql>(sql: &'sql str, dialect: &dyn Dialect) -> Cow<'sql, str> {
    let mentioned =
        |name: &str| sql.as_bytes().windows(name.len()).any(|at| at.eq_ignore_ascii_case(name.as_bytes()));
    if !NAMES.into_iter().any(mentioned) {
        return Cow::Borrowed(sql);
    }
    // What cannot be read is the parser's to complain of.
    let Ok(tokens) = Tokenizer::new(dialect, sql).tokenize_with_location() else {
        return Cow::Borrowed(sql);
    };
    let mut offsets = Offsets::new(sql);
    let starts: Vec<usize> = tokens.iter().filter_map(|token| offsets.of(token.span.start)).collect();
    let tokens: Vec<Token> = tokens.into_iter().map(|token| token.token).collect();
    // Where a token ends the next one begins: blanks are tokens too.
    let end = |at: usize| starts.get(at + 1).copied().unwrap_or(sql.len());
    let called = dialect.is::<MySqlDialect>();
    let (mut text, mut copied) = (String::with_capacity(sql.len() + 16), 0);
    let stands = |at: usize| {
        let place = starts.get(at).zip(tokens.get(at)).filter(|_| starts.len() == tokens.len());
        place.is_some_and(|(start, token)| stands_at(sql, *start, token))
    };
    for at in (0..tokens.len()).filter(|at| names_one(&tokens, *at) && stands(*at)) {
        match (arguments(&tokens, at), called) {
            (Arguments::None, true) => {
                text.push_str(sql.get(copied..end(at)).unwrap_or_default());
                text.push_str("()");
                copied = end(at);
            }
            (Arguments::Empty { last }, false) => {
                text.push_str(sql.get(copied..end(at)).unwrap_or_default());
                text.push(' ');
                copied = end(last);
            }
            _ => {}
        }
    }
    text.push_str(sql.get(copied..).unwrap_or_default());
    if copied == 0 { Cow::Borrowed(sql) } else { Cow::Owned(text) }
}

/// Whether the token at a place is one of the names, by itself and not for something else.
fn names_one(tokens: &[Token], at: usize) -> bool {
    let Some(Token::Word(word)) = tokens.get(at) else { return false };
    let token = |at: Option<usize>| at.and_then(|at| tokens.get(at));
    let (before, after) = (token(previous(tokens, at)), token(next(tokens, at)));
    // `AS current_user`, and `{fn current_user()}` of ODBC and JDBC, which is a call in every dialect.
    let has_form =
        matches!(before, Some(Token::Word(word)) if matches!(word.keyword, Keyword::AS | Keyword::FN));
    word.quote_style.is_none()
        && NAMES.iter().any(|name| word.value.eq_ignore_ascii_case(name))
        && !has_form
        && before != Some(&Token::Period)
        && after != Some(&Token::Period)
}

enum Arguments {
    None,
    Empty { last: usize },
    Some,
}

fn arguments(tokens: &[Token], at: usize) -> Arguments {
    let is = |at: usize, token: &Token| tokens.get(at) == Some(token);
    let Some(open) = next(tokens, at).filter(|at| is(*at, &Token::LParen)) else { return Arguments::None };
    match next(tokens, open).filter(|at| is(*at, &Token::RParen)) {
        Some(last) => Arguments::Empty { last },
        None => Arguments::Some,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentUser {
    name: &'static str,
    user: String,
    signature: Signature,
}

impl ScalarUDFImpl for CurrentUser {
    fn name(&self) -> &str {
        self.name
    }

    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(self.name.to_owned())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name, DataType::Utf8, false)))
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(lit(self.user.as_str())))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::from(self.user.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::spelled;
    use datafusion::sql::sqlparser::dialect::{GenericDialect, MySqlDialect, PostgreSqlDialect};

    #[test]
    fn each_dialect_gets_its_own_form() {
        for (given, word, call) in [
            ("SELECT current_user", "SELECT current_user", "SELECT current_user()"),
            ("SELECT Current_User ( ), 'ü'", "SELECT Current_User , 'ü'", "SELECT Current_User ( ), 'ü'"),
            ("a = session_user\nAND b", "a = session_user\nAND b", "a = session_user()\nAND b"),
            ("'ü' =\n 'ß' || current_user", "'ü' =\n 'ß' || current_user", "'ü' =\n 'ß' || current_user()"),
            ("upper(session_user())", "upper(session_user )", "upper(session_user())"),
            ("SELECT current_user()FROM t", "SELECT current_user FROM t", "SELECT current_user()FROM t"),
        ] {
            assert_eq!(spelled(given, &GenericDialect {}), word);
            assert_eq!(spelled(given, &PostgreSqlDialect {}), word);
            assert_eq!(spelled(given, &MySqlDialect {}), call);
        }
    }

    #[test]
    fn what_is_something_else_stays() {
        for given in [
            "SELECT 'current_user', `current_user`, t.current_user, current_user.x",
            "SELECT 1 AS current_user, a_current_user_b -- current_user",
            "SELECT current_user(1)",
            "SELECT {fn current_user()}",
            "SELECT /*! current_user() */",
            "SELECT 'current_user",
        ] {
            assert_eq!(spelled(given, &MySqlDialect {}), given);
            assert_eq!(spelled(given, &GenericDialect {}), given);
        }
    }
}
