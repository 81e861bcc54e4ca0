//! How subcommands connect to a server over Flight SQL: common flags and variables.

use anyhow::Result;
use bowshot_api::Secret;
use bowshot_flight::client::{Client, Error, Identity, Login, Target};
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tonic::Code;

/// How often a server that does not answer is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Where the server is, and who is asking.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// Address of the server: `grpc://HOST:PORT`, `grpc+tls://HOST:PORT` or `HOST:PORT`
    #[arg(long, env = "BOWSHOT_URI", default_value = "grpc://127.0.0.1:50051")]
    uri: String,
    /// User name
    #[arg(long, env = "BOWSHOT_USER", conflicts_with = "token")]
    user: Option<String>,
    /// Password; better given by the environment variable, since other users can see command lines
    #[arg(long, env = "BOWSHOT_PASSWORD", hide_env_values = true, requires = "user")]
    password: Option<String>,
    /// Bearer token instead of user and password
    #[arg(long, env = "BOWSHOT_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Certificates of the authorities to trust (PEM), for a `grpc+tls://` address [default: those of this machine]
    #[arg(long, env = "BOWSHOT_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Certificate that says who is asking (PEM), for a `grpc+tls://` address
    #[arg(long, env = "BOWSHOT_CLIENT_CERTIFICATE", value_name = "FILE", requires = "client_key")]
    client_certificate: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, env = "BOWSHOT_CLIENT_KEY", value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
    /// How long to wait for a server that does not answer yet
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    wait: u64,
}

impl ConnectArgs {
    /// The address, as it was given.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        let identity = self.client_certificate.clone().zip(self.client_key.clone());
        let target = Target {
            uri: self.uri.clone(),
            login: self.login(),
            ca_file: self.ca_file.clone(),
            identity: identity.map(|(certificate, key)| Identity { certificate, key }),
        };
        if self.wait == 0 {
            return Ok(Client::connect(&target).await?);
        }
        let deadline = Instant::now() + Duration::from_secs(self.wait);
        loop {
            match answering(&target).await {
                Err(error) if is_not_there_yet(&error) && Instant::now() < deadline => {
                    sleep(RETRY_INTERVAL).await;
                }
                connected => return Ok(connected?),
            }
        }
    }

    fn login(&self) -> Login {
        match (&self.token, &self.user) {
            (Some(token), _) => Login::Token(Secret::new(token)),
            (None, Some(user)) => Login::Password {
                user: user.clone(),
                password: Secret::new(self.password.clone().unwrap_or_default()),
            },
            (None, None) => Login::Anonymous,
        }
    }
}

/// A connection to a server that runs statements: one that starts takes connections before it does.
async fn answering(target: &Target) -> Result<Client, Error> {
    let client = Client::connect(target).await?;
    client.execute("SELECT 1").await?.cancel().await?;
    Ok(client)
}

fn is_not_there_yet(error: &Error) -> bool {
    match error {
        Error::Connect { .. } => true,
        Error::Server(status) => status.code() == Code::Unavailable,
        _ => false,
    }
}
