//! COPY over the connection (PostgreSQL manual, "COPY Operations"): to the client as the rows of a query, from the client as
//! rows that are stored all or none.

mod input;
mod lines;
mod output;
mod parse;
mod tuples;

#[cfg(test)]
mod tests;

pub(crate) use parse::CopyStatement;

use crate::connection::Connection;
use crate::message::Format;
use crate::status::Result;
use bowshot_api::Request;
use parse::Direction;

/// The format of a COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Csv,
    Binary,
}

/// The options of a COPY.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    form: Form,
    delimiter: u8,
    null: String,
    /// Whether the first line has the names of the columns.
    header: bool,
    quote: u8,
    escape: u8,
}

impl Options {
    fn format(&self) -> Format {
        if self.form == Form::Binary { Format::Binary } else { Format::Text }
    }
}

impl Connection {
    /// Runs a COPY, to its CommandComplete.
    pub(crate) async fn copy(&mut self, copy: &CopyStatement) -> Result<()> {
        self.is_new = false;
        match &copy.direction {
            Direction::Out(query) => {
                let running = self.start(&Request::sql(query.clone())).await?;
                self.copy_out(running, &copy.options).await
            }
            Direction::In(table) => self.copy_in(table, &copy.options).await,
        }
    }
}
