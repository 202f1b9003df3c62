#![no_main]

use lambda_tools_fuzz::{begin, recording};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| recording::run(data));
