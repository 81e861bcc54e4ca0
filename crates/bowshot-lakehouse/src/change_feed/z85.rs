//! Z85, the text in which a Delta log has bytes (ZeroMQ RFC 32): five characters for four bytes.

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const CHARACTERS: usize = 5;

/// The bytes of a text; `None` for one that is none.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let characters = text.as_bytes();
    if !characters.len().is_multiple_of(CHARACTERS) {
        return None;
    }
    let mut bytes = Vec::with_capacity(characters.len() / CHARACTERS * 4);
    for five in characters.chunks_exact(CHARACTERS) {
        let mut number = 0_u64;
        for character in five {
            let digit = ALPHABET.iter().position(|known| known == character)?;
            number = number * 85 + digit as u64;
        }
        bytes.extend(u32::try_from(number).ok()?.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn texts_are_those_of_the_specification() {
        let hello = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        assert_eq!(decoded("HelloWorld").unwrap(), hello);
        assert_eq!(decoded("").unwrap(), Vec::<u8>::new());
        assert_eq!(decoded("%nSc0").unwrap(), [0xff; 4]);
        for other in ["Hello World", "Hell", "Hell~", "Hell\"", "ä234", "#####"] {
            assert_eq!(decoded(other), None, "{other}");
        }
    }
}
