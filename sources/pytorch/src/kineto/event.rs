//! An element of `traceEvents`, borrowed from its text.

use std::borrow::Cow;

use super::scalar::Scalar;
use super::time::Time;

/// An element, with those of its args that rows are made of.
#[derive(Debug, Clone)]
pub(crate) struct Event<'a> {
    /// First byte of `ph`; 0 when missing.
    pub(crate) phase: u8,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) category: Option<Cow<'a, str>>,
    pub(crate) ts: Time,
    pub(crate) dur: Time,
    pub(crate) pid: Scalar<'a>,
    pub(crate) tid: Scalar<'a>,
    pub(crate) id: Scalar<'a>,
    /// The whole args as valid JSON text; `None` when missing or null.
    pub(crate) args: Option<&'a str>,
    pub(crate) correlation: Option<i64>,
    pub(crate) external_id: Option<i64>,
    pub(crate) stream: Option<i64>,
    pub(crate) device: Option<i64>,
    pub(crate) bytes: Option<i64>,
    pub(crate) sequence_number: Option<i64>,
    pub(crate) fwd_thread_id: Option<i64>,
    /// The JSON text of `Input Dims`.
    pub(crate) input_dims: Option<&'a str>,
    /// `rank`, which merge tools write.
    pub(crate) args_rank: Option<i64>,
    /// Whether there is a `Collective name`.
    pub(crate) has_collective: bool,
    pub(crate) graph_id: Option<i64>,
    pub(crate) finished: Option<bool>,
    /// Whether a key that is read here is given twice; the last one counts.
    pub(crate) repeats_key: bool,
}

impl Default for Event<'_> {
    fn default() -> Self {
        Self {
            phase: 0,
            name: None,
            category: None,
            ts: Time::Missing,
            dur: Time::Missing,
            pid: Scalar::Missing,
            tid: Scalar::Missing,
            id: Scalar::Missing,
            args: None,
            correlation: None,
            external_id: None,
            stream: None,
            device: None,
            bytes: None,
            sequence_number: None,
            fwd_thread_id: None,
            input_dims: None,
            args_rank: None,
            has_collective: false,
            graph_id: None,
            finished: None,
            repeats_key: false,
        }
    }
}

impl Event<'_> {
    /// Forgets all that was read of its args.
    pub(crate) fn clear_args(&mut self) {
        let Self {
            phase,
            name,
            category,
            ts,
            dur,
            pid,
            tid,
            id,
            repeats_key,
            ..
        } = std::mem::take(self);
        *self = Self {
            phase,
            name,
            category,
            ts,
            dur,
            pid,
            tid,
            id,
            repeats_key,
            ..Self::default()
        };
    }

    /// Returns whether args are given that are no object.
    pub(crate) fn has_odd_args(&self) -> bool {
        self.args.is_some_and(|args| !args.starts_with('{'))
    }

    /// Returns whether the element joins two others and is no row: such elements have no index.
    pub(crate) fn is_flow(&self) -> bool {
        matches!(self.phase, b's' | b't' | b'f')
    }

    /// Returns whether there is nothing of an event in the element.
    pub(crate) fn is_empty(&self) -> bool {
        self.phase == 0 && self.name.is_none() && self.ts == Time::Missing
    }
}
