//! See `bivouac_fuzz::transcript`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::transcript::try_one(
    bivouac_fuzz::AgentKind::Copilot,
    bytes
));
