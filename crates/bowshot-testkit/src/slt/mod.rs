//! DataFusion's SQL test corpus, each file run twice: by plain DataFusion in process ([`local`]), and through the whole server ([`server`],
//! [`wire`]). Differences are ours.

pub mod corpus;
pub mod local;
pub mod pair;
pub mod report;
pub mod server;
pub mod wire;
