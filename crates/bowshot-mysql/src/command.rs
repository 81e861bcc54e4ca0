//! The commands of a client ("Command Phase").

use crate::payload::{Payload, text};
use crate::status::{ConnectionError, Failure};
use bowshot_sql::mysql::without_raw_bytes;
use bytes::Bytes;

/// A command and its arguments.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Quit,
    UseDatabase(String),
    Query(String),
    /// The columns of a table, for clients that complete names.
    FieldList {
        table: String,
    },
    Statistics,
    Ping,
    Kill(u32),
    ChangeUser(Payload),
    ResetConnection,
    /// 0 allows several statements in one text, 1 forbids them.
    SetOption(u16),
    Prepare(String),
    Execute {
        statement: u32,
        cursor: u8,
        rest: Payload,
    },
    LongData {
        statement: u32,
        parameter: u16,
        bytes: Bytes,
    },
    Close(u32),
    Reset(u32),
    Fetch {
        statement: u32,
        rows: u32,
    },
    /// An unknown or unsupported command.
    Other,
}

impl Command {
    /// Parses a command. A malformed one ends the connection; text that is not UTF-8 is an error of the statement.
    pub(crate) fn parse(mut body: Payload) -> Result<Self, ConnectionError> {
        let command = body.byte().map_err(Failure::fatal)?;
        Ok(match command {
            0x01 => Self::Quit,
            0x02 => Self::UseDatabase(body.rest_text()?),
            0x03 => Self::Query(text(&without_raw_bytes(&body.rest()))?),
            0x04 => {
                let table = body.zero_ended().map_err(Failure::fatal)?;
                Self::FieldList { table: text(&table)? }
            }
            0x09 => Self::Statistics,
            0x0c => Self::Kill(body.int().map_err(Failure::fatal)?),
            0x0e => Self::Ping,
            0x11 => Self::ChangeUser(body),
            0x16 => Self::Prepare(text(&without_raw_bytes(&body.rest()))?),
            0x17..=0x1c | 0x1f => Self::of_statement(command, body).map_err(Failure::fatal)?,
            _ => Self::Other,
        })
    }

    fn of_statement(command: u8, mut body: Payload) -> Result<Self, Failure> {
        Ok(match command {
            0x17 => {
                let (statement, cursor) = (body.int()?, body.byte()?);
                // The number of iterations: always one.
                body.int()?;
                Self::Execute { statement, cursor, rest: body }
            }
            0x18 => {
                let (statement, parameter) = (body.int()?, body.short()?);
                Self::LongData { statement, parameter, bytes: body.rest() }
            }
            0x19 => Self::Close(body.int()?),
            0x1a => Self::Reset(body.int()?),
            0x1b => Self::SetOption(body.short()?),
            0x1c => Self::Fetch { statement: body.int()?, rows: body.int()? },
            _ => Self::ResetConnection,
        })
    }
}
