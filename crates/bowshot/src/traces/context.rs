//! Which trace a span belongs to, and whether anybody wants it: names of callers as <https://www.w3.org/TR/trace-context/> has
//! them, new names, and the share of the traces that nobody has decided about.

/// What the spans below a span have to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    /// Whether the trace is sent. What is begun with it is all sent, or all not.
    pub(super) is_sampled: bool,
}

impl Context {
    /// The name of a caller's span: `00-TRACE-SPAN-FLAGS`; later versions may say more behind that.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let ([version], trace, span, [flags]) = (bytes(version)?, bytes(trace)?, bytes(span)?, bytes(flags)?);
        let is_unknown = version == 0xff || version == 0 && parts.next().is_some();
        if is_unknown || trace == [0; 16] || span == [0; 8] {
            return None;
        }
        Some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// A span below this one, of the same trace. `None` if there are no random numbers.
    pub(super) fn child(self) -> Option<Self> {
        Some(Self { span: random()?, ..self })
    }

    /// The first span of a new trace, which is sent if it is in this share of them.
    pub(super) fn root(ratio: f64) -> Option<Self> {
        let trace = random()?;
        Some(Self { trace, span: random()?, is_sampled: is_in(trace, ratio) })
    }
}

/// Hexadecimal text, which must be lower case.
fn bytes<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != LENGTH || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; LENGTH];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Never all zero, which stands for no name.
fn random<const LENGTH: usize>() -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).ok()?;
    (bytes != [0; LENGTH]).then_some(bytes)
}

/// Whether a trace is in this share of all: by its name alone, so that every server with this share takes the same ones.
fn is_in(trace: [u8; 16], ratio: f64) -> bool {
    let [.., a, b, c, d, e, f, g] = trace;
    // The standard wants these to be random: 56 bits.
    let number = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
    ratio >= 1.0 || (number as f64) < ratio * (1_u64 << 56) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn callers_are_named_as_the_standard_says() {
        let found = Context::parse(GOOD).expect("a name");
        assert_eq!(found.trace[..4], [0x4b, 0xf9, 0x2f, 0x35]);
        assert_eq!(found.span, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(found.is_sampled);
        assert!(!Context::parse(&GOOD.replace("-01", "-00")).expect("a name").is_sampled);
        assert!(Context::parse(&GOOD.replace("-01", "-03")).expect("a name").is_sampled);
        assert!(Context::parse(&format!("{}-more", GOOD.replacen("00-", "01-", 1))).is_some());
    }

    #[test]
    fn what_is_no_name_is_none() {
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_share_of_new_traces_is_sent() {
        let sent = |ratio| {
            let of_them = (0..1_000).map(|_| Context::root(ratio).expect("random numbers"));
            of_them.filter(|context| context.is_sampled).count()
        };
        assert_eq!((sent(0.0), sent(1.0)), (0, 1_000));
        assert!((350..650).contains(&sent(0.5)), "that would be eight standard deviations");
    }

    #[test]
    fn children_are_of_the_same_trace() {
        let parent = Context::parse(GOOD).expect("a name");
        let child = parent.child().expect("random numbers");
        assert_eq!((child.trace, child.is_sampled), (parent.trace, true));
        assert_ne!(child.span, parent.span);
    }
}
