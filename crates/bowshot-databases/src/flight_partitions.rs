//! Partitions of a Flight SQL result, bound to the server that was asked: the driver would send the token of the caller to any other
//! location that the server names. A partition is a message `FlightInfo` with one endpoint, of which the driver needs the ticket.

use crate::error::DatabaseError;
use crate::kind::Kind;
use crate::location::Location;
use prost::Message;

/// The location of rows that are fetched over the same connection.
const REUSE_CONNECTION: &str = "arrow-flight-reuse-connection://?";

/// The fields that are read of Flight's messages; tickets and locations stay as they are encoded.
#[derive(Message)]
struct FlightInfo {
    #[prost(message, repeated, tag = "3")]
    endpoints: Vec<FlightEndpoint>,
}

#[derive(Message)]
struct FlightEndpoint {
    #[prost(bytes = "vec", optional, tag = "1")]
    ticket: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    locations: Vec<FlightLocation>,
}

#[derive(Message)]
struct FlightLocation {
    #[prost(string, tag = "1")]
    uri: String,
}

/// A partition that is fetched over the connection on which it was asked for.
pub(crate) fn pin_to_server(partition: &[u8], server: &Location) -> Result<Vec<u8>, DatabaseError> {
    let unexpected = || DatabaseError::Unexpected("invalid location of its rows".to_owned());
    let mut info = FlightInfo::decode(partition).map_err(|_| unexpected())?;
    let [endpoint] = info.endpoints.as_mut_slice() else { return Err(unexpected()) };
    if endpoint.ticket.is_none() {
        return Err(unexpected());
    }
    let locations = std::mem::take(&mut endpoint.locations);
    if !locations.is_empty() && !locations.iter().any(|location| is_server(&location.uri, server)) {
        return Err(DatabaseError::Unexpected(
            "its rows are on another server, to which the token is not sent".to_owned(),
        ));
    }
    Ok(info.encode_to_vec())
}

/// Whether an address means the server itself.
fn is_server(uri: &str, server: &Location) -> bool {
    let named = Location::parse(Kind::FlightSql, uri, None);
    uri == REUSE_CONNECTION || named.is_ok_and(|named| named.is_within(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(locations: &[&str]) -> Vec<u8> {
        let locations = locations.iter().map(|uri| FlightLocation { uri: (*uri).to_owned() }).collect();
        let endpoint = FlightEndpoint { ticket: Some(vec![7; 300]), locations };
        let mut info = FlightInfo { endpoints: vec![endpoint] }.encode_to_vec();
        // The number of rows, which is not known.
        info.extend([32, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        info
    }

    #[test]
    fn rows_are_fetched_from_the_server_alone() {
        let server = Location::parse(Kind::FlightSql, "grpc+tls://far:1", None).unwrap();
        let endpoint = FlightEndpoint { ticket: Some(vec![7; 300]), locations: Vec::new() };
        let bare = FlightInfo { endpoints: vec![endpoint] }.encode_to_vec();
        let same: [&[&str]; 4] =
            [&[], &[REUSE_CONNECTION], &["grpc+tls://far:1"], &["grpc+tcp://other:1", REUSE_CONNECTION]];
        for locations in same {
            assert_eq!(pin_to_server(&partition(locations), &server).unwrap(), bare, "{locations:?}");
        }
        let other: [&[&str]; 4] = [
            &["grpc+tls://other:1"],
            &["grpc+tcp://far:1"],
            &["grpc+tls://far:2", "grpc+unix:///tmp/x"],
            &[""],
        ];
        for locations in other {
            assert!(pin_to_server(&partition(locations), &server).is_err(), "{locations:?}");
        }
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        let server = Location::parse(Kind::FlightSql, "grpc+tls://far:1", None).unwrap();
        let whole = partition(&[]);
        let twice = whole.repeat(2);
        let messages: [&[u8]; 5] = [&[], b"\x0b", &[0xff; 20], &whole[..100], &twice];
        for message in messages {
            assert!(pin_to_server(message, &server).is_err(), "{message:?}");
        }
    }
}
