#![no_main]

use std::panic;

libfuzzer_sys::fuzz_target!(
    // The reader of Parquet panics on some damage, and that is caught. Only what is not caught is a fault, so
    // the hook that aborts on every panic makes way.
    init: panic::set_hook(Box::new(|_| {})),
    |bytes: &[u8]| veloq_source_pytorch::fuzzing::sidecar(bytes)
);
