//! The verbs, in the order of the help.

mod collectives;
mod correlate;
mod inspect;
mod picture;
mod search;
mod slices;
mod stats;
mod summary;
mod timeline;

use veloq_core::ErasedVerb;

use crate::session::TraceSession;

/// All verbs, in the order of the help.
pub(crate) static VERBS: &[&dyn ErasedVerb<TraceSession>] = &[
    &summary::Summary,
    &search::Search,
    &inspect::Inspect,
    &stats::Stats,
    &correlate::Correlate,
    &timeline::Timeline,
    &slices::Slices,
    &collectives::Collectives,
];
