//! The modifiers of [`Trace`]: they change the row appended last.

use std::borrow::Cow;

use crate::collective::Collective;
use crate::dialect::{Backend, Era};
use crate::events::{blocks_per_sm, warps_per_sm};
use crate::row::{Row, Side};
use crate::trace::Trace;
use crate::value::{Json, int_list, ratio};

/// One argument of an op, for `Input Dims`, `Input type`, `Input Strides` and `Concrete Inputs`.
#[derive(Clone, Debug)]
pub struct Input {
    dims: Vec<i64>,
    dtype: &'static str,
    concrete: String,
}

impl Input {
    /// A contiguous tensor; `dtype` is the profiler's spelling (`float`, `c10::BFloat16`, `long int`).
    #[must_use]
    pub fn tensor(dims: &[i64], dtype: &'static str) -> Self {
        Input {
            dims: dims.to_vec(),
            dtype,
            concrete: String::new(),
        }
    }

    /// A scalar argument and its text.
    #[must_use]
    pub fn scalar(text: &str) -> Self {
        Input {
            dims: Vec::new(),
            dtype: "Scalar",
            concrete: text.to_owned(),
        }
    }

    fn strides(&self) -> Vec<i64> {
        let mut strides: Vec<i64> = self
            .dims
            .iter()
            .rev()
            .scan(1, |stride, dim| {
                let own = *stride;
                *stride *= dim;
                Some(own)
            })
            .collect();
        strides.reverse();
        strides
    }
}

impl Trace {
    fn modify(mut self, f: impl FnOnce(&mut Row)) -> Self {
        if let Some(row) = self.last() {
            f(row);
        }
        self
    }

    /// Sets the external id: the row's own on CPU ops and annotations, the op's on API calls and device rows.
    #[must_use]
    pub fn ext(self, id: i64) -> Self {
        let dialect = self.dialect;
        self.modify(|row| {
            let linked = row.correlation.is_some();
            let key = if linked {
                dialect.external_key()
            } else {
                "External id"
            };
            let args = row.args.get_or_insert_with(Vec::new);
            args.retain(|(k, _)| k != key);
            args.insert(0, (key.into(), id.into()));
            if linked && dialect.era == Era::E1 && row.side == Side::Host {
                row.set_arg("external ts".into(), 0.into());
            }
        })
    }

    /// Sets `Sequence number` and `Fwd thread id`: 0 on forward ops, the forward thread's small profiler
    /// number on backward ops.
    #[must_use]
    pub fn seq(self, number: i64, forward_thread: i64) -> Self {
        self.arg("Sequence number", number)
            .arg("Fwd thread id", forward_thread)
    }

    /// Sets the four shape arguments.
    #[must_use]
    pub fn inputs(self, inputs: &[Input]) -> Self {
        let list = |items: Vec<String>| Json::raw(format!("[{}]", items.join(", ")));
        let text = |s: &str| Json::from(s).0.into_owned();
        self.arg(
            "Concrete Inputs",
            list(inputs.iter().map(|i| text(&i.concrete)).collect()),
        )
        .arg("Input type", list(inputs.iter().map(|i| text(i.dtype)).collect()))
        .arg(
            "Input Strides",
            list(inputs.iter().map(|i| int_list(&i.strides(), ", ")).collect()),
        )
        .arg(
            "Input Dims",
            list(inputs.iter().map(|i| int_list(&i.dims, ", ")).collect()),
        )
    }

    /// Sets a kernel's launch size in blocks and threads.
    #[must_use]
    pub fn grid(self, grid: [i64; 3], block: [i64; 3]) -> Self {
        let backend = self.dialect.backend;
        self.modify(|row| {
            if backend == Backend::Cuda {
                row.set_arg("blocks per SM".into(), blocks_per_sm(grid));
                row.set_arg("warps per SM".into(), warps_per_sm(grid, block));
            }
            row.set_arg("grid".into(), grid.into());
            row.set_arg("block".into(), block.into());
            if backend == Backend::Cuda {
                row.set_arg("est. achieved occupancy %".into(), 0.into());
            }
        })
    }

    /// Says what a launch call launches: ROCm writes it on the call, CUDA does not.
    #[must_use]
    pub fn launching(self, kernel: &str, grid: [i64; 3], block: [i64; 3]) -> Self {
        if self.dialect.backend == Backend::Cuda {
            return self;
        }
        self.arg("kernel", kernel)
            .arg("grid", grid)
            .arg("block", block)
            .arg("shared memory", 0)
    }

    /// Says what a copy call copies: ROCm writes it on the call (as strings), CUDA does not. `kind` is
    /// HIP's number: 1 host to device, 2 device to host, 3 device to device.
    #[must_use]
    pub fn copying(self, kind: i64, bytes: i64) -> Self {
        if self.dialect.backend == Backend::Cuda {
            return self;
        }
        self.arg("src", "0x7f2a00000000")
            .arg("dst", "0x7f2c00000000")
            .arg("kind", kind.to_string().as_str())
            .arg("bytes", bytes.to_string().as_str())
    }

    /// Sets the size of a copy or fill, and the bandwidth that follows from its duration.
    #[must_use]
    pub fn bytes(self, bytes: i64) -> Self {
        self.modify(|row| {
            row.set_arg("bytes".into(), bytes.into());
            if let Some(ns) = row.dur.as_ref().and_then(|dur| dur.ns()).filter(|ns| *ns > 0) {
                row.set_arg("memory bandwidth (GB/s)".into(), ratio(bytes, ns));
            }
        })
    }

    /// Adds the arguments of a collective; a device row gets the copy without `Rank`.
    #[must_use]
    pub fn collective(self, collective: &Collective) -> Self {
        self.modify(|row| {
            for (key, value) in collective.args(row.side == Side::Device) {
                row.set_arg(key, value);
            }
        })
    }

    /// Sets one argument to any value.
    #[must_use]
    pub fn arg(self, key: &'static str, value: impl Into<Json>) -> Self {
        let value = value.into();
        self.modify(|row| row.set_arg(Cow::Borrowed(key), value))
    }

    /// Removes one argument.
    #[must_use]
    pub fn without_arg(self, key: &str) -> Self {
        self.modify(|row| {
            if let Some(args) = &mut row.args {
                args.retain(|(k, _)| k != key);
            }
        })
    }

    /// Removes `args` altogether.
    #[must_use]
    pub fn without_args(self) -> Self {
        self.modify(|row| row.args = None)
    }

    /// Removes `dur`.
    #[must_use]
    pub fn without_dur(self) -> Self {
        self.modify(|row| row.dur = None)
    }
}
