//! What strangers may hand us, and what has to be true of it whatever it is. Each room has one `try_one`, which
//! panics where a promise is broken; a fuzzer calls it through `fuzz_targets`, a test with the corpus.
//!
//! - [`hook`], [`transcript`]: what an agent tells us, and what it keeps
//! - [`bundle`], [`markdown`]: what is imported
//! - [`config`], [`json_rpc`]: what people and clients say
//! - [`pack`], [`tree`]: our own files, as a damaged disk or somebody with a hex editor leaves them

pub mod bundle;
pub mod config;
pub mod hook;
pub mod json_rpc;
pub mod markdown;
pub mod pack;
pub mod transcript;
pub mod tree;

pub use bivouac_core::agent::AgentKind;

/// What parts of an input stand between. Letters, so that a corpus can be read and a fuzzer can move it about.
const SEPARATOR: &[u8] = b"\n%%\n";

/// The input, cut at every separator.
fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(SEPARATOR.len()).position(|it| it == SEPARATOR) {
        pieces.push(&rest[..at]);
        rest = &rest[at + SEPARATOR.len()..];
    }
    pieces.push(rest);
    pieces
}

/// The first line, and all that follows it.
fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, b""),
    }
}
