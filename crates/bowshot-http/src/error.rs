//! Errors that stop the front end. Errors of requests and connections never do.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the HTTP listener has no address")]
    Listener(#[source] std::io::Error),
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        bowshot_api::Error::internal(error.to_string()).with_source(error)
    }
}
