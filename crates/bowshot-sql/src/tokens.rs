//! Forms that the parser does not know, in tokens that it does: `FROM t WHERE …` and `TABLE t` where a query begins,
//! `SELECT * LIKE 'a%'`, `FROM t USING SAMPLE 10%`.

use crate::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Word};
use std::iter::Peekable;
use std::vec::IntoIter;

/// `* LIKE 'a%'` as a call.
pub(crate) const COLUMNS_LIKE: &str = "columns_like";

pub(crate) fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

pub(crate) fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

pub(crate) fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}

/// Places of the last words before the end, the last one first; blanks are left out.
pub(crate) fn last_words(kept: &[TokenWithSpan]) -> impl Iterator<Item = usize> + '_ {
    (0..kept.len()).rev().filter(|at| kept.get(*at).is_some_and(|token| !is_blank(&token.token)))
}

/// `a <-1` as `a < -1`: an operator of several characters ends in a sign only where it has one of the characters that the
/// standard's operators do not have (PostgreSQL's manual, "Lexical Structure").
pub(crate) fn signs_apart(tokens: Vec<TokenWithSpan>, dialect: Dialect) -> Vec<TokenWithSpan> {
    let mut kept = Vec::with_capacity(tokens.len());
    for token in tokens {
        match signs(&token.token, dialect) {
            Some(parts) => kept.extend(parts.into_iter().map(|part| TokenWithSpan::new(part, token.span))),
            None => kept.push(token),
        }
    }
    kept
}

/// An operator and the signs behind it; `None` for what stays as it is.
fn signs(token: &Token, dialect: Dialect) -> Option<Vec<Token>> {
    let Token::CustomBinaryOperator(text) = token else { return None };
    if text.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?']) {
        return None;
    }
    let bare = text.trim_end_matches(['+', '-']);
    let bare = if bare.is_empty() { text.get(..1)? } else { bare };
    let signs = text.get(bare.len()..).filter(|signs| !signs.is_empty())?;
    let mut parts = Tokenizer::new(&dialect, bare).tokenize().ok()?;
    parts.extend(signs.chars().map(|sign| if sign == '+' { Token::Plus } else { Token::Minus }));
    Some(parts)
}

/// The tokens with such forms put into others.
pub(crate) fn known(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let kept = Vec::with_capacity(tokens.len());
    let rest = tokens.into_iter().peekable();
    let mut queries = Queries { kept, rest, level: Level::begun(), around: Vec::new() };
    while let Some(token) = queries.rest.next() {
        queries.take(token);
    }
    queries.kept
}

/// What has been read between two brackets.
struct Level {
    head: Head,
    /// Whether a query may begin here.
    begins: bool,
    /// Whether its FROM came first, and no SELECT yet.
    from_first: bool,
    /// Whether FROM has one table up to here.
    one_table: bool,
    /// Whether it is a list behind IN.
    listed: bool,
}

/// What a query stands behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Nothing,
    With,
    Create,
    Insert,
}

impl Level {
    fn begun() -> Self {
        Self { head: Head::Nothing, begins: true, from_first: false, one_table: false, listed: false }
    }
}

struct Queries {
    kept: Vec<TokenWithSpan>,
    rest: Peekable<IntoIter<TokenWithSpan>>,
    level: Level,
    around: Vec<Level>,
}

impl Queries {
    fn take(&mut self, token: TokenWithSpan) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::LParen => {
                self.level.begins = false;
                self.around.push(std::mem::replace(&mut self.level, Level::begun()));
                self.level.listed = self.last() == Keyword::IN;
            }
            Token::RParen => {
                if self.level.listed {
                    self.drop_comma();
                }
                if let Some(around) = self.around.pop() {
                    self.level = around;
                }
                // A query of WITH ends, and the one that it is for may begin.
                self.level.begins = self.level.head == Head::With;
            }
            Token::SemiColon => self.level = Level::begun(),
            Token::Mul if self.next_is(Keyword::LIKE) => return self.like(token),
            Token::Comma => (self.level.begins, self.level.one_table) = (false, false),
            Token::Word(_) => return self.word(token),
            _ => self.level.begins = false,
        }
        self.kept.push(token);
    }

    fn word(&mut self, token: TokenWithSpan) {
        let begins = std::mem::take(&mut self.level.begins);
        match keyword(&token.token) {
            Keyword::FROM => (self.level.from_first, self.level.one_table) = (begins, true),
            Keyword::SELECT => (self.level.from_first, self.level.head) = (false, Head::Nothing),
            Keyword::JOIN => self.level.one_table = false,
            Keyword::WITH if begins => self.level.head = Head::With,
            Keyword::CREATE if begins => self.level.head = Head::Create,
            Keyword::INSERT if begins => self.level.head = Head::Insert,
            Keyword::AS => self.level.begins = self.level.head == Head::Create,
            Keyword::ALL | Keyword::DISTINCT | Keyword::BY | Keyword::NAME => self.level.begins = begins,
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => self.level = Level::begun(),
            Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::QUALIFY | Keyword::WINDOW
                if self.level.from_first =>
            {
                self.level.from_first = false;
                self.all_columns(token.span);
            }
            // `INSERT INTO TABLE t` names the table.
            Keyword::TABLE
                if (begins
                    || self.level.head == Head::Insert
                        && !matches!(self.last(), Keyword::INTO | Keyword::OVERWRITE))
                    && self.next_is_name() =>
            {
                self.all_columns(token.span);
                self.push(word("FROM", Keyword::FROM), token.span);
                return;
            }
            Keyword::USING if self.level.one_table && self.next_is(Keyword::SAMPLE) => {
                return self.sample(token);
            }
            _ => {}
        }
        self.kept.push(token);
    }

    fn last_place(&self) -> Option<usize> {
        self.kept.iter().rposition(|token| !is_blank(&token.token))
    }

    /// The word before.
    fn last(&self) -> Keyword {
        let last = self.last_place().and_then(|at| self.kept.get(at));
        last.map_or(Keyword::NoKeyword, |token| keyword(&token.token))
    }

    /// `IN ('a', 'b',)`.
    fn drop_comma(&mut self) {
        if let Some(at) = self.last_place()
            && self.kept.get(at).is_some_and(|token| token.token == Token::Comma)
        {
            self.kept.remove(at);
        }
    }

    fn push(&mut self, token: Token, span: Span) {
        self.kept.push(TokenWithSpan { token, span });
    }

    /// `SELECT *`.
    fn all_columns(&mut self, span: Span) {
        self.push(word("SELECT", Keyword::SELECT), span);
        self.push(Token::Mul, span);
    }

    fn peek(&mut self) -> Option<&Token> {
        while self.rest.next_if(|token| is_blank(&token.token)).is_some() {}
        self.rest.peek().map(|token| &token.token)
    }

    fn next_is(&mut self, wanted: Keyword) -> bool {
        self.peek().is_some_and(|next| keyword(next) == wanted)
    }

    fn next_is_name(&mut self) -> bool {
        matches!(self.peek(), Some(Token::Word(_)))
    }

    /// `* LIKE 'a%'`.
    fn like(&mut self, all: TokenWithSpan) {
        let like = self.rest.next();
        let Some(Token::SingleQuotedString(_)) = self.peek() else {
            self.kept.push(all);
            self.kept.extend(like);
            return;
        };
        self.push(word(COLUMNS_LIKE, Keyword::NoKeyword), all.span);
        self.push(Token::LParen, all.span);
        self.kept.extend(self.rest.next());
        self.push(Token::RParen, all.span);
    }

    /// `USING SAMPLE 10 PERCENT`, `10%`, `10 ROWS` or `10` rows, of the only table.
    fn sample(&mut self, using: TokenWithSpan) {
        let sample = self.rest.next();
        let Some(Token::Number(..)) = self.peek() else {
            self.kept.push(using);
            self.kept.extend(sample);
            return;
        };
        let span = using.span;
        let number = self.rest.next();
        let percent = self.next_is(Keyword::PERCENT) || matches!(self.peek(), Some(Token::Mod));
        if percent || self.next_is(Keyword::ROWS) {
            self.rest.next();
        }
        self.push(word("TABLESAMPLE", Keyword::TABLESAMPLE), span);
        self.push(Token::LParen, span);
        self.kept.extend(number);
        let unit = if percent { Keyword::PERCENT } else { Keyword::ROWS };
        self.push(word(if percent { "PERCENT" } else { "ROWS" }, unit), span);
        self.push(Token::RParen, span);
    }
}
