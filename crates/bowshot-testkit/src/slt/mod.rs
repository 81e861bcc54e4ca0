//! DataFusion's own SQL test corpus, each file run twice: in process with plain DataFusion, and through the whole
//! server (engine, session, Flight front end, real sockets). What differs is ours.
//!
//! [`corpus`] finds the files and says which ones run; [`pair`] runs one file on both sides and compares record by
//! record; [`local`] and [`wire`] are the two sides; [`server`] is the server under test; [`report`] counts.

pub mod corpus;
pub mod local;
pub mod pair;
pub mod report;
pub mod server;
pub mod wire;
