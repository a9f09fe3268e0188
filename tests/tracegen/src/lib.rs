//! Deterministic PyTorch profiler traces for tests, benches and fixtures.
//!
//! Two ways to make one:
//! - [`Trace`] builds a handful of rows inline, in any of the dialects readers meet;
//! - [`generate`] streams a seeded training run of any size, or a shape made to hurt.
//!
//! [`fixtures`] holds the traces committed under `fixtures/pytorch`, so that a test can prove that the files
//! are what this crate says. Nothing here reads a trace: the crate must
//! not share code with what it tests.

mod collective;
mod dialect;
mod events;
pub mod fixtures;
mod generate;
mod gzip;
mod modify;
mod rng;
mod row;
mod trace;
mod value;

pub use collective::Collective;
pub use dialect::{BASE_NS, Backend, EPOCH_NS, Era, Merge, RANK_SHIFT};
pub use generate::{Counts, Shape, Size, Spec, generate};
pub use gzip::{gzip, gzip_cut, gzip_writer};
pub use modify::Input;
pub use rng::Rng;
pub use row::Layout;
pub use trace::{DEFAULT_PID, Trace};
pub use value::{Id, Json, Time};
