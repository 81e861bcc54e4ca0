//! Identifiers that are sent to clients: 128 random bits. Wherever one comes back, it is checked against the caller's
//! principal.

use std::fmt;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// A new identifier from the operating system's randomness.
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// The 16 bytes, for tickets and handles.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The inverse of [`Self::as_bytes`]; `None` for any other length.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                Uuid::from_slice(bytes).ok().map(Self)
            }

            /// Reads the text form (with or without hyphens).
            pub fn parse(text: &str) -> Option<Self> {
                Uuid::try_parse(text).ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id!(
    /// One running or finished query.
    QueryId
);
id!(
    /// One client session.
    SessionId
);
id!(
    /// One prepared statement within a session.
    StatementId
);
id!(
    /// One open transaction of a session.
    TransactionId
);
id!(
    /// A savepoint within an open transaction.
    SavepointId
);
