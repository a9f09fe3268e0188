//! A builder of rows for tests: a few rows whose times a reader can add up in the head.
//!
//! ```ignore
//! let mut table = TestRows::default();
//! let op = table.op("aten::mm", 0, 10);
//! let call = table.call("cudaLaunchKernel", 2, 3, 77);
//! let kernel = table.kernel("gemm", 7, 20, 77);
//! let linked = table.link(None);
//! assert_eq!(linked.nesting.op[kernel as usize], op);
//! ```

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::comm::rank::rank_of_file;
use crate::kineto::category::MODULE_PREFIX;
use crate::kineto::metadata::Header;
use crate::kineto::reader::{ReadOptions, read};
use crate::link::launch::{Launches, link_launches};
use crate::link::nesting::{Nesting, nest};
use crate::link::rank::{Ranks, group_by_rank};
use crate::link::step::{Steps, assign_steps};
use crate::row::RowType;

use super::collect::{Collected, Gatherer};
use super::columns::{Id, NO_ROW, NONE, Placement, Rows, Strings, TrackKey, Tracks};
use super::derive::{Derived, derive};

/// Rows under construction, with the strings and tracks they name.
///
/// CPU-side rows go to pid 100 and the current thread, device rows to the current device and stream.
#[derive(Debug)]
pub(crate) struct TestRows {
    pub(crate) rows: Rows,
    pub(crate) strings: Strings,
    pub(crate) tracks: Tracks,
    thread: i64,
    device: i64,
    stream: i64,
}

/// What linking makes of test rows.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) ranks: Ranks,
    pub(crate) nesting: Nesting,
    pub(crate) launches: Launches,
    pub(crate) steps: Steps,
}

impl Default for TestRows {
    fn default() -> Self {
        Self {
            rows: Rows::default(),
            strings: Strings::default(),
            tracks: Tracks::default(),
            thread: 1,
            device: 0,
            stream: 7,
        }
    }
}

impl TestRows {
    /// Puts the CPU-side rows that follow on a thread; 1 to begin with.
    pub(crate) fn on_thread(&mut self, thread: i64) -> &mut Self {
        self.thread = thread;
        self
    }

    /// Puts the device rows that follow on a stream of a device; device 0, stream 7 to begin with.
    pub(crate) fn on_stream(&mut self, device: i64, stream: i64) -> &mut Self {
        (self.device, self.stream) = (device, stream);
        self
    }

    /// Adds a CPU-side row of any type.
    pub(crate) fn cpu(&mut self, row_type: RowType, name: &str, start_ns: i64, dur_ns: i64) -> u32 {
        self.push(row_type, name, start_ns, dur_ns, (100, self.thread))
    }

    /// Adds an operator.
    pub(crate) fn op(&mut self, name: &str, start_ns: i64, dur_ns: i64) -> u32 {
        self.cpu(RowType::CpuOp, name, start_ns, dur_ns)
    }

    /// Adds an annotation on the CPU.
    pub(crate) fn annotation(&mut self, name: &str, start_ns: i64, dur_ns: i64) -> u32 {
        self.cpu(RowType::Annotation, name, start_ns, dur_ns)
    }

    /// Adds a step, named `ProfilerStep#<number>`.
    pub(crate) fn step(&mut self, number: i64, start_ns: i64, dur_ns: i64) -> u32 {
        self.cpu(RowType::Step, &format!("ProfilerStep#{number}"), start_ns, dur_ns)
    }

    /// Adds an API call.
    pub(crate) fn call(&mut self, name: &str, start_ns: i64, dur_ns: i64, correlation: i64) -> u32 {
        let row = self.cpu(RowType::Runtime, name, start_ns, dur_ns);
        self.rows.correlation[row as usize] = correlation;
        row
    }

    /// Adds a device row of any type: work, or an annotation's projection; without a launch when
    /// `correlation` is [`NONE`].
    pub(crate) fn device(
        &mut self,
        row_type: RowType,
        name: &str,
        start_ns: i64,
        dur_ns: i64,
        correlation: i64,
    ) -> u32 {
        let (device, stream) = (self.device, self.stream);
        let row = self.push(row_type, name, start_ns, dur_ns, (device, stream));
        self.rows.correlation[row as usize] = correlation;
        self.rows.placement.0.push((
            row,
            Placement {
                device,
                stream,
                is_graph: false,
            },
        ));
        row
    }

    /// Adds a kernel.
    pub(crate) fn kernel(&mut self, name: &str, start_ns: i64, dur_ns: i64, correlation: i64) -> u32 {
        self.device(RowType::Kernel, name, start_ns, dur_ns, correlation)
    }

    /// Gives a row the args of a collective, as JSON text.
    pub(crate) fn collective_args(&mut self, row: u32, args: &str) -> &mut Self {
        self.rows.collective_args.0.push((row, args.into()));
        self.rows.collective_args.0.sort_by_key(|(row, _)| *row);
        self
    }

    /// Links the rows as a file of one rank.
    pub(crate) fn link(&self, rank: Option<i64>) -> Linked {
        let has_rows = vec![true; self.tracks.keys().len()];
        let ranks = group_by_rank(&self.tracks, &self.strings, &has_rows, rank);
        let is_module_name: Vec<bool> = self
            .strings
            .iter()
            .map(|text| text.starts_with(MODULE_PREFIX))
            .collect();
        let mut nesting = nest(&self.rows, &is_module_name);
        let launches = link_launches(&self.rows, &ranks, &mut nesting);
        let steps = assign_steps(&self.rows, &self.strings, &ranks, &launches);
        Linked {
            ranks,
            nesting,
            launches,
            steps,
        }
    }

    fn push(
        &mut self,
        row_type: RowType,
        name: &str,
        start_ns: i64,
        dur_ns: i64,
        (pid, tid): (i64, i64),
    ) -> u32 {
        let row = self.rows.numbers().end;
        let track = self.tracks.intern(TrackKey {
            rank: NONE,
            pid: Id::Int(pid),
            tid: Id::Int(tid),
        });
        let rows = &mut self.rows;
        rows.index.push(row);
        rows.row_type.push(row_type);
        rows.phase.push(b'X');
        rows.category.push(NO_ROW);
        rows.name.push(self.strings.intern(name));
        rows.start_ns.push(start_ns);
        rows.dur_ns.push(dur_ns);
        rows.track.push(track);
        rows.correlation.push(NONE);
        rows.external.push(NONE);
        rows.shape.push(NO_ROW);
        row
    }
}

/// A trace file in memory: its rows, and all that is derived of them.
#[derive(Debug)]
pub(crate) struct TestTrace {
    pub(crate) collected: Collected,
    pub(crate) derived: Derived,
}

impl TestTrace {
    /// Reads a trace file without writing tables.
    pub(crate) fn read(path: &Path) -> Self {
        let (sender, receiver) = sync_channel(4);
        let drain = thread::spawn(move || receiver.iter().count());
        let mut gatherer = Gatherer::new(sender);
        let document = read(path, ReadOptions::default(), &mut gatherer).unwrap();
        let mut collected = gatherer.finish();
        drain.join().unwrap();
        let header = Header::read(&document.keys);
        let name = path.file_name().unwrap().to_string_lossy();
        let rank = rank_of_file(&header, &collected.rows, &collected.strings, Some(&name));
        let derived = derive(&mut collected, &header, rank, 2);
        Self { collected, derived }
    }

    /// Reads one of the traces under `fixtures/pytorch`.
    pub(crate) fn fixture(name: &str) -> Self {
        Self::read(&workspace().join("fixtures/pytorch").join(name))
    }

    /// Reads a recorded trace, which is not part of the repository: from `VELOQ_TRACES`, else from
    /// `shared/traces` beside the workspace. `None`, with a line on stderr, when it is not there.
    pub(crate) fn recorded(name: &str) -> Option<Self> {
        let folder = std::env::var_os("VELOQ_TRACES")
            .map_or_else(|| workspace().join("../shared/traces"), PathBuf::from);
        let path = folder.join(name);
        if path.exists() {
            return Some(Self::read(&path));
        }
        eprintln!("skipped: {} is not there", path.display());
        None
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_gets_the_operator_of_its_launch_and_its_step() {
        let mut table = TestRows::default();
        table.step(4, 0, 100);
        let op = table.op("aten::mm", 0, 10);
        let call = table.call("cudaLaunchKernel", 2, 3, 77);
        let kernel = table.kernel("gemm", 107, 20, 77) as usize;
        let linked = table.link(None);
        assert_eq!(linked.nesting.op[kernel], op);
        assert_eq!(linked.launches.launch[kernel], call);
        assert_eq!(linked.steps.of_row[kernel], 4);
    }
}
