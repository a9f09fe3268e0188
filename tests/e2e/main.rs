//! The real binary, verb by verb: wiring, exit statuses, stdout and stderr apart.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod support;

mod commands;
mod damaged;
mod errors;
mod examples;
mod filesystem;
mod formats;
mod giants;
mod golden;
mod guides;
mod hostile;
#[cfg(unix)]
mod interrupt;
mod mutations;

mod pictures;
mod stability;
