//! Joins in words that the parser knows.
//!
//! `a ASOF [LEFT] JOIN b ON …` comes as `a [GLOBAL] STRAIGHT_JOIN b ON …`, a keyword that no text has here: MySQL's own
//! `STRAIGHT_JOIN` is an inner join, and elsewhere the word is a name. Joins within joins get brackets.

use crate::DialectName;
use crate::tokens::{is_blank, keyword, last_words, word};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The joins of a text, while its tokens are read.
pub(crate) struct Joins {
    dialect: DialectName,
    /// The place before the last ASOF JOIN, which may have its condition in MATCH_CONDITION.
    as_of: Option<usize>,
    /// Brackets that are open within MATCH_CONDITION, and whether it has ended.
    condition: Condition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Absent,
    Open(usize),
    Ended,
}

impl Joins {
    pub(crate) fn new(dialect: DialectName) -> Self {
        Self { dialect, as_of: None, condition: Condition::Absent }
    }

    /// Changes the next token, and those before it; whether it is left out.
    pub(crate) fn take(&mut self, kept: &mut [TokenWithSpan], token: &mut TokenWithSpan) -> bool {
        if is_blank(&token.token) {
            return false;
        }
        let ended = self.condition == Condition::Ended;
        match (&token.token, self.condition) {
            (Token::LParen, Condition::Open(depth)) => self.condition = Condition::Open(depth + 1),
            (Token::RParen, Condition::Open(depth)) => {
                self.condition = if depth > 1 { Condition::Open(depth - 1) } else { Condition::Ended };
            }
            (_, Condition::Ended) => self.condition = Condition::Absent,
            _ => {}
        }
        match keyword(&token.token) {
            Keyword::JOIN => self.join(kept, token),
            Keyword::STRAIGHT_JOIN => return self.straight_join(kept, token),
            Keyword::MATCH_CONDITION => self.match_condition(kept, token),
            // `MATCH_CONDITION (…) ON …`: both hold.
            Keyword::ON if ended => token.token = word("AND", Keyword::AND),
            _ => {}
        }
        false
    }

    fn join(&mut self, kept: &mut [TokenWithSpan], join: &mut TokenWithSpan) {
        let words: Vec<usize> = last_words(kept).take(2).collect();
        let is = |at: usize| words.get(at).and_then(|at| kept.get(*at)).map(|token| keyword(&token.token));
        let left = is(0) == Some(Keyword::LEFT) && is(1) == Some(Keyword::ASOF);
        if !left && is(0) != Some(Keyword::ASOF) {
            return;
        }
        join.token = word("STRAIGHT_JOIN", Keyword::STRAIGHT_JOIN);
        for (at, place) in words.iter().take(if left { 2 } else { 1 }).enumerate() {
            if let Some(token) = kept.get_mut(*place) {
                token.token = if left && at == 1 {
                    word("GLOBAL", Keyword::GLOBAL)
                } else {
                    Token::Whitespace(Whitespace::Space)
                };
            }
        }
        self.as_of = words.get(usize::from(left)).copied();
    }

    /// Whether it is left out.
    fn straight_join(&self, kept: &[TokenWithSpan], token: &mut TokenWithSpan) -> bool {
        if self.dialect != DialectName::MySql {
            if let Token::Word(name) = &mut token.token {
                name.keyword = Keyword::NoKeyword;
            }
            return false;
        }
        token.token = word("JOIN", Keyword::JOIN);
        let before = last_words(kept).next().and_then(|at| kept.get(at));
        // Behind SELECT it says in which order to join, which the optimiser knows better.
        before.is_some_and(|before| {
            matches!(
                keyword(&before.token),
                Keyword::SELECT
                    | Keyword::ALL
                    | Keyword::DISTINCT
                    | Keyword::DISTINCTROW
                    | Keyword::HIGH_PRIORITY
            )
        })
    }

    /// `a ASOF JOIN b MATCH_CONDITION (…)` keeps all rows of `a`, as `ASOF LEFT JOIN … ON` does.
    fn match_condition(&mut self, kept: &mut [TokenWithSpan], token: &mut TokenWithSpan) {
        let Some(place) = self.as_of.take() else { return };
        token.token = word("ON", Keyword::ON);
        self.condition = Condition::Open(0);
        if let Some(before) = kept.get_mut(place) {
            before.token = word("GLOBAL", Keyword::GLOBAL);
        }
    }
}

/// A join whose condition has not come yet.
struct Open {
    /// The place of the word JOIN.
    join: usize,
    /// Whether another join came before its condition.
    has_inner: bool,
}

/// Words between NATURAL and JOIN.
const SIDES: [Keyword; 5] = [Keyword::INNER, Keyword::LEFT, Keyword::RIGHT, Keyword::FULL, Keyword::OUTER];

/// Words behind the tables of a query.
const ENDS: [Keyword; 7] = [
    Keyword::SELECT,
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::UNION,
    Keyword::SET,
];

/// `a JOIN b JOIN c ON … ON …` is `a JOIN (b JOIN c ON …) ON …`: a condition belongs to the last join that has none.
pub(crate) fn in_brackets(tokens: &mut Vec<TokenWithSpan>) {
    if tokens.iter().filter(|token| joins(&token.token)).count() < 2 {
        return;
    }
    let mut brackets: Vec<(usize, Token)> = Vec::new();
    let (mut open, mut around): (Vec<Open>, Vec<Vec<Open>>) = (Vec::new(), Vec::new());
    // Whether the next join takes no condition.
    let mut natural = false;
    for (at, token) in tokens.iter().enumerate() {
        let word = keyword(&token.token);
        match &token.token {
            token if is_blank(token) => continue,
            Token::LParen => around.push(std::mem::take(&mut open)),
            Token::RParen => open = around.pop().unwrap_or_default(),
            Token::Comma | Token::SemiColon => open.clear(),
            token if joins(token) => {
                if let Some(outer) = open.last_mut() {
                    outer.has_inner = true;
                }
                if !natural {
                    open.push(Open { join: at, has_inner: false });
                }
            }
            // `ON CONFLICT`, `ON DUPLICATE KEY`: behind the query of an INSERT.
            _ if word == Keyword::ON && is_before_conflict(tokens, at) => open.clear(),
            _ if matches!(word, Keyword::ON | Keyword::USING) => {
                if let Some(Open { join, has_inner: true }) = open.pop() {
                    brackets.extend([(join + 1, Token::LParen), (at, Token::RParen)]);
                }
            }
            _ if ENDS.contains(&word) => open.clear(),
            _ => {}
        }
        natural = matches!(word, Keyword::NATURAL | Keyword::CROSS) || natural && SIDES.contains(&word);
    }
    if brackets.is_empty() {
        return;
    }
    brackets.sort_by_key(|(place, _)| *place);
    let mut all = Vec::with_capacity(tokens.len() + brackets.len());
    let mut brackets = brackets.into_iter().peekable();
    for (at, token) in std::mem::take(tokens).into_iter().enumerate() {
        while let Some((_, bracket)) = brackets.next_if(|(place, _)| *place == at) {
            all.push(TokenWithSpan { token: bracket, span: token.span });
        }
        all.push(token);
    }
    *tokens = all;
}

fn is_before_conflict(tokens: &[TokenWithSpan], on: usize) -> bool {
    let mut behind = tokens.iter().skip(on + 1).filter(|token| !is_blank(&token.token));
    behind.next().is_some_and(|next| matches!(keyword(&next.token), Keyword::CONFLICT | Keyword::DUPLICATE))
}

fn joins(token: &Token) -> bool {
    matches!(keyword(token), Keyword::JOIN | Keyword::STRAIGHT_JOIN)
}
