//! Forms of statements and types that `sqlparser` does not know, in tokens that it does. What is not known goes on to it as it is,
//! so that it says what it did not expect.

mod composed_types;
mod sequence_options;
mod table_clauses;

use crate::statement_tokens::take_word;
use crate::tokens::{is_blank, word};
use bowshot_api::{Error, Result};
use sqlparser::ast::{ObjectType, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};
use std::collections::HashMap;
use std::ops::Range;

/// Stands in the place of the columns of `INSERT … BY NAME`.
pub const BY_NAME: &str = "\u{3}by name";
/// Names a condition that holds the clauses of a CREATE TABLE which the parser does not know.
pub const CLAUSES: &str = "\u{3}clauses";
/// The option of a materialized view that holds its REFRESH clause.
pub const REFRESH_OPTION: &str = "\u{3}refresh";
/// Schema of the tables that stand for rows while a change is planned: no user reads them by name.
const CHANGE: &str = "__bowshot_change";
/// What begins our own names.
const RESERVED: &str = "__bowshot_";

/// The tokens of a statement of `sql` in forms that the parser knows.
pub(crate) fn known(tokens: Vec<TokenWithSpan>, sql: &str) -> Vec<TokenWithSpan> {
    let edits = edits(&tokens, sql);
    if edits.is_empty() { tokens } else { edited(tokens, edits) }
}

fn edits(tokens: &[TokenWithSpan], sql: &str) -> Vec<Edit> {
    let mut words = tokens.iter().filter(|token| !is_blank(&token.token)).map(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    });
    let [first, second] = [words.next(), words.next()].map(Option::unwrap_or_default);
    let defines = matches!(first.as_str(), "create" | "alter");
    let replaces = first == "replace" && second == "into";
    if !(defines || replaces || tokens.iter().any(may_be_part)) {
        return Vec::new();
    }
    let text = Text::new(tokens);
    let mut edits = match (first.as_str(), second.as_str()) {
        ("create", _) => {
            let edits = table_clauses::edits(&text, sql).into_iter();
            let edits = edits.chain(cloned(&text)).chain(refresh_clause(&text));
            edits.chain(sequence_options::in_order(&text)).collect()
        }
        ("alter", "view" | "materialized") => renamed_view(&text).into_iter().collect(),
        ("replace", "into") => vec![replaced(&text)],
        _ => Vec::new(),
    };
    edits.extend(composed_types::edits(&text, defines));
    edits.extend(by_name(&text));
    edits.extend(predicted(&text));
    edits.extend(values_of_sets(&text));
    edits
}

/// Whether it may stand in a form that the parser does not know.
fn may_be_part(token: &TokenWithSpan) -> bool {
    const WORDS: [&str; 11] = [
        "struct",
        "row",
        "map",
        "list",
        "array",
        "name",
        "predict",
        "predict_proba",
        "union",
        "intersect",
        "except",
    ];
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none()
        && WORDS.iter().any(|wanted| word.value.eq_ignore_ascii_case(wanted)))
}

/// Refuses names that stand for something else while a statement is planned.
///
/// # Errors
/// `Invalid`, with the name.
pub(crate) fn check_names(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut before = "";
    for token in tokens {
        let Token::Word(word) = &token.token else { continue };
        let word = word.value.as_str();
        let is_reserved =
            word.get(..RESERVED.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(RESERVED));
        if is_reserved && (word.eq_ignore_ascii_case(CHANGE) || before.eq_ignore_ascii_case("constraint")) {
            return Err(Error::invalid(format!("`{word}` is a reserved name"))
                .with_hint(format!("choose a name that does not begin with `{RESERVED}`")));
        }
        before = word;
    }
    Ok(())
}

/// `DROP DATABASE d FORCE`: with all that is in it; what is dropped is gone at once in any case.
pub(crate) fn take_force(parser: &mut Parser<'_>, statement: &mut Statement) {
    if let Statement::Drop { object_type, cascade, restrict: false, purge: false, .. } = statement
        && !*cascade
        && take_word(parser, "force")
    {
        *cascade = matches!(object_type, ObjectType::Database | ObjectType::Schema);
    }
}

/// What takes the place of some tokens.
struct Edit {
    tokens: Range<usize>,
    with: Vec<Token>,
}

impl Edit {
    fn new(tokens: Range<usize>, with: Vec<Token>) -> Self {
        Self { tokens, with }
    }
}

fn edited(tokens: Vec<TokenWithSpan>, mut edits: Vec<Edit>) -> Vec<TokenWithSpan> {
    edits.sort_by_key(|edit| edit.tokens.start);
    let mut edits = edits.into_iter().peekable();
    let mut found = Vec::with_capacity(tokens.len());
    let mut skipped = 0;
    for (at, token) in tokens.into_iter().enumerate() {
        while let Some(edit) = edits.next_if(|edit| edit.tokens.start <= at) {
            // Within another one, it was seen there.
            if edit.tokens.start == at && at >= skipped {
                let span = token.span;
                found.extend(edit.with.into_iter().map(|token| TokenWithSpan { token, span }));
                skipped = edit.tokens.end;
            }
        }
        if at >= skipped {
            found.push(token);
        }
    }
    found
}

/// A statement as tokens, without space and comments.
struct Text<'a> {
    tokens: &'a [TokenWithSpan],
    places: Vec<usize>,
    /// For each token that opens a parenthesis which is closed, the place behind that.
    closed: HashMap<usize, usize>,
}

impl<'a> Text<'a> {
    fn new(tokens: &'a [TokenWithSpan]) -> Self {
        let is_seen = |at: &usize| {
            tokens.get(*at).is_some_and(|token| !is_blank(&token.token) && token.token != Token::SemiColon)
        };
        let mut text =
            Self { tokens, places: (0..tokens.len()).filter(is_seen).collect(), closed: HashMap::new() };
        let mut open = Vec::new();
        for at in 0..text.len() {
            match text.token(at) {
                Some(Token::LParen) => open.push(at),
                Some(Token::RParen) => text.closed.extend(open.pop().map(|began| (began, at + 1))),
                _ => {}
            }
        }
        text
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    /// The place among all tokens.
    fn place(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(self.tokens.len())
    }

    /// The places of tokens from one up to another.
    fn range(&self, tokens: Range<usize>) -> Range<usize> {
        let end = tokens.end.checked_sub(1).map_or(0, |last| self.place(last) + 1);
        self.place(tokens.start)..end.min(self.tokens.len())
    }

    fn span(&self, at: usize) -> Option<Span> {
        self.tokens.get(self.place(at)).map(|token| token.span)
    }

    fn token(&self, at: usize) -> Option<&'a Token> {
        self.tokens.get(self.place(at)).map(|token| &token.token)
    }

    /// The word there in upper case; nothing for what is quoted, or no word.
    fn word(&self, at: usize) -> String {
        match self.token(at) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    /// Whether this word is there, which is in upper case.
    fn is(&self, at: usize, wanted: &str) -> bool {
        matches!(self.token(at), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    }

    fn is_one_of(&self, at: usize, wanted: &[&str]) -> bool {
        wanted.iter().any(|wanted| self.is(at, wanted))
    }

    fn words(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(index, word)| self.is(at + index, word))
    }

    /// The place behind the parenthesis that closes the one that is there.
    fn behind(&self, open: usize) -> Option<usize> {
        self.closed.get(&open).copied()
    }

    /// The place behind a name of one or more parts.
    fn behind_name(&self, at: usize) -> usize {
        let mut at = at + 1;
        while matches!(self.token(at), Some(Token::Period)) {
            at += 2;
        }
        at
    }
}

fn name(value: &str) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// `predict('m', TABLE t)`: a query in the place of the table.
fn predicted(text: &Text<'_>) -> Vec<Edit> {
    let called = |at: &usize| {
        text.is_one_of(*at, &["PREDICT", "PREDICT_PROBA"])
            && matches!(text.token(at + 1), Some(Token::LParen))
            && matches!(text.token(at + 3), Some(Token::Comma))
            && text.is(at + 4, "TABLE")
    };
    let edit = |at: usize| {
        let end = text.behind_name(at + 5);
        let named = (at + 5..end).map(|at| text.token(at).cloned()).collect::<Option<Vec<_>>>()?;
        let mut query =
            vec![Token::LParen, word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM)];
        query.extend(named);
        query.push(Token::RParen);
        matches!(text.token(end), Some(Token::RParen)).then(|| Edit::new(text.range(at + 4..end), query))
    };
    (0..text.len()).filter(called).filter_map(edit).collect()
}

/// `((SELECT a) UNION (SELECT b) LIMIT 1)` without the parentheses of the first query, which the parser takes for a value of its own.
fn values_of_sets(text: &Text<'_>) -> Vec<Edit> {
    const OPERATORS: [&str; 3] = ["UNION", "INTERSECT", "EXCEPT"];
    const CLAUSES: [&str; 5] = ["ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"];
    // What these would mean for all of the queries.
    let is_plain = |first: usize, end: usize| {
        let mut at = first;
        while at < end {
            if text.is_one_of(at, &OPERATORS) || text.is_one_of(at, &CLAUSES) {
                return false;
            }
            at = text.behind(at).unwrap_or(at + 1);
        }
        true
    };
    let opened = |at: &usize| {
        matches!((text.token(*at), text.token(at + 1)), (Some(Token::LParen), Some(Token::LParen)))
            && text.is(at + 2, "SELECT")
    };
    let query = |at: usize| {
        let behind = text.behind(at + 1)?;
        let is_first = text.is_one_of(behind, &OPERATORS) && is_plain(at + 2, behind - 1);
        is_first.then(|| {
            [at + 1..at + 2, behind - 1..behind].map(|place| Edit::new(text.range(place), Vec::new()))
        })
    };
    (0..text.len()).filter(opened).filter_map(query).flatten().collect()
}

/// `CREATE TABLE t CLONE u FOR VERSION AS OF 3`: the rows are those of a query.
fn cloned(text: &Text<'_>) -> Option<Edit> {
    let table = (1..5).find(|at| text.is(*at, "TABLE"))?;
    let named = if text.words(table + 1, &["IF", "NOT", "EXISTS"]) { table + 4 } else { table + 1 };
    let clone = text.behind_name(named);
    let behind = text.behind_name(clone + 1);
    let has_rows_of_table = behind >= text.len() || text.is_one_of(behind, &["FOR", "VERSION", "TIMESTAMP"]);
    if !text.is(clone, "CLONE") || behind > text.len() || !has_rows_of_table {
        return None;
    }
    let tokens = |range: Range<usize>| range.map(|at| text.token(at).cloned()).collect::<Option<Vec<_>>>();
    let mut instead = tokens(clone..behind)?;
    instead.extend([word("AS", Keyword::AS), word("SELECT", Keyword::SELECT), Token::Mul]);
    instead.push(word("FROM", Keyword::FROM));
    instead.extend(tokens(clone + 1..text.len())?);
    Some(Edit::new(text.range(clone..text.len()), instead))
}

/// `ALTER [MATERIALIZED] VIEW v RENAME TO w`, as of a table.
fn renamed_view(text: &Text<'_>) -> Option<Edit> {
    let view = (1..3).find(|at| text.is(*at, "VIEW"))?;
    let name = if text.words(view + 1, &["IF", "EXISTS"]) { view + 3 } else { view + 1 };
    let is_renamed = text.words(text.behind_name(name), &["RENAME", "TO"]);
    is_renamed.then(|| Edit::new(text.range(1..view + 1), vec![word("TABLE", Keyword::TABLE)]))
}

/// `CREATE MATERIALIZED VIEW v REFRESH … AS`: the clause as an option of the view.
fn refresh_clause(text: &Text<'_>) -> Option<Edit> {
    let view = (1..5).find(|at| text.words(*at, &["MATERIALIZED", "VIEW"]))? + 2;
    let named = if text.words(view, &["IF", "NOT", "EXISTS"]) { view + 3 } else { view };
    let behind = text.behind_name(named);
    let refresh =
        if matches!(text.token(behind), Some(Token::LParen)) { text.behind(behind)? } else { behind };
    if !text.is(refresh, "REFRESH") {
        return None;
    }
    let (mode, end) = match (text.word(refresh + 1).as_str(), text.token(refresh + 2)) {
        ("MANUAL", _) => ("manual".to_owned(), refresh + 2),
        ("ON", _) if text.is(refresh + 2, "COMMIT") => ("on commit".to_owned(), refresh + 3),
        ("EVERY", Some(Token::SingleQuotedString(interval) | Token::DoubleQuotedString(interval))) => {
            (format!("every {interval}"), refresh + 3)
        }
        _ => return None,
    };
    let with = vec![
        word("WITH", Keyword::WITH),
        Token::LParen,
        name(REFRESH_OPTION),
        Token::Eq,
        Token::SingleQuotedString(mode),
        Token::RParen,
    ];
    text.is(end, "AS").then(|| Edit::new(text.range(refresh..end), with))
}

/// `INSERT INTO t BY NAME …`, perhaps behind WITH.
fn by_name(text: &Text<'_>) -> Option<Edit> {
    let insert = (0..text.len()).find(|at| text.is(*at, "INSERT"))?;
    let into = (insert + 1..insert + 4).find(|at| text.is(*at, "INTO"))?;
    let by = text.behind_name(into + 1);
    let columns = vec![Token::LParen, name(BY_NAME), Token::RParen];
    text.words(by, &["BY", "NAME"]).then(|| Edit::new(text.range(by..by + 2), columns))
}

/// `REPLACE INTO t …`, which not every dialect has.
fn replaced(text: &Text<'_>) -> Edit {
    let instead = [("INSERT", Keyword::INSERT), ("OR", Keyword::OR), ("REPLACE", Keyword::REPLACE)];
    Edit::new(text.range(0..1), instead.map(|(value, keyword)| word(value, keyword)).into())
}
