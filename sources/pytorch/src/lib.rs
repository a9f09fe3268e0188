//! PyTorch profiler (Kineto) traces for veloq.
//!
//! Reads the Chrome traces that `torch.profiler` writes, stores them once as Parquet tables beside the
//! trace, and answers questions by querying the tables.

mod comm;
mod detect;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod guide;
mod ingest;
mod interval;
mod inventory;
mod kineto;
mod link;
mod open;
mod open_error;
mod prep;
mod query;
mod row;
mod session;
mod sidecar;
#[doc(hidden)]
pub mod stages;
mod tables;
mod verbs;

use veloq_core::{
    CleanReport, Detection, ErasedVerb, Failure, Input, PrepOptions, Probe, Recipe, SidecarReport, Skill,
    Source, SourceEntry, SourceSchema, SourceSpec,
};

use session::TraceSession;
use sidecar::Store;

/// The source.
#[derive(Debug, Clone, Copy)]
pub struct PyTorch;

impl Source for PyTorch {
    type Session = TraceSession;
    const SPEC: SourceSpec = SourceSpec {
        name: "pytorch",
        version: "v0",
        about: "PyTorch profiler traces (Kineto): CUDA, ROCm, XPU, MTIA and CPU",
        claims: &["*.pt.trace.json", "*.pt.trace.json.gz"],
        priority: 100,
    };

    fn detect(&self, probe: &Probe<'_>) -> Detection {
        detect::detect(probe)
    }

    fn prep(&self, input: &Input, options: &PrepOptions<'_>) -> Result<TraceSession, Failure> {
        Ok(prep::open(input, options)?)
    }

    fn sidecars(&self, input: &Input) -> Result<SidecarReport, Failure> {
        Ok(Store::new(&input.path).status()?)
    }

    fn clean(&self, input: &Input) -> Result<CleanReport, Failure> {
        Ok(Store::new(&input.path).clean()?)
    }

    fn schema(&self) -> SourceSchema {
        tables::source_schema()
    }

    fn recipes(&self) -> &'static [Recipe] {
        guide::RECIPES
    }

    fn skill(&self) -> Option<Skill> {
        Some(guide::SKILL)
    }

    fn verbs(&self) -> &'static [&'static dyn ErasedVerb<TraceSession>] {
        verbs::VERBS
    }
}

veloq_core::inventory::submit! { SourceEntry::new(&PyTorch) }
