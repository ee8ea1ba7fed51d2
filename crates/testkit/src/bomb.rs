//! Small files that stand for gigabytes.

/// An index of git's in version 4, which stores each name as a difference to the one before: thousands of names that
/// begin with the same megabyte.
pub fn index_bomb() -> Vec<u8> {
    const N_ENTRIES: u32 = 6_000;
    let mut bytes = [&b"DIRC\0\0\0\x04"[..], &N_ENTRIES.to_be_bytes()].concat();
    for number in 0..N_ENTRIES {
        bytes.extend([[0; 24].as_slice(), &0o100_644_u32.to_be_bytes(), &[0; 34]].concat());
        match number {
            0 => bytes.extend([&[0][..], &vec![b'x'; 1_000_000], &[0]].concat()),
            _ => bytes.extend(format!("\0{number:05}\0").bytes()),
        }
    }
    bytes.extend([0; 20]);
    bytes
}
