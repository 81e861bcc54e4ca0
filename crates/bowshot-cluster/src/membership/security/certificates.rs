//! Certificates of the cluster's own authority, over TLS 1.3. A certificate must be of that authority, and be one of a node:
//! it holds the name [`NODE_NAME`], which certificates of clients do not, even if an operator lets one authority make both.

use super::refuse;
use super::secret::identifier;
use crate::membership::error::{Error, denied};
use crate::membership::stream::Wire;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use uuid::Uuid;

/// The name that every certificate of a node holds beside its own ones.
pub(crate) const NODE_NAME: &str = "node.bowshot-cluster.internal";
/// Says that this is no connection of a client.
const ALPN: &[u8] = b"bowshot-cluster";
/// Bytes of a file, at most.
const LARGEST_FILE: u64 = 1 << 20;

/// What a node needs for both ends of a connection.
pub(crate) struct Certificates {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
    cluster: Uuid,
}

bowshot_api::debug_fields!(Certificates { cluster });

impl Certificates {
    /// Reads the files and refuses those that do not fit one another.
    pub(super) fn load(authority: &Path, certificate: &Path, key: &Path) -> Result<Self, Error> {
        if !certificates(certificate)?.first().is_some_and(is_of_a_node) {
            return Err(Error::file(
                certificate,
                format!("it is not valid for `{NODE_NAME}`, as those of nodes are"),
            ));
        }
        Self::read(authority, certificate, key)
    }

    /// The same, whatever the node's own certificate is for.
    pub(super) fn read(authority: &Path, certificate: &Path, key: &Path) -> Result<Self, Error> {
        let (trusted, chain) = (certificates(authority)?, certificates(certificate)?);
        let mut roots = RootCertStore::empty();
        for root in &trusted {
            roots.add(root.clone()).map_err(|error| Error::file(authority, error))?;
        }
        let cluster = identifier(trusted.first().map_or(&[], |first| first.as_ref()));
        let private = private_key(key)?;
        let (roots, provider) = (Arc::new(roots), Arc::new(default_provider()));
        let server = server(&roots, (&chain, &private), &provider);
        let server = server.map_err(|reason| Error::file(certificate, reason))?;
        let client = client(roots, (&chain, &private), provider);
        let client = client.map_err(|reason| Error::file(certificate, reason))?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: TlsAcceptor::from(Arc::new(server)),
            cluster,
        })
    }

    pub(super) fn cluster(&self) -> Uuid {
        self.cluster
    }

    /// Proves itself to a node, which proves that it is the node of that host.
    pub(super) async fn connect(&self, socket: TcpStream, host: &str) -> io::Result<Wire> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("invalid host `{host}`")))?;
        let stream = self.connector.connect(name, socket).await?;
        check(stream.get_ref().1.peer_certificates())?;
        Ok(Box::new(stream))
    }

    /// The other end of it.
    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<Wire> {
        let stream = self.acceptor.accept(socket).await?;
        let checked = check(stream.get_ref().1.peer_certificates());
        let mut wire: Wire = Box::new(stream);
        if let Err(error) = checked {
            refuse(&mut wire, &error.to_string()).await?;
            return Err(error);
        }
        Ok(wire)
    }
}

type Identity<'a> = (&'a [CertificateDer<'static>], &'a PrivateKeyDer<'static>);

fn server(
    roots: &Arc<RootCertStore>,
    (chain, key): Identity<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<ServerConfig, String> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
        .build()
        .map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.to_vec(), key.clone_key())
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Each connection proves itself anew.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client(
    roots: Arc<RootCertStore>,
    (chain, key): Identity<'_>,
    provider: Arc<CryptoProvider>,
) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain.to_vec(), key.clone_key())
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

fn check(shown: Option<&[CertificateDer<'static>]>) -> io::Result<()> {
    match shown.and_then(<[_]>::first).is_some_and(is_of_a_node) {
        true => Ok(()),
        false => Err(denied("its certificate is not that of a node")),
    }
}

fn is_of_a_node(certificate: &CertificateDer<'static>) -> bool {
    let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(certificate), ServerName::try_from(NODE_NAME))
    else {
        return false;
    };
    verify_server_name(&parsed, &name).is_ok()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.map_err(|error| Error::file(path, error))?;
    if found.is_empty() { Err(Error::file(path, "it has no certificate in PEM format")) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&read(path)?)
        .map_err(|_| Error::file(path, "it has no unencrypted private key in PEM format"))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    file.take(LARGEST_FILE).read_to_end(&mut content).map_err(|error| Error::file(path, error))?;
    Ok(content)
}
