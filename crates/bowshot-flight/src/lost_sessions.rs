//! Sessions with changed state that were closed with their connection. A client that reconnects silently, as gRPC
//! does, must get an error: its next INSERT would go to the default schema.

use bowshot_api::{Error, OptionValue, Principal, Result, Session};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Lost sessions that are remembered, and for how long.
const REMEMBERED: usize = 1_024;
const REMEMBERED_FOR: Duration = Duration::from_secs(3_600);
/// How long after its start the server assumes that clients have not noticed the restart.
const AFTER_START: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct LostSessions {
    started: Instant,
    lost: Mutex<VecDeque<Lost>>,
}

#[derive(Debug)]
struct Lost {
    principal: Principal,
    address: IpAddr,
    at: Instant,
}

impl Default for LostSessions {
    fn default() -> Self {
        Self { started: Instant::now(), lost: Mutex::default() }
    }
}

impl LostSessions {
    /// Remembers a session that ends, if its options are others than those that it began with.
    pub(crate) fn note(
        &self,
        session: &dyn Session,
        opened_with: &[(String, OptionValue)],
        (principal, address): (Principal, IpAddr),
    ) {
        if session.options() == opened_with {
            return;
        }
        let mut lost = self.lost.lock();
        if lost.len() >= REMEMBERED {
            lost.pop_front();
        }
        lost.push_back(Lost { principal, address, at: Instant::now() });
    }

    /// Refuses the first statement of a client that has connected again.
    ///
    /// # Errors
    /// `NotFound` where a session of such a client is lost, or the server may have been started again under it.
    pub(crate) fn check(&self, principal: &Principal, address: IpAddr) -> Result<()> {
        let mut lost = self.lost.lock();
        lost.retain(|session| session.at.elapsed() < REMEMBERED_FOR);
        let own =
            lost.iter().position(|session| session.principal == *principal && session.address == address);
        match own {
            Some(own) => drop(lost.remove(own)),
            None if self.started.elapsed() < AFTER_START => {}
            None => return Ok(()),
        }
        Err(Error::not_found(
            "session not found: it ended with its connection, and with it its `USE`, options and temporary tables",
        )
        .with_hint(
            "the statement was not run; send it again to begin with the defaults, with `USE` before it or with full names of tables. Sessions outlive connections with `adbc.flight.sql.rpc.with_cookie_middleware = true`, or a user name and a password",
        ))
    }
}
