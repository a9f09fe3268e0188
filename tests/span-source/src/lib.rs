//! A second source: newline-delimited JSON spans, `{"name": …, "start_ns": …, "dur_ns": …, "thread": …}`.
//!
//! It is small and real. It shows that a source is one crate that implements [`Source`], lists its verbs and
//! registers itself; nothing in veloq-core or veloq-cli knows it. Files are read in one go and nothing is
//! stored, so there are no sidecars.

mod error;
mod longest;
mod read;

use std::time::Instant;

use veloq_core::{
    CleanReport, Detection, ErasedVerb, Failure, Input, PrepOptions, Preparation, Probe, SidecarReport,
    Source, SourceEntry, SourceSchema, SourceSpec, TraceSpan, inventory,
};

use error::Error;
pub use read::{Span, read_spans};

/// Files of newline-delimited spans.
#[derive(Debug, Clone, Copy)]
pub struct Spans;

inventory::submit! { SourceEntry::new(&Spans) }

/// The spans of a file, in file order, times as written.
#[derive(Debug)]
pub struct Session {
    spans: Vec<Span>,
    preparation: Preparation,
}

impl veloq_core::Session for Session {
    fn span(&self) -> Option<TraceSpan> {
        let origin_ns = self.origin_ns()?;
        let end_ns = self.spans.iter().map(Span::end_ns).max()?;
        Some(TraceSpan {
            origin_ns: origin_ns.to_string(),
            span_ns: end_ns - origin_ns,
            clock: "unknown",
        })
    }

    fn preparation(&self) -> &Preparation {
        &self.preparation
    }
}

impl Session {
    /// Returns the earliest start, if there is any span.
    fn origin_ns(&self) -> Option<u64> {
        self.spans.iter().map(|span| span.start_ns).min()
    }
}

impl Source for Spans {
    type Session = Session;
    const SPEC: SourceSpec = SourceSpec {
        name: "spans",
        version: "v0",
        about: "Newline-delimited JSON spans",
        claims: &["*.spans.ndjson"],
        priority: 10,
    };

    fn detect(&self, probe: &Probe<'_>) -> Detection {
        if probe.name.ends_with(".spans.ndjson") {
            Detection::Yes("it is named `*.spans.ndjson`")
        } else if probe.name.ends_with(".ndjson") {
            Detection::Maybe("it is named `*.ndjson`")
        } else {
            Detection::No
        }
    }

    fn prep(&self, input: &Input, _: &PrepOptions<'_>) -> Result<Session, Failure> {
        let begun = Instant::now();
        let text = std::fs::read_to_string(&input.path).map_err(|source| Error::Unreadable {
            path: input.path.clone(),
            source,
        })?;
        let spans = read_spans(&text)?;
        Ok(Session {
            spans,
            preparation: Preparation {
                artifact_dir: input.path.parent().unwrap_or(&input.path).to_owned(),
                built: false,
                elapsed_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                input_bytes: text.len() as u64,
            },
        })
    }

    fn sidecars(&self, input: &Input) -> Result<SidecarReport, Failure> {
        let metadata = std::fs::metadata(&input.path).map_err(|source| Error::Unreadable {
            path: input.path.clone(),
            source,
        })?;
        Ok(SidecarReport {
            artifact_dir: input.path.parent().unwrap_or(&input.path).to_owned(),
            input_bytes: metadata.len(),
            sidecars: Vec::new(),
        })
    }

    fn clean(&self, _: &Input) -> Result<CleanReport, Failure> {
        Ok(CleanReport::default())
    }

    fn schema(&self) -> SourceSchema {
        SourceSchema { tables: Vec::new() }
    }

    fn verbs(&self) -> &'static [&'static dyn ErasedVerb<Session>] {
        &[&longest::Longest]
    }
}
