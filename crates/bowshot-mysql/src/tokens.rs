//! The tokens of SQL by the rules of the MySQL manual, "Lexical Structure": where statements end, and which keywords they
//! consist of. It knows no grammar.

use crate::handshake::SERVER_VERSION;
use std::borrow::Cow;
use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a name.
    Word,
    /// A name in backticks.
    Quoted,
    /// A string in either kind of quotes.
    Text,
    Number,
    /// `@@name` with its scope before the name, and `@name`.
    Variable,
    /// Any other character.
    Symbol(char),
}

/// A token and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    start: usize,
}

impl Token<'_> {
    /// Whether it is this keyword, in any case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_symbol(&self, symbol: char) -> bool {
        self.kind == Kind::Symbol(symbol)
    }

    /// The content of a string.
    pub(crate) fn string(&self) -> Option<String> {
        let quote = self.text.chars().next()?;
        (self.kind == Kind::Text).then(|| unescaped(self.inner(), quote))
    }

    /// A name, without its quotes.
    pub(crate) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_owned()),
            Kind::Quoted => Some(self.inner().replace("``", "`")),
            _ => None,
        }
    }

    fn inner(&self) -> &str {
        let end = self.text.len().saturating_sub(1);
        self.text.get(1..end).unwrap_or_default()
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// Backslashes and doubled quotes (MySQL manual, "String Literals").
fn unescaped(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let next = match character {
            '\\' => characters.next(),
            doubled if doubled == quote => {
                characters.next();
                Some(doubled)
            }
            other => {
                out.push(other);
                continue;
            }
        };
        match (character, next) {
            ('\\', Some('0')) => out.push('\0'),
            ('\\', Some('b')) => out.push('\u{8}'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('Z')) => out.push('\u{1a}'),
            (_, Some(other)) => out.push(other),
            (_, None) => {}
        }
    }
    out
}

/// A text as a string of SQL.
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name in backticks.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The tokens of a text, without blanks and comments. An unterminated string or comment ends with the text.
pub(crate) fn tokens(sql: &str) -> Tokens<'_> {
    Tokens { sql, at: 0 }
}

/// See [`tokens`].
#[derive(Debug, Clone)]
pub(crate) struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn rest(&self) -> &'a str {
        self.sql.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            let length = blank(self.rest());
            if length == 0 {
                return;
            }
            self.at += length;
        }
    }
}

/// The length of blanks, or of a comment, at the beginning of a text.
fn blank(rest: &str) -> usize {
    let to_end_of_line = || rest.find('\n').unwrap_or(rest.len());
    if rest.starts_with('#') {
        return to_end_of_line();
    }
    if let Some(after) = rest.strip_prefix("--")
        && after.chars().next().is_none_or(|next| next.is_whitespace() || next.is_control())
    {
        return to_end_of_line();
    }
    if rest.starts_with("/*") {
        return comment(rest);
    }
    rest.len() - rest.trim_start().len()
}

/// The length of a comment, which is never nested.
fn comment(text: &str) -> usize {
    text.get(2..).and_then(|inner| inner.find("*/")).map_or(text.len(), |end| end + 4)
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let rest = self.rest();
        let (kind, length) = token(rest, rest.chars().next()?);
        let start = self.at;
        self.at += length;
        Some(Token { kind, text: rest.get(..length).unwrap_or(rest), start })
    }
}

fn token(rest: &str, first: char) -> (Kind, usize) {
    let while_part = |is_part: fn(char) -> bool| rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    match first {
        '\'' | '"' => (Kind::Text, quoted(rest, first, true)),
        '`' => (Kind::Quoted, quoted(rest, '`', false)),
        '0'..='9' => (Kind::Number, while_part(|c| c.is_alphanumeric() || c == '.' || c == '_')),
        '@' => (Kind::Variable, variable(rest)),
        c if c.is_alphabetic() || c == '_' || c == '$' => {
            (Kind::Word, while_part(|c| c.is_alphanumeric() || c == '_' || c == '$'))
        }
        other => (Kind::Symbol(other), other.len_utf8()),
    }
}

/// The length of quoted text. A doubled quote does not end it, nor one after a backslash where that escapes.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if escapes && character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// The length of a variable with its `@`; its parts may be in backticks.
fn variable(text: &str) -> usize {
    let mut at = if text.starts_with("@@") { 2 } else { 1 };
    while let Some(rest) = text.get(at..) {
        match rest.chars().next() {
            Some('`') => at += quoted(rest, '`', false),
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '$' | '.') => at += c.len_utf8(),
            _ => break,
        }
    }
    at
}

/// The ranges of the statements of a text, without empty ones.
pub(crate) fn split(sql: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<Range<usize>> = None;
    for token in tokens(sql) {
        if token.is_symbol(';') {
            found.extend(open.take());
            continue;
        }
        let place = token.range();
        open = Some(open.map_or(place.start, |open| open.start)..place.end);
    }
    found.extend(open);
    found
}

/// The text with the content of `/*! … */` as code, unless it is for a newer MySQL (MySQL manual, "Comments"). Positions stay
/// the same.
pub(crate) fn executable(sql: &str) -> Cow<'_, str> {
    if !sql.contains("/*!") {
        return Cow::Borrowed(sql);
    }
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/*!") {
            let length = comment(rest);
            out.push_str(&uncommented(rest.get(..length).unwrap_or(rest)));
            rest = rest.get(length..).unwrap_or_default();
            continue;
        } else {
            match blank(rest) {
                0 => token(rest, first).1,
                length => length,
            }
        };
        out.push_str(rest.get(..length).unwrap_or(rest));
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// The content of one such comment, or as many blanks.
fn uncommented(comment: &str) -> String {
    let inner = comment.strip_prefix("/*!").unwrap_or(comment);
    let inner = inner.strip_suffix("*/").unwrap_or(inner);
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_version = matches!(digits, 5 | 6);
    let version = inner.get(..digits).unwrap_or_default();
    if is_version && version.parse().is_ok_and(|version: u32| version > our_version()) {
        return " ".repeat(comment.len());
    }
    let code = if is_version { inner.get(digits..).unwrap_or_default() } else { inner };
    let before = if is_version { "/*!".len() + digits } else { "/*!".len() };
    let after = comment.len().saturating_sub(before + code.len());
    format!("{}{code}{}", " ".repeat(before), " ".repeat(after))
}

/// `80036` for 8.0.36.
fn our_version() -> u32 {
    let mut parts = SERVER_VERSION.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    next() * 10_000 + next() * 100 + next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(sql: &str) -> Vec<&str> {
        tokens(sql).map(|token| token.text).collect()
    }

    #[test]
    fn tokens_as_in_mysql() {
        for (sql, expected) in [
            ("select 1 -- two\n, 3", &["select", "1", ",", "3"][..]),
            ("1--1", &["1", "-", "-", "1"]),
            ("a # b\nc", &["a", "c"]),
            ("/* a /* b */ c", &["c"]),
            (r"'it\'s' ''''", &[r"'it\'s'", "''''"]),
            (r#""a""b" `c``d`"#, &[r#""a""b""#, "`c``d`"]),
            ("@@session.sql_mode,@a", &["@@session.sql_mode", ",", "@a"]),
            ("'open", &["'open"]),
            ("@@`x`=1", &["@@`x`", "=", "1"]),
            ("", &[]),
        ] {
            assert_eq!(words(sql), expected, "{sql}");
        }
    }

    #[test]
    fn statements_end_outside_of_quotes_and_comments() {
        let parts = |sql: &'static str| split(sql).into_iter().map(|place| &sql[place]).collect::<Vec<_>>();
        assert_eq!(parts("a ';' ; `b;` -- ;\n;; c /*;*/"), ["a ';'", "`b;`", "c"]);
        assert_eq!(parts(" ;# nothing\n"), Vec::<&str>::new());
    }

    #[test]
    fn strings_are_read_and_written() {
        let read = |sql: &str| tokens(sql).next().and_then(|token| token.string());
        assert_eq!(read(r"'a\n\'b''c\\'").as_deref(), Some("a\n'b'c\\"));
        assert_eq!(read(r#""a'""b""#).as_deref(), Some("a'\"b"));
        for text in ["it's", r"\", "ä`"] {
            assert_eq!(read(&quoted_text(text)).as_deref(), Some(text));
            assert_eq!(
                tokens(&quoted_name(text)).next().and_then(|token| token.name()).as_deref(),
                Some(text)
            );
        }
    }

    #[test]
    fn comments_for_us_are_none() {
        for (sql, expected) in [
            ("/*!40101 SET NAMES utf8 */", "SET NAMES utf8"),
            ("create table t (a int) /*! engine=x */", "create table t (a int)  engine=x"),
            ("a /*!99999 b */ c", "a  c"),
            ("'/*!40101 x */' /* y */", "'/*!40101 x */' /* y */"),
        ] {
            let found = executable(sql);
            assert_eq!(words(&found), words(expected), "{sql}: {found}");
            assert_eq!(found.len(), sql.len());
        }
    }

    #[test]
    fn texts_of_all_sorts_are_read_to_their_end() {
        let parts = [
            "'", "\"", "`", "\\", "/*", "/*!", "*/", "-- ", "#", "\n", ";", "@@", "@", "a", "ä", "0", " ",
            "80036", "99999", "(", ")", "SET", "KILL", "=", ",", "_utf8", "concat", "\0", "€",
        ];
        let mut random = 1_u64;
        for _ in 0..20_000 {
            let mut sql = String::new();
            for _ in 0..random % 13 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sql.push_str(parts[usize::try_from(random >> 33).unwrap() % parts.len()]);
            }
            random = random.wrapping_add(1);
            let read = executable(&sql);
            assert_eq!(read.len(), sql.len(), "{sql}");
            for place in split(&read) {
                let statement = read.get(place).expect("a place between letters");
                assert!(tokens(statement).all(|token| !token.text.is_empty()), "{sql}");
                _ = crate::statement::StatementKind::parse(statement);
            }
        }
    }
}
