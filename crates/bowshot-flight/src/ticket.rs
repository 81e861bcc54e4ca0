//! Tickets, poll descriptors and commands: bytes that clients send back. They are untrusted until parsed here.
//!
//! ```text
//! ticket of a query    Any(TicketStatementQuery): query id (16) · partition (u32 LE) · compression (u8) · voucher, if any
//! ticket of metadata   the metadata command itself, as Any
//! ticket of one trip   SQL text, or Any of CommandStatementQuery, …SubstraitPlan or CommandPreparedStatementQuery
//! poll descriptor      FF "bowshot.poll" 01 · query id (16) · fraction seen (f64 LE)
//! ```
//!
//! The compression travels in the ticket because it may be redeemed on a connection that knows nothing of the session.

use crate::handles::{PreparedHandle, TransactionHandle};
use arrow_flight::sql::{Any, Command, ProstMessageExt, TicketStatementQuery};
use bowshot_api::{Compression, Error, QueryId, Result, Statement, SubstraitPlan};
use bytes::Bytes;
use prost::Message;

const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
/// Begins with a byte that no UTF-8 text and no protobuf field can begin with.
const POLL_MAGIC: &[u8] = b"\xffbowshot.poll\x01";

/// One partition of a started query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryTicket {
    pub(crate) query: QueryId,
    pub(crate) partition: u32,
    pub(crate) compression: Compression,
    /// The signed ticket of a partition on a cluster node; empty for local ones.
    pub(crate) voucher: Bytes,
}

const LONGEST_VOUCHER: usize = 256;

impl QueryTicket {
    pub(crate) fn encode(self) -> Bytes {
        let mut handle = Vec::with_capacity(21 + self.voucher.len());
        handle.extend_from_slice(self.query.as_bytes());
        handle.extend_from_slice(&self.partition.to_le_bytes());
        handle.push(match self.compression {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
        });
        handle.extend_from_slice(&self.voucher);
        TicketStatementQuery { statement_handle: handle.into() }.as_any().encode_to_vec().into()
    }

    /// Reads the statement handle inside a `TicketStatementQuery`.
    pub(crate) fn decode(handle: &[u8]) -> Result<Self> {
        Self::read(handle).ok_or_else(|| {
            Error::invalid("the ticket was not issued by this server")
                .with_hint("redeem tickets exactly as GetFlightInfo returned them")
        })
    }

    fn read(handle: &[u8]) -> Option<Self> {
        let (query, rest) = handle.split_first_chunk::<16>()?;
        let (partition, rest) = rest.split_first_chunk::<4>()?;
        let (compression, voucher) = rest.split_first()?;
        let compression = match compression {
            0 => Compression::None,
            1 => Compression::Lz4,
            2 => Compression::Zstd,
            _ => return None,
        };
        let query = QueryId::from_slice(query)?;
        let voucher = Bytes::copy_from_slice(voucher);
        let is_short = voucher.len() <= LONGEST_VOUCHER;
        is_short.then(|| Self { query, partition: u32::from_le_bytes(*partition), compression, voucher })
    }
}

/// A poll descriptor: the query and the progress seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PollTicket {
    pub(crate) query: QueryId,
    pub(crate) seen: f64,
}

impl PollTicket {
    /// The command bytes of the retry descriptor.
    pub(crate) fn encode(self) -> Bytes {
        [POLL_MAGIC, self.query.as_bytes(), &self.seen.to_le_bytes()].concat().into()
    }

    /// Reads a retry descriptor; `None` if the bytes are another command.
    pub(crate) fn decode(command: &[u8]) -> Option<Result<Self>> {
        let body = command.strip_prefix(POLL_MAGIC)?;
        Some(Self::read(body).ok_or_else(|| {
            Error::invalid("the poll descriptor was not issued by this server")
                .with_hint("send PollInfo.flight_descriptor exactly as it was returned")
        }))
    }

    fn read(body: &[u8]) -> Option<Self> {
        let (query, seen) = body.split_first_chunk::<16>()?;
        let seen = f64::from_le_bytes(seen.try_into().ok()?);
        let seen = if seen.is_finite() { seen.clamp(0.0, 1.0) } else { return None };
        Some(Self { query: QueryId::from_slice(query)?, seen })
    }
}

/// A parsed command or ticket.
#[derive(Debug)]
pub(crate) enum TicketPayload {
    /// A statement in the session of its transaction, else in the caller's.
    Statement(Statement, Option<TransactionHandle>),
    /// A prepared statement, which names its own session.
    Prepared(PreparedHandle),
    /// A partition of a query that runs already.
    Query(QueryTicket),
    /// Any other Flight SQL command.
    Command(Command),
}

impl TicketPayload {
    /// Reads command or ticket bytes: a Flight SQL command in a protobuf `Any`, or plain SQL text.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Some(any) = any(bytes) else { return Self::text(bytes) };
        Ok(match command(any)? {
            Command::CommandStatementQuery(query) => {
                let transaction = TransactionHandle::from_command(query.transaction_id.as_ref())?;
                Self::Statement(Statement::Sql(query.query), transaction)
            }
            Command::CommandStatementSubstraitPlan(query) => {
                let transaction = TransactionHandle::from_command(query.transaction_id.as_ref())?;
                Self::Statement(Statement::Substrait(substrait(query.plan)?), transaction)
            }
            Command::CommandPreparedStatementQuery(query) => {
                Self::Prepared(PreparedHandle::decode(&query.prepared_statement_handle)?)
            }
            Command::TicketStatementQuery(ticket) => {
                Self::Query(QueryTicket::decode(&ticket.statement_handle)?)
            }
            other => Self::Command(other),
        })
    }

    fn text(bytes: &[u8]) -> Result<Self> {
        match Statement::from_bytes(bytes)? {
            Statement::Sql(text) if text.trim().is_empty() => Err(Error::invalid("the command is empty")
                .with_hint("send SQL text, or a Flight SQL command wrapped in google.protobuf.Any")),
            statement => Ok(Self::Statement(statement, None)),
        }
    }
}

pub(crate) fn substrait(plan: Option<arrow_flight::sql::SubstraitPlan>) -> Result<SubstraitPlan> {
    let plan = plan.ok_or_else(|| Error::invalid("the command has no plan").with_hint("set `plan`"))?;
    Ok(SubstraitPlan { plan: plan.plan.into(), version: plan.version })
}

/// Parses `Any`; `None` for other bytes, such as SQL text.
pub(crate) fn any(bytes: &[u8]) -> Option<Any> {
    Any::decode(bytes).ok().filter(|any| any.type_url.starts_with(TYPE_URL_PREFIX))
}

pub(crate) fn command(any: Any) -> Result<Command> {
    let url = any.type_url.clone();
    match Command::try_from(any) {
        Ok(Command::Unknown(_)) => Err(Error::unsupported(format!("unknown command `{url}`"))
            .with_hint("send one of the commands of the Flight SQL protocol")),
        Ok(command) => Ok(command),
        Err(error) => Err(Error::invalid(format!("malformed command `{url}`")).with_source(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_flight::sql::{
        CommandGetTables, CommandPreparedStatementQuery, CommandStatementQuery, CommandStatementSubstraitPlan,
    };
    use bowshot_api::ErrorKind;

    fn read(bytes: &[u8]) -> String {
        match TicketPayload::decode(bytes) {
            Ok(TicketPayload::Statement(Statement::Sql(text), None)) => format!("sql {text}"),
            Ok(TicketPayload::Statement(Statement::Sql(text), Some(_))) => {
                format!("sql {text} in a transaction")
            }
            Ok(TicketPayload::Statement(statement, transaction)) => {
                format!("{statement:?}, in a transaction: {}", transaction.is_some())
            }
            Ok(TicketPayload::Prepared(_)) => "prepared".to_owned(),
            Ok(TicketPayload::Query(ticket)) => format!("partition {}", ticket.partition),
            Ok(TicketPayload::Command(command)) => command.type_url().rsplit('.').next().unwrap().to_owned(),
            Err(error) => format!("{:?}: {}", error.kind(), error.message()),
        }
    }

    fn any(message: &impl ProstMessageExt) -> Vec<u8> {
        message.as_any().encode_to_vec()
    }

    #[test]
    fn query_tickets_come_back() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            for voucher in [Bytes::new(), Bytes::from_static(&[7; 120])] {
                let query = QueryId::random();
                let ticket = QueryTicket { query, partition: 0x0102_0304, compression, voucher };
                let Ok(TicketPayload::Query(read)) = TicketPayload::decode(&ticket.clone().encode()) else {
                    panic!()
                };
                assert_eq!(read, ticket);
            }
        }
    }

    #[test]
    fn poll_descriptors_come_back() {
        let poll = PollTicket { query: QueryId::random(), seen: 0.25 };
        assert_eq!(PollTicket::decode(&poll.encode()).unwrap().unwrap(), poll);
    }

    #[test]
    fn orders_of_every_form() {
        let query = |text: &str, transaction: Option<&'static [u8]>| CommandStatementQuery {
            query: text.to_owned(),
            transaction_id: transaction.map(Bytes::from_static),
        };
        let plan = |transaction: Option<&'static [u8]>| CommandStatementSubstraitPlan {
            plan: Some(arrow_flight::sql::SubstraitPlan {
                plan: Bytes::from_static(&[1]),
                version: "v".to_owned(),
            }),
            transaction_id: transaction.map(Bytes::from_static),
        };
        let prepared = |handle: &'static [u8]| CommandPreparedStatementQuery {
            prepared_statement_handle: Bytes::from_static(handle),
        };
        for (bytes, expected) in [
            (b"SELECT 1".to_vec(), "sql SELECT 1"),
            (any(&query("SELECT 2", None)), "sql SELECT 2"),
            (any(&query("SELECT 2", Some(b""))), "sql SELECT 2"),
            (
                any(&query("SELECT 2", Some(&[7; 17]))),
                "Invalid: the transaction id was not issued by this server",
            ),
            (any(&query("SELECT 2", Some(&[7; 32]))), "sql SELECT 2 in a transaction"),
            (
                any(&plan(None)),
                "Substrait(SubstraitPlan { plan: [1], version: \"v\" }), in a transaction: false",
            ),
            (
                any(&plan(Some(&[7; 32]))),
                "Substrait(SubstraitPlan { plan: [1], version: \"v\" }), in a transaction: true",
            ),
            (any(&CommandStatementSubstraitPlan::default()), "Invalid: the command has no plan"),
            (any(&prepared(&[7; 32])), "prepared"),
            (any(&CommandGetTables::default()), "CommandGetTables"),
        ] {
            assert_eq!(read(&bytes), expected);
        }
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let wrapped = |url: &str, value: &'static [u8]| {
            Any { type_url: url.to_owned(), value: Bytes::from_static(value) }.encode_to_vec()
        };
        let handle = |handle: Vec<u8>| any(&TicketStatementQuery { statement_handle: handle.into() });
        let foreign = "Invalid: the ticket was not issued by this server";
        let stale = any(&CommandPreparedStatementQuery { prepared_statement_handle: vec![1; 31].into() });
        for (bytes, expected) in [
            (vec![], "Invalid: the command is empty"),
            (b" \n".to_vec(), "Invalid: the command is empty"),
            (vec![0xff, 0xfe], "Invalid: the statement is not UTF-8 text"),
            (handle(vec![]), foreign),
            (handle(vec![1; 20]), foreign),
            (handle(vec![9; 21]), foreign),
            (handle(vec![0; 22 + LONGEST_VOUCHER]), foreign),
            (stale, "Invalid: the prepared statement handle was not issued by this server"),
            (
                wrapped("type.googleapis.com/google.protobuf.Empty", b""),
                "Unsupported: unknown command `type.googleapis.com/google.protobuf.Empty`",
            ),
            (
                wrapped("type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery", b"\xff"),
                "Invalid: malformed command `type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery`",
            ),
        ] {
            assert_eq!(read(&bytes), expected, "{bytes:?}");
        }
        for seen in [f64::NAN, f64::INFINITY] {
            let poll = PollTicket { query: QueryId::random(), seen }.encode();
            assert_eq!(PollTicket::decode(&poll).unwrap().unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert!(PollTicket::decode(POLL_MAGIC).unwrap().is_err());
        assert!(PollTicket::decode(b"SELECT 1").is_none());
    }
}
