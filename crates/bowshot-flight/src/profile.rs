//! Choices that the protocol leaves to servers. The default suits every released client; embedders may choose
//! otherwise.

use crate::actions;
use crate::caller::Caller;
use arrow_flight::{Action, ActionType, FlightDescriptor, FlightInfo, Location};
use bowshot_api::{Error, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName};

/// The location for "the same connection".
pub(crate) const REUSE_CONNECTION: &str = "arrow-flight-reuse-connection://?";

/// Choices that the protocol leaves to the server.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Offered actions; others are `UNIMPLEMENTED`. `None` for all.
    pub actions: Option<Vec<String>>,
    /// Answer to an action without a name.
    pub unnamed_action: UnnamedAction,
    /// Locations of endpoints on this connection.
    pub locations: Locations,
    /// Content of `app_metadata` in FlightInfo.
    pub app_metadata: AppMetadata,
    /// Request headers to echo, such as correlation ids.
    pub echoed_headers: Vec<HeaderName>,
    /// Form of transaction and savepoint ids.
    pub ids: Ids,
}

/// What an action without a name answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnnamedAction {
    /// An error.
    #[default]
    Refused,
    /// The caller's name, so that a client can try its credentials.
    CallerName,
}

/// How endpoints say that they are read over the client's own connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Locations {
    /// By no location at all, which every client understands.
    #[default]
    Empty,
    /// The location defined for it.
    ReuseConnection,
}

/// What `app_metadata` of a FlightInfo holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppMetadata {
    #[default]
    QueryId,
    /// The command of the descriptor, also on endpoints, so that they can be identified.
    Command,
}

/// What the ids of transactions and savepoints say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ids {
    /// The session too, so that they work over every connection of their client.
    #[default]
    WithSession,
    /// The session's own id, at most 16 bytes, valid in the session of the call.
    Bare,
}

impl Profile {
    /// Fits a FlightInfo that is about to go out.
    pub(crate) fn fit(&self, mut info: FlightInfo, descriptor: &FlightDescriptor) -> FlightInfo {
        for endpoint in &mut info.endpoint {
            match self.locations {
                Locations::Empty => {}
                Locations::ReuseConnection => {
                    endpoint.location = vec![Location { uri: REUSE_CONNECTION.to_owned() }];
                }
            }
            if self.app_metadata == AppMetadata::Command {
                endpoint.app_metadata = descriptor.cmd.clone();
            }
        }
        if self.app_metadata == AppMetadata::Command {
            info.app_metadata = descriptor.cmd.clone();
        }
        info
    }

    /// The actions that ListActions names.
    pub(crate) fn actions(&self) -> Vec<ActionType> {
        actions::list().into_iter().filter(|action| self.offers(&action.r#type)).collect()
    }

    pub(crate) async fn run(&self, caller: &Caller, action: &Action) -> Result<Option<Bytes>> {
        if action.r#type.is_empty() && self.unnamed_action == UnnamedAction::CallerName {
            return Ok(Some(Bytes::from(caller.principal().name.clone())));
        }
        if !self.offers(&action.r#type) {
            return Err(Error::unsupported("this action is not offered")
                .with_hint("ListActions names the actions of this server"));
        }
        actions::run(caller, action).await
    }

    pub(crate) fn echo(&self, request: &HeaderMap) -> HeaderMap {
        let echoed = self.echoed_headers.iter();
        echoed.filter_map(|name| Some((name.clone(), request.get(name)?.clone()))).collect()
    }

    fn offers(&self, name: &str) -> bool {
        self.actions.as_ref().is_none_or(|offered| offered.iter().any(|action| action == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_flight::FlightEndpoint;

    #[test]
    fn the_default_changes_nothing() {
        let info = FlightInfo { endpoint: vec![FlightEndpoint::default()], ..FlightInfo::default() };
        let descriptor = FlightDescriptor::new_cmd("SELECT 1");
        assert_eq!(Profile::default().fit(info.clone(), &descriptor), info);
        assert_eq!(Profile::default().actions(), actions::list());
        assert!(
            Profile::default()
                .echo(&HeaderMap::from_iter([(http::header::VIA, "x".parse().unwrap())]))
                .is_empty()
        );
    }

    #[test]
    fn chosen_freedoms_show() {
        let profile = Profile {
            actions: Some(vec!["CloseSession".to_owned()]),
            locations: Locations::ReuseConnection,
            app_metadata: AppMetadata::Command,
            echoed_headers: vec![http::header::VIA],
            ..Profile::default()
        };
        let info = FlightInfo { endpoint: vec![FlightEndpoint::default()], ..FlightInfo::default() };
        let info = profile.fit(info, &FlightDescriptor::new_cmd("a"));
        assert_eq!(info.app_metadata, "a");
        assert_eq!(info.endpoint[0].app_metadata, "a");
        assert_eq!(info.endpoint[0].location[0].uri, REUSE_CONNECTION);
        assert_eq!(profile.actions().len(), 1);
        let request = HeaderMap::from_iter([
            (http::header::VIA, "x".parse().unwrap()),
            (http::header::HOST, "y".parse().unwrap()),
        ]);
        assert_eq!(profile.echo(&request).len(), 1);
    }
}
