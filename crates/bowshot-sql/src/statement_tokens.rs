//! The tokens of one statement that `sqlparser` does not parse, and functions that read them.

use crate::dialect::Dialect;
use crate::offsets::Offsets;
use crate::syntax_error::syntax_error;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{Expr, Ident, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

/// The text that tokens are of, and how it is read.
#[derive(Clone, Copy)]
pub(crate) struct SourceText<'a> {
    pub(crate) sql: &'a str,
    pub(crate) dialect: &'a Dialect,
    pub(crate) recursion_limit: usize,
}

/// Reads the tokens of one statement.
pub(crate) struct StatementTokens<'a> {
    text: SourceText<'a>,
    /// Where the statement ends.
    end: Location,
    pub(crate) parser: Parser<'a>,
}

impl<'a> StatementTokens<'a> {
    pub(crate) fn new(tokens: Vec<TokenWithSpan>, text: SourceText<'a>) -> Self {
        let end = tokens.last().map_or_else(|| Span::empty().end, |token| token.span.end);
        let parser = Parser::new(text.dialect).with_recursion_limit(text.recursion_limit);
        Self { text, end, parser: parser.with_tokens_with_locations(tokens) }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        *self.text.dialect
    }

    pub(crate) fn token_at(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    /// Whether this word comes next but `n`, without quotes.
    pub(crate) fn is_at(&self, n: usize, wanted: &str) -> bool {
        matches!(self.token_at(n), Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    }

    /// The next word in lower case, if it is one without quotes. It stays.
    pub(crate) fn peek(&self) -> Option<String> {
        self.peek_nth(0)
    }

    pub(crate) fn peek_nth(&self, n: usize) -> Option<String> {
        match self.token_at(n) {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// Takes the next word if it is this one.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        take_word(&mut self.parser, word)
    }

    /// Takes the words if all of them come next.
    pub(crate) fn take_all(&mut self, words: &[&str]) -> bool {
        let there = words.iter().enumerate().all(|(n, word)| self.is_at(n, word));
        if there {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        there
    }

    /// Takes the next word if it is one of these.
    pub(crate) fn take_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.take(word))
    }

    /// Takes the next word, whichever it is.
    pub(crate) fn word(&mut self) -> Option<String> {
        let word = self.peek()?;
        self.parser.next_token();
        Some(word)
    }

    pub(crate) fn is(&self, token: &Token) -> bool {
        self.token_at(0) == token
    }

    pub(crate) fn nth_is(&self, n: usize, token: &Token) -> bool {
        self.token_at(n) == token
    }

    pub(crate) fn take_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    /// The next token, which is taken.
    pub(crate) fn token(&mut self) -> Token {
        self.parser.next_token().token
    }

    /// A text in quotes.
    pub(crate) fn string(&mut self) -> Option<String> {
        let text = match self.token_at(0) {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::NationalStringLiteral(text)
            | Token::DoubleQuotedString(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            _ => return None,
        };
        self.parser.advance_token();
        Some(text)
    }

    /// A whole number without a sign.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let Token::Number(digits, _) = self.token_at(0) else { return None };
        let number = digits.parse().ok()?;
        self.parser.next_token();
        Some(number)
    }

    /// The name of a table or the like.
    pub(crate) fn name(&mut self) -> Result<ObjectName> {
        self.parser.parse_object_name(false).map_err(|error| syntax_error(&error))
    }

    /// A name of one part, as it is kept.
    pub(crate) fn single(&mut self) -> Result<String> {
        self.parser.parse_identifier().map(|found| name_of(&found)).map_err(|error| syntax_error(&error))
    }

    pub(crate) fn expression(&mut self) -> Result<Expr> {
        self.parser.parse_expr().map_err(|error| syntax_error(&error))
    }

    /// A type, as SQL.
    pub(crate) fn data_type(&mut self) -> Result<String> {
        self.parser.parse_data_type().map(|found| found.to_string()).map_err(|error| syntax_error(&error))
    }

    /// Whether the statement ends here.
    pub(crate) fn at_end(&self) -> bool {
        matches!(self.token_at(0), Token::EOF | Token::SemiColon)
    }

    /// Takes what is left of the statement.
    pub(crate) fn skip_to_end(&mut self) {
        while !self.at_end() {
            self.parser.advance_token();
        }
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn unexpected(&self) -> Error {
        let token = self.token_at(0);
        let what = if *token == Token::EOF {
            "the statement ends too soon".to_owned()
        } else {
            format!("`{token}` was not expected")
        };
        Error::new(ErrorKind::Syntax, format!("syntax error: {what}"))
    }

    /// The text from the next token to the end of the statement.
    pub(crate) fn rest(&self) -> &'a str {
        let (mut offsets, sql) = (Offsets::new(self.text.sql), self.text.sql);
        let place = self.parser.peek_token_ref().span.start;
        let from = offsets.of(place).unwrap_or(sql.len());
        let end = offsets.of(self.end).unwrap_or(sql.len());
        sql.get(from..end).unwrap_or_default()
    }

    /// The same behind blanks instead of what stands before it, so that errors name its place in the whole text.
    pub(crate) fn rest_in_place(&self) -> String {
        let rest = self.rest();
        let place = self.parser.peek_token_ref().span.start;
        let from = Offsets::new(self.text.sql).of(place).unwrap_or(0);
        let before = self.text.sql.get(..from).unwrap_or_default();
        let blank = |character: char| if character == '\n' { '\n' } else { ' ' };
        before.chars().map(blank).chain(rest.chars()).collect()
    }

    /// Where the next token is, for [`Self::into_tokens_from`].
    pub(crate) fn index(&self) -> usize {
        self.parser.index()
    }

    /// The tokens that are left.
    pub(crate) fn into_rest(self) -> (Vec<TokenWithSpan>, SourceText<'a>) {
        let index = self.index();
        self.into_tokens_from(index)
    }

    pub(crate) fn into_tokens_from(self, index: usize) -> (Vec<TokenWithSpan>, SourceText<'a>) {
        let mut tokens = self.parser.into_tokens();
        tokens.drain(..index.min(tokens.len()));
        (tokens, self.text)
    }
}

/// A name as it is kept: in lower case unless it was quoted.
pub(crate) fn name_of(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

pub(crate) fn take_word(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let there = is_word(parser, wanted);
    if there {
        parser.advance_token();
    }
    there
}

/// Whether this word comes next.
pub(crate) fn is_word(parser: &Parser<'_>, wanted: &str) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// The statement has to end here.
pub(crate) fn expect_end(parser: &Parser<'_>) -> std::result::Result<(), ParserError> {
    match &parser.peek_token_ref().token {
        Token::EOF | Token::SemiColon => Ok(()),
        _ => parser.expected_ref("the end of the statement", parser.peek_token_ref()),
    }
}
