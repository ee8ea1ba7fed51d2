//! Running the binary on a terminal of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::TestEnv;

impl TestEnv {
    /// Runs a command on a terminal, types `input` and answers the exit code and all that was shown.
    pub fn on_terminal<W: AsRef<OsStr>>(&self, words: &[W], input: &str) -> (i32, String) {
        self.dialog(words, &[("", input)])
    }

    /// The same for a talk: each input is typed once the words before it were shown.
    pub fn dialog<W: AsRef<OsStr>>(&self, words: &[W], talk: &[(&str, &str)]) -> (i32, String) {
        talk_with(self.biv_command(&self.work(), words), talk)
    }

    /// The same by the clock on the wall.
    pub fn live_dialog<W: AsRef<OsStr>>(
        &self,
        words: &[W],
        talk: &[(&str, &str)],
    ) -> (i32, String) {
        let mut command = self.biv_command(&self.work(), words);
        command.env_remove("BIV_CLOCK");
        talk_with(command, talk)
    }
}

fn talk_with(mut command: Command, talk: &[(&str, &str)]) -> (i32, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let open = || -> OwnedFd {
        rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()
    };
    command.stdin(open()).stdout(open()).stderr(open()).env("TERM", "xterm-256color");
    let mut child = command.spawn().unwrap();
    // The terminal ends when nobody has it open; the command builder still does.
    drop(command);
    let mut ours = File::from(ours);
    let mut hands = ours.try_clone().unwrap();
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = [0; 4096];
        // A terminal that was hung up ends in an error, not in an end of file.
        while let Ok(length @ 1..) = ours.read(&mut bytes) {
            let _nobody_waits = sender.send(bytes[..length].to_vec());
        }
    });
    let mut shown = Vec::new();
    let mut seen = 0;
    for (awaited, input) in talk {
        while !String::from_utf8_lossy(&shown[seen..]).contains(awaited) {
            match receiver.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => shown.extend(bytes),
                Err(_) => panic!("`{awaited}` never came: {}", String::from_utf8_lossy(&shown)),
            }
        }
        seen = shown.len();
        hands.write_all(input.as_bytes()).unwrap();
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    drop(hands);
    reader.join().unwrap();
    shown.extend(receiver.iter().flatten());
    (code, String::from_utf8_lossy(&shown).replace('\r', ""))
}
