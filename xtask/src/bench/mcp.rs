//! How long a model waits for our server: until it is ready, and for each call, beside the same commands on the
//! command line.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::table;
use super::workspace::Workspace;
use crate::Result;
use crate::tools::command;

const FEW: usize = 1_000;
const MANY: usize = 10_000;
const NOTES: usize = 1_000;
const CALLS: usize = 200;
const STARTS: usize = 50;

struct Place {
    biv: PathBuf,
    base: PathBuf,
    work: PathBuf,
}

/// Measures, and answers the table.
pub(super) fn run(folder: &Path, biv: &Path) -> Result<String> {
    let small = Place::make(&folder.join("small"), biv, FEW)?;
    let large = Place::make(&folder.join("large"), biv, MANY)?;
    let mut server = Server::start(&small)?;
    for n in 0..NOTES {
        server.call("progress", &json!({ "kind": "note", "text": format!("note {n}") }))?;
    }
    let mut other = Server::start(&large)?;
    let note = json!({ "kind": "note", "text": "another" });
    let none = json!({});
    let rows = [
        ("server ready", times(STARTS, || Server::start(&small).map(drop))?),
        ("`rehydrate`, 1,000 files", times(CALLS, || server.call("rehydrate", &none))?),
        ("the same as a command line", times(CALLS, || small.typed(&["rehydrate"]))?),
        ("`rehydrate`, 10,000 files", times(CALLS, || other.call("rehydrate", &none))?),
        ("record a note", times(CALLS, || server.call("progress", &note))?),
        (
            "`checkpoint_save`, 1,000 files, none changed",
            times(STARTS, || server.call("checkpoint_save", &none))?,
        ),
    ];
    let table = table::spread(rows);
    let megabytes = server.peak()?.max(other.peak()?) / 1_000;
    Ok(format!("{table}\nOver these calls the server took {megabytes} MB of memory at most.\n"))
}

fn times(count: usize, mut act: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        act()?;
        times.push(started.elapsed());
    }
    Ok(times)
}

impl Place {
    fn make(base: &Path, biv: &Path, n_files: usize) -> Result<Self> {
        let work = base.join("work");
        Workspace::make(&work, n_files)?;
        let place = Self { biv: biv.to_owned(), base: base.to_owned(), work };
        place.typed(&["checkpoint", "create"])?;
        Ok(place)
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut biv = command(&self.biv);
        biv.args(words).current_dir(&self.work).env("HOME", &self.base);
        biv.env("BIV_STORE", self.base.join("store")).env("BIV_STORE_AUTO_GC", "false");
        biv
    }

    fn typed(&self, words: &[&str]) -> Result<()> {
        let status = self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err(format!("{words:?}: {status}").into()) }
    }
}

/// A server that was greeted.
struct Server {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(place: &Place) -> Result<Self> {
        let mut biv = place.command(&["mcp"]);
        let mut process = biv.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = process.stdin.take().ok_or("no stdin")?;
        let stdout = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        let mut server = Self { process, stdin, stdout };
        let client = json!({ "name": "bench", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        server.ask("initialize", &params)?;
        Ok(server)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.stdin, "{message}")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        match answer["result"]["isError"] == false {
            true => Ok(()),
            false => Err(format!("{tool}: {answer}").into()),
        }
    }

    /// The most memory it had, in kilobytes.
    fn peak(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        Ok(line.unwrap_or_default().trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _it_is_gone = self.process.kill();
        let _it_is_gone = self.process.wait();
    }
}
