//! See `bivouac_fuzz::pack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::pack::try_one(bytes));
