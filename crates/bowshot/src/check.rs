//! `bowshot check`: reports what `bowshot serve` with the same arguments would serve.

use crate::cluster::mistake;
use crate::config::{Config, Listen};
use crate::serve::{
    ClientAuthority, Parts, Reach, Served, Tls, authenticator, data_folder, empty_folders, folders, resolve,
    source_table,
};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// How tables are read whose files do not say it themselves.
fn how_read(sources: &[Served]) -> String {
    let told = sources.iter().filter_map(|served| Some((&served.name, served.read_as.as_ref()?)));
    told.map(|(name, how)| format!("\ntable `{name}` is read as: {how}\n")).collect()
}

/// Files in served folders that are no table.
fn left_out(files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("\nno table: {} has no known format\n", file.display())).collect()
}

/// Checks users, addresses, the data folder and every source, and prints the tables to stdout.
///
/// # Errors
/// [`Usage`](crate::usage::Usage) for a configuration that would not start, another error when a table is broken.
pub(crate) async fn run(config: &Config) -> Result<()> {
    let authenticator = authenticator(config)?;
    let reach = Reach::of(config, &authenticator);
    let authority = ClientAuthority::load(&config.tls).await?;
    let tls = Tls::load(&config.tls, authority.as_ref()).await?;
    resolve("--flight", &config.flight, reach).await?;
    resolve("--http", &config.http, reach).await?;
    resolve("--pg", &config.pg, reach).await?;
    resolve("--mysql", &config.mysql, reach).await?;
    resolve("--cluster", &config.cluster.listen, Reach::Anywhere).await?;
    if let Some(security) = config.cluster.security()? {
        security.examine().map_err(mistake)?;
    }
    data_folder::examine(config.data.as_ref())?;
    folders::check_apart(config, None)?;
    let broken = data_folder::broken(config.data.as_ref())?;
    let parts = Parts::open(config, None, None, None).await?;
    let sources = parts.served().await?;
    let mut text = source_table(&sources);
    text.push_str(&empty_folders(config));
    text.push_str(&how_read(&sources));
    text.push_str(&left_out(&parts.left_out().await?));
    let encrypted = |listen: &Listen| if tls.is_some() && *listen != Listen::Off { ", with TLS" } else { "" };
    text.push_str(&format!(
        "\nFlight SQL  {}{}\nHTTP        {}\nPostgreSQL  {}{}\nMySQL       {}{}\nusers       {}\n",
        config.flight,
        encrypted(&config.flight),
        config.http,
        config.pg,
        encrypted(&config.pg),
        config.mysql,
        encrypted(&config.mysql),
        if authenticator.requires_credentials() { "configured" } else { "none: every caller is anonymous" },
    ));
    for (name, reason) in &broken {
        text.push_str(&format!("\n{name}  cannot be read: {reason}\n"));
    }
    crate::print(&text)?;
    match broken.len() + sources.iter().filter(|served| served.problem.is_some()).count() {
        0 => Ok(()),
        1 => bail!("one table cannot be read"),
        broken => bail!("{broken} tables cannot be read"),
    }
}
