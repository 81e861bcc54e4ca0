//! The tokens of SQL by the rules of the PostgreSQL manual, "Lexical Structure": where statements end, and which keywords
//! they begin with. It knows no grammar.

use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a name.
    Word,
    /// A name in double quotes.
    Quoted,
    /// A string of any form.
    Text,
    Number,
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

    /// A name as the engine takes it: without quotes, or in lower case if it had none.
    pub(crate) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_lowercase()),
            Kind::Quoted => Some(self.inner()?.replace("\"\"", "\"")),
            Kind::Text | Kind::Number | Kind::Symbol(_) => None,
        }
    }

    /// The content of a plain string.
    pub(crate) fn string(&self) -> Option<String> {
        match self.text.chars().next() {
            Some('\'') => Some(self.inner()?.replace("''", "'")),
            Some('e' | 'E') => Some(unescaped(&self.text.get(2..)?.strip_suffix('\'')?.replace("''", "'"))),
            _ => None,
        }
    }

    fn inner(&self) -> Option<&str> {
        self.text.get(1..self.text.len().checked_sub(1)?)
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// The escapes of `E'…'` in options of COPY.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some(other) => out.push(other),
                None => {}
            },
            (other, false) => out.push(other),
        }
    }
    out
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
            let rest = self.rest();
            let length = if rest.starts_with("--") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                comment(rest)
            } else {
                rest.len() - rest.trim_start().len()
            };
            if length == 0 {
                return;
            }
            self.at += length;
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let rest = self.rest();
        let first = rest.chars().next()?;
        let (kind, length) = match first {
            '\'' => (Kind::Text, quoted(rest, '\'', false)),
            'e' | 'E' if rest.get(1..2) == Some("'") => (Kind::Text, 1 + quoted(&rest[1..], '\'', true)),
            '"' => (Kind::Quoted, quoted(rest, '"', false)),
            '$' => match dollar(rest) {
                Some(length) => (Kind::Text, length),
                None => (Kind::Symbol('$'), 1),
            },
            '0'..='9' => {
                (Kind::Number, rest.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(rest.len()))
            }
            c if c.is_alphabetic() || c == '_' => {
                let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                (Kind::Word, rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()))
            }
            other => (Kind::Symbol(other), other.len_utf8()),
        };
        let start = self.at;
        self.at += length;
        Some(Token { kind, text: rest.get(..length).unwrap_or(rest), start })
    }
}

/// The length of a comment, which may be nested.
fn comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
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

/// The length of a string between `$tag$` and `$tag$`.
fn dollar(text: &str) -> Option<usize> {
    let tag_length = text.get(1..)?.find('$')? + 2;
    let tag = text.get(..tag_length)?;
    let name = tag.get(1..tag_length - 1)?;
    let begins = name.chars().next().is_none_or(|first| first.is_alphabetic() || first == '_');
    if !begins || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let rest = text.get(tag_length..)?;
    Some(rest.find(tag).map_or(text.len(), |end| tag_length + end + tag_length))
}

/// The ranges of the statements of a text, without empty ones.
pub(crate) fn split(sql: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<Range<usize>> = None;
    for token in tokens(sql) {
        let place = token.range();
        if token.kind == Kind::Symbol(';') {
            found.extend(open.take());
        } else {
            let start = open.map_or(place.start, |open| open.start);
            open = Some(start..place.end);
        }
    }
    found.extend(open);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sql: &str) -> Vec<&str> {
        split(sql).into_iter().map(|place| &sql[place]).collect()
    }

    #[test]
    fn texts_are_split_where_statements_end() {
        for (sql, expected) in [
            ("", vec![]),
            (" ; ;-- x;\n/* ; /* ; */ ; */", vec![]),
            ("select 1", vec!["select 1"]),
            ("select 1; select 2 ;", vec!["select 1", "select 2"]),
            ("select ';', \";\", ';'';'; b", vec!["select ';', \";\", ';'';'", "b"]),
            (r"select E'\';', '\'; b", vec![r"select E'\';', '\'", "b"]),
            ("select $$;$$, $a$;$b$;$a$; b", vec!["select $$;$$, $a$;$b$;$a$", "b"]),
            ("select $1;b$x$;c", vec!["select $1", "b$x$", "c"]),
            ("select 'never ends; b", vec!["select 'never ends; b"]),
            ("/* ä */ select 'ü'; -- é\nb", vec!["select 'ü'", "b"]),
        ] {
            assert_eq!(parts(sql), expected, "{sql}");
        }
    }

    #[test]
    fn names_and_strings() {
        let found: Vec<_> = tokens(r#"Abc "A""b" 'it''s' E'\t' 1.5e3 ,"#).collect();
        assert_eq!(found[0].name().as_deref(), Some("abc"));
        assert_eq!(found[1].name().as_deref(), Some("A\"b"));
        assert_eq!(found[2].string().as_deref(), Some("it's"));
        assert_eq!(found[3].string().as_deref(), Some("\t"));
        assert_eq!((found[4].kind, found[4].text), (Kind::Number, "1.5e3"));
        assert_eq!(found[5].kind, Kind::Symbol(','));
        assert_eq!(tokens("\"").next().unwrap().name(), None);
    }
}
