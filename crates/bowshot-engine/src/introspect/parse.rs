//! The words of one statement, as the parser's tokenizer gives them. For the statements that the parser does not know.

use crate::catalog::names::ident;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::Offsets;
use datafusion::sql::sqlparser::ast::{Expr, ObjectName};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// See the module.
pub(super) struct Words<'a> {
    sql: &'a str,
    parser: Parser<'a>,
}

impl<'a> Words<'a> {
    /// `None` for a text that has no tokens of the dialect: the parser says why.
    pub(super) fn of(sql: &'a str, dialect: &'a dyn Dialect, recursion: usize) -> Option<Self> {
        let parser = Parser::new(dialect).with_recursion_limit(recursion).try_with_sql(sql).ok()?;
        Some(Self { sql, parser })
    }

    /// The next word in lower case, if it is one without quotes. It stays.
    pub(super) fn peek(&self) -> Option<String> {
        self.peek_nth(0)
    }

    pub(super) fn peek_nth(&self, n: usize) -> Option<String> {
        match &self.parser.peek_nth_token_ref(n).token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// Takes the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let there = self.peek().is_some_and(|next| next == word);
        if there {
            self.parser.next_token();
        }
        there
    }

    /// Takes the words if all of them come next.
    pub(super) fn take_all(&mut self, words: &[&str]) -> bool {
        let there = words.iter().enumerate().all(|(n, word)| self.peek_nth(n).as_deref() == Some(*word));
        if there {
            words.iter().for_each(|_| drop(self.parser.next_token()));
        }
        there
    }

    /// Takes the next word if it is one of these.
    pub(super) fn take_any(&mut self, words: &[&str]) -> bool {
        let there = self.peek().is_some_and(|next| words.contains(&next.as_str()));
        if there {
            self.parser.next_token();
        }
        there
    }

    /// Takes the next word, whichever it is.
    pub(super) fn word(&mut self) -> Option<String> {
        let word = self.peek()?;
        self.parser.next_token();
        Some(word)
    }

    pub(super) fn is(&self, token: &Token) -> bool {
        self.parser.peek_token_ref().token == *token
    }

    pub(super) fn nth_is(&self, n: usize, token: &Token) -> bool {
        self.parser.peek_nth_token_ref(n).token == *token
    }

    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    /// The next token, which is taken.
    pub(super) fn token(&mut self) -> Token {
        self.parser.next_token().token
    }

    /// A text in quotes.
    pub(super) fn string(&mut self) -> Option<String> {
        let text = match &self.parser.peek_token_ref().token {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::NationalStringLiteral(text)
            | Token::DoubleQuotedString(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            _ => return None,
        };
        self.parser.next_token();
        Some(text)
    }

    /// A whole number without a sign.
    pub(super) fn number(&mut self) -> Option<u64> {
        let Token::Number(digits, _) = &self.parser.peek_token_ref().token else { return None };
        let number = digits.parse().ok()?;
        self.parser.next_token();
        Some(number)
    }

    /// The name of a table or the like.
    pub(super) fn name(&mut self) -> Result<ObjectName> {
        self.parser.parse_object_name(false).map_err(syntax)
    }

    /// A name of one part, as it is kept.
    pub(super) fn single(&mut self) -> Result<String> {
        self.parser.parse_identifier().map(|found| ident(&found)).map_err(syntax)
    }

    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.parser.parse_expr().map_err(syntax)
    }

    /// A type, as SQL.
    pub(super) fn data_type(&mut self) -> Result<String> {
        self.parser.parse_data_type().map(|found| found.to_string()).map_err(syntax)
    }

    /// Whether nothing follows but a semicolon.
    pub(super) fn at_end(&self) -> bool {
        match &self.parser.peek_token_ref().token {
            Token::EOF => true,
            Token::SemiColon => self.parser.peek_nth_token_ref(1).token == Token::EOF,
            _ => false,
        }
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// `Syntax` when something does.
    pub(super) fn end(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn unexpected(&self) -> Error {
        let token = &self.parser.peek_token_ref().token;
        let what = if *token == Token::EOF {
            "the statement ends too soon".to_owned()
        } else {
            format!("`{token}` was not expected")
        };
        Error::new(ErrorKind::Syntax, format!("syntax error: {what}"))
    }

    /// The text from the next token on.
    pub(super) fn rest(&self) -> &'a str {
        let place = self.parser.peek_token_ref().span.start;
        let at = Offsets::new(self.sql).of(place).unwrap_or(self.sql.len());
        self.sql.get(at..).unwrap_or_default()
    }

    /// The same behind blanks instead of what stands before it, so that errors name its place in the whole text.
    pub(super) fn rest_in_place(&self) -> String {
        let rest = self.rest();
        let before = self.sql.get(..self.sql.len().saturating_sub(rest.len())).unwrap_or_default();
        let blank = |character: char| if character == '\n' { '\n' } else { ' ' };
        before.chars().map(blank).chain(rest.chars()).collect()
    }
}

fn syntax(error: ParserError) -> Error {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        ParserError::RecursionLimitExceeded => "the expression is nested too deeply".to_owned(),
    };
    Error::new(ErrorKind::Syntax, format!("syntax error: {message}"))
}
