//! See `bivouac_fuzz::bundle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::bundle::try_one(bytes));
