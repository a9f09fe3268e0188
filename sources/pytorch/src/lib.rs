//! PyTorch profiler (Kineto) traces for veloq.
//!
//! Reads the Chrome traces that `torch.profiler` writes, stores them once as Parquet tables beside the
//! trace, and answers questions by querying the tables.

mod comm;
mod ingest;
mod interval;
mod inventory;
mod kineto;
mod link;
mod open;
mod row;
mod sidecar;
mod tables;
