#![no_main]

use lambda_tools_fuzz::{begin, tool_id};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| tool_id::run(data));
