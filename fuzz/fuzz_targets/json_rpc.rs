//! See `bivouac_fuzz::json_rpc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bivouac_fuzz::json_rpc::try_one(bytes));
