#![no_main]

use lambda_tools_fuzz::{begin, redaction};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| redaction::run(data));
