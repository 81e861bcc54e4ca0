//! What can end the front end itself; errors of single requests and connections never do.

/// Why the front end cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listening socket cannot tell its address.
    #[error("the HTTP listener has no address")]
    Listener(#[source] std::io::Error),
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        bowshot_api::Error::internal(error.to_string()).with_source(error)
    }
}
