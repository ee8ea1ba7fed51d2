//! Single keys from the terminal. It is as it was before once [`Keyboard`] is gone, however that comes.

use std::io;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::choice::Key;

/// The terminal of the standard input, told to hand over every key at once and to show none.
pub struct Keyboard {
    before: Termios,
    eager: Termios,
}

impl Keyboard {
    pub fn open() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut eager = before.clone();
        eager.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        eager.special_codes[SpecialCodeIndex::VMIN] = 1;
        eager.special_codes[SpecialCodeIndex::VTIME] = 0;
        let keyboard = Self { before, eager };
        keyboard.set(&keyboard.eager)?;
        Ok(keyboard)
    }

    /// Waits for a key.
    pub fn key(&self) -> io::Result<Key> {
        const CTRL_C: u8 = 3;
        const CTRL_D: u8 = 4;
        const ESCAPE: u8 = 27;
        Ok(match read_byte()? {
            None | Some(CTRL_C | CTRL_D) => Key::Away,
            Some(b'\r' | b'\n') => Key::Enter,
            Some(ESCAPE) => self.behind_escape()?,
            Some(byte) => Key::Letter(char::from(byte)),
        })
    }

    /// Arrows begin like the Escape key, but never come alone.
    fn behind_escape(&self) -> io::Result<Key> {
        let mut hasty = self.eager.clone();
        hasty.special_codes[SpecialCodeIndex::VMIN] = 0;
        hasty.special_codes[SpecialCodeIndex::VTIME] = 1;
        self.set(&hasty)?;
        let key = match read_byte()? {
            None => Key::Away,
            Some(b'[' | b'O') => match read_byte()? {
                Some(b'A') => Key::Up,
                Some(b'B') => Key::Down,
                _ => Key::Letter('\0'),
            },
            Some(_) => Key::Letter('\0'),
        };
        self.set(&self.eager)?;
        Ok(key)
    }

    fn set(&self, how: &Termios) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Drain, how)?)
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _the_terminal_is_gone = self.set(&self.before);
    }
}

/// Past the buffer of the standard input: what is typed ahead is for whoever comes after us.
fn read_byte() -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match rustix::io::read(io::stdin(), &mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
