//! The file of users: read again when it changes and at SIGHUP.

use crate::config::Config;
use crate::serve::signal::Hangups;
use bowshot_access::AccessConfig;
use bowshot_session::Bowshot;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};

/// How often the file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Follows the file. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct FollowUsers {
    _task: JoinSet<()>,
}

impl FollowUsers {
    /// Follows the file of users from now on. SIGHUP ends no server from now on, whether it has such a file or not.
    pub(crate) fn begin(config: &Config, server: &Arc<Bowshot>) -> Self {
        let (hangups, config) = (Hangups::listen(), Arc::new(config.clone()));
        Self { _task: JoinSet::from_iter([follow(config, Arc::downgrade(server), hangups)]) }
    }
}

/// Looks at the file for ever. What cannot be used is told once and leaves the server with the users that it has.
async fn follow(config: Arc<Config>, server: Weak<Bowshot>, mut hangups: Hangups) {
    let (mut seen, mut told) = (config.access.clone(), None);
    loop {
        hangups.or_after(LOOK_INTERVAL).await;
        let Some(server) = server.upgrade() else { return };
        if config.users_file.is_none() {
            continue;
        }
        let (reading, before) = (Arc::clone(&config), seen.clone());
        let looked = spawn_blocking(move || look(&reading, &before, &server)).await;
        let problem =
            match looked.unwrap_or_else(|error| Err(bowshot_api::Error::internal(error.to_string()))) {
                Ok(None) => None,
                Ok(Some(access)) => {
                    let (users, tokens) = (access.users.len(), access.tokens.len());
                    tracing::info!(users, tokens, "the users were reloaded");
                    seen = access;
                    None
                }
                Err(problem) => Some(problem.to_string()),
            };
        if let Some(problem) = problem.as_ref().filter(|problem| told.as_ref() != Some(*problem)) {
            tracing::error!(%problem, "cannot reload the users; the server keeps the loaded ones");
        }
        told = problem;
    }
}

/// Takes the users over, unless they are those that were seen before.
fn look(config: &Config, seen: &AccessConfig, server: &Bowshot) -> bowshot_api::Result<Option<AccessConfig>> {
    let access = config.read_access()?;
    if access == *seen {
        return Ok(None);
    }
    server.configure_users(access.clone(), Config::users(&access))?;
    Ok(Some(access))
}
