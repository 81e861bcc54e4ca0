//! The server under test: the product's engine, session layer and Flight front end on a real socket of this process.
//! Only the engine's configuration is that of the corpus, and each session has a scratch catalog.

use anyhow::{Context, Result};
use bowshot_access::Authenticator;
use bowshot_api::Limits;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_engine::{Engine, EngineConfig, Sources};
use bowshot_session::{Bowshot, QueryLog};
use bowshot_tables::TableStore;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::prelude::SessionConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), bowshot_flight::Error>>,
}

/// Starts a server whose sessions have `session_config`.
pub async fn start(session_config: SessionConfig) -> Result<Server> {
    let config =
        EngineConfig { scratch: true, session_config: Some(session_config), ..EngineConfig::default() };
    let environment = Engine::environment(&config)?;
    let nothing: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
    let tables = TableStore::in_memory(DEFAULT_CATALOG, DEFAULT_SCHEMA, 0);
    let engine = Engine::new(&config, environment, Sources { main: nothing, system: None, tables })?;
    let server =
        Bowshot::new(engine, Authenticator::anonymous(), Limits::default(), Arc::new(QueryLog::default()));
    server.set_ready();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
    };
    let serving = tokio::spawn(bowshot_flight::serve(listener, server, shutdown));
    Ok(Server { address, stop, serving })
}

impl Server {
    /// Where it listens, as clients write it.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets it end.
    pub async fn stop(self) -> Result<()> {
        let _ = self.stop.send(());
        Ok(self.serving.await.context("the server broke down")??)
    }
}
