//! See `bivouac_fuzz::tree`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::tree::try_one(bytes));
