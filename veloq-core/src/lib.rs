//! The vocabulary every part of veloq shares.
//!
//! A question flows one way: a [`Source`] *detects* its files ([`Probe`] → [`Detection`]), *preps* one trace
//! into a session ([`Input`] + [`PrepOptions`] → [`Session`]), a [`Verb`] runs on the session and returns a
//! typed response, which is erased into an [`Answer`] and wrapped into an [`Envelope`] or shown as a
//! [`Table`]. Failures of every stage meet in [`Failure`].
//!
//! What does not live here: file formats, storage and query engines (the sources own those), and printing
//! (the command line owns that).

mod capability;
mod detect;
mod error;
pub mod figure;
mod guide;
mod interrupt;
mod response;
mod schema;
mod source;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod trust;
mod verb;

pub use capability::{Capabilities, Capability};
pub use detect::{Detection, Probe};
pub use error::{ErrorClass, Explain, Failure, Report, nearest};
pub use guide::{Recipe, RecipeStep, Skill};
pub use interrupt::{Hold, Interrupt};
pub use response::{Envelope, ErrorEnvelope, Page, SourceRef, TraceRef, TraceSpan};
pub use schema::{SCHEMA_VERSION, answer_schema, null_schema, request_schema};
pub use source::{
    CleanReport, ErasedSource, Input, Outcome, PrepOptions, Preparation, ProgressSink, Session, Sidecar,
    SidecarReport, SidecarStatus, Source, SourceEntry, SourceSchema, SourceSpec, TableColumn, TableSchema,
    check_registry, sources,
};
pub use table::{Cell, Column, Section, Table, TableView, Unit};
pub use time::{NsRange, parse_duration_filter, parse_time};
pub use trust::{Finding, Severity, Trust, Verdict};
pub use verb::{Answer, ErasedVerb, Example, Verb, VerbSpec};

#[doc(hidden)]
pub use inventory;
