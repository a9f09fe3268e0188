//! The args that describe a collective.
//!
//! `record_param_comms` operators carry them, and since 2023-10 a copy of most is on the kernels; the two
//! differ in keys (only operators have `Rank`), and writers of different years in types: lists are text or
//! arrays, the group's name was a number. Whatever has an unexpected type is absent here.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::loose::{integer, ranks, text};

/// The operator whose args describe a collective; it encloses the launch of the collective's kernels.
pub(crate) const DESCRIBING_OP: &str = "record_param_comms";

/// What args tell of a collective.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CollectiveArgs<'a> {
    /// `Collective name` as written, for example `_allgather_base`.
    pub(crate) name: Option<Cow<'a, str>>,
    /// Name of the elements' type, for example `BFloat16`.
    pub(crate) dtype: Option<Cow<'a, str>>,
    /// Elements that this rank puts in, and gets out.
    pub(crate) in_elements: Option<i64>,
    pub(crate) out_elements: Option<i64>,
    pub(crate) group_size: Option<i64>,
    /// The rank within the group; of a send or a receive, the peer's.
    pub(crate) rank: Option<i64>,
    pub(crate) group_name: Option<Cow<'a, str>>,
    pub(crate) group_description: Option<Cow<'a, str>>,
    /// The members' global ranks; absent when the list was shortened, as lists above 30 are.
    pub(crate) group_ranks: Option<Vec<i64>>,
    /// Number of the collective within its group.
    pub(crate) sequence: Option<i64>,
    /// First member and distance of members, where they are evenly spaced.
    start: Option<i64>,
    stride: Option<i64>,
}

/// A list of ranks is at most this long when start, stride and size stand for it.
const MAX_MEMBERS: i64 = 1 << 20;

impl<'a> CollectiveArgs<'a> {
    /// Reads the args of a row from their JSON text; absent what cannot be read.
    pub(crate) fn parse(args: &'a str) -> Self {
        serde_json::Deserializer::from_str(args)
            .deserialize_map(ArgsVisitor)
            .unwrap_or_default()
    }

    /// Returns what these args tell, and what only `other` tells.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            name: self.name.or(other.name),
            dtype: self.dtype.or(other.dtype),
            in_elements: self.in_elements.or(other.in_elements),
            out_elements: self.out_elements.or(other.out_elements),
            group_size: self.group_size.or(other.group_size),
            rank: self.rank.or(other.rank),
            group_name: self.group_name.or(other.group_name),
            group_description: self.group_description.or(other.group_description),
            group_ranks: self.group_ranks.or(other.group_ranks),
            sequence: self.sequence.or(other.sequence),
            start: self.start.or(other.start),
            stride: self.stride.or(other.stride),
        }
    }

    /// Returns the members' global ranks by first member, distance and size, where they are told.
    pub(crate) fn evenly_spaced_ranks(&self) -> Option<Vec<i64>> {
        let (start, stride, size) = (self.start?, self.stride?, self.group_size?);
        if start < 0 || !(1..=MAX_MEMBERS).contains(&size) || (stride <= 0 && size > 1) {
            return None;
        }
        (0..size)
            .map(|member| start.checked_add(member.checked_mul(stride)?))
            .collect()
    }

    fn take(&mut self, key: &str, value: &'a RawValue) {
        match key {
            "Collective name" => self.name = text(value),
            "dtype" => self.dtype = text(value),
            "In msg nelems" => self.in_elements = integer(value).filter(|count| *count >= 0),
            "Out msg nelems" => self.out_elements = integer(value).filter(|count| *count >= 0),
            "Group size" => self.group_size = integer(value).filter(|size| *size > 0),
            "Rank" => self.rank = integer(value),
            "Process Group Name" | "Process Group ID" => self.group_name = text(value),
            "Process Group Description" => self.group_description = text(value),
            "Process Group Ranks" => self.group_ranks = ranks(value),
            "Seq" => self.sequence = integer(value),
            "Global rank start" => self.start = integer(value),
            "Global rank stride" => self.stride = integer(value),
            _ => {}
        }
    }
}

/// Reads args key by key: of keys that occur twice the last counts, which derived readers refuse.
struct ArgsVisitor;

impl<'de> Visitor<'de> for ArgsVisitor {
    type Value = CollectiveArgs<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of args")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut args = CollectiveArgs::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key.starts_with(['C', 'd', 'I', 'O', 'G', 'R', 'P', 'S']) {
                args.take(&key, map.next_value::<&'de RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_all_years_are_read() {
        let new = r#"{"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 5, "Group size": 2,
            "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 9, "Comms Id": 18446744073709551615}"#;
        let old = r#"{"Collective name": "allreduce", "Process Group ID": 0, "Process Group Ranks": [0, 1]}"#;
        let (new, old) = (CollectiveArgs::parse(new), CollectiveArgs::parse(old));
        assert_eq!(new.group_name.as_deref(), Some("0"));
        assert_eq!(old.group_name.as_deref(), Some("0"));
        assert_eq!(new.group_ranks, Some(vec![0, 1]));
        assert_eq!(old.group_ranks, new.group_ranks);
        assert_eq!(
            (new.in_elements, new.out_elements, new.sequence),
            (Some(5), None, Some(9))
        );
    }

    #[test]
    fn shortened_members_come_from_start_stride_and_size() {
        let spaced = r#"{"Process Group Ranks": "[0, 2, ..., 6]", "Group size": 4, "Global rank start": 0,
            "Global rank stride": 2}"#;
        let spaced = CollectiveArgs::parse(spaced);
        assert_eq!(spaced.group_ranks, None);
        assert_eq!(spaced.evenly_spaced_ranks(), Some(vec![0, 2, 4, 6]));
        let unknown = r#"{"Process Group Ranks": "[0, 2, ..., 6]", "Group size": 4, "Global rank start": -1,
            "Global rank stride": -1}"#;
        assert_eq!(CollectiveArgs::parse(unknown).evenly_spaced_ranks(), None);
    }

    #[test]
    fn wrong_types_and_broken_text_are_absent() {
        let args = CollectiveArgs::parse(r#"{"Collective name": 5, "In msg nelems": "x", "Group size": -1}"#);
        assert_eq!((args.in_elements, args.group_size), (None, None));
        assert_eq!(CollectiveArgs::parse("[1]"), CollectiveArgs::default());
        assert_eq!(CollectiveArgs::parse(r#"{"Seq": 1, "#), CollectiveArgs::default());
    }

    #[test]
    fn of_keys_that_occur_twice_the_last_counts() {
        assert_eq!(CollectiveArgs::parse(r#"{"Seq": 1, "Seq": 2}"#).sequence, Some(2));
    }
}
