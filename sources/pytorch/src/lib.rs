//! PyTorch profiler (Kineto) traces for veloq.
//!
//! Reads the Chrome traces that `torch.profiler` writes, stores them once as Parquet tables beside the
//! trace, and answers questions by querying the tables.

mod interval;
mod kineto;
mod open;
mod row;
