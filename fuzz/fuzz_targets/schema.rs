#![no_main]

use lambda_tools_fuzz::{begin, schema};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| schema::run(data));
