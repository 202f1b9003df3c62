#![no_main]

use lambda_tools_fuzz::{begin, oauth_callback};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| oauth_callback::run(data));
