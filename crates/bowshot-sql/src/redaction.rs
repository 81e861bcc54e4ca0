//! What logs, the audit trail, traces and tables of statements have of a text: all of it but its secrets, which are found by
//! their place in a statement. Of a statement of no known form all texts in quotes are left out, never the statement.
//!
//! Asked of every statement on the threads of connections, so nothing here may take more than time with the length of a text: an
//! expression is never parsed.

mod marks;
mod text;

use self::marks::{Mark, is_known, is_secret_word, is_shown_key, is_verb, may_hold_secrets};
use self::text::{Located, Text};
use crate::parse::{keeps_values, read_own};
use crate::{Dialect, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use std::borrow::Cow;
use std::collections::HashSet;

/// What stands in the place of a text in quotes, and of other parts.
const TEXT: &str = "'…'";
const PART: &str = "…";

/// The text without its secrets.
pub fn redact_secrets(sql: &str, dialect: Dialect) -> Cow<'_, str> {
    redacted(sql, dialect, Scripts::Read)
}

/// Whether a secret is in its place in a text.
pub fn holds_secrets(sql: &str, dialect: Dialect) -> bool {
    may_hold_secrets(sql) && {
        let text = Text::read(sql, dialect);
        Redaction::new(&text, dialect, Scripts::Read).hidden.iter().any(|hidden| hidden.is_secret)
    }
}

/// Whether what is said of a statement has a word of a secret that is in its place in it, however it is written there. What is said
/// of statements about secrets never has: it is what `sqlparser` and the planner do not understand that they quote.
pub fn repeats_secrets(message: &str, sql: &str, dialect: Dialect) -> bool {
    if !may_hold_secrets(sql) || keeps_values(sql, dialect) {
        return false;
    }
    let text = Text::read(sql, dialect);
    let found = Redaction::new(&text, dialect, Scripts::Read);
    let told: HashSet<String> = words(message).collect();
    let is_told = |part: &str| words(part).any(|word| told.contains(&word));
    let mut secrets = found.hidden.iter().filter(|hidden| hidden.is_secret).peekable();
    let mut parts = secrets.clone().map(|hidden| text.sql.get(hidden.start..hidden.end).unwrap_or_default());
    parts.any(|part| message.contains(part) || is_told(part))
        // Without their escapes. Both are in the order of the text.
        || text.located().any(|token| {
            while secrets.next_if(|hidden| hidden.end <= token.start).is_some() {}
            let is_secret = secrets.peek().is_some_and(|hidden| hidden.start <= token.start);
            is_secret && is_told(&token.token.to_string())
        })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn redacted(sql: &str, dialect: Dialect, scripts: Scripts) -> Cow<'_, str> {
    if !may_hold_secrets(sql) {
        return Cow::Borrowed(sql);
    }
    let text = Text::read(sql, dialect);
    let found = Redaction::new(&text, dialect, scripts);
    if found.hidden.is_empty() { Cow::Borrowed(sql) } else { Cow::Owned(found.shown()) }
}

/// Whether texts that are statements themselves are looked into. Within one of them they are not, but hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scripts {
    Read,
    Hidden,
}

/// How a statement, or a list in it, is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As SQL: a word for secrets may be the name of a column.
    Known,
    /// As names with values.
    Unknown,
}

struct Hidden {
    start: usize,
    end: usize,
    shown: Cow<'static, str>,
    is_secret: bool,
}

struct Redaction<'a> {
    sql: &'a str,
    dialect: Dialect,
    scripts: Scripts,
    hidden: Vec<Hidden>,
}

impl<'a> Redaction<'a> {
    fn new(text: &'a Text<'_>, dialect: Dialect, scripts: Scripts) -> Self {
        let mut found = Self { sql: &text.sql, dialect, scripts, hidden: Vec::new() };
        let located: Vec<Located<'_>> = text.located().collect();
        for statement in located.split(|token| *token.token == Token::SemiColon) {
            found.statement(statement);
        }
        // A quote or comment without an end, or too long a text.
        if let Some(from) = text.unread {
            found.hide(from, found.sql.len(), PART);
        }
        found
    }

    fn hide(&mut self, start: usize, end: usize, shown: &'static str) {
        self.hidden.push(Hidden { start, end, shown: Cow::Borrowed(shown), is_secret: false });
    }

    fn hide_secret(&mut self, start: usize, end: usize, shown: &'static str) {
        self.hidden.push(Hidden { start, end, shown: Cow::Borrowed(shown), is_secret: true });
    }

    fn hide_value(&mut self, token: &Located<'_>) {
        self.hide_secret(token.start, token.end, TEXT);
    }

    /// Hides what follows a token of a statement.
    fn hide_behind(&mut self, statement: &[Located<'_>], at: usize) {
        if let (Some(next), Some(last)) = (statement.get(at + 1), statement.last()) {
            self.hide_secret(next.start, last.end, PART);
        }
    }

    fn statement(&mut self, statement: &[Located<'_>]) {
        let statement = behind_prefix(statement);
        let (Some(first), Some(last)) = (statement.first(), statement.last()) else { return };
        let text = self.sql.get(first.start..last.end).unwrap_or_default();
        match Mark::find(statement) {
            Mark::Secret(at) => match read_own(text, self.dialect) {
                Ok(Some(Statement::Secret(_))) => self.options(statement, at),
                _ => self.hide_behind(statement, at),
            },
            Mark::User => self.user(statement, text),
            Mark::Attach => match read_own(text, self.dialect) {
                Ok(Some(Statement::Database(_))) => self.attach(statement),
                _ => self.places(statement, Form::Unknown),
            },
            Mark::Set => self.setting(statement),
            Mark::Other if is_known(statement) => self.places(statement, Form::Known),
            Mark::Other => self.places(statement, Form::Unknown),
        }
    }

    /// `CREATE USER` and its like.
    fn user(&mut self, statement: &[Located<'_>], text: &str) {
        if matches!(read_own(text, self.dialect), Ok(Some(Statement::Access(_)))) {
            for (at, token) in statement.iter().enumerate() {
                let is_secret = end_of_secret(statement, at, self.sql, Form::Unknown).is_some();
                // A word is a text to the reader, too.
                if is_secret && is_value(token.token) {
                    self.hide_value(token);
                }
            }
            return;
        }
        let words = statement.iter().enumerate().skip(1);
        // The name of the user may be such a word too.
        let least = if is_word_at(statement, 0, "set") || is_word_at(statement, 0, "grant") { 1 } else { 3 };
        let mark = words.skip(least - 1).find(|(_, token)| {
            is_word(token.token, "identified") || word(token.token).is_some_and(is_secret_word)
        });
        match mark {
            Some((at, _)) => self.hide_behind(statement, at),
            None => self.places(statement, Form::Unknown),
        }
    }

    fn attach(&mut self, statement: &[Located<'_>]) {
        const OF_CREDENTIALS: [char; 4] = ['@', '?', '=', ';'];
        let open = statement.iter().position(|token| *token.token == Token::LParen);
        let open = open.unwrap_or(statement.len());
        for token in statement.iter().take(open).filter(|token| is_quoted(token.token)) {
            let text = self.sql.get(token.start..token.end).unwrap_or_default();
            if text.contains(OF_CREDENTIALS) {
                self.hide_value(token);
            }
        }
        self.options(statement, open.saturating_sub(1));
    }

    /// The values of `(key value, …)` behind a token, but for keys that hold none.
    fn options(&mut self, statement: &[Located<'_>], at: usize) {
        let is_attach = is_word_at(statement, 0, "attach");
        let mut key: Option<&str> = None;
        let open = statement.iter().skip(at).skip_while(|token| *token.token != Token::LParen).skip(1);
        for token in open {
            match (token.token, key) {
                (Token::Comma, _) => key = None,
                (Token::RParen | Token::LParen | Token::Eq, _) => {}
                (token, None) => key = Some(word(token).unwrap_or_default()),
                // The name of a secret is none.
                (Token::Word(_), Some(key)) if is_attach && key.eq_ignore_ascii_case("secret") => {}
                (_, Some(key)) if is_shown_key(key) => {}
                _ => self.hide_value(token),
            }
        }
    }

    /// Texts that stand where a secret does: behind a word for one, or in the argument or option of that name. Of a statement of
    /// unknown form all texts, and all values of such names.
    fn places(&mut self, statement: &[Located<'_>], form: Form) {
        let mut lists: Vec<Form> = Vec::new();
        let mut end = 0;
        for (at, token) in statement.iter().enumerate() {
            let within = if form == Form::Unknown { form } else { lists.last().copied().unwrap_or(form) };
            if at >= end {
                end = end_of_secret(statement, at, self.sql, within).unwrap_or(end);
            }
            let is_secret = |token| is_quoted(token) || within == Form::Unknown && is_value(token);
            match token.token {
                Token::LParen => lists.push(form_within(statement, at)),
                Token::RParen => drop(lists.pop()),
                value if at < end && is_secret(value) => self.hide_value(token),
                text if !is_text(text) => {}
                _ if form == Form::Unknown => self.hide(token.start, token.end, TEXT),
                _ if is_script(statement, at) => self.script(token),
                _ => self.address(token),
            }
        }
    }

    /// A statement in the text of another one.
    fn script(&mut self, token: &Located<'_>) {
        let sql = match token.token {
            Token::SingleQuotedString(sql)
            | Token::DoubleQuotedString(sql)
            | Token::EscapedStringLiteral(sql) => Some(sql),
            Token::DollarQuotedString(quoted) => Some(&quoted.value),
            _ => None,
        };
        let Some(sql) = sql.filter(|_| self.scripts == Scripts::Read) else { return self.hide_value(token) };
        if let Cow::Owned(shown) = redacted(sql, self.dialect, Scripts::Hidden) {
            let shown = Cow::Owned(format!("'{}'", shown.replace('\'', "''")));
            self.hidden.push(Hidden { start: token.start, end: token.end, shown, is_secret: true });
        }
    }

    /// `user:password` of an address.
    fn address(&mut self, token: &Located<'_>) {
        let text = self.sql.get(token.start..token.end).unwrap_or_default();
        let Some(begin) = text.find("://").map(|at| at + 3) else { return };
        let rest = text.get(begin..).unwrap_or_default();
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some((who, _)) = host.rsplit_once('@').filter(|(who, _)| who.contains(':')) {
            let start = token.start + begin;
            self.hide_secret(start, start + who.len(), PART);
        }
    }

    /// What a setting for a secret becomes.
    fn setting(&mut self, statement: &[Located<'_>]) {
        let mut end = 0;
        for (at, token) in statement.iter().enumerate() {
            if at >= end
                && let Some(behind) = end_of_secret(statement, at, self.sql, Form::Unknown)
            {
                end = behind;
                let last = end.checked_sub(1).and_then(|last| statement.get(last));
                self.hide_secret(token.start, last.map_or(token.end, |last| last.end.max(token.end)), TEXT);
            }
        }
    }

    fn shown(mut self) -> String {
        self.hidden.sort_by_key(|hidden| hidden.start);
        let (mut shown, mut from) = (String::with_capacity(self.sql.len()), 0);
        for hidden in &self.hidden {
            if hidden.start >= from {
                shown.push_str(self.sql.get(from..hidden.start).unwrap_or_default());
                shown.push_str(&hidden.shown);
            }
            from = from.max(hidden.end);
        }
        shown.push_str(self.sql.get(from..).unwrap_or_default());
        shown
    }
}

/// The token behind the value of a secret that begins here: behind `SECRET`, `IDENTIFIED BY`, `secret =>`, `set_config('secret',` and,
/// where options may be, behind `secret =` and `'secret'`.
fn end_of_secret(statement: &[Located<'_>], at: usize, sql: &str, form: Form) -> Option<usize> {
    let before = |n: usize| at.checked_sub(n).and_then(|at| statement.get(at));
    let names_secret = |token: &Located<'_>| match word(token.token) {
        Some(word) => is_secret_word(word),
        // 'fs.s3a.secret.key' = 'x'
        None if is_text(token.token) => {
            let name = sql.get(token.start..token.end).unwrap_or_default();
            name.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_secret_word)
        }
        None => false,
    };
    let (is_option, here, name) = (form == Form::Unknown, statement.get(at)?, before(1)?);
    let is_given = match name.token {
        Token::RArrow | Token::Assignment => true,
        Token::Comma => before(4).is_some_and(|token| is_word(token.token, "set_config")),
        Token::Eq => is_option,
        to => is_option && is_word(to, "to"),
    };
    if is_given {
        return before(2).is_some_and(names_secret).then(|| end_of_value(statement, at));
    }
    let is_identified = is_word(name.token, "by") && is_behind(statement, at - 1, "identified");
    let is_value =
        if is_option { is_value(here.token) } else { is_text(here.token) && word(name.token).is_some() };
    let mut behind = statement.iter().skip(at + 1);
    (is_value && (is_identified || names_secret(name))).then(|| {
        // A text may go on in the next one.
        at + 1 + behind.position(|token| !is_text(token.token)).unwrap_or(statement.len() - at - 1)
    })
}

/// The token behind a value that begins here, which may be an expression.
fn end_of_value(statement: &[Located<'_>], at: usize) -> usize {
    const CLAUSES: [&str; 5] = ["from", "where", "as", "and", "or"];
    let mut level = 0_usize;
    for (at, token) in statement.iter().enumerate().skip(at) {
        match token.token {
            Token::LParen => level += 1,
            Token::RParen if level == 0 => return at,
            Token::RParen => level -= 1,
            Token::Comma if level == 0 => return at,
            token if level == 0 && CLAUSES.iter().any(|clause| is_word(token, clause)) => return at,
            _ => {}
        }
    }
    statement.len()
}

/// Whether a text may be a statement: `PREPARE p FROM '…'`, `EXECUTE IMMEDIATE '…'`, `CALL join_cache_warm('…')`.
fn is_script(statement: &[Located<'_>], at: usize) -> bool {
    is_word_at(statement, 0, "prepare") && is_behind(statement, at, "from")
        || is_behind(statement, at, "immediate")
        || is_word_at(statement, 0, "call")
}

/// How what stands in this parenthesis is read: as options or arguments by name, which are of no form of their own, or as an
/// expression.
fn form_within(statement: &[Located<'_>], at: usize) -> Form {
    const WORDS: [&str; 5] = ["options", "with", "properties", "tblproperties", "parameters"];
    let Some(before) = at.checked_sub(1).and_then(|at| statement.get(at)) else { return Form::Known };
    let is_options = match word(before.token) {
        Some(word) => {
            let word = word.to_ascii_lowercase();
            WORDS.contains(&word.as_str()) || word.starts_with("read_") || word.ends_with("_scan")
        }
        None => is_text(before.token) && is_word_at(statement, 0, "copy"),
    };
    if is_options { Form::Unknown } else { Form::Known }
}

/// The statement behind `EXPLAIN …` and `PREPARE name AS`.
fn behind_prefix<'s, 'a>(statement: &'s [Located<'a>]) -> &'s [Located<'a>] {
    let begin = if is_word_at(statement, 0, "explain") {
        let is_begin = |token: &Located<'_>| match token.token {
            Token::Word(word) => {
                let word = word.value.to_ascii_lowercase();
                is_verb(&word) && !["analyze", "analyse"].contains(&word.as_str())
            }
            _ => false,
        };
        statement.iter().skip(1).position(is_begin).map_or(1, |at| at + 1)
    } else if is_word_at(statement, 0, "prepare") {
        statement.iter().position(|token| is_word(token.token, "as")).map_or(0, |at| at + 1)
    } else {
        0
    };
    statement.get(begin..).unwrap_or_default()
}

fn word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) => Some(&word.value),
        _ => None,
    }
}

/// Whether it is this word, which is in lower case, and not in quotes.
fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn is_behind(statement: &[Located<'_>], at: usize, wanted: &str) -> bool {
    at.checked_sub(1).is_some_and(|before| is_word_at(statement, before, wanted))
}

fn is_word_at(statement: &[Located<'_>], at: usize, wanted: &str) -> bool {
    statement.get(at).is_some_and(|token| is_word(token.token, wanted))
}

/// Whether it can be a value by itself: a text, a number, or a word that is none of SQL.
fn is_value(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        Token::Number(..) => true,
        text => is_text(text),
    }
}

/// Whether it is in quotes: what one dialect takes for a text is a name in another one.
fn is_quoted(token: &Token) -> bool {
    is_text(token) || matches!(token, Token::Word(word) if word.quote_style.is_some())
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::QuoteDelimitedStringLiteral(_)
            | Token::NationalQuoteDelimitedStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests;
