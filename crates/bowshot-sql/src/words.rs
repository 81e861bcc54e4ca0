//! What a statement begins with, before anything is parsed: statements that the parser does not know are told by that.

use sqlparser::dialect::Dialect as ParserDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// The first two words of a statement in lower case, whatever space and comments stand before and between them; empty where
/// there is no word.
pub fn first_words(sql: &str) -> [String; 2] {
    let (first, rest) = first_word(sql);
    let (second, _) = first_word(rest);
    [first, second].map(str::to_ascii_lowercase)
}

/// Whether the parser finds that word first too: dialects differ in what a comment is.
pub fn begins_with(sql: &str, word: &str, dialect: &dyn ParserDialect) -> bool {
    let parser = Parser::new(dialect).try_with_sql(sql);
    parser.is_ok_and(|parser| match &parser.peek_token_ref().token {
        Token::Word(first) => first.quote_style.is_none() && first.value.eq_ignore_ascii_case(word),
        _ => false,
    })
}

/// The first word of a text, behind space and comments, and what follows it.
fn first_word(sql: &str) -> (&str, &str) {
    let start = without_comments(sql);
    start.split_at(start.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(start.len()))
}

fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let after = match rest.get(..2) {
            _ if rest.starts_with('#') => rest.split_once('\n').map(|(_, after)| after),
            Some("--") => rest.split_once('\n').map(|(_, after)| after),
            Some("/*") => after_comment(rest),
            _ => return rest,
        };
        let Some(after) = after else { return "" };
        rest = after.trim_start();
    }
}

/// What follows a comment, which may hold others.
fn after_comment(sql: &str) -> Option<&str> {
    let (mut depth, mut rest) = (0_usize, sql);
    while let Some(place) = rest.find(['/', '*']) {
        rest = &rest[place..];
        let step = match rest.get(..2) {
            Some("/*") => {
                depth += 1;
                2
            }
            Some("*/") => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        rest = rest.get(step..)?;
        if depth == 0 {
            return Some(rest);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::first_words;

    #[test]
    fn words_are_found_behind_space_and_comments() {
        for (sql, expected) in [
            ("VACUUM t", ["vacuum", "t"]),
            (" \n\tCall\tjoin_cache_clear()", ["call", "join_cache_clear"]),
            ("-- why\n/* and */ Optimize -- this\n\"T\"", ["optimize", ""]),
            ("OPTIMIZE", ["optimize", ""]),
            ("-- nothing", ["", ""]),
            // Only MySQL has such comments, and no other statement begins so.
            ("# why\n# more\nSHOW # this\nTABLES", ["show", "tables"]),
            ("#", ["", ""]),
            ("/* open", ["", ""]),
            ("/* /* */ vacuum */ SELECT t", ["select", "t"]),
            ("/* /**/ /***/ */ VACUUM /*/ t */ t", ["vacuum", "t"]),
            ("(SELECT 1)", ["", ""]),
            ("größe x", ["größe", "x"]),
        ] {
            assert_eq!(first_words(sql), expected, "{sql}");
        }
    }
}
