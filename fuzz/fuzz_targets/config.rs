//! See `bivouac_fuzz::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::config::try_one(bytes));
