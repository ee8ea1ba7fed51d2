//! See `bivouac_fuzz::hook`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::hook::try_one(
    bivouac_fuzz::AgentKind::Opencode,
    bytes
));
