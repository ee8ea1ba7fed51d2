//! How long an agent waits for its hooks: as distributions, with one session and with a thousand, beside a
//! transcript of 50 MB.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::table;
use super::workspace::Workspace;
use crate::Result;
use crate::tools::command;

const FILES: usize = 10_000;
const CALLS: usize = 200;
const SAVES: usize = 30;

struct Bench {
    biv: PathBuf,
    work: PathBuf,
    base: PathBuf,
    transcript: PathBuf,
}

/// Measures, and answers the table.
pub(super) fn run(folder: &Path, biv: &Path) -> Result<String> {
    let base = folder.join("hooks");
    let work = base.join("work");
    let source = base.join("source");
    Workspace::make(&source, FILES)?;
    let mut workspace = Workspace::copy(&source, &work)?;
    let transcript = base.join("transcript.jsonl");
    let bench = Bench { biv: biv.to_owned(), work, base, transcript };
    let mut rows = Vec::new();
    rows.push((
        "start of the program (`biv --version`)",
        bench.times(CALLS, |it, _| it.version())?,
    ));
    bench.hook("UserPromptSubmit", 0, r#","prompt":"begin""#)?;
    bench.hook("Stop", 0, "")?;
    let read = r#","tool_name":"Read","tool_input":{"file_path":"x"},"duration_ms":3"#;
    rows.push((
        "hook without a snapshot, 1 session",
        bench.times(CALLS, |it, _| it.hook("PostToolUse", 0, read))?,
    ));
    for session in 1..1_000 {
        bench.hook("UserPromptSubmit", session, r#","prompt":"begin""#)?;
    }
    bench.write_transcript(50 << 20)?;
    bench.hook("Stop", 0, "")?;
    rows.push((
        "the same, 1,000 sessions, a 50 MB transcript",
        bench.times(CALLS, |it, _| it.hook("PostToolUse", 0, read))?,
    ));
    let mut saves = Vec::new();
    for round in 0..SAVES {
        workspace.edit(5, round)?;
        bench.append_to_transcript(round)?;
        let started = Instant::now();
        bench.hook("Stop", 0, "")?;
        saves.push(started.elapsed());
    }
    rows.push(("hook with a snapshot, 10,000 files, 5 edited", saves));
    Ok(table::spread(rows))
}

impl Bench {
    fn times(
        &self,
        count: usize,
        act: impl Fn(&Self, usize) -> Result<()>,
    ) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for n in 0..count {
            let started = Instant::now();
            act(self, n)?;
            times.push(started.elapsed());
        }
        Ok(times)
    }

    fn version(&self) -> Result<()> {
        command(&self.biv).arg("--version").stdout(Stdio::null()).status()?;
        Ok(())
    }

    fn hook(&self, event: &str, session: usize, more: &str) -> Result<()> {
        let mut call = command(&self.biv);
        call.args(["hook", "claude-code", event]).current_dir(&self.work);
        call.env("HOME", &self.base).env("BIV_STORE", self.base.join("store"));
        call.env("BIV_STORE_AUTO_GC", "false").env("BIV_HOOK_WAITS", "1");
        let mut child =
            call.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let input = format!(
            r#"{{"session_id":"00000000-0000-4000-8000-{session:012}","transcript_path":"{}","cwd":"{}"{more}}}"#,
            self.transcript.display(),
            self.work.display()
        );
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait()?;
        Ok(())
    }

    fn write_transcript(&self, size: usize) -> Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&self.transcript)?);
        let mut written = 0;
        for n in 0.. {
            let line = record(n);
            written += line.len();
            file.write_all(line.as_bytes())?;
            if written >= size {
                break;
            }
        }
        Ok(file.flush()?)
    }

    fn append_to_transcript(&self, round: usize) -> Result<()> {
        let mut file = std::fs::File::options().append(true).open(&self.transcript)?;
        Ok(file.write_all(record(1_000_000 + round).as_bytes())?)
    }
}

fn record(n: usize) -> String {
    let text = format!("what was said in record {n}, at some length. ").repeat(40);
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"a{n}\",\"message\":{{\"id\":\"m{n}\",\"model\":\"claude-sonnet-4-5\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{\"input_tokens\":10,\"output_tokens\":5}}}}}}\n"
    )
}
