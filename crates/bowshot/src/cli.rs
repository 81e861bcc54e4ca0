//! The command line. Flags of the server are settings by another name; they are read as text here and checked with all settings.

use crate::access::AccessCommand;
use crate::backup::{BackupArgs, RestoreArgs, VerifyArgs};
use crate::cluster::ClusterCommand;
use crate::config::Flags;
use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
use crate::sql::SqlArgs;
use crate::standby::{StandbyArgs, TakeOverArgs};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// An Arrow-native SQL server: point it at files, query them over Arrow Flight SQL.
#[derive(Debug, Parser)]
#[command(name = "bowshot", version, max_term_width = 110, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve files and folders as tables
    Serve(ServerArgs),
    /// Make TPC-H data, serve it, and show how fast results come
    Demo(DemoArgs),
    /// Run SQL on a server: a statement, a file, or a prompt
    Sql(SqlArgs),
    /// Validate the configuration and say what would be served
    Check(ServerArgs),
    /// Say what is wrong with a set-up, and what to do
    Doctor(DoctorArgs),
    /// Copy the tables of a data folder while its server serves
    Backup(BackupArgs),
    /// Make a data folder of a backup
    Restore(RestoreArgs),
    /// Keep a copy of a data folder that follows it
    Standby(StandbyArgs),
    /// Make a data folder of the copy that a standby has kept
    TakeOver(TakeOverArgs),
    /// Hold catalog and files of a data folder, or of a backup, against one another
    Verify(VerifyArgs),
    /// Read a password from stdin and print its hash for the configuration
    HashPassword,
    /// Rules about access that are kept in a file
    Access {
        /// What to do with it
        #[command(subcommand)]
        what: AccessCommand,
    },
    /// The audit trail of a server
    Audit {
        /// What to do with it
        #[command(subcommand)]
        what: AuditCommand,
    },
    /// Certificates of the nodes of a cluster
    Cluster {
        /// What to do
        #[command(subcommand)]
        what: ClusterCommand,
    },
    /// Print reference pages that are made from the program
    #[command(hide = true)]
    Docs {
        /// Which page
        #[arg(value_enum)]
        page: Page,
    },
}

/// What to do with an audit trail.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Follow the chain of a file: exit code 1, and the number of the line, where it breaks
    Verify {
        /// The file
        file: std::path::PathBuf,
    },
}

/// A page of the reference.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Page {
    /// Settings of the server, with keys, variables, flags, types and defaults
    Settings,
    /// Options that a session can set
    SessionOptions,
    /// SQL: its functions.
    Sql,
}

/// What a server is told. Every flag is also a key of the configuration file and an environment variable.
#[derive(Debug, Args, Default)]
#[command(
    after_help = "Flags win over environment variables (BOWSHOT_FLIGHT, BOWSHOT_LIMITS_MAX_SESSIONS, …), those over the \
                  configuration file, that over the defaults. `bowshot docs settings` lists all settings."
)]
pub(crate) struct ServerArgs {
    /// Files and folders to serve, each PATH or NAME=PATH; each becomes a table in schema `main`
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Address of the Arrow Flight SQL front end, or `off` [default: 127.0.0.1:50051]
    #[arg(long, value_name = "ADDR")]
    flight: Option<String>,
    /// Address of the HTTP front end (SQL, /health, /ready, /metrics), or `off` [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Certificate of the server and those that lead to its authority (PEM): Flight SQL, PostgreSQL and MySQL speak TLS only,
    /// HTTP for SQL of other machines
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<String>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Certificates of the authorities (PEM) whose certificates say who a client is
    #[arg(long, value_name = "FILE")]
    tls_client_authority: Option<String>,
    /// Address of the PostgreSQL front end [default: off]
    #[arg(long, value_name = "ADDR")]
    pg: Option<String>,
    /// Address of the MySQL front end [default: off]
    #[arg(long, value_name = "ADDR")]
    mysql: Option<String>,
    /// Unix socket for clients on this machine, which map results: a path, `auto` or `none` [default: auto]
    #[arg(long, value_name = "PATH")]
    local_socket: Option<String>,
    /// Internal port, over which the nodes of a cluster reach one another [default: off]
    #[arg(long, value_name = "ADDR")]
    cluster: Option<String>,
    /// Nodes of the cluster that are asked first; they tell of the others
    #[arg(long, value_name = "ADDR,…")]
    join: Option<String>,
    /// Where other nodes reach the internal port [default: where it listens]
    #[arg(long, value_name = "ADDR")]
    advertise: Option<String>,
    /// Folder of the tables that clients make, or `memory` to keep nothing
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// SQL dialect of new sessions: ansi, postgres or mysql [default: ansi]
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// Write addresses and process id as JSON into this file when ready
    #[arg(long, value_name = "FILE")]
    ports_file: Option<String>,
    /// File of users and tokens (TOML)
    #[arg(long, value_name = "FILE")]
    users_file: Option<String>,
    /// Listen beyond this machine although no users are configured
    #[arg(long)]
    insecure: bool,
    /// What is logged: error, warn, info, debug, trace, or TARGET=LEVEL pairs [default: warn,bowshot=info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// How the log looks: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Set any setting, for example `--set limits.max_sessions=100`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl ServerArgs {
    /// The flags as values of settings. A `--set` without `=` is kept as a key without value, which no setting takes.
    pub(crate) fn into_flags(self) -> Flags {
        let named = [
            ("flight", self.flight),
            ("http", self.http),
            ("tls.certificate", self.tls_certificate),
            ("tls.key", self.tls_key),
            ("tls.client_authority", self.tls_client_authority),
            ("pg", self.pg),
            ("mysql", self.mysql),
            ("same_host.socket", self.local_socket),
            ("cluster.listen", self.cluster),
            ("cluster.join", self.join),
            ("cluster.advertise", self.advertise),
            ("data", self.data),
            ("dialect", self.dialect),
            ("ports_file", self.ports_file),
            ("access.users_file", self.users_file),
            ("insecure", self.insecure.then(|| "true".to_owned())),
            ("log", self.log),
            ("log_format", self.log_format),
        ];
        let set = self.settings.into_iter().map(|text| match text.split_once('=') {
            Some((name, value)) => (name.trim().to_owned(), value.trim().to_owned()),
            None => (text, String::new()),
        });
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Flags { file: self.config, paths: self.paths, values: named.chain(set).collect() }
    }
}
