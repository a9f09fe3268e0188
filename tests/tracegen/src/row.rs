//! One element of `traceEvents` and its JSON text.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::value::{Id, Json, Time, TimeForm, write_string, write_time};

/// How the file is laid out. Readers must not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One event per line, as re-serialised files have it (those put the whole file on one line).
    #[default]
    Compact,
    /// Several indented lines per event, as Kineto writes.
    Kineto,
}

/// Which clock a row's device side belongs to, for flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    #[default]
    Host,
    Device,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) ph: char,
    pub(crate) cat: Option<Cow<'static, str>>,
    pub(crate) name: String,
    pub(crate) pid: Id,
    pub(crate) tid: Id,
    pub(crate) ts: Option<Time>,
    pub(crate) dur: Option<Time>,
    /// Flow id (`s`, `f`).
    pub(crate) id: Option<i64>,
    /// Scope of an instant (`t`, `g`).
    pub(crate) scope: Option<char>,
    pub(crate) args: Option<Vec<(Cow<'static, str>, Json)>>,
    pub(crate) correlation: Option<i64>,
    pub(crate) side: Side,
}

impl Row {
    pub(crate) fn new(ph: char, name: impl Into<String>, pid: Id, tid: Id) -> Self {
        Row {
            ph,
            cat: None,
            name: name.into(),
            pid,
            tid,
            ts: None,
            dur: None,
            id: None,
            scope: None,
            args: None,
            correlation: None,
            side: Side::Host,
        }
    }

    pub(crate) fn cat(mut self, cat: impl Into<Cow<'static, str>>) -> Self {
        self.cat = Some(cat.into());
        self
    }

    pub(crate) fn at(mut self, ts: impl Into<Time>) -> Self {
        self.ts = Some(ts.into());
        self
    }

    pub(crate) fn lasting(mut self, dur: impl Into<Time>) -> Self {
        self.dur = Some(dur.into());
        self
    }

    pub(crate) fn arg(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Json>) -> Self {
        self.args
            .get_or_insert_with(Vec::new)
            .push((key.into(), value.into()));
        self
    }

    /// Replaces the value of `key`, or appends it.
    pub(crate) fn set_arg(&mut self, key: Cow<'static, str>, value: Json) {
        let args = self.args.get_or_insert_with(Vec::new);
        match args.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => *old = value,
            None => args.push((key, value)),
        }
    }

    /// Flow markers take no place in the numbering of row ids.
    pub(crate) fn is_flow(&self) -> bool {
        matches!(self.ph, 's' | 't' | 'f')
    }

    pub(crate) fn write(&self, out: &mut String, layout: Layout, offset_ns: i64, form: TimeForm) {
        let (open, line, args_open, args_close, close) = match layout {
            Layout::Compact => ("{", " ", "{", "}", "}"),
            Layout::Kineto => ("  {\n    ", "\n    ", "{\n      ", "\n    }", "\n  }"),
        };
        let _ = write!(out, "{open}\"ph\": \"{}\"", self.ph);
        if let Some(id) = self.id {
            let _ = write!(out, ", \"id\": {id}");
        }
        if let Some(cat) = &self.cat {
            out.push_str(", \"cat\": ");
            write_string(out, cat);
        }
        if let Some(scope) = self.scope {
            let _ = write!(out, ", \"s\": \"{scope}\"");
        }
        out.push_str(", \"name\": ");
        write_string(out, &self.name);
        out.push_str(", \"pid\": ");
        self.pid.write(out);
        out.push_str(", \"tid\": ");
        self.tid.write(out);
        if let Some(ts) = &self.ts {
            let _ = write!(out, ",{line}\"ts\": ");
            write_time(out, ts, offset_ns, form);
        }
        if let Some(dur) = &self.dur {
            out.push_str(", \"dur\": ");
            write_time(out, dur, 0, form);
        }
        if self.ph == 'f' {
            out.push_str(", \"bp\": \"e\"");
        }
        if let Some(args) = &self.args {
            let _ = write!(out, ",{line}\"args\": {args_open}");
            for (i, (key, value)) in args.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_string(out, key);
                out.push_str(": ");
                out.push_str(&value.0);
            }
            out.push_str(args_close);
        }
        out.push_str(close);
    }
}

/// An element of `traceEvents`: a well-formed row, or text for damage.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    Row(Box<Row>),
    Raw(String),
}

impl Element {
    pub(crate) fn is_flow(&self) -> bool {
        matches!(self, Element::Row(row) if row.is_flow())
    }

    pub(crate) fn write(&self, out: &mut String, layout: Layout, offset_ns: i64, form: TimeForm) {
        match self {
            Element::Row(row) => row.write(out, layout, offset_ns, form),
            Element::Raw(text) => out.push_str(text),
        }
    }
}
