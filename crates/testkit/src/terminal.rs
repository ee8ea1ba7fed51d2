//! Running the binary on a terminal of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::TestEnv;

impl TestEnv {
    /// Runs a command on a terminal, types `input` and answers the exit code and all that was shown.
    pub fn on_terminal<W: AsRef<OsStr>>(&self, words: &[W], input: &str) -> (i32, String) {
        let mut command = self.biv_command(&self.work(), words);
        command.env("TERM", "xterm-256color");
        Self::type_into(command, "", input)
    }

    /// The same by the clock on the wall. `input` is typed once `prompt` is shown.
    pub fn live_on_terminal<W: AsRef<OsStr>>(
        &self,
        words: &[W],
        prompt: &str,
        input: &str,
    ) -> (i32, String) {
        let mut command = self.biv_command(&self.work(), words);
        command.env("TERM", "xterm-256color").env_remove("BIV_CLOCK");
        Self::type_into(command, prompt, input)
    }

    fn type_into(mut command: Command, prompt: &str, input: &str) -> (i32, String) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || -> OwnedFd {
            rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()
        };
        command.stdin(open()).stdout(open()).stderr(open());
        let mut child = command.spawn().unwrap();
        // The terminal ends when nobody has it open; the command builder still does.
        drop(command);
        let mut ours = File::from(ours);
        let (prompt, input) = (prompt.to_owned(), input.to_owned());
        let reader = thread::spawn(move || {
            let (mut shown, mut to_type) = (Vec::new(), Some(input));
            loop {
                if String::from_utf8_lossy(&shown).contains(&prompt)
                    && let Some(input) = to_type.take()
                {
                    ours.write_all(input.as_bytes()).unwrap();
                }
                let mut buffer = [0; 4096];
                // A terminal that was hung up ends in an error, not in an end of file.
                match ours.read(&mut buffer) {
                    Ok(n @ 1..) => shown.extend(&buffer[..n]),
                    Ok(0) | Err(_) => break,
                }
            }
            String::from_utf8_lossy(&shown).replace('\r', "")
        });
        let code = child.wait().unwrap().code().unwrap_or(-1);
        (code, reader.join().unwrap())
    }
}
