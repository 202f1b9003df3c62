#![no_main]

use lambda_tools_fuzz::{begin, body};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| body::run(body::Family::Mcp, data));
