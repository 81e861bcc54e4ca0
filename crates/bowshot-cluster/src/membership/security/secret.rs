//! A secret that all nodes of one machine share: each end proves it by a keyed hash over two random numbers, the caller first. Neither the
//! secret nor anything that could be replayed crosses the connection.

use crate::membership::error::denied;
use crate::membership::frame::{read_line, write_line};
use crate::membership::stream::Wire;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::rand;
use bowshot_api::Secret;
use std::fmt::Write as _;
use std::io;
use tokio::net::TcpStream;
use uuid::Uuid;

const HELLO: &str = "bowshot-cluster/1 secret";
const GOOD: &str = "ok";
/// Bytes of a fresh number, and of a proof.
const LENGTH: usize = 32;

/// The secret as a key.
#[derive(Debug)]
pub(crate) struct SharedKey {
    key: Key,
    cluster: Uuid,
}

/// Who proves: without it, what one end says could be given back to it as the other's proof.
#[derive(Clone, Copy)]
enum Side {
    Caller,
    Called,
}

impl SharedKey {
    pub(super) fn new(secret: &Secret) -> Self {
        let key = Key::new(HMAC_SHA256, secret.expose().as_bytes());
        let tag = hmac::sign(&key, b"identifier of the cluster");
        Self { key, cluster: identifier(tag.as_ref()) }
    }

    /// Another key that is made of the secret: no proof of a node is a signature.
    pub(super) fn for_signatures(&self) -> Key {
        Key::new(HMAC_SHA256, hmac::sign(&self.key, b"key of signatures").as_ref())
    }

    pub(super) fn cluster(&self) -> Uuid {
        self.cluster
    }

    /// Proves to the other end that this one has the secret, then lets it do the same.
    pub(super) async fn connect(&self, mut socket: TcpStream) -> io::Result<Wire> {
        only_this_machine(&socket)?;
        let mine = fresh()?;
        write_line(&mut socket, &format!("{HELLO} {}", hex(&mine))).await?;
        let theirs = bytes(&read_line(&mut socket).await?)?;
        write_line(&mut socket, &hex(&self.proof(Side::Caller, &mine, &theirs))).await?;
        let answer = read_line(&mut socket).await?;
        let proof = answer.strip_prefix(GOOD).map(str::trim_start).map(bytes).transpose()?;
        match proof {
            Some(proof) if self.holds(Side::Called, (&mine, &theirs), &proof) => Ok(Box::new(socket)),
            _ => Err(denied("the node there has another secret")),
        }
    }

    /// The other end of it.
    pub(super) async fn accept(&self, mut socket: TcpStream) -> io::Result<Wire> {
        only_this_machine(&socket)?;
        let hello = read_line(&mut socket).await?;
        let theirs = hello.strip_prefix(HELLO).map(str::trim_start);
        let theirs = bytes(theirs.ok_or_else(|| denied("invalid greeting of a node"))?)?;
        let mine = fresh()?;
        write_line(&mut socket, &hex(&mine)).await?;
        let proof = bytes(&read_line(&mut socket).await?)?;
        if !self.holds(Side::Caller, (&theirs, &mine), &proof) {
            write_line(&mut socket, "no").await?;
            return Err(denied("it has another secret"));
        }
        write_line(&mut socket, &format!("{GOOD} {}", hex(&self.proof(Side::Called, &theirs, &mine))))
            .await?;
        Ok(Box::new(socket))
    }

    fn proof(&self, side: Side, caller: &[u8; LENGTH], called: &[u8; LENGTH]) -> Vec<u8> {
        hmac::sign(&self.key, &signed(side, caller, called)).as_ref().to_vec()
    }

    /// Compares in constant time.
    fn holds(&self, side: Side, numbers: (&[u8; LENGTH], &[u8; LENGTH]), proof: &[u8; LENGTH]) -> bool {
        hmac::verify(&self.key, &signed(side, numbers.0, numbers.1), proof).is_ok()
    }
}

fn signed(side: Side, caller: &[u8; LENGTH], called: &[u8; LENGTH]) -> Vec<u8> {
    let label: &[u8] = match side {
        Side::Caller => b"the node that calls:",
        Side::Called => b"the node that is called:",
    };
    [label, caller, called].concat()
}

/// Refuses a connection over which others could listen.
fn only_this_machine(socket: &TcpStream) -> io::Result<()> {
    match socket.peer_addr()?.ip().to_canonical().is_loopback() {
        true => Ok(()),
        false => Err(denied("a shared secret is only for nodes on this machine")),
    }
}

fn fresh() -> io::Result<[u8; LENGTH]> {
    let mut number = [0; LENGTH];
    rand::fill(&mut number).map_err(|_| io::Error::other("cannot get random numbers"))?;
    Ok(number)
}

/// The first bytes of a hash as an identifier.
pub(super) fn identifier(bytes: &[u8]) -> Uuid {
    let hash = digest(&SHA256, bytes);
    let mut id = [0; 16];
    id.iter_mut().zip(hash.as_ref()).for_each(|(to, from)| *to = *from);
    uuid::Builder::from_custom_bytes(id).into_uuid()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> io::Result<[u8; LENGTH]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| denied("invalid message of a node with a secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_side_and_these_numbers() {
        let key = SharedKey::new(&Secret::new("a secret of some length"));
        let (one, two) = ([1; LENGTH], [2; LENGTH]);
        let proof: [u8; LENGTH] = key.proof(Side::Caller, &one, &two).try_into().expect("32 bytes");
        assert!(key.holds(Side::Caller, (&one, &two), &proof));
        assert!(!key.holds(Side::Called, (&one, &two), &proof));
        assert!(!key.holds(Side::Caller, (&two, &one), &proof));
        let other = SharedKey::new(&Secret::new("another secret of some length"));
        assert!(!other.holds(Side::Caller, (&one, &two), &proof));
        assert_ne!(key.cluster(), other.cluster());
        assert_eq!(key.cluster(), SharedKey::new(&Secret::new("a secret of some length")).cluster());
    }

    #[test]
    fn hexadecimal_digits_read_back() {
        let number = fresh().expect("random numbers");
        assert_eq!(bytes(&hex(&number)).expect("digits"), number);
        for bad in ["", "0", "zz", &"0".repeat(62), &"0".repeat(66), &"é".repeat(32)] {
            assert!(bytes(bad).is_err(), "{bad:?}");
        }
    }
}
