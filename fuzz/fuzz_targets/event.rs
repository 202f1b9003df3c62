#![no_main]

use lambda_tools_fuzz::{begin, event};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| event::run(data));
