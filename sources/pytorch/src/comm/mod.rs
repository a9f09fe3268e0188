//! Communication: which rows are part of it, of which kind, and which rows make up one collective.
//!
//! [`kind`] knows what names say, [`kernel_name`] what kernels' names say. [`classify`] gives every row of
//! a trace its kind; [`collectives`] joins rows into collectives, with sizes and bandwidths from
//! [`bandwidth`]. [`rank`] decides which rank a file is of.
//!
//! What is told explicitly goes before what is linked, and that before names: the args on a kernel, the
//! operator that describes the collective around the kernel's launch, the kernel's name. Names alone never
//! decide where one kernel serves several collectives (RCCL's `Generic`, NCCL's `SendRecv`).

mod assemble;
pub(crate) mod bandwidth;
pub(crate) mod classify;
pub(crate) mod collectives;
mod kernel_name;
pub(crate) mod kind;
mod link;
pub(crate) mod rank;

#[cfg(test)]
mod tests;
