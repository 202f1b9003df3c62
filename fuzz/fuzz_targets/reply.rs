#![no_main]

use lambda_tools_fuzz::{begin, mutation, reply};

libfuzzer_sys::fuzz_target!(init: begin(), |data: &[u8]| reply::run(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutation::mutate(data, size, max_size, seed)
});
