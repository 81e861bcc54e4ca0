//! Cursors as statements: `DECLARE c CURSOR FOR …`, `FETCH`, `MOVE` and `CLOSE` (PostgreSQL manual, "DECLARE"). A cursor is a
//! portal like any other, so that clients may describe it, too. It is read as its rows come, so it goes forward alone; its rows
//! are those of when it was declared.

use crate::backend;
use crate::connection::Connection;
use crate::extended::Prepared;
use crate::lex::{Kind, Token, tokens};
use crate::message::Format;
use crate::portal::{Life, Portal, PortalState, columns};
use crate::status::{Failure, Result};
use arrow::record_batch::RecordBatch;
use bowshot_api::Request;
use std::sync::Arc;

/// `DECLARE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    /// Whether it stays when the transaction is committed.
    pub(crate) hold: bool,
    pub(crate) query: String,
}

/// `FETCH` or `MOVE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) name: String,
    /// How many rows; `None` for all that are left.
    pub(crate) rows: Option<u64>,
    /// Whether the rows are left out.
    pub(crate) is_move: bool,
}

/// Whether the columns are told before the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announced {
    Now,
    Before,
}

fn syntax(message: impl Into<String>) -> Failure {
    Failure::new("42601", message)
}

impl Declared {
    /// The statement, if it is one: other servers declare other things.
    ///
    /// # Errors
    /// For options that are not had.
    pub(crate) fn parse(sql: &str) -> Result<Option<Self>, Failure> {
        let mut words = tokens(sql).skip(1);
        let Some(name) = words.next().and_then(|token| token.name()) else { return Ok(None) };
        let mut hold = false;
        let mut is_cursor = false;
        let mut negated = false;
        for token in words.by_ref() {
            match token.text.to_ascii_uppercase().as_str() {
                "BINARY" => {
                    return Err(Failure::new("0A000", "binary cursors are not supported")
                        .with_hint("ask for the binary format when rows are fetched"));
                }
                "NO" => negated = true,
                "SCROLL" if !negated => {
                    return Err(Failure::new("0A000", "cursors that scroll are not supported")
                        .with_hint("leave SCROLL out, and declare it once more to read it again"));
                }
                "SCROLL" | "INSENSITIVE" | "ASENSITIVE" => {}
                "CURSOR" => is_cursor = true,
                "WITH" => hold = true,
                "WITHOUT" | "HOLD" => {}
                "FOR" if is_cursor => break,
                _ => return Ok(None),
            }
        }
        let query = words.next().and_then(|first| sql.get(first.range().start..));
        match query {
            Some(query) => Ok(Some(Self { name, hold, query: query.to_owned() })),
            None => Err(syntax("syntax error: DECLARE takes a query behind FOR")),
        }
    }
}

impl Declared {
    /// How many characters stand before the query.
    pub(crate) fn before(&self, sql: &str) -> usize {
        let place = sql.len().saturating_sub(self.query.len());
        sql.get(..place).unwrap_or_default().chars().count()
    }
}

impl Fetched {
    /// # Errors
    /// For directions that a cursor cannot go in.
    pub(crate) fn parse(sql: &str) -> Result<Self, Failure> {
        let words: Vec<Token<'_>> = tokens(sql).collect();
        let takes = "syntax error: it takes a direction and the name of a cursor, as in `FETCH 10 FROM c`";
        let [verb, between @ .., last] = words.as_slice() else { return Err(syntax(takes)) };
        let Some(name) = last.name() else { return Err(syntax(takes)) };
        let direction = match between {
            [direction @ .., from] if from.is("FROM") || from.is("IN") => direction,
            direction => direction,
        };
        let rows = rows(direction)?.map_err(|()| syntax(takes))?;
        Ok(Self { name, rows, is_move: verb.is("MOVE") })
    }
}

/// How many rows a direction means; an inner error for what is none.
fn rows(direction: &[Token<'_>]) -> Result<Result<Option<u64>, ()>, Failure> {
    let backward = || {
        Failure::new("55000", "cursor can only scan forward")
            .with_hint("declare it once more to read it again")
    };
    let number = |token: &Token<'_>| match token.kind {
        Kind::Number => token.text.parse().map(Some).map_err(|_| ()),
        _ => Err(()),
    };
    Ok(match direction {
        [] => Ok(Some(1)),
        [word] if word.is("NEXT") || word.is("FORWARD") => Ok(Some(1)),
        [word] if word.is("ALL") => Ok(None),
        [word, all] if word.is("FORWARD") && all.is("ALL") => Ok(None),
        [word, count] if word.is("FORWARD") && count.kind == Kind::Number => number(count),
        [word, one] if word.is("RELATIVE") && one.text == "1" => Ok(Some(1)),
        [first, ..]
            if ["PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD"]
                .iter()
                .any(|word| first.is(word)) =>
        {
            return Err(backward());
        }
        [.., minus, _] if minus.kind == Kind::Symbol('-') => return Err(backward()),
        [count] => number(count),
        _ => Err(()),
    })
}

fn missing(name: &str) -> Failure {
    Failure::new("34000", format!("cursor \"{name}\" does not exist"))
}

impl Connection {
    /// Plans, starts and keeps a cursor that takes no values.
    pub(crate) async fn declare(&mut self, sql: &str, declared: &Declared) -> Result<()> {
        self.check_cursor(declared)?;
        let statement = Arc::new(self.plan((declared.query.clone(), declared.before(sql)), &[]).await?);
        let opened = self.open(declared, &statement, None).await;
        self.forget_plan(&statement).await;
        opened
    }

    /// Starts and keeps a cursor over a statement with its values.
    pub(crate) async fn open(
        &mut self,
        declared: &Declared,
        statement: &Arc<Prepared>,
        values: Option<&RecordBatch>,
    ) -> Result<()> {
        self.check_cursor(declared)?;
        let Some(id) = statement.query() else {
            return Err(Failure::new("42601", "DECLARE CURSOR takes a query").into());
        };
        if let Some(values) = values {
            let session = Arc::clone(&self.session);
            self.attend(session.bind(id, vec![values.clone()])).await?;
        }
        let running = self.start(&Request::prepared(id)).await?;
        // What cannot be sent is told now.
        columns(running.schema(), &[Format::Text])?;
        let life = match (declared.hold, self.session.in_transaction()) {
            (false, _) => Life::Transaction,
            (true, true) => Life::Held,
            (true, false) => Life::Kept,
        };
        let state = PortalState::Running(Box::new(running));
        let portal = Portal::cursor(Arc::clone(statement), state, life);
        self.portals.insert(declared.name.clone(), portal);
        backend::complete(self.wire.out(), "DECLARE CURSOR");
        Ok(())
    }

    fn check_cursor(&self, declared: &Declared) -> Result<()> {
        if !declared.hold && !self.is_in_block() {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Failure::new("25P01", message)
                .with_hint("begin one, or declare it WITH HOLD")
                .into());
        }
        if self.portals.contains_key(&declared.name) {
            let message = format!("cursor \"{}\" already exists", declared.name);
            return Err(Failure::new("42P03", message).into());
        }
        if self.portals.len() >= self.server.limits().max_prepared_statements {
            return Err(Failure::new("53400", "too many cursors are open").with_hint("close some").into());
        }
        Ok(())
    }

    /// The columns of the rows that a FETCH will give; `None` for MOVE.
    pub(crate) fn fetched_columns(
        &self,
        fetched: &Fetched,
        formats: &[Format],
    ) -> Result<Option<Vec<backend::Column>>> {
        let portal = self.portals.get(&fetched.name).ok_or_else(|| missing(&fetched.name))?;
        match &portal.state {
            _ if fetched.is_move => Ok(None),
            PortalState::Running(running) => columns(running.schema(), formats).map(Some),
            _ => Ok(None),
        }
    }

    /// Gives the next rows, or leaves them out.
    pub(crate) async fn fetch(
        &mut self,
        fetched: &Fetched,
        formats: &[Format],
        announced: Announced,
    ) -> Result<()> {
        let told = self.fetched_columns(fetched, formats)?;
        // A cursor that fails is gone.
        let Some(mut portal) = self.portals.remove(&fetched.name) else {
            return Err(missing(&fetched.name).into());
        };
        let PortalState::Running(running) = &mut portal.state else {
            return Err(Failure::new("55000", format!("portal \"{}\" cannot be run", fetched.name)).into());
        };
        let rows = match told {
            None => running.skip(&mut self.wire, &self.cancel, fetched.rows).await?,
            Some(told) => {
                if announced == Announced::Now {
                    backend::row_description(self.wire.out(), &told);
                }
                running.read_as(&told);
                match fetched.rows {
                    Some(0) => 0,
                    limit => running.send(&mut self.wire, &self.cancel, limit).await?.0,
                }
            }
        };
        self.portals.insert(fetched.name.clone(), portal);
        let verb = if fetched.is_move { "MOVE" } else { "FETCH" };
        backend::complete(self.wire.out(), &format!("{verb} {rows}"));
        Ok(())
    }

    /// `CLOSE name`, or `CLOSE ALL`
    pub(crate) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.portals.clear(),
            Some(name) => drop(self.portals.remove(name).ok_or_else(|| missing(name))?),
        }
        let tag = if name.is_none() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" };
        backend::complete(self.wire.out(), tag);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_declared_in_many_words() {
        let some = |name: &str, hold, query: &str| {
            Some(Declared { name: name.to_owned(), hold, query: query.to_owned() })
        };
        for (sql, expected) in [
            ("DECLARE c CURSOR FOR select 1", some("c", false, "select 1")),
            ("declare \"C\" no scroll cursor with hold for select 1", some("C", true, "select 1")),
            ("declare c insensitive cursor without hold for values (1)", some("c", false, "values (1)")),
            ("declare @x int", None),
            ("declare", None),
        ] {
            assert_eq!(Declared::parse(sql).unwrap(), expected, "{sql}");
        }
        for sql in
            ["declare c scroll cursor for select 1", "declare c cursor for", "declare c binary cursor for x"]
        {
            assert!(Declared::parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn rows_are_fetched_forward() {
        for (sql, rows) in [
            ("FETCH c", Some(1)),
            ("fetch next from c", Some(1)),
            ("fetch forward c", Some(1)),
            ("fetch forward 5 in c", Some(5)),
            ("fetch 5 c", Some(5)),
            ("fetch all from \"c\"", None),
            ("move forward all in c", None),
        ] {
            let fetched = Fetched::parse(sql).unwrap();
            assert_eq!((fetched.name.as_str(), fetched.rows), ("c", rows), "{sql}");
        }
        for (sql, code) in [
            ("fetch prior from c", "55000"),
            ("fetch -1 from c", "55000"),
            ("fetch absolute 3 c", "55000"),
            ("fetch", "42601"),
            ("fetch some from c", "42601"),
        ] {
            assert_eq!(Fetched::parse(sql).unwrap_err().code, code, "{sql}");
        }
    }
}
