//! The configuration of the server: flags, environment variables, a TOML file and defaults, in this order of precedence,
//! through one table of settings. Whatever is not fully understood stops the program with exit code 2: an unknown key, a
//! value of the wrong form, a file that cannot be read.

mod cluster;
mod drivers;
mod file;
mod lakes;
mod log;
mod same_host;
mod settings;
mod slot;
mod tables;
mod tls;
mod traces;
mod unknown_names;
mod value;

pub(crate) use cluster::ClusterSettings;
pub(crate) use drivers::Drivers;
pub(crate) use log::LogSettings;
pub(crate) use same_host::{LocalSocket, SameHostSettings};
pub(crate) use settings::{SETTINGS, Setting};
pub(crate) use tables::{DataFolder, TableSettings};
pub(crate) use tls::TlsFiles;
pub(crate) use traces::TraceSettings;
pub(crate) use value::Listen;

use unknown_names::{refuse_mistyped, unknown};

use crate::usage::Usage;
use bowshot_access::{AccessConfig, AccessOptions, PolicyDecisionOptions, hash_password, new_token};
use bowshot_api::{Limits, Secret};
use bowshot_databases::Options as DatabaseOptions;
use bowshot_engine::{EngineConfig, ViewOptions};
use bowshot_files::{SourceSpec, StorageOptions};
use bowshot_object_store::RemoteOptions;
use bowshot_policy::{AccessSettings, ConfiguredUser};
use bowshot_reuse::ReuseConfig;
use bowshot_sql::DialectName;
use slot::Raw;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Smallest and largest target size of outgoing messages.
const MESSAGE_BYTES: std::ops::RangeInclusive<usize> = (16 << 10)..=(1 << 30);

bowshot_api::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum LogFormat: name {
        Text = "text",
        Json = "json",
    }
}

bowshot_api::defaults! {
    /// Everything that can be set, as [`SETTINGS`] describes it.
    #[derive(Debug, Clone)]
    pub(crate) struct Config {
        pub(crate) sources: Vec<SourceSpec> = Vec::new(),
        pub(crate) flight: Listen = Listen::On("127.0.0.1:50051".to_owned()),
        pub(crate) http: Listen = Listen::On("127.0.0.1:8080".to_owned()),
        pub(crate) pg: Listen = Listen::Off,
        pub(crate) pg_cleartext: bool = false,
        pub(crate) http_cleartext: bool = false,
        pub(crate) http_origins: String = String::new(),
        pub(crate) http_mcp: String = "auto".to_owned(),
        pub(crate) mysql: Listen = Listen::Off,
        pub(crate) mysql_cleartext: bool = false,
        pub(crate) tls: TlsFiles = TlsFiles::default(),
        pub(crate) same_host: SameHostSettings = SameHostSettings::default(),
        pub(crate) cluster: ClusterSettings = ClusterSettings::default(),
        pub(crate) traces: TraceSettings = TraceSettings::default(),
        pub(crate) data: Option<DataFolder> = None,
        pub(crate) tables: TableSettings = TableSettings::default(),
        pub(crate) dialect: DialectName = DialectName::Ansi,
        pub(crate) ports_file: Option<PathBuf> = None,
        pub(crate) insecure: bool = false,
        pub(crate) log: String = "warn,bowshot=info".to_owned(),
        pub(crate) log_format: LogFormat = LogFormat::Text,
        pub(crate) logged: LogSettings = LogSettings::default(),
        pub(crate) users_file: Option<PathBuf> = None,
        pub(crate) enforced: bool = false,
        pub(crate) audit_file: Option<PathBuf> = None,
        pub(crate) audit_max_bytes: u64 = 100 << 20,
        pub(crate) audit_required: bool = true,
        pub(crate) access: AccessConfig = AccessConfig::default(),
        /// The part of it that the configuration file holds.
        pub(crate) own_access: AccessConfig = AccessConfig::default(),
        pub(crate) access_options: AccessOptions = AccessOptions::default(),
        pub(crate) decider: PolicyDecisionOptions = PolicyDecisionOptions::default(),
        pub(crate) threads: Option<usize> = None,
        pub(crate) batch_rows: usize = EngineConfig::default().batch_rows,
        pub(crate) metadata_cache_bytes: usize = EngineConfig::default().metadata_cache_bytes,
        pub(crate) plan_cache_entries: usize = EngineConfig::default().plan_cache_entries,
        pub(crate) spill_folder: Option<PathBuf> = None,
        pub(crate) spill_bytes: u64 = EngineConfig::default().spill_bytes,
        pub(crate) scratch: bool = false,
        pub(crate) table_bytes: u64 = 4 << 30,
        pub(crate) temporary_bytes: u64 = EngineConfig::default().temporary_bytes,
        pub(crate) column_cache_bytes: u64 = 4 << 30,
        pub(crate) exchange_folder: Option<PathBuf> = None,
        pub(crate) onnx_runtime: Option<PathBuf> = None,
        pub(crate) views: ViewOptions = ViewOptions::default(),
        pub(crate) reuse: ReuseConfig = ReuseConfig::default(),
        pub(crate) storage: StorageOptions = StorageOptions::default(),
        pub(crate) remote: RemoteOptions = RemoteOptions::default(),
        pub(crate) secrets_key: String = String::new(),
        pub(crate) databases: DatabaseOptions = DatabaseOptions::default(),
        pub(crate) drivers: Drivers = Drivers::default(),
        pub(crate) limits: Limits = Limits::default(),
    }
}

/// What the command line says, before it is checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) file: Option<PathBuf>,
    /// Sources; none means that file and environment decide.
    pub(crate) paths: Vec<String>,
    /// Setting name and value, in the order of the command line.
    pub(crate) values: Vec<(String, String)>,
}

/// Where a value came from, for error messages.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    File(&'a Path),
    Environment,
    CommandLine,
}

impl Config {
    /// Reads everything. `environment` is what the process was given.
    ///
    /// # Errors
    /// [`Usage`] for whatever is not fully understood.
    pub(crate) fn load(
        flags: &Flags,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Usage> {
        let mut config = Self::default();
        let variables = variables(environment)?;
        let named =
            variables.iter().find(|(name, _)| name == "BOWSHOT_CONFIG").map(|(_, path)| PathBuf::from(path));
        if let Some(path) = flags.file.clone().or(named) {
            let content = file::read(&path)?;
            for (name, raw) in &content.values {
                config.set(name, raw, Origin::File(&path))?;
            }
            config.access = content.access;
            config.remote.places = content.places;
            config.databases.databases = content.databases;
            config.databases.lakes = content.lakes;
            config.databases.catalogs = content.catalogs;
        }
        for (variable, text) in &variables {
            config.set_from_environment(variable, text)?;
        }
        if !flags.paths.is_empty() {
            config.set("paths", &Raw::Many(flags.paths.clone()), Origin::CommandLine)?;
        }
        for (name, text) in &flags.values {
            config.set(name, &Raw::One(text.clone()), Origin::CommandLine)?;
        }
        config.complete()
    }

    /// The origins whose web pages may use the HTTP front end.
    pub(crate) fn origins(&self) -> Vec<String> {
        let origins = self.http_origins.split(',').map(str::trim);
        origins.filter(|origin| !origin.is_empty()).map(str::to_owned).collect()
    }

    pub(crate) fn engine(&self) -> EngineConfig {
        let default = EngineConfig::default();
        EngineConfig {
            threads: self.threads.unwrap_or(default.threads),
            memory_bytes: self.limits.query_memory_bytes,
            process_bytes: self.limits.memory_bytes,
            spill_bytes: self.spill_bytes,
            spill_folder: self.spill_folder.clone(),
            metadata_cache_bytes: self.metadata_cache_bytes,
            plan_cache_entries: self.plan_cache_entries,
            listing_ttl: self.storage.refresh,
            dialect: self.dialect.as_str(),
            batch_rows: self.batch_rows,
            scratch: self.scratch,
            temporary_bytes: self.temporary_bytes,
            views: self.views.clone(),
            exchange_folder: self.exchange_folder.clone(),
            remotes: None,
            databases: None,
            secrets: None,
            access: self.access_settings(),
            session_config: None,
        }
    }

    /// Who may come in, by the configuration file and by the file of users as it is now.
    pub(crate) fn read_access(&self) -> bowshot_api::Result<AccessConfig> {
        let mut access = self.own_access.clone();
        if let Some(path) = &self.users_file {
            access.extend(AccessConfig::from_file(path)?);
        }
        Ok(access)
    }

    fn access_settings(&self) -> AccessSettings {
        let hash = |password: &Secret| hash_password(password).map_err(bowshot_api::Error::from);
        let token = || new_token().map_err(bowshot_api::Error::from);
        AccessSettings { enforced: self.enforced, users: Self::users(&self.access), hash, token }
    }

    /// Users and roles as the engine knows them; a user may have several entries.
    pub(crate) fn users(access: &AccessConfig) -> BTreeMap<String, ConfiguredUser> {
        let mut users: BTreeMap<String, ConfiguredUser> = BTreeMap::new();
        for user in &access.users {
            let known = users.entry(user.name.clone()).or_default();
            known.roles.extend(user.roles.iter().cloned());
            known.admin |= user.admin;
            known.attributes.extend(user.attributes.clone());
        }
        for token in &access.tokens {
            let known = users.entry(token.user.clone()).or_default();
            known.roles.extend(token.roles.iter().cloned());
            known.admin |= token.admin;
        }
        users
    }

    fn set(&mut self, name: &str, raw: &Raw, origin: Origin<'_>) -> Result<(), Usage> {
        let setting = find(name).ok_or_else(|| unknown(name, origin))?;
        let base = match origin {
            Origin::File(path) => path.parent(),
            Origin::Environment | Origin::CommandLine => None,
        };
        let set = match origin {
            Origin::CommandLine if setting.is_secret() => Err(format!(
                "every user of this machine can read it there: write it into the configuration file or `{}`",
                setting.variable()
            )),
            _ => setting.set(self, raw, base),
        };
        set.map_err(|reason| {
            let place = match (origin, setting.flag) {
                (Origin::File(path), _) => format!("`{name}` in `{}`", path.display()),
                (Origin::Environment, _) => format!("the environment variable `{}`", setting.variable()),
                (Origin::CommandLine, Some(flag)) if name != "paths" => format!("`{flag}`"),
                (Origin::CommandLine, _) => format!("`{name}`"),
            };
            Usage::new(format!("{place} cannot be used: {reason}"))
                .with_hint("`bowshot docs settings` lists all settings with their types and defaults")
        })
    }

    fn set_from_environment(&mut self, variable: &str, text: &str) -> Result<(), Usage> {
        match SETTINGS.iter().find(|setting| setting.variable() == variable) {
            Some(setting) if setting.is_list() => {
                self.set(setting.name, &Raw::Many(value::entries(text)), Origin::Environment)
            }
            Some(setting) => self.set(setting.name, &Raw::One(text.to_owned()), Origin::Environment),
            None => refuse_mistyped(variable),
        }
    }

    /// Brings in the file of users and checks what no single setting can.
    fn complete(mut self) -> Result<Self, Usage> {
        self.databases.drivers = self.drivers.named();
        self.databases.lakes.extend(lakes::taken_from(&mut self.sources)?);
        self.own_access = std::mem::take(&mut self.access);
        self.access = self.read_access().map_err(Usage::from)?;
        for (name, bytes) in [
            ("message_bytes", self.limits.message_bytes),
            ("large_message_bytes", self.limits.large_message_bytes),
        ] {
            if !MESSAGE_BYTES.contains(&bytes) {
                return Err(Usage::new(format!("`limits.{name}` must lie between 16KiB and 1GiB")));
            }
        }
        let rows_are_off = [&self.flight, &self.pg, &self.mysql].into_iter().all(|on| *on == Listen::Off);
        if rows_are_off && self.http == Listen::Off {
            return Err(Usage::new("nothing to serve: every front end is off")
                .with_hint("enable at least one of `--flight`, `--http`, `--pg` and `--mysql`"));
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return Err(Usage::new("a certificate and its private key must be set together")
                .with_hint("set both `tls.certificate` and `tls.key`, or neither"));
        }
        self.cluster.security()?;
        self.traces.check()?;
        self.tables.check(self.data.as_ref())?;
        self.same_host.check(self.tls.client_trust()?.is_some_and(|trust| trust.required))?;
        if self.tls.client_trust()?.is_some() && self.access.is_empty() {
            return Err(Usage::new("client certificates need users, and none are configured").with_hint(
                "list at least one admin as `[[access.users]]`, without `password_hash` if need be",
            ));
        }
        if !["auto", "on", "off"].contains(&self.http_mcp.as_str()) {
            return Err(Usage::new(format!("`http_mcp` cannot be `{}`", self.http_mcp))
                .with_hint("it is `auto`, `on` or `off`"));
        }
        if let Some(origin) = self.origins().iter().find(|origin| !value::is_origin(origin)) {
            return Err(Usage::new(format!("invalid origin `{origin}` in `http_origins`")).with_hint(
                "write scheme and host as browsers do: `https://example.org`, with commas between",
            ));
        }
        Ok(self)
    }
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The variables that are meant for Bowshot, sorted. Empty ones count as not set, as in most container tools.
fn variables(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, Usage> {
    let mut variables = Vec::new();
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with("BOWSHOT_")) else { continue };
        let value = value
            .into_string()
            .map_err(|_| Usage::new(format!("the environment variable `{name}` is not UTF-8 text")))?;
        if !value.is_empty() {
            variables.push((name.to_owned(), value));
        }
    }
    variables.sort();
    Ok(variables)
}

fn dialect(text: &str) -> Result<DialectName, String> {
    DialectName::ALL
        .into_iter()
        .find(|dialect| dialect.as_str() == text)
        .ok_or_else(|| format!("expected `ansi`, `postgres` or `mysql`, not `{text}`"))
}

impl LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| format!("expected `text` or `json`, not `{text}`"))
    }
}

#[cfg(test)]
mod tests;
