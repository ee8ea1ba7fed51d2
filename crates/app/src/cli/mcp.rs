//! `biv mcp`: the door for models.

use bivouac_engine::home::Wishes;

use crate::cli::Error;
use crate::mcp;
use crate::report::Exit;

/// Serve agents over MCP, on stdin and stdout (agents start this; see `biv setup`)
///
/// Tools, resources and prompts do what the commands do, with the same words. The workspace is the first root
/// of the client, else the folder it was started in. A rollback needs a person's confirmation.
#[derive(Debug, clap::Args)]
pub struct McpArgs {}

pub fn run(_args: &McpArgs, wishes: &Wishes) -> Result<Exit, Error> {
    mcp::serve(wishes)?;
    Ok(Exit::Done)
}
