//! The format as met in the wild: its text, its elements, its categories, its header.

pub(crate) mod args;
pub(crate) mod block;
pub(crate) mod category;
pub(crate) mod collective_args;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod file_name;
pub(crate) mod issues;
mod loose;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod reader;
mod recover;
pub(crate) mod root;
pub(crate) mod scalar;
mod scan;
pub(crate) mod time;
