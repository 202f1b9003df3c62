#![no_main]

use lambda_tools_fuzz::{begin, stream};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| stream::run(data));
