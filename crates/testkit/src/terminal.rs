//! Running the binary on a terminal of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::TestEnv;

impl TestEnv {
    /// Runs a command on a terminal, types `input` and answers the exit code and all that was shown.
    pub fn on_terminal<W: AsRef<OsStr>>(&self, words: &[W], input: &str) -> (i32, String) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || -> OwnedFd {
            rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()
        };
        let mut command = self.biv_command(&self.work(), words);
        command.stdin(open()).stdout(open()).stderr(open()).env("TERM", "xterm-256color");
        let mut child = command.spawn().unwrap();
        // The terminal ends when nobody has it open; the command builder still does.
        drop(command);
        let mut ours = File::from(ours);
        ours.write_all(input.as_bytes()).unwrap();
        let reader = thread::spawn(move || {
            let mut shown = Vec::new();
            // A terminal that was hung up ends in an error, not in an end of file.
            let _hung_up = ours.read_to_end(&mut shown);
            String::from_utf8_lossy(&shown).replace('\r', "")
        });
        let code = child.wait().unwrap().code().unwrap_or(-1);
        (code, reader.join().unwrap())
    }
}
