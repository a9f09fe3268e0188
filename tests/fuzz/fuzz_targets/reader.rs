#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| veloq_source_pytorch::fuzzing::reader(bytes));
