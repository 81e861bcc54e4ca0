//! The cluster's certificate authority, made by `bowshot cluster init`; `bowshot cluster add-node` makes certificates of nodes. Nodes do
//! not need the key of the authority.

use crate::membership::error::Error;
use crate::membership::security::NODE_NAME;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(86_400);
/// Validity of the authority in days.
const AUTHORITY_DAYS: u32 = 3_650;
/// Validity of a node's certificate in days.
const NODE_DAYS: u32 = 825;

const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority.key";
const NAME: &str = "cluster";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityFiles {
    /// The authority's certificate.
    pub authority: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFiles {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The node's.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Makes an authority in a folder that has none.
pub fn init(folder: &Path) -> Result<AuthorityFiles, Error> {
    fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    let files = AuthorityFiles { authority: folder.join(AUTHORITY), key: folder.join(AUTHORITY_KEY) };
    let name = format!("bowshot cluster {}", Uuid::new_v4());
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = authority(&name)?.self_signed(&key).map_err(failed)?;
    // The key comes first: if it exists, nothing is changed.
    write(&files.key, &key.serialize_pem(), 0o600)?;
    write(&folder.join(NAME), &name, 0o644)?;
    write(&files.authority, &certificate.pem(), 0o644)?;
    Ok(files)
}

/// Makes the folder of a node, with its key and a certificate for the hosts by which other nodes reach it.
pub fn add_node(folder: &Path, name: &str, hosts: &[String]) -> Result<NodeFiles, Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 60 || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(Error::setting(
            format!("invalid name of a node `{name}`"),
            "use letters, digits, `-`, `_` and `.`",
        ));
    }
    let issuer = issuer(folder)?;
    let place = folder.join(name);
    let files = NodeFiles {
        authority: place.join(AUTHORITY),
        certificate: place.join("node.pem"),
        key: place.join("node.key"),
    };
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = node(name, hosts)?.signed_by(&key, &issuer).map_err(failed)?;
    fs::create_dir_all(&place).map_err(|error| Error::file(&place, error))?;
    write(&files.key, &key.serialize_pem(), 0o600)?;
    write(&files.certificate, &certificate.pem(), 0o644)?;
    write(&files.authority, &read(&folder.join(AUTHORITY))?, 0o644)?;
    Ok(files)
}

fn authority(name: &str) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    lasts(&mut params, AUTHORITY_DAYS);
    Ok(params)
}

fn node(name: &str, hosts: &[String]) -> Result<CertificateParams, Error> {
    let names: Vec<String> = std::iter::once(NODE_NAME.to_owned()).chain(hosts.iter().cloned()).collect();
    let mut params = CertificateParams::new(names).map_err(|error| {
        Error::setting(format!("invalid host of the node: {error}"), "name hosts, not `HOST:PORT`")
    })?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    lasts(&mut params, NODE_DAYS);
    Ok(params)
}

/// Valid from yesterday, since clocks differ.
fn lasts(params: &mut CertificateParams, days: u32) {
    let now = SystemTime::now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + DAY * days).into();
}

/// The authority of a folder, for signing.
fn issuer(folder: &Path) -> Result<Issuer<'static, KeyPair>, Error> {
    let key = KeyPair::from_pem(&read(&folder.join(AUTHORITY_KEY))?)
        .map_err(|error| Error::file(folder.join(AUTHORITY_KEY), error))?;
    Ok(Issuer::new(authority(read(&folder.join(NAME))?.trim())?, key))
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::file(path, error))
}

/// Writes a new file.
fn write(path: &Path, content: &str, mode: u32) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| Error::file(path, error))
}

fn failed(error: rcgen::Error) -> Error {
    Error::Certificates(error.to_string())
}
