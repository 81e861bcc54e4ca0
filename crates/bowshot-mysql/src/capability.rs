//! Capabilities of both ends ("Capabilities Flags"), and the state of a session in each answer ("SERVER_STATUS").

/// The result of an UPDATE counts rows found, not rows changed.
pub(crate) const FOUND_ROWS: u32 = 1 << 1;
const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
/// The first message names a database.
pub(crate) const CONNECT_WITH_DB: u32 = 1 << 3;
/// Packets are compressed by zlib after the login.
pub(crate) const COMPRESS: u32 = 1 << 5;
/// `LOAD DATA LOCAL` may ask for a file.
pub(crate) const LOCAL_FILES: u32 = 1 << 7;
const IGNORE_SPACE: u32 = 1 << 8;
pub(crate) const PROTOCOL_41: u32 = 1 << 9;
const INTERACTIVE: u32 = 1 << 10;
/// Encryption.
pub(crate) const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
/// Several statements in one text.
pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
const MULTI_RESULTS: u32 = 1 << 17;
const PS_MULTI_RESULTS: u32 = 1 << 18;
/// The handshake response names its authentication plugin.
pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
pub(crate) const CONNECT_ATTRS: u32 = 1 << 20;
/// The length of the scramble is a length-encoded integer.
pub(crate) const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// Results end with an OK packet, without EOF packets after columns and rows.
pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;

/// As [`COMPRESS`], by Zstandard.
pub(crate) const ZSTD: u32 = 1 << 26;

/// All offered capabilities but encryption, which needs a certificate.
pub(crate) const OFFERED: u32 = LONG_PASSWORD
    | FOUND_ROWS
    | LONG_FLAG
    | CONNECT_WITH_DB
    | COMPRESS
    | LOCAL_FILES
    | IGNORE_SPACE
    | PROTOCOL_41
    | INTERACTIVE
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC
    | DEPRECATE_EOF
    | ZSTD;

/// A transaction is open.
pub(crate) const IN_TRANSACTION: u16 = 1;
pub(crate) const AUTOCOMMIT: u16 = 1 << 1;
/// Another result of the same text follows.
pub(crate) const MORE_RESULTS: u16 = 1 << 3;
/// The rows wait to be fetched.
pub(crate) const CURSOR_EXISTS: u16 = 1 << 6;
/// There are no more to fetch.
pub(crate) const LAST_ROW_SENT: u16 = 1 << 7;
