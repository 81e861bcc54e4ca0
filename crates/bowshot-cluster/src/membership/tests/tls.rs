//! Certificates of the cluster's authority, and others.

use super::*;
use crate::membership::{NodeFiles, add_node, init};
use rcgen::{CertificateParams, KeyPair};
use std::fs;
use std::path::Path;

fn node(folder: &Path, name: &str, host: &str) -> NodeFiles {
    add_node(folder, name, &[host.to_owned()]).expect("a node")
}

fn with(files: &NodeFiles, join: &[&str]) -> Settings {
    let security = Security::MutualTls {
        authority: files.authority.clone(),
        certificate: files.certificate.clone(),
        key: files.key.clone(),
    };
    Settings { security, ..settings(join) }
}

#[test]
fn a_node_has_a_name_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    init(folder.path()).expect("an authority");
    node(folder.path(), "one", "127.0.0.1");
    assert!(add_node(folder.path(), "one", &["127.0.0.1".to_owned()]).is_err(), "it is there");
    for bad in ["", "../x", "a/b", ".hidden"] {
        assert!(add_node(folder.path(), bad, &[]).is_err(), "{bad:?}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    init(folder.path()).expect("an authority");
    let one = start(with(&node(folder.path(), "one", "127.0.0.1"), &[])).await;
    let elsewhere = start(with(&node(folder.path(), "three", "192.0.2.1"), &[&address(&one)])).await;
    until(&one, &elsewhere.myself(), Some(State::Suspect)).await;
}

#[tokio::test]
async fn certificates_of_clients_are_no_nodes() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = init(folder.path()).expect("an authority");
    let one = start(with(&node(folder.path(), "one", "127.0.0.1"), &[])).await;
    // The operator lets the same authority sign certificates of clients.
    let (key, authority) =
        (KeyPair::generate().expect("a key"), fs::read_to_string(&files.key).expect("a key"));
    let authority = KeyPair::from_pem(&authority).expect("a key");
    let name = fs::read_to_string(folder.path().join("cluster")).expect("a name");
    let mut issuer = CertificateParams::new(Vec::new()).expect("parameters");
    issuer.distinguished_name = rcgen::DistinguishedName::new();
    issuer.distinguished_name.push(rcgen::DnType::CommonName, name);
    let issuer = rcgen::Issuer::new(issuer, authority);
    let client = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let client = client.signed_by(&key, &issuer).expect("a certificate");
    let (certificate, key_file) = (folder.path().join("client.pem"), folder.path().join("client.key"));
    fs::write(&certificate, client.pem()).expect("written");
    fs::write(&key_file, key.serialize_pem()).expect("written");
    let files = NodeFiles { authority: files.authority, certificate, key: key_file };
    let text = refused(Cluster::start(with(&files, &[&address(&one)])).await);
    assert!(text.contains("node.bowshot-cluster.internal"), "{text}");
    // A program that does not look at its own certificate fares no better.
    let keys = crate::membership::security::unchecked(&files.authority, &files.certificate, &files.key);
    let purpose = crate::membership::security::Purpose::Members;
    assert!(keys.dial(&address(&one), purpose).await.is_err());
}
