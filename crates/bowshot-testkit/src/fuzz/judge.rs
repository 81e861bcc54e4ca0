//! Which answers a server may give to nonsense.

use super::call::{Answer, Call, Ending};

/// Codes that would mean that the server did not know what happened to it: UNKNOWN, INTERNAL, DATA_LOSS.
const NEVER: [i32; 3] = [2, 13, 15];

/// The highest code that gRPC knows.
const HIGHEST: i32 = 16;

/// What a case expects of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A gRPC status, always.
    Grpc,
    /// The request is not proper gRPC or HTTP, so HTTP errors and resets are fine too.
    Http,
}

/// Why an answer is wrong; `None` when it may be.
pub fn fault(call: &Call, level: Level, answer: &Answer) -> Option<String> {
    match answer {
        Answer::Unsendable | Answer::Left => None,
        Answer::Hung => Some("no answer within the deadline".to_owned()),
        Answer::Lost(_) if call.ending == Ending::Cut => None,
        Answer::Lost(text) => (level == Level::Grpc).then(|| format!("the connection was lost: {text}")),
        Answer::Reset(reason) => (level == Level::Grpc).then(|| format!("the stream was reset: {reason}")),
        Answer::Http(status) if level == Level::Http => {
            (*status >= 500).then(|| format!("HTTP status {status}"))
        }
        Answer::Http(status) => Some(format!("HTTP status {status} without a gRPC status")),
        Answer::Status { code: 0, .. } => None,
        Answer::Status { code, message } if NEVER.contains(code) || *code > HIGHEST => {
            Some(format!("code {code}: {message}"))
        }
        Answer::Status { code, message } if message.trim().is_empty() => {
            Some(format!("code {code} without a message"))
        }
        Answer::Status { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, fault};
    use crate::fuzz::call::{Answer, Call};

    #[test]
    fn wrong_answers_are_seen() {
        let call = Call::flight("DoGet", &[b"x"]);
        let status = |code, message: &str| Answer::Status { code, message: message.to_owned() };
        for (answer, level, wrong) in [
            (status(0, ""), Level::Grpc, false),
            (status(3, "bad"), Level::Grpc, false),
            (status(3, ""), Level::Grpc, true),
            (status(13, "panicked"), Level::Http, true),
            (status(2, "what"), Level::Grpc, true),
            (status(99, "what"), Level::Grpc, true),
            (Answer::Http(404), Level::Http, false),
            (Answer::Http(404), Level::Grpc, true),
            (Answer::Http(500), Level::Http, true),
            (Answer::Hung, Level::Http, true),
            (Answer::Lost("gone".to_owned()), Level::Grpc, true),
        ] {
            assert_eq!(fault(&call, level, &answer).is_some(), wrong, "{answer:?} {level:?}");
        }
    }
}
