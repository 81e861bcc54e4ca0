//! `bowshot cluster`: the certificate authority of a cluster, and the certificates of its nodes. Works on files alone.

use crate::usage::Usage;
use anyhow::Result;
use bowshot_cluster::membership::NodeFiles;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Make the authority of a cluster, and the certificate of its first node
    Init {
        /// Folder of the authority, made if need be. Its key is needed to add nodes, and belongs on none of them
        #[arg(long, value_name = "DIR")]
        folder: PathBuf,
        /// Name of the first node: its files are in the folder of that name
        #[arg(long, value_name = "NAME")]
        node: Option<String>,
        /// Host by which other nodes reach it, a name or an IP address; may be given several times
        #[arg(long = "address", value_name = "HOST", requires = "node")]
        addresses: Vec<String>,
    },
    /// Make the certificate of another node
    AddNode(NodeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Folder of the authority
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Name of the node: its files are in the folder of that name
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Host by which other nodes reach it, a name or an IP address; may be given several times
    #[arg(long = "address", value_name = "HOST", required = true)]
    addresses: Vec<String>,
}

/// Runs what the arguments say.
///
/// # Errors
/// [`Usage`] for files that are there already, or cannot be written or read.
pub(crate) fn run(command: &ClusterCommand) -> Result<()> {
    match command {
        ClusterCommand::Init { folder, node, addresses } => {
            let made = bowshot_cluster::membership::init(folder).map_err(mistake)?;
            crate::print(&format!(
                "authority    {}\nits key      {}  keep it where no node is\n",
                made.authority.display(),
                made.key.display()
            ))?;
            let Some(node) = node else { return Ok(()) };
            add(&NodeArgs { folder: folder.clone(), node: node.clone(), addresses: addresses.clone() })
        }
        ClusterCommand::AddNode(node) => add(node),
    }
}

fn add(node: &NodeArgs) -> Result<()> {
    let made =
        bowshot_cluster::membership::add_node(&node.folder, &node.node, &node.addresses).map_err(mistake)?;
    crate::print(&lines(&made))
}

/// Configuration of the node to paste.
fn lines(files: &NodeFiles) -> String {
    format!(
        "\n[cluster.tls]\nauthority = {:?}\ncertificate = {:?}\nkey = {:?}\n",
        files.authority.display().to_string(),
        files.certificate.display().to_string(),
        files.key.display().to_string()
    )
}

pub(crate) fn mistake(error: bowshot_cluster::membership::Error) -> Usage {
    let usage = Usage::new(error.to_string());
    match error.hint() {
        Some(hint) => usage.with_hint(hint),
        None => usage,
    }
}
