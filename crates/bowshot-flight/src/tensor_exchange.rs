//! The path of a tensor exchange: `room`, its name, and options as `name=value`.

use crate::statement::is_path;
use arrow_flight::FlightDescriptor;
use bowshot_api::{Error, Reduction, Result, TensorExchange};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Default timeout of a round.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest timeout of a round.
const LONGEST_MS: u64 = 60 * 60 * 1000;
const MAX_NAME_CHARS: usize = 128;

/// The exchange that a descriptor describes; `None` for other paths.
///
/// # Errors
/// `Invalid` for options that are not known.
pub(crate) fn parse(descriptor: &FlightDescriptor) -> Result<Option<TensorExchange>> {
    if !is_path(descriptor) {
        return Ok(None);
    }
    let [service, rest @ ..] = descriptor.path.as_slice() else { return Ok(None) };
    if service != "room" {
        return Ok(None);
    }
    let form = |message: String| {
        Error::invalid(message).with_hint(
            "the path is `room`, a name, and options: `members=3`, `minimum=2`, `combine=mean` (sum, weighted_mean), `timeout_ms=60000`, `role=name`",
        )
    };
    let [name, options @ ..] = rest else { return Err(form("the room has no name".to_owned())) };
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(form(format!("the name of a room has 1 to {MAX_NAME_CHARS} characters")));
    }
    let (mut members, mut minimum, mut role) = (None, None, None);
    let (mut combination, mut patience) = (Reduction::Mean, PATIENCE);
    for option in options {
        let count = |text: &str| text.parse::<NonZeroUsize>().ok();
        let read = match option.split_once('=') {
            Some(("members", value)) => count(value).map(|count| members = Some(count)),
            Some(("minimum", value)) => count(value).map(|count| minimum = Some(count)),
            Some(("combine", value)) => combination_of(value).map(|found| combination = found),
            Some(("timeout_ms", value)) => {
                let time = value.parse::<u64>().ok().filter(|time| (1..=LONGEST_MS).contains(time));
                time.map(|time| patience = Duration::from_millis(time))
            }
            Some(("role", value)) => (!value.is_empty()).then(|| role = Some(value.to_owned())),
            _ => None,
        };
        read.ok_or_else(|| form(format!("unknown option `{option}` of a room, or invalid value")))?;
    }
    let members = members.ok_or_else(|| form("the room does not say how many members it has".to_owned()))?;
    let minimum = minimum.unwrap_or(members);
    Ok(Some(TensorExchange { name: name.clone(), role, members, minimum, combination, patience }))
}

fn combination_of(text: &str) -> Option<Reduction> {
    match text {
        "mean" => Some(Reduction::Mean),
        "sum" => Some(Reduction::Sum),
        "weighted_mean" => Some(Reduction::WeightedMean),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &[&str]) -> String {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        match parse(&FlightDescriptor::new_path(path)) {
            Ok(None) => "none".to_owned(),
            Ok(Some(TensorExchange { name, role, members, minimum, combination, patience })) => {
                format!("{name} {role:?} {members} {minimum} {combination:?} {patience:?}")
            }
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn paths_of_every_form() {
        for (path, expected) in [
            (&["score", "m"][..], "none"),
            (&[], "none"),
            (&["room", "r", "members=3"], "r None 3 3 Mean 60s"),
            (
                &["room", "r", "members=3", "minimum=2", "combine=weighted_mean", "timeout_ms=5", "role=x"],
                "r Some(\"x\") 3 2 WeightedMean 5ms",
            ),
            (&["room"], "the room has no name"),
            (&["room", ""], "the name of a room has 1 to 128 characters"),
            (&["room", "r"], "the room does not say how many members it has"),
            (&["room", "r", "members=0"], "unknown option `members=0` of a room, or invalid value"),
            (&["room", "r", "combine=max"], "unknown option `combine=max` of a room, or invalid value"),
            (&["room", "r", "timeout_ms=0"], "unknown option `timeout_ms=0` of a room, or invalid value"),
            (&["room", "r", "x"], "unknown option `x` of a room, or invalid value"),
        ] {
            assert_eq!(told(path), expected, "{path:?}");
        }
    }
}
