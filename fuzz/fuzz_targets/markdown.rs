//! See `bivouac_fuzz::markdown`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::markdown::try_one(bytes));
