//! A program that has to end in time.

use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bivouac_testkit::kill;

/// What it said and how it ended. `None` if it had to be killed.
pub(super) fn within(limit: Duration, command: &mut Command) -> io::Result<Option<Output>> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let id = child.id().cast_signed();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(limit) {
        Ok(output) => output.map(Some),
        Err(_) => {
            kill(id);
            Ok(None)
        }
    }
}
