#![no_main]

use lambda_tools_fuzz::{begin, body, mutation};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| body::run(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutation::mutate(data, size, max_size, seed)
});
