//! Statements about files that are loaded as they come:
//!
//! ```text
//! CREATE PIPE [IF NOT EXISTS] p [EVERY '10 seconds'] AS COPY INTO t FROM 'in/*.csv' [FORMAT csv] [[WITH] (HEADER, …)]
//! ALTER PIPE [IF EXISTS] p PAUSE | RESUME | RETRY | REFRESH | SET PIPE_EXECUTION_PAUSED = true | false
//! DROP PIPE [IF EXISTS] p
//! ```

use crate::copy;
use crate::maintenance::refresh_interval;
use crate::statement_parser::StatementParser;
use crate::syntax_error::syntax_error;
use bowshot_api::Result;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;
use std::time::Duration;

/// See the module. Names are as written where they are quoted, else in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipeStatement {
    /// `CREATE PIPE`
    Create { name: String, if_not_exists: bool, copy: PipeCopy },
    /// `ALTER PIPE`
    Alter { name: String, if_exists: bool, change: PipeChange },
    /// `DROP PIPE`
    Drop { name: String, if_exists: bool },
}

/// What a pipe does with each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipeCopy {
    pub table: ObjectName,
    /// A path, a pattern or an address.
    pub location: String,
    /// Those of COPY, in lower case. A name alone has no value.
    pub options: Vec<(String, Option<String>)>,
    /// How often it looks for files; `None` for the default.
    pub every: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeChange {
    Pause,
    Resume,
    /// Files that could not be loaded are tried again.
    Retry,
    /// Loads what was found: the statement of the server itself.
    Refresh,
}

const CREATED: &str = "write `CREATE PIPE name [EVERY '10 seconds'] AS COPY INTO table FROM 'folder/*.csv' [FORMAT csv] [(HEADER, …)]`";
const ALTERED: &str = "write `ALTER PIPE name PAUSE`, RESUME or RETRY";

/// Whether the words up to PIPE stand here.
pub(crate) fn begins(words: &StatementParser<'_>) -> bool {
    ["create", "alter", "drop"].iter().any(|word| words.is_at(0, word)) && words.is_at(1, "pipe")
}

/// Reads a statement that [begins](begins) so.
///
/// # Errors
/// `Syntax` for one that is not complete; `Invalid` for an interval that is none.
pub(crate) fn read(mut words: StatementParser<'_>) -> Result<PipeStatement> {
    let statement = if words.take_all(&["create", "pipe"]) {
        let if_not_exists = words.take_all(&["if", "not", "exists"]);
        let name = words.single()?;
        PipeStatement::Create { name, if_not_exists, copy: pipe_copy(&mut words)? }
    } else {
        let drops = words.take("drop");
        words.take_all(&["alter"]);
        words.take_all(&["pipe"]);
        let if_exists = words.take_all(&["if", "exists"]);
        let name = words.single()?;
        match drops {
            true => PipeStatement::Drop { name, if_exists },
            false => PipeStatement::Alter { name, if_exists, change: change(&mut words)? },
        }
    };
    words.end()?;
    Ok(statement)
}

fn pipe_copy(words: &mut StatementParser<'_>) -> Result<PipeCopy> {
    let unexpected = |words: &StatementParser<'_>| words.unexpected().with_hint(CREATED);
    let every = match words.take("every") {
        true => Some(refresh_interval(&words.string().ok_or_else(|| unexpected(words))?)?),
        false => None,
    };
    if !words.take_all(&["as", "copy", "into"]) {
        return Err(unexpected(words));
    }
    let table = words.name()?;
    if !words.take("from") {
        return Err(unexpected(words));
    }
    let location = words.string().ok_or_else(|| unexpected(words))?;
    let mut options = Vec::new();
    if words.take("format") {
        let format = words.word().or_else(|| words.string()).ok_or_else(|| unexpected(words))?;
        options.push(("format".to_owned(), Some(format)));
    }
    if words.take("with") || words.is(&Token::LParen) {
        let listed = copy::options(&mut words.parser);
        options.extend(listed.map_err(|error| syntax_error(&error).with_hint(CREATED))?);
    }
    Ok(PipeCopy { table, location, options, every })
}

fn change(words: &mut StatementParser<'_>) -> Result<PipeChange> {
    let named = [
        ("pause", PipeChange::Pause),
        ("resume", PipeChange::Resume),
        ("retry", PipeChange::Retry),
        ("refresh", PipeChange::Refresh),
    ];
    if let Some((_, change)) = named.into_iter().find(|(word, _)| words.take(word)) {
        return Ok(change);
    }
    if words.take_all(&["set", "pipe_execution_paused"]) {
        words.take_token(&Token::Eq);
        if words.take("true") {
            return Ok(PipeChange::Pause);
        }
        if words.take("false") {
            return Ok(PipeChange::Resume);
        }
    }
    Err(words.unexpected().with_hint(ALTERED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statement;
    use crate::parse::read_one;

    fn read(sql: &str) -> Result<PipeStatement> {
        match read_one(sql)? {
            Statement::Pipe(statement) => Ok(statement),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn what_a_pipe_is_told_is_read() {
        let sql = "CREATE PIPE IF NOT EXISTS P EVERY '2 minutes' AS COPY INTO a.t FROM 's3://b/*.txt' \
                   FORMAT csv WITH (HEADER, 'delimiter' = ';')";
        let PipeStatement::Create { name, if_not_exists: true, copy } = read(sql).expect("is read") else {
            panic!("{sql}")
        };
        assert_eq!((name.as_str(), copy.table.to_string().as_str()), ("p", "a.t"));
        assert_eq!((copy.location.as_str(), copy.every), ("s3://b/*.txt", Some(Duration::from_secs(120))));
        let options: Vec<_> =
            copy.options.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        assert_eq!(options, [("format", Some("csv")), ("header", None), ("delimiter", Some(";"))]);
        let short = read("create pipe \"P q\" as copy into t from 'x.csv'").expect("is read");
        assert!(matches!(short, PipeStatement::Create { name, if_not_exists: false, copy } if name == "P q"
            && copy.options.is_empty() && copy.every.is_none()));
        for (words, expected) in [
            ("PAUSE", PipeChange::Pause),
            ("resume", PipeChange::Resume),
            ("RETRY", PipeChange::Retry),
            ("REFRESH", PipeChange::Refresh),
            ("SET PIPE_EXECUTION_PAUSED = TRUE", PipeChange::Pause),
            ("SET PIPE_EXECUTION_PAUSED=false", PipeChange::Resume),
        ] {
            let altered = PipeStatement::Alter { name: "p".to_owned(), if_exists: true, change: expected };
            assert_eq!(read(&format!("ALTER PIPE IF EXISTS p {words};")).expect(words), altered);
        }
        let dropped = PipeStatement::Drop { name: "p".to_owned(), if_exists: false };
        assert_eq!(read("DROP PIPE p").expect("is read"), dropped);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (sql, part) in [
            ("CREATE PIPE p", "ends too soon"),
            ("CREATE PIPE p AS COPY INTO t", "ends too soon"),
            ("CREATE PIPE p AS COPY t FROM 'x'", "was not expected"),
            ("CREATE PIPE p AS COPY INTO t FROM x", "was not expected"),
            ("CREATE PIPE p AS COPY INTO t FROM 'x' y", "was not expected"),
            ("CREATE PIPE p EVERY '1 month' AS COPY INTO t FROM 'x'", "invalid interval `1 month`"),
            ("ALTER PIPE p", "ends too soon"),
            ("ALTER PIPE p SET PIPE_EXECUTION_PAUSED = 3", "was not expected"),
            ("DROP PIPE p, q", "was not expected"),
        ] {
            let error = read(sql).expect_err(sql).to_string();
            assert!(error.contains(part), "{sql}: {error}");
        }
    }
}
