//! Where the statements of a client's text begin and end.

use crate::dialect::{Dialect, DialectName};
use crate::plain_select;
use crate::source_tokens::{LATER_BYTES, SourceTokens};
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// The bytes of each statement of a text, without empty ones, semicolons, and comments around them.
pub fn statement_spans(sql: &str, dialect: DialectName) -> Vec<Range<usize>> {
    if let Some(place) = plain_select::place(sql) {
        return vec![place];
    }
    let end = sql.trim_end().trim_end_matches(';').len();
    if sql.len() > LATER_BYTES && !sql.get(..end).is_some_and(|text| text.contains(';')) {
        // One long statement, such as an INSERT of many rows: what follows its beginning stays unread.
        let first = SourceTokens::new(sql, dialect).next().map(|token| token.range().start);
        return first.filter(|start| *start < end).map(|start| start..end).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut open: Option<Range<usize>> = None;
    for token in SourceTokens::new(sql, dialect) {
        if token.token == Token::SemiColon {
            found.extend(open.take());
            continue;
        }
        let place = token.range();
        open = Some(open.map_or(place.start, |open| open.start)..place.end);
    }
    found.extend(open);
    found
}

/// A text as statements, none of them empty.
struct Script<'a> {
    /// Those that semicolons end.
    ended: Vec<&'a str>,
    /// The one behind them.
    rest: Option<&'a str>,
    /// Whether all of the text can be read.
    is_read: bool,
}

impl<'a> Script<'a> {
    fn new(sql: &'a str, dialect: Dialect) -> Self {
        let (mut from, mut has_words) = (0, false);
        let (mut ended, mut is_read) = (Vec::new(), true);
        for token in SourceTokens::new(sql, dialect.name()) {
            if token.token == Token::SemiColon {
                let place = token.range();
                ended.extend(sql.get(from..place.start).filter(|_| has_words));
                (from, has_words) = (place.end, false);
            } else {
                is_read &= token.token != Token::EOF;
                has_words = true;
            }
        }
        Self { ended, rest: sql.get(from..).filter(|_| has_words), is_read }
    }
}

/// The statements of a text, each by itself and none empty. A text that cannot be read is one.
pub fn split(sql: &str, dialect: Dialect) -> Vec<&str> {
    if !sql.trim_end().trim_end_matches(';').contains(';') {
        return vec![sql];
    }
    let script = Script::new(sql, dialect);
    let statements: Vec<&str> = script.ended.into_iter().chain(script.rest).collect();
    if script.is_read && !statements.is_empty() { statements } else { vec![sql] }
}

/// The statements of a script that semicolons end, each by itself and none empty, and the one behind them, which may go on. That is empty
/// where nothing but blanks and comments is left.
pub fn split_script(sql: &str, dialect: Dialect) -> (Vec<&str>, &str) {
    let script = Script::new(sql, dialect);
    (script.ended.into_iter().map(str::trim).collect(), script.rest.unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_where_statements_end() {
        let parts = |sql: &'static str, dialect| -> Vec<&str> {
            statement_spans(sql, dialect).into_iter().map(|place| &sql[place]).collect()
        };
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
            assert_eq!(parts(sql, DialectName::Postgres), expected, "{sql}");
        }
        assert_eq!(parts("a ';' ; `b;` -- ;\n;; c /*;*/", DialectName::MySql), ["a ';'", "`b;`", "c"]);
        assert_eq!(parts(" ;# nothing\n", DialectName::MySql), Vec::<&str>::new());
    }

    #[test]
    fn statements_keep_the_comments_around_them() {
        let split = |sql| split(sql, Dialect::new(DialectName::Ansi));
        assert_eq!(split("SELECT 1"), ["SELECT 1"]);
        assert_eq!(split("SELECT ';'; SELECT 2 -- ;\n;;"), ["SELECT ';'", " SELECT 2 -- ;\n"]);
        assert_eq!(split("SELECT 1;"), ["SELECT 1;"]);
        assert_eq!(split("SELECT 'open; SELECT 2"), ["SELECT 'open; SELECT 2"]);
    }

    #[test]
    fn scripts_may_end_in_the_middle_of_a_statement() {
        for (script, statements, rest) in [
            (" select 1 ;;select 'größe;'; ", &["select 1", "select 'größe;'"][..], ""),
            (r"select 'a\', E'b\';' ; x", &[r"select 'a\', E'b\';'"], "x"),
            (
                "select \"a;b\", `c;d`, $1, $t$;$$;$t$; select a$b",
                &["select \"a;b\", `c;d`, $1, $t$;$$;$t$"],
                "select a$b",
            ),
            ("select 'open; x", &[], "select 'open; x"),
            ("-- a; b\nselect 1; /* only */ -- comments", &["-- a; b\nselect 1"], ""),
            ("select 1 /* open; ", &[], "select 1 /* open;"),
        ] {
            assert_eq!(split_script(script, Dialect::new(DialectName::Ansi)), (statements.to_vec(), rest));
        }
    }
}
