//! What stands beside the elements: devices, the distributed job, versions, recording options.
//!
//! The keys come from an unordered map, so they stand in any order, before or behind the elements, and may
//! occur twice (an on-demand capture and the trainer both write `distributedInfo`): the last counts. A
//! value of an unexpected type is taken as absent; none makes a trace unreadable.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::loose::{integer, is_on, ranks, text};

/// The description of the group that holds all ranks of a job.
pub(crate) const WORLD_GROUP: &str = "default_pg";

/// A process group of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Mostly the text of a number.
    pub(crate) name: Option<String>,
    /// `default_pg`, `undefined`, or what its user called it.
    pub(crate) description: Option<String>,
    /// For example `cpu:gloo,cuda:gloo`.
    pub(crate) backend: Option<String>,
    pub(crate) size: Option<i64>,
    /// The members' global ranks; `None` where the list is missing or was shortened.
    pub(crate) ranks: Option<Vec<i64>>,
}

/// What the header tells of the distributed job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) backend: Option<String>,
    pub(crate) rank: Option<i64>,
    pub(crate) world_size: Option<i64>,
    pub(crate) nccl_version: Option<String>,
    /// Groups of the whole job; [`groups`](Self::groups) holds those of this rank.
    pub(crate) group_count: Option<i64>,
    pub(crate) groups: Vec<Group>,
}

/// A device that the recording process could see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) id: Option<i64>,
    pub(crate) name: Option<String>,
    pub(crate) memory_bytes: Option<i64>,
    /// Streaming multiprocessors, or compute units.
    pub(crate) multiprocessors: Option<i64>,
    /// Lanes of a warp or wavefront.
    pub(crate) warp_size: Option<i64>,
}

/// The header of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) schema_version: Option<i64>,
    /// What times count from, in ns since 1970; fits 63 bits until the year 2262.
    pub(crate) base_time_ns: Option<i64>,
    /// A hint to viewers; times are microseconds whatever it says.
    pub(crate) display_time_unit: Option<String>,
    pub(crate) trace_id: Option<String>,
    pub(crate) host_name: Option<String>,
    /// The path that the trace was first written to.
    pub(crate) trace_name: Option<String>,
    pub(crate) distributed: Option<Info>,
    /// All devices visible to the process, used or not; of a merged file, those of every rank.
    pub(crate) devices: Vec<Device>,
    /// What the profiler logged as errors: why devices or rows may be missing.
    pub(crate) errors: Vec<String>,
    /// In the order of [`VERSION_KEYS`].
    versions: Vec<(&'static str, String)>,
    /// In the order of [`FLAGS`].
    flags: Vec<(&'static str, bool)>,
    is_rocm: bool,
}

/// How a version is written.
#[derive(Clone, Copy)]
enum Scheme {
    /// As it reads.
    Plain,
    /// 12090 is 12.9.
    Cuda,
    /// 60443483 is 6.4.43483.
    Hip,
}

const VERSION_KEYS: &[(&str, &str, Scheme)] = &[
    ("cuda_runtime_version", "cuda", Scheme::Cuda),
    ("cuda_driver_version", "cuda_driver", Scheme::Cuda),
    ("cupti_version", "cupti", Scheme::Plain),
    ("hip_runtime_version", "hip", Scheme::Hip),
    ("hip_driver_version", "hip_driver", Scheme::Hip),
    ("roctracer_version", "roctracer", Scheme::Plain),
    ("rocprofiler-sdk_version", "rocprofiler_sdk", Scheme::Plain),
    ("xpupti_version", "xpupti", Scheme::Plain),
];

const FLAGS: &[&str] = &[
    "record_shapes",
    "profile_memory",
    "with_stack",
    "with_modules",
    "with_flops",
];

/// Values by key, the last of each, as JSON.
type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn fields(json: &str) -> Option<Fields<'_>> {
    serde_json::from_str(json).ok()
}

/// Returns the elements of an array that are objects.
fn objects<'a>(value: Option<&&'a RawValue>) -> Vec<Fields<'a>> {
    let elements: Vec<&RawValue> = value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default();
    elements
        .into_iter()
        .filter_map(|element| fields(element.get()))
        .collect()
}

fn text_in(fields: &Fields<'_>, key: &str) -> Option<String> {
    text(fields.get(key)?)
        .filter(|text| !text.is_empty())
        .map(Cow::into_owned)
}

fn integer_in(fields: &Fields<'_>, key: &str) -> Option<i64> {
    integer(fields.get(key)?)
}

impl Group {
    fn of(fields: &Fields<'_>) -> Self {
        let size = integer_in(fields, "pg_size").filter(|size| *size > 0);
        let members = fields.get("ranks").and_then(|value| ranks(value));
        Self {
            name: text_in(fields, "pg_name"),
            description: text_in(fields, "pg_desc"),
            backend: text_in(fields, "backend_config"),
            size: size.or_else(|| i64::try_from(members.as_ref()?.len()).ok()),
            ranks: members,
        }
    }
}

impl Info {
    fn of(fields: &Fields<'_>) -> Self {
        Self {
            backend: text_in(fields, "backend"),
            rank: integer_in(fields, "rank").filter(|rank| *rank >= 0),
            world_size: integer_in(fields, "world_size").filter(|size| *size > 0),
            nccl_version: text_in(fields, "nccl_version").filter(|version| version != "unknown"),
            group_count: integer_in(fields, "pg_count").filter(|count| *count >= 0),
            groups: objects(fields.get("pg_config")).iter().map(Group::of).collect(),
        }
    }
}

impl Device {
    fn of(fields: &Fields<'_>) -> Self {
        Self {
            id: integer_in(fields, "id"),
            name: text_in(fields, "name"),
            memory_bytes: integer_in(fields, "totalGlobalMem"),
            multiprocessors: integer_in(fields, "numSms").or(integer_in(fields, "maxComputeUnits")),
            warp_size: integer_in(fields, "warpSize"),
        }
    }
}

/// Returns a version as people write it; `None` for 0, which writers put for unknown.
fn version(value: &RawValue, scheme: Scheme) -> Option<String> {
    let number = integer(value);
    if number == Some(0) {
        return None;
    }
    match (scheme, number) {
        (Scheme::Cuda, Some(n)) => Some(format!("{}.{}", n / 1_000, n % 1_000 / 10)),
        (Scheme::Hip, Some(n)) => Some(format!(
            "{}.{}.{}",
            n / 10_000_000,
            n / 100_000 % 100,
            n % 100_000
        )),
        _ => text(value).filter(|text| !text.is_empty()).map(Cow::into_owned),
    }
}

/// Returns the lines of a log array. Early writers put raw line breaks into their strings.
fn lines(json: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Lines(Vec<String>);
    let as_blanks = || {
        json.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect::<String>()
    };
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&as_blanks()))
        .map_or_else(|_| Vec::new(), |Lines(lines)| lines)
}

impl Header {
    /// Reads the root's keys, as they stand in the file.
    pub(crate) fn read(keys: &[(String, Box<str>)]) -> Self {
        let mut header = Self::default();
        let mut root = Fields::new();
        for (key, json) in keys {
            if key == "ERROR" {
                header.errors = lines(json);
            } else if let Ok(value) = serde_json::from_str::<&RawValue>(json) {
                root.insert(Cow::Borrowed(key), value);
            }
        }
        header.schema_version = integer_in(&root, "schemaVersion");
        header.base_time_ns = integer_in(&root, "baseTimeNanoseconds");
        header.display_time_unit = text_in(&root, "displayTimeUnit");
        header.trace_id = text_in(&root, "trace_id");
        header.host_name = text_in(&root, "host_name");
        header.trace_name = text_in(&root, "traceName");
        header.distributed = root
            .get("distributedInfo")
            .and_then(|value| fields(value.get()))
            .map(|fields| Info::of(&fields));
        let devices = root
            .get("deviceProperties")
            .or_else(|| root.get("computeProperties"));
        header.devices = objects(devices).iter().map(Device::of).collect();
        header.versions = VERSION_KEYS
            .iter()
            .filter_map(|(key, name, scheme)| Some((*name, version(root.get(*key)?, *scheme)?)))
            .collect();
        header.flags = FLAGS
            .iter()
            .filter_map(|flag| Some((*flag, is_on(root.get(*flag)?))))
            .collect();
        header.is_rocm = [
            "roctracer_version",
            "rocprofiler-sdk_version",
            "hip_runtime_version",
        ]
        .iter()
        .any(|key| root.contains_key(*key))
            || header.devices.iter().any(|device| device.warp_size == Some(64));
        header
    }

    /// Returns the size of the job: as told, else that of the group that holds all ranks.
    pub(crate) fn world_size(&self) -> Option<i64> {
        let info = self.distributed.as_ref()?;
        let default_group = || {
            info.groups
                .iter()
                .find(|group| group.description.as_deref() == Some(WORLD_GROUP))
        };
        info.world_size.or_else(|| default_group()?.size)
    }

    /// Returns the versions of what the process ran on, by name, in a fixed order.
    pub(crate) fn versions(&self) -> Map<String, Value> {
        let nccl = self
            .distributed
            .as_ref()
            .and_then(|info| info.nccl_version.clone());
        self.versions
            .iter()
            .map(|(name, version)| ((*name).to_owned(), version.clone().into()))
            .chain(nccl.map(|version| ("nccl".to_owned(), version.into())))
            .collect()
    }

    /// Returns the recording options that are told, in a fixed order. Absent means off, or an old writer.
    pub(crate) fn capture_flags(&self) -> Map<String, Value> {
        self.flags
            .iter()
            .map(|(flag, is_on)| ((*flag).to_owned(), (*is_on).into()))
            .collect()
    }

    /// Returns the name of a device that rows name by number; `None` where that is not certain.
    ///
    /// Where all devices are alike the number does not matter. Else it must be told once; on ROCm it never
    /// is, as rows number devices among all agents and the header among accelerators.
    pub(crate) fn device_name(&self, id: i64) -> Option<String> {
        let (first, others) = self.devices.split_first()?;
        if others.iter().all(|device| device.name == first.name) {
            return first.name.clone();
        }
        let mut named = self.devices.iter().filter(|device| device.id == Some(id));
        match (named.next(), named.next()) {
            (Some(device), None) if !self.is_rocm => device.name.clone(),
            _ => None,
        }
    }

    /// Returns whether a recording option is told to be on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.flags.iter().any(|(flag, is_on)| *flag == name && *is_on)
    }

    /// Returns whether the process could see accelerators.
    pub(crate) fn has_devices(&self) -> bool {
        !self.devices.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(keys: &[(&str, &str)]) -> Header {
        let keys: Vec<(String, Box<str>)> = keys
            .iter()
            .map(|(key, json)| ((*key).to_owned(), (*json).into()))
            .collect();
        Header::read(&keys)
    }

    #[test]
    fn groups_are_read_from_arrays_and_text() {
        let header = header(&[(
            "distributedInfo",
            r#"{"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 71, "nccl_version": "2.22.3",
                "pg_config": [
                    {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]},
                    {"pg_name": 4, "uid": 7, "ranks": "[0, 2]"},
                    {"pg_name": "5", "pg_size": 128, "ranks": "[0, 1, ..., 127]"}, 17]}"#,
        )]);
        let info = header.distributed.as_ref().unwrap();
        assert_eq!(
            (info.rank, info.world_size, info.group_count),
            (Some(3), Some(8), Some(71))
        );
        assert_eq!(info.groups.len(), 3);
        assert_eq!(info.groups[0].ranks, Some(vec![0, 1]));
        assert_eq!(info.groups[1].name.as_deref(), Some("4"));
        assert_eq!(
            (info.groups[1].size, &info.groups[1].ranks),
            (Some(2), &Some(vec![0, 2]))
        );
        assert_eq!((info.groups[2].size, &info.groups[2].ranks), (Some(128), &None));
        assert_eq!(header.versions()["nccl"], "2.22.3");
    }

    #[test]
    fn incomplete_headers_tell_what_they_can() {
        let only_backend = header(&[("distributedInfo", r#"{"backend": "nccl"}"#)]);
        assert_eq!(only_backend.distributed.as_ref().unwrap().rank, None);
        assert_eq!(only_backend.world_size(), None);
        let by_group = header(&[(
            "distributedInfo",
            r#"{"pg_config": [{"pg_desc": "default_pg", "pg_size": 16}]}"#,
        )]);
        assert_eq!(by_group.world_size(), Some(16));
        assert_eq!(header(&[("distributedInfo", "3")]).distributed, None);
        assert_eq!(
            header(&[("distributedInfo", "{broken"), ("schemaVersion", "[]")]),
            Header::default()
        );
    }

    #[test]
    fn of_keys_that_occur_twice_the_last_counts() {
        let header = header(&[
            ("distributedInfo", r#"{"rank": 0}"#),
            ("distributedInfo", r#"{"rank": 5}"#),
        ]);
        assert_eq!(header.distributed.unwrap().rank, Some(5));
    }

    #[test]
    fn versions_read_as_people_write_them() {
        let header = header(&[
            ("roctracer_version", "4.10"),
            ("hip_runtime_version", "60443483"),
            ("cupti_version", "28"),
            ("cuda_runtime_version", "12090"),
            ("cuda_driver_version", "0"),
        ]);
        let expected = [
            ("cuda", "12.9"),
            ("cupti", "28"),
            ("hip", "6.4.43483"),
            ("roctracer", "4.10"),
        ];
        let versions = header.versions();
        let found: Vec<_> = versions
            .iter()
            .map(|(name, version)| (name.as_str(), version.as_str().unwrap()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn flags_are_told_only_when_written() {
        let header = header(&[("with_stack", "1"), ("record_shapes", "0")]);
        assert!(header.flag("with_stack") && !header.flag("record_shapes") && !header.flag("with_flops"));
        let flags: Vec<_> = header.capture_flags().into_iter().collect();
        assert_eq!(
            flags,
            [
                ("record_shapes".to_owned(), false.into()),
                ("with_stack".to_owned(), true.into())
            ]
        );
    }

    #[test]
    fn base_times_keep_every_digit() {
        assert_eq!(
            header(&[("baseTimeNanoseconds", "1711964646000000001")]).base_time_ns,
            Some(1_711_964_646_000_000_001)
        );
    }

    #[test]
    fn devices_are_named_only_when_it_is_certain_which() {
        let two = r#"[{"id": 0, "name": "A", "warpSize": 32}, {"id": 1, "name": "B"}]"#;
        assert_eq!(
            header(&[("deviceProperties", two)]).device_name(1).as_deref(),
            Some("B")
        );
        assert_eq!(
            header(&[("deviceProperties", two), ("roctracer_version", "4.1")]).device_name(1),
            None
        );
        let alike = r#"[{"id": 0, "name": "A", "warpSize": 64}, {"id": 1, "name": "A"}]"#;
        assert_eq!(
            header(&[("deviceProperties", alike)]).device_name(9).as_deref(),
            Some("A")
        );
        assert_eq!(header(&[("deviceProperties", "[]")]).device_name(0), None);
    }

    #[test]
    fn error_lines_are_kept_even_with_raw_line_breaks() {
        let header = header(&[("ERROR", "[\"no devices:\nfailed\", \"second\"]")]);
        assert_eq!(header.errors, ["no devices: failed", "second"]);
    }
}
