#![no_main]

use lambda_tools_fuzz::{begin, typed};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| typed::run(data));
