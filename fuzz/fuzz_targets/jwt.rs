#![no_main]

use lambda_tools_fuzz::{begin, jwt};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| jwt::run(data));
