//! The args of an event, read by key.
//!
//! Writers and tools spell one value in several ways: an integer as `3`, `3.0` or `"3"`; a list as an
//! array or as its text in quotes. All are read here; what cannot be read is absent.

use serde_json::{Map, Value};

use super::scalar::integer;

/// Keys of args, each with its spellings over the years.
pub(crate) mod key {
    type Key = &'static [&'static str];

    pub(crate) const GRID: Key = &["grid"];
    pub(crate) const BLOCK: Key = &["block"];
    pub(crate) const REGISTERS: Key = &["registers per thread"];
    pub(crate) const SHARED_MEMORY: Key = &["shared memory"];
    pub(crate) const OCCUPANCY: Key = &["est. achieved occupancy %"];
    pub(crate) const BLOCKS_PER_SM: Key = &["blocks per SM"];
    pub(crate) const WARPS_PER_SM: Key = &["warps per SM"];
    pub(crate) const CONTEXT: Key = &["context"];
    pub(crate) const PRIORITY: Key = &["priority"];
    pub(crate) const GRAPH_ID: Key = &["graph id"];
    pub(crate) const GRAPH_NODE_ID: Key = &["graph node id"];
    /// `Dispatch Kernel` on ROCm's kernels, a number in quotes on its copies.
    pub(crate) const KIND: Key = &["kind"];
    pub(crate) const BYTES: Key = &["bytes", "Bytes", "size"];
    pub(crate) const FROM_DEVICE: Key = &["fromDevice"];
    pub(crate) const TO_DEVICE: Key = &["toDevice"];
    pub(crate) const CALLBACK_ID: Key = &["cbid", "cid"];
    pub(crate) const LAUNCHED_KERNEL: Key = &["kernel"];
    pub(crate) const SOURCE_ADDRESS: Key = &["src"];
    pub(crate) const DESTINATION_ADDRESS: Key = &["dst"];
    pub(crate) const POINTER: Key = &["ptr"];
    pub(crate) const INPUT_DIMS: Key = &["Input Dims", "Input dims"];
    pub(crate) const INPUT_TYPES: Key = &["Input type"];
    pub(crate) const INPUT_STRIDES: Key = &["Input Strides"];
    pub(crate) const CONCRETE_INPUTS: Key = &["Concrete Inputs"];
    pub(crate) const SEQUENCE_NUMBER: Key = &["Sequence number"];
    pub(crate) const FORWARD_THREAD: Key = &["Fwd thread id"];
    pub(crate) const RECORD_FUNCTION: Key = &["Record function id"];
    pub(crate) const CALL_STACK: Key = &["Call stack"];
    pub(crate) const MODULE_HIERARCHY: Key = &["Module Hierarchy"];
    pub(crate) const KERNEL_FILE: Key = &["kernel_file"];
    pub(crate) const KERNEL_BACKEND: Key = &["kernel_backend"];
    pub(crate) const NUM_WARPS: Key = &["num_warps"];
    pub(crate) const NUM_STAGES: Key = &["num_stages"];
    pub(crate) const ADDRESS: Key = &["Addr"];
    pub(crate) const DEVICE_TYPE: Key = &["Device Type"];
    pub(crate) const DEVICE_ID: Key = &["Device Id"];
    pub(crate) const TOTAL_ALLOCATED: Key = &["Total Allocated"];
    pub(crate) const TOTAL_RESERVED: Key = &["Total Reserved"];
    pub(crate) const PYTHON_ID: Key = &["Python id"];
    pub(crate) const PYTHON_PARENT: Key = &["Python parent id"];
    pub(crate) const PYTHON_MODULE: Key = &["Python module id"];
    pub(crate) const SYNC_KIND: Key = &["cuda_sync_kind"];
    pub(crate) const WAIT_ON_STREAM: Key = &["wait_on_stream"];
    pub(crate) const WAIT_ON_RECORD: Key = &["wait_on_cuda_event_record_corr_id"];
    pub(crate) const WAIT_ON_EVENT: Key = &["wait_on_cuda_event_id"];
    pub(crate) const COLLECTIVE_NAME: Key = &["Collective name"];
    pub(crate) const DTYPE: Key = &["dtype"];
    pub(crate) const IN_ELEMENTS: Key = &["In msg nelems"];
    pub(crate) const OUT_ELEMENTS: Key = &["Out msg nelems"];
    pub(crate) const IN_SPLITS: Key = &["In split size"];
    pub(crate) const OUT_SPLITS: Key = &["Out split size"];
    pub(crate) const GROUP_NAME: Key = &["Process Group Name", "Process Group ID"];
    pub(crate) const GROUP_DESCRIPTION: Key = &["Process Group Description"];
    pub(crate) const GROUP_RANKS: Key = &["Process Group Ranks"];
    pub(crate) const GROUP_SIZE: Key = &["Group size"];
    pub(crate) const RANK_IN_GROUP: Key = &["Rank"];
    pub(crate) const SOURCE_RANK: Key = &["Src Rank"];
    pub(crate) const DESTINATION_RANK: Key = &["Dst Rank"];
    pub(crate) const SEQ: Key = &["Seq"];
    pub(crate) const COMMS_ID: Key = &["Comms Id"];
    pub(crate) const IS_ASYNC: Key = &["Is asynchronized op"];
}

/// The value of ROCm's `kind` arg on kernels.
pub(crate) const ROCM_KERNEL_KIND: &str = "Dispatch Kernel";

/// Returns whether a ROCm launch call counts its grid in work-items: the module launches of hipBLASLt and
/// Tensile do, the others count blocks.
pub(crate) fn grid_is_work_items(launch_name: &str) -> bool {
    matches!(
        launch_name,
        "hipExtModuleLaunchKernel" | "hipHccModuleLaunchKernel"
    )
}

/// Returns the name of a `Device Type` number (c10's `DeviceType`), for those that profilers write.
pub(crate) fn device_type_name(number: i64) -> Option<&'static str> {
    Some(match number {
        0 => "cpu",
        1 => "cuda",
        2 => "mkldnn",
        6 => "hip",
        9 => "xla",
        12 => "xpu",
        13 => "mps",
        15 => "hpu",
        19 => "mtia",
        20 => "privateuse1",
        _ => return None,
    })
}

/// A copy's direction and ends, of `Memcpy HtoD (Pinned -> Device)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyName<'a> {
    pub(crate) direction: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
    pub(crate) destination: Option<&'a str>,
}

/// Returns what the name of a copy tells; older ROCm wrote `CopyHostToDevice`.
pub(crate) fn copy_name(name: &str) -> CopyName<'_> {
    let known = |direction, source, destination| CopyName {
        direction: Some(direction),
        source: Some(source),
        destination: Some(destination),
    };
    match name {
        "CopyHostToDevice" => return known("HtoD", "Host", "Device"),
        "CopyDeviceToHost" => return known("DtoH", "Device", "Host"),
        "CopyDeviceToDevice" => return known("DtoD", "Device", "Device"),
        "CopyHostToHost" => return known("HtoH", "Host", "Host"),
        _ => {}
    }
    let rest = name.strip_prefix("Memcpy ");
    let direction = rest
        .and_then(|rest| rest.split(' ').next())
        .filter(|direction| !direction.starts_with('('));
    let ends = rest
        .and_then(|rest| rest.split_once('('))
        .and_then(|(_, ends)| ends.strip_suffix(')'))
        .and_then(|ends| ends.split_once(" -> "));
    CopyName {
        direction,
        source: ends.map(|(source, _)| source),
        destination: ends.map(|(_, destination)| destination),
    }
}

/// The args of one event.
#[derive(Debug, Default)]
pub(crate) struct Args(Map<String, Value>);

impl Args {
    /// Reads args; `None` when the text is no JSON object.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Returns the value of a key as written; absent when null.
    pub(crate) fn value(&self, key: &[&str]) -> Option<&Value> {
        key.iter()
            .find_map(|spelling| self.0.get(*spelling))
            .filter(|value| !value.is_null())
    }

    /// Returns an integer.
    pub(crate) fn integer(&self, key: &[&str]) -> Option<i64> {
        integer_of(self.value(key)?)
    }

    /// Returns an integer of up to 64 unsigned bits: an address, a hash.
    pub(crate) fn unsigned(&self, key: &[&str]) -> Option<u64> {
        match self.value(key)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
            _ => None,
        }
    }

    /// Returns a finite number.
    pub(crate) fn number(&self, key: &[&str]) -> Option<f64> {
        let number = match self.value(key)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }

    /// Returns a text; that of a number where one is written.
    pub(crate) fn text(&self, key: &[&str]) -> Option<String> {
        match self.value(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns a truth value, also one written as 0 or 1.
    pub(crate) fn flag(&self, key: &[&str]) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(flag) => Some(*flag),
            other => integer_of(other).map(|number| number != 0),
        }
    }

    /// Returns a list of integers; absent when one of them is no integer, as in a shortened list.
    pub(crate) fn integers(&self, key: &[&str]) -> Option<Vec<i64>> {
        match self.value(key)? {
            Value::Array(items) => items.iter().map(integer_of).collect(),
            Value::String(text) => {
                let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
                if inner.is_empty() {
                    return Some(Vec::new());
                }
                inner.split(',').map(|item| integer(item.trim())).collect()
            }
            _ => None,
        }
    }

    /// Returns the three extents of a grid or block.
    pub(crate) fn extents(&self, key: &[&str]) -> Option<[u64; 3]> {
        let extents: Vec<u64> = self
            .integers(key)?
            .into_iter()
            .map(|extent| u64::try_from(extent).ok())
            .collect::<Option<_>>()?;
        extents.try_into().ok()
    }
}

fn integer_of(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| integer(&number.to_string())),
        Value::String(text) => integer(text.trim()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Args {
        Args::parse(text).unwrap()
    }

    #[test]
    fn integers_are_read_in_all_spellings() {
        let args = args(r#"{"a": 3, "b": 3.0, "c": "3", "d": 3.5, "e": null, "f": 18446744073709551615}"#);
        assert_eq!(args.integer(&["a"]), Some(3));
        assert_eq!(args.integer(&["b"]), Some(3));
        assert_eq!(args.integer(&["c"]), Some(3));
        assert_eq!(args.integer(&["d"]), None);
        assert_eq!(args.integer(&["e"]), None);
        assert_eq!(args.integer(&["f"]), None);
        assert_eq!(args.unsigned(&["f"]), Some(u64::MAX));
        assert_eq!(args.integer(&["missing", "a"]), Some(3));
    }

    #[test]
    fn lists_are_read_as_arrays_and_as_text() {
        let args =
            args(r#"{"a": [1, 2, 3], "b": "[1, 2]", "c": "[]", "d": "[0, ..., 7]", "e": "grid(100,)"}"#);
        assert_eq!(args.extents(&["a"]), Some([1, 2, 3]));
        assert_eq!(args.extents(&["b"]), None);
        assert_eq!(args.integers(&["b"]), Some(vec![1, 2]));
        assert_eq!(args.integers(&["c"]), Some(vec![]));
        assert_eq!(args.integers(&["d"]), None, "a shortened list is not the list");
        assert_eq!(args.extents(&["e"]), None);
    }

    #[test]
    fn numbers_are_finite() {
        let args = args(r#"{"a": "inf", "b": 0.25, "c": "N/A"}"#);
        assert_eq!(args.number(&["a"]), None);
        assert_eq!(args.number(&["b"]), Some(0.25));
        assert_eq!(args.number(&["c"]), None);
    }

    #[test]
    fn copies_tell_their_ends() {
        let pinned = copy_name("Memcpy HtoD (Pinned -> Device)");
        assert_eq!(
            (pinned.direction, pinned.source, pinned.destination),
            (Some("HtoD"), Some("Pinned"), Some("Device"))
        );
        assert_eq!(copy_name("CopyDeviceToHost").destination, Some("Host"));
        assert_eq!(copy_name("memcpy").direction, None);
    }
}
