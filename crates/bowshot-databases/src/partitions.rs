//! Where a Flight SQL server says that its rows are, and the same without other places: its driver would go there, and show the token
//! of the caller to whoever it finds. A partition is a message `FlightInfo` with one endpoint, of which the driver needs the ticket.

use crate::fault::Fault;
use crate::place::Place;
use crate::settings::Kind;

/// "fetch the rows over the connection that you have"
const REUSE_CONNECTION: &str = "arrow-flight-reuse-connection://?";
/// Numbers of fields: `FlightInfo.endpoint`, `FlightEndpoint.ticket`, `FlightEndpoint.location`, `Location.uri`.
const ENDPOINT: u64 = 3;
const TICKET: u64 = 1;
const LOCATION: u64 = 2;
const URI: u64 = 1;

/// A partition that is fetched over the connection on which it was asked for.
pub(crate) fn at_its_place(partition: &[u8], place: &Place) -> Result<Vec<u8>, Fault> {
    let unexpected = || Fault::Unexpected("where its rows are is not understood".to_owned());
    let endpoints = values(partition, ENDPOINT).ok_or_else(unexpected)?;
    let [endpoint] = endpoints.as_slice() else { return Err(unexpected()) };
    let tickets = values(endpoint, TICKET).ok_or_else(unexpected)?;
    let [ticket] = tickets.as_slice() else { return Err(unexpected()) };
    let locations = values(endpoint, LOCATION).ok_or_else(unexpected)?;
    let is_here = |location: &&[u8]| {
        let uris = values(location, URI).unwrap_or_default();
        uris.last().is_some_and(|uri| is_of(uri, place))
    };
    if !locations.is_empty() && !locations.iter().any(is_here) {
        return Err(Fault::Unexpected(
            "its rows are on another server, which is not shown the token".to_owned(),
        ));
    }
    let (mut alone, mut whole) = (Vec::new(), Vec::new());
    put(&mut alone, TICKET, ticket);
    put(&mut whole, ENDPOINT, &alone);
    Ok(whole)
}

/// Whether an address means the server itself.
fn is_of(uri: &[u8], place: &Place) -> bool {
    let Ok(uri) = std::str::from_utf8(uri) else { return false };
    let named = Place::parse(Kind::FlightSql, uri, None);
    uri == REUSE_CONNECTION || named.is_ok_and(|named| named.is_within(place))
}

/// The values of a field of a message whose values have a length; `None` for what is no message.
fn values(message: &[u8], wanted: u64) -> Option<Vec<&[u8]>> {
    let (mut rest, mut found) = (message, Vec::new());
    while !rest.is_empty() {
        let (key, after) = number(rest)?;
        let (value, after) = match key & 7 {
            0 => (None, number(after)?.1),
            1 => (None, after.get(8..)?),
            2 => {
                let (length, after) = number(after)?;
                let (value, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
                (Some(value), after)
            }
            5 => (None, after.get(4..)?),
            _ => return None,
        };
        if key >> 3 == wanted {
            found.push(value?);
        }
        rest = after;
    }
    Some(found)
}

/// A number of variable length, and what stands behind it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut shift) = (0_u64, 0_u32);
    for (at, byte) in bytes.iter().enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(at + 1..)?));
        }
        shift += 7;
    }
    None
}

/// Adds a field to a message.
fn put(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    for mut number in [(field << 3) | 2, value.len() as u64] {
        while number >= 0x80 {
            message.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        message.push(number.to_le_bytes()[0]);
    }
    message.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(locations: &[&str]) -> Vec<u8> {
        let (mut endpoint, mut info) = (Vec::new(), Vec::new());
        put(&mut endpoint, TICKET, &[7; 300]);
        for uri in locations {
            let mut location = Vec::new();
            put(&mut location, URI, uri.as_bytes());
            put(&mut endpoint, LOCATION, &location);
        }
        put(&mut info, 1, b"schema");
        put(&mut info, ENDPOINT, &endpoint);
        // The number of rows, which is not known.
        info.extend([32, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        info
    }

    #[test]
    fn rows_are_fetched_from_the_place_alone() {
        let place = Place::parse(Kind::FlightSql, "grpc+tls://far:1", None).unwrap();
        let mut bare = Vec::new();
        let mut endpoint = Vec::new();
        put(&mut endpoint, TICKET, &[7; 300]);
        put(&mut bare, ENDPOINT, &endpoint);
        let here: [&[&str]; 4] =
            [&[], &[REUSE_CONNECTION], &["grpc+tls://far:1"], &["grpc+tcp://other:1", REUSE_CONNECTION]];
        for locations in here {
            assert_eq!(at_its_place(&partition(locations), &place).unwrap(), bare, "{locations:?}");
        }
        let elsewhere: [&[&str]; 4] = [
            &["grpc+tls://other:1"],
            &["grpc+tcp://far:1"],
            &["grpc+tls://far:2", "grpc+unix:///tmp/x"],
            &[""],
        ];
        for locations in elsewhere {
            assert!(at_its_place(&partition(locations), &place).is_err(), "{locations:?}");
        }
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        let place = Place::parse(Kind::FlightSql, "grpc+tls://far:1", None).unwrap();
        let whole = partition(&[]);
        let twice = whole.repeat(2);
        let messages: [&[u8]; 5] = [&[], b"\x0b", &[0xff; 20], &whole[..100], &twice];
        for message in messages {
            assert!(at_its_place(message, &place).is_err(), "{message:?}");
        }
    }
}
