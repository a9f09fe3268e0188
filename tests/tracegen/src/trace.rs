//! [`Trace`]: the options of a hand-made trace, its header, and how it becomes bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use crate::dialect::{BASE_NS, Backend, Dialect, Era, Merge, RANK_SHIFT};
use crate::gzip::gzip;
use crate::row::{Element, Layout, Row};
use crate::value::{Id, Json};

/// A trace under construction; every method takes it by value and hands it back.
///
/// Row methods append one element to `traceEvents` in the order of the calls; modifiers ([`ext`](Self::ext),
/// [`arg`](Self::arg), …) change the row appended last. Options that shape rows (backend, era, merge, rank,
/// pid) act on the rows that follow, so they come first.
///
/// ```
/// use veloq_tracegen::Trace;
///
/// // 0        100       200       300 µs
/// // aten::mm |==========|
/// //   launch    |==|
/// //   gemm          |================|
/// let json = Trace::new()
///     .cpu_op("aten::mm", 1, 0, "100").ext(2)
///     .launch("cudaLaunchKernel", 1, "20", "20", 77).ext(2)
///     .kernel("gemm", 0, 7, "50", "150.5", 77).ext(2)
///     .to_json();
/// assert!(json.contains(r#""ts": 50.000, "dur": 150.500"#));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(crate) dialect: Dialect,
    layout: Layout,
    root: Root,
    /// The process of the rows that follow, if not [`DEFAULT_PID`].
    pid: Option<i64>,
    pub(crate) rank: Option<i64>,
    prefix: Option<String>,
    before: Vec<(String, Option<Json>)>,
    after: Vec<(String, Json)>,
    device_count: Option<i64>,
    distributed: Option<Json>,
    elements: Vec<Element>,
    /// Elements handed out by `take_rows`, flows apart.
    drained: usize,
    pub(crate) ev_idx: i64,
    /// Bytes allocated per (rank, device), for the running totals of `[memory]` rows.
    pub(crate) allocated: BTreeMap<(Option<i64>, i64), i64>,
}

/// The pid of a trace that names none.
pub const DEFAULT_PID: i64 = 900;

/// The root of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Root {
    #[default]
    Object,
    EventsOnly,
    BareArray,
}

impl Trace {
    /// An empty trace as PyTorch 2.7 to 2.9 writes it on CUDA ([`Era::E8`]).
    #[must_use]
    pub fn new() -> Self {
        Trace::default()
    }

    /// Sets the backend of the rows that follow.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.dialect.backend = backend;
        self
    }

    /// Short for `backend(Backend::Rocm)`.
    #[must_use]
    pub fn rocm(self) -> Self {
        self.backend(Backend::Rocm)
    }

    /// Sets the writer era: spelling of the rows that follow, time form and header of the whole file.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.dialect.era = era;
        self
    }

    /// Sets how several ranks share the file.
    #[must_use]
    pub fn merge(mut self, merge: Merge) -> Self {
        self.dialect.merge = merge;
        self
    }

    /// Says which rank the rows that follow belong to. In an unmerged file this is the file's rank and
    /// becomes `distributedInfo: {"rank": n}` unless [`distributed`](Self::distributed) says more.
    #[must_use]
    pub fn rank(mut self, rank: i64) -> Self {
        self.rank = Some(rank);
        self.prefix = None;
        self
    }

    /// Like [`rank`](Self::rank) for [`Merge::PidPrefix`], with the whole prefix given: `"[TP00-DP01]"`.
    #[must_use]
    pub fn rank_prefix(mut self, rank: i64, prefix: &str) -> Self {
        self.rank = Some(rank);
        self.prefix = Some(prefix.to_owned());
        self
    }

    /// Sets the process of the CPU rows that follow ([`DEFAULT_PID`] otherwise).
    #[must_use]
    pub fn pid(mut self, pid: i64) -> Self {
        self.pid = Some(pid);
        self
    }

    /// Writes `distributedInfo` with these three keys.
    #[must_use]
    pub fn distributed(mut self, backend: &str, rank: i64, world_size: i64) -> Self {
        let backend = Json::from(backend).0;
        self.distributed = Some(Json::raw(format!(
            "{{\"backend\": {backend}, \"rank\": {rank}, \"world_size\": {world_size}}}"
        )));
        self
    }

    /// Sets the number of entries of `deviceProperties` (1 otherwise; 0 writes `[]`, a CPU-only capture).
    #[must_use]
    pub fn devices(mut self, count: i64) -> Self {
        self.device_count = Some(count);
        self
    }

    /// Writes a key before `traceEvents`, in place of a default of that name.
    #[must_use]
    pub fn header(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.before.push((key.to_owned(), Some(value.into())));
        self
    }

    /// Leaves a default key out of the file.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.before.push((key.to_owned(), None));
        self
    }

    /// Writes a key after `traceEvents`, in place of a default of that name.
    #[must_use]
    pub fn trailer(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.after.push((key.to_owned(), value.into()));
        self
    }

    /// Writes the root as an object with `traceEvents` alone, as rewriting scripts do.
    #[must_use]
    pub fn events_only(mut self) -> Self {
        self.root = Root::EventsOnly;
        self
    }

    /// Writes the root as a bare array of events.
    #[must_use]
    pub fn bare_array(mut self) -> Self {
        self.root = Root::BareArray;
        self
    }

    /// Sets the line layout.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Applies `f` for each item: for rows that follow a pattern.
    #[must_use]
    pub fn each<I: IntoIterator>(self, items: I, f: impl FnMut(Self, I::Item) -> Self) -> Self {
        items.into_iter().fold(self, f)
    }

    /// The contract's index of the row appended last: its position in `traceEvents`, flow markers not
    /// counted. Meaningless in an empty trace.
    #[must_use]
    pub fn row_index(&self) -> usize {
        self.row_count().saturating_sub(1)
    }

    /// The number of elements, flow markers not counted.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.drained + self.elements.iter().filter(|element| !element.is_flow()).count()
    }

    /// The index (as in [`row_index`](Self::row_index)) of the first row of that name.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        let rows = self.elements.iter().filter(|element| !element.is_flow());
        rows.enumerate()
            .find(|(_, element)| matches!(element, Element::Row(row) if row.name == name))
            .map(|(i, _)| self.drained + i)
    }

    /// The whole file as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = self.head();
        self.write_elements(&mut out, true);
        out.push_str(&self.tail());
        out
    }

    /// Writes the file as plain JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.to_json())
    }

    /// Writes the file gzipped; equal traces give equal bytes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_gz(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, gzip(self.to_json().as_bytes())?)
    }

    /// Writes the elements so far to `out` and forgets them, so that a long trace needs little memory.
    /// `first` says whether nothing has been written between head and tail yet. Returns how many there were.
    pub(crate) fn drain_rows(&mut self, out: &mut impl Write, first: bool) -> io::Result<usize> {
        let mut text = String::with_capacity(self.elements.len() * 256);
        self.write_elements(&mut text, first);
        out.write_all(text.as_bytes())?;
        let count = self.elements.len();
        self.drained = self.row_count();
        self.elements.clear();
        Ok(count)
    }

    pub(crate) fn element_count(&self) -> usize {
        self.elements.len()
    }

    /// Adds the elements not yet drained to `counts`, by category; raw text and rows without one count under "".
    pub(crate) fn count_categories(&self, counts: &mut BTreeMap<String, u64>) {
        for element in &self.elements {
            let cat = match element {
                Element::Row(row) => row.cat.as_deref().unwrap_or_default(),
                Element::Raw(_) => "",
            };
            match counts.get_mut(cat) {
                Some(count) => *count += 1,
                None => {
                    counts.insert(cat.to_owned(), 1);
                }
            }
        }
    }

    /// Forgets the elements from `position` on.
    pub(crate) fn truncate_rows(&mut self, position: usize) {
        self.elements.truncate(position);
    }

    fn write_elements(&self, out: &mut String, first: bool) {
        let (offset, form) = (self.dialect.time_offset(), self.dialect.time_form());
        for (i, element) in self.elements.iter().enumerate() {
            out.push_str(if first && i == 0 { "\n" } else { ",\n" });
            element.write(out, self.layout, offset, form);
        }
    }

    /// The file up to and including the bracket that opens the events.
    pub(crate) fn head(&self) -> String {
        if self.root == Root::BareArray {
            return "[".to_owned();
        }
        let mut out = "{".to_owned();
        for (key, value) in self.head_keys() {
            out.push_str(&format!("\n  \"{key}\": {},", value.0));
        }
        out.push_str("\n  \"traceEvents\": [");
        out
    }

    /// The file from the bracket that closes the events.
    pub(crate) fn tail(&self) -> String {
        if self.root == Root::BareArray {
            return "\n]\n".to_owned();
        }
        let mut out = "\n  ]".to_owned();
        for (key, value) in self.tail_keys() {
            out.push_str(&format!(",\n  \"{key}\": {}", value.0));
        }
        out.push_str("\n}\n");
        out
    }

    fn head_keys(&self) -> Vec<(String, Json)> {
        let era = self.dialect.era;
        let mut keys: Vec<(&str, Json)> = Vec::new();
        if self.root == Root::Object {
            keys.push(("schemaVersion", 1.into()));
            keys.push(("deviceProperties", self.device_properties()));
            if era >= Era::E7 {
                keys.extend(self.versions());
                keys.push(("trace_id", "5EED0000000000000000000000000001".into()));
            }
            if era >= Era::E9 {
                keys.push(("host_name", "trainer".into()));
            }
            let rank_only = || {
                let rank = self.rank.filter(|_| self.dialect.merge == Merge::None)?;
                Some(Json::raw(format!("{{\"rank\": {rank}}}")))
            };
            keys.extend(
                self.distributed
                    .clone()
                    .or_else(rank_only)
                    .map(|info| ("distributedInfo", info)),
            );
            if era >= Era::E8 {
                keys.extend(clock_keys());
            } else if era == Era::E5 {
                keys.push(("displayTimeUnit", "ns".into()));
            }
        }
        let mut keys: Vec<(String, Json)> = keys
            .into_iter()
            .filter(|(k, _)| !self.is_trailer(k))
            .map(|(k, v)| (k.to_owned(), v))
            .collect();
        for (key, value) in &self.before {
            let at = keys.iter().position(|(k, _)| k == key);
            match (at, value) {
                (Some(at), Some(value)) => keys[at].1 = value.clone(),
                (Some(at), None) => {
                    keys.remove(at);
                }
                (None, Some(value)) => keys.push((key.clone(), value.clone())),
                (None, None) => {}
            }
        }
        keys
    }

    fn tail_keys(&self) -> Vec<(String, Json)> {
        let mut keys: Vec<(String, Json)> = Vec::new();
        if self.root == Root::Object {
            keys.push(("traceName".to_owned(), "trace.json".into()));
            if matches!(self.dialect.era, Era::E6 | Era::E7) {
                keys.extend(clock_keys().map(|(k, v)| (k.to_owned(), v)));
            }
        }
        keys.retain(|(key, _)| !self.before.iter().any(|(k, _)| k == key) && !self.is_trailer(key));
        keys.extend(self.after.iter().cloned());
        keys
    }

    fn is_trailer(&self, key: &str) -> bool {
        self.after.iter().any(|(k, _)| k == key)
    }

    fn versions(&self) -> Vec<(&'static str, Json)> {
        match self.dialect.backend {
            Backend::Cuda => vec![
                ("cupti_version", 28.into()),
                ("cuda_runtime_version", 12_080.into()),
                ("cuda_driver_version", 12_090.into()),
            ],
            Backend::Rocm => vec![
                ("roctracer_version", Json::raw("4.1")),
                ("hip_runtime_version", 60_443_483.into()),
                ("hip_driver_version", 60_443_483.into()),
            ],
        }
    }

    fn device_properties(&self) -> Json {
        let count = self.device_count.unwrap_or(1);
        let devices: Vec<String> = (0..count).map(|id| self.device_entry(id)).collect();
        if devices.is_empty() {
            return Json::raw("[]");
        }
        Json::raw(format!("[\n    {}\n  ]", devices.join(",\n    ")))
    }

    fn device_entry(&self, id: i64) -> String {
        let rest = match self.dialect.backend {
            Backend::Cuda => {
                "\"name\": \"NVIDIA H100 80GB HBM3\", \"totalGlobalMem\": 85018279936, \
                 \"computeMajor\": 9, \"computeMinor\": 0, \"maxThreadsPerBlock\": 1024, \
                 \"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, \"warpSize\": 32, \
                 \"sharedMemPerBlock\": 49152, \"numSms\": 132, \"regsPerMultiprocessor\": 65536, \
                 \"sharedMemPerBlockOptin\": 232448, \"sharedMemPerMultiprocessor\": 233472"
            }
            Backend::Rocm => {
                "\"name\": \"AMD Instinct MI300X\", \"totalGlobalMem\": 205571227648, \
                 \"computeMajor\": 9, \"computeMinor\": 4, \"maxThreadsPerBlock\": 1024, \
                 \"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, \"warpSize\": 64, \
                 \"sharedMemPerBlock\": 65536, \"numSms\": 304, \
                 \"maxSharedMemoryPerMultiProcessor\": 65536"
            }
        };
        format!("{{\"id\": {id}, {rest}}}")
    }

    pub(crate) fn cpu_pid(&self) -> Id {
        Id::Int(self.pid.unwrap_or(DEFAULT_PID))
    }

    /// Appends a row in the merge dialect of the file.
    pub(crate) fn push(mut self, row: Row) -> Self {
        let row = self.merged(row);
        self.elements.push(Element::Row(Box::new(row)));
        self
    }

    /// Appends a flow row copied from a row that already is in the merge dialect of the file.
    pub(crate) fn push_merged(mut self, mut row: Row) -> Self {
        if let (Some(rank), Some(id), Merge::ArgsRank) = (self.rank, row.id, self.dialect.merge) {
            row = row.arg("rank", rank).arg("id_raw", id - rank * RANK_SHIFT);
        }
        self.elements.push(Element::Row(Box::new(row)));
        self
    }

    pub(crate) fn push_raw(mut self, text: String) -> Self {
        self.elements.push(Element::Raw(text));
        self
    }

    fn merged(&self, mut row: Row) -> Row {
        let Some(rank) = self.rank else { return row };
        match self.dialect.merge {
            Merge::None => {}
            Merge::PidPrefix => {
                let pid = match &row.pid {
                    Id::Int(n) => n.to_string(),
                    Id::Text(text) => text.clone(),
                };
                let prefix = self.prefix.clone().unwrap_or_else(|| format!("[TP{rank:02}]"));
                row.pid = Id::Text(format!("{prefix} {pid}"));
            }
            Merge::ArgsRank => {
                let shift = rank * RANK_SHIFT;
                row = row.arg("rank", rank);
                if let Id::Int(pid) = row.pid {
                    row.pid = Id::Int(pid + shift);
                    row = row.arg("pid_raw", pid);
                }
                if let Some(id) = row.id {
                    row.id = Some(id + shift);
                    row = row.arg("id_raw", id);
                }
                if let Some(correlation) = row.correlation {
                    let shifted = correlation + shift;
                    row.correlation = Some(shifted);
                    row.set_arg(Cow::Borrowed("correlation"), shifted.into());
                    row = row.arg("correlation_raw", correlation);
                }
            }
        }
        row
    }

    /// The row appended last; raw text cannot be modified, so it is skipped.
    pub(crate) fn last(&mut self) -> Option<&mut Row> {
        self.elements.iter_mut().rev().find_map(|element| match element {
            Element::Row(row) => Some(&mut **row),
            Element::Raw(_) => None,
        })
    }

    /// The row at `position` among the elements not yet drained.
    pub(crate) fn row_at(&mut self, position: usize) -> Option<&mut Row> {
        match self.elements.get_mut(position) {
            Some(Element::Row(row)) => Some(row),
            _ => None,
        }
    }
}

fn clock_keys() -> [(&'static str, Json); 2] {
    [
        ("displayTimeUnit", "ms".into()),
        ("baseTimeNanoseconds", BASE_NS.into()),
    ]
}
