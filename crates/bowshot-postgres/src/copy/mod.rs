//! COPY over the connection (PostgreSQL manual, "COPY Operations"): to the client as the rows of a query, from the client as
//! rows that are stored all or none.

mod binary_format;
mod input;
mod output;
mod text_format;

#[cfg(test)]
mod tests;

use crate::connection::Connection;
use crate::frontend_messages::Format;
use crate::status::Result;
use bowshot_api::Request;
use bowshot_sql::postgres::{CopyDirection, CopyForm, CopyOptions, CopyStatement};

impl Connection {
    /// Runs a COPY, to its CommandComplete.
    pub(crate) async fn copy(&mut self, copy: &CopyStatement) -> Result<()> {
        self.is_new = false;
        match &copy.direction {
            CopyDirection::Out(query) => {
                let running = self.start(&Request::sql(query.clone())).await?;
                self.copy_out(running, &copy.options).await
            }
            CopyDirection::In(table) => self.copy_in(table, &copy.options).await,
        }
    }
}

fn value_format(options: &CopyOptions) -> Format {
    if options.form == CopyForm::Binary { Format::Binary } else { Format::Text }
}
