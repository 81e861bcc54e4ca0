//! The settings of `[same_host]`, and which of them mean something together.

use crate::usage::Usage;

bowshot_api::defaults! {
    /// The socket over which clients on this machine get and send rows in shared memory.
    #[derive(Debug, Clone)]
    pub(crate) struct SameHostSettings {
        pub(super) socket: String = "auto".to_owned(),
        /// Bytes that one connection may have mapped.
        pub(crate) connection_bytes: u64 = 1 << 30,
        /// Bytes that one user of the server may have mapped.
        pub(crate) user_bytes: u64 = 2 << 30,
        /// Bytes that all may have mapped.
        pub(crate) total_bytes: u64 = 4 << 30,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LocalSocket {
    Off,
    /// Where the server finds a place, if it serves this machine alone.
    Auto,
    /// There.
    At(String),
}

impl SameHostSettings {
    pub(crate) fn place(&self) -> Result<LocalSocket, Usage> {
        match self.socket.as_str() {
            "none" => Ok(LocalSocket::Off),
            "auto" => Ok(LocalSocket::Auto),
            "" => Err(Usage::new("`same_host.socket` is empty").with_hint("it is `auto`, `none` or a path")),
            path => Ok(LocalSocket::At(path.to_owned())),
        }
    }

    /// Whether the settings mean something, beside certificates that are required or not.
    pub(super) fn check(&self, certificates_required: bool) -> Result<(), Usage> {
        if matches!(self.place()?, LocalSocket::At(_)) && certificates_required {
            // Nobody shows a certificate there.
            return Err(Usage::new(
                "`tls.client_certificates` is `required`, and connections of the socket have no certificates",
            )
            .with_hint("remove `same_host.socket`, or set `tls.client_certificates` to `optional`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_known_are_refused() {
        let default = SameHostSettings::default();
        assert_eq!(default.place().expect("a place"), LocalSocket::Auto);
        assert!(default.check(true).is_ok());
        let named =
            |socket: &str| SameHostSettings { socket: socket.to_owned(), ..SameHostSettings::default() };
        assert!(named("").check(false).is_err());
        assert!(named("/run/x.sock").check(false).is_ok());
        assert!(named("/run/x.sock").check(true).is_err());
    }
}
