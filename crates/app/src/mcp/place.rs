//! Where the client works: one of its roots, else what its environment says, else where it started us. A model
//! has no say in it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use bivouac_engine::home::{Home, Wishes, project_folder};
use rmcp::model::{ClientResult, ServerRequest};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleServer};

use super::answer::Told;

/// Clients that say they have roots and never name them are not waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where the client works, once it has said so.
#[derive(Default)]
pub(super) struct Place {
    root: Mutex<Option<PathBuf>>,
}

impl Place {
    /// What the person asked for on the command line stands. A client that has roots and does not name them is
    /// refused: elsewhere would be the wrong place.
    pub(super) async fn find(
        &self,
        asked: &Wishes,
        peer: &Peer<RoleServer>,
    ) -> Result<Wishes, Told> {
        if asked.folder.is_some() || asked.workspace.is_some() {
            return Ok(asked.clone());
        }
        let known = self.root.lock().ok().and_then(|root| root.clone());
        let folder = match known {
            Some(root) => Some(root),
            None => self.learn(peer).await?.or_else(project_folder),
        };
        Ok(Wishes { folder, ..asked.clone() })
    }

    /// The client works elsewhere now.
    pub(super) fn forget(&self) {
        if let Ok(mut root) = self.root.lock() {
            *root = None;
        }
    }

    /// The first root that is a folder; none where the client has no roots.
    #[expect(deprecated, reason = "the clients of today have nothing else to say it with")]
    async fn learn(&self, peer: &Peer<RoleServer>) -> Result<Option<PathBuf>, Told> {
        if peer.peer_info().is_none_or(|client| client.capabilities.roots.is_none()) {
            return Ok(None);
        }
        let roots = match ask(peer).await {
            Some(ClientResult::ListRootsResult(list)) => list.roots,
            _ => {
                let hint = "call again; or start `biv mcp` with `-C FOLDER`";
                return Err(Told::error("the client did not say where it works", hint));
            }
        };
        let found = roots.iter().filter_map(|root| path_of(&root.uri)).find(|it| it.is_dir());
        if found.is_none() && !roots.is_empty() {
            let hint = "open the client in a folder that is there";
            return Err(Told::error("no root of the client is a folder on this machine", hint));
        }
        if let Ok(mut root) = self.root.lock() {
            root.clone_from(&found);
        }
        Ok(found)
    }
}

async fn ask(peer: &Peer<RoleServer>) -> Option<ClientResult> {
    let request = ServerRequest::ListRootsRequest(Default::default());
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let answer = peer.send_request_with_option(request, options).await.ok()?;
    answer.await_response().await.ok()
}

/// A new folder beside the workspace, for a second way: a model chooses what it is called, not where it is.
pub(super) fn beside(place: &Wishes, name: Option<&str>) -> Option<String> {
    let workspace = Home::find(place).ok()?.workspace;
    let is_plain = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    let name: String = name.unwrap_or("fork").chars().filter(|it| is_plain(*it)).collect();
    let whole = format!("{}-{name}", workspace.file_name()?.to_string_lossy());
    let numbered = (2..100).map(|n| workspace.with_file_name(format!("{whole}-{n}")));
    let mut all = std::iter::once(workspace.with_file_name(&whole)).chain(numbered);
    all.find(|it| it.symlink_metadata().is_err())?.to_str().map(str::to_owned)
}

/// `file:///a%20b` is `/a b`.
fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let [first, rest @ ..] = left {
        left = rest;
        match (first, rest) {
            (b'%', [high, low, behind @ ..]) => {
                let digits = [*high, *low];
                let hex = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                left = behind;
            }
            _ => bytes.push(*first),
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_folders_on_this_machine() {
        let check = |uri: &str, path: Option<&str>| {
            assert_eq!(path_of(uri), path.map(PathBuf::from), "{uri}");
        };
        check("file:///home/me/a%20b", Some("/home/me/a b"));
        check("file://localhost/srv", Some("/srv"));
        check("file:///100%25", Some("/100%"));
        check("file://elsewhere/srv", None);
        check("file:///bad%zz", None);
        check("https://example.com/", None);
        check("/plain", None);
    }
}
