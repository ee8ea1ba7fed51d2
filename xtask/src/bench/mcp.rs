//! How long a model waits for our server: until it is ready, and for each call, beside the same commands on the
//! command line.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hooks::format_row;
use super::workspace::Workspace;
use crate::Result;
use crate::tools::command;

const FILES: usize = 10_000;
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
    let base = folder.join("mcp");
    let work = base.join("work");
    Workspace::make(&work, FILES)?;
    let place = Place { biv: biv.to_owned(), base, work };
    place.typed(&["checkpoint", "create"])?;
    let mut server = Server::start(&place)?;
    for n in 0..NOTES {
        server.call("progress", &json!({ "kind": "note", "text": format!("note {n}") }))?;
    }
    let mut rows = vec![
        ("server ready", times(STARTS, || Server::start(&place).map(drop))?),
        ("`rehydrate`", times(CALLS, || server.call("rehydrate", &json!({})))?),
        ("`biv rehydrate` on the command line", times(CALLS, || place.typed(&["rehydrate"]))?),
        ("record a note", {
            let note = json!({ "kind": "note", "text": "another" });
            times(CALLS, || server.call("progress", &note))?
        }),
        ("`checkpoint_save`, nothing changed", {
            times(STARTS, || server.call("checkpoint_save", &json!({})))?
        }),
    ];
    let mut table = "| | p50 | p90 | p99 |\n|---|---|---|---|\n".to_owned();
    for (what, times) in &mut rows {
        times.sort_unstable();
        let at = |share: f64| {
            times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3
        };
        table.push_str(&format_row(what, [at(0.5), at(0.9), at(0.99)]));
    }
    let megabytes = server.peak()? / 1_000;
    Ok(format!(
        "{table}\n{FILES} files, {NOTES} notes. After {} calls the server has taken {megabytes} MB of memory at most.\n",
        NOTES + 2 * CALLS + STARTS
    ))
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
