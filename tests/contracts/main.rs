//! The contracts: generated from the types, valid, closed, and kept by what the binary prints; and the
//! promises of the workspace's layout.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod support;

mod answers;
mod files;
mod layout;
mod requests;
