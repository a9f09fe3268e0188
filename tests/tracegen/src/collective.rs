//! The arguments of a collective, as `record_param_comms` and communication kernels carry them.

use std::borrow::Cow;

use crate::value::{Json, int_list};

/// One collective call: sizes are element counts per rank, as the profiler writes them.
#[derive(Clone, Debug)]
pub struct Collective {
    name: String,
    dtype: String,
    in_nelems: i64,
    out_nelems: i64,
    ranks: Vec<i64>,
    group_name: String,
    group_description: String,
    in_split: Vec<i64>,
    out_split: Vec<i64>,
    rank: Option<i64>,
    source: Option<i64>,
    destination: Option<i64>,
    seq: Option<i64>,
}

impl Collective {
    /// A collective over ranks `0..group_size` of process group `0` (`default_pg`).
    ///
    /// `name` is the profiler's `Collective name` (`allreduce`, `_allgather_base` …), `dtype` a ScalarType
    /// name (`Float`, `BFloat16` …).
    pub fn new(name: &str, dtype: &str, in_nelems: i64, out_nelems: i64, group_size: i64) -> Self {
        Collective {
            name: name.to_owned(),
            dtype: dtype.to_owned(),
            in_nelems,
            out_nelems,
            ranks: (0..group_size).collect(),
            group_name: "0".to_owned(),
            group_description: "default_pg".to_owned(),
            in_split: Vec::new(),
            out_split: Vec::new(),
            rank: None,
            source: None,
            destination: None,
            seq: None,
        }
    }

    /// Names the process group and its global ranks.
    #[must_use]
    pub fn group(mut self, name: &str, description: &str, ranks: &[i64]) -> Self {
        self.group_name = name.to_owned();
        self.group_description = description.to_owned();
        self.ranks = ranks.to_vec();
        self
    }

    /// `Rank`: the caller's rank in the group; for send and recv the peer's. Written on CPU rows only.
    #[must_use]
    pub fn rank(mut self, rank: i64) -> Self {
        self.rank = Some(rank);
        self
    }

    /// `Src Rank`, for a recv.
    #[must_use]
    pub fn source(mut self, rank: i64) -> Self {
        self.source = Some(rank);
        self
    }

    /// `Dst Rank`, for a send.
    #[must_use]
    pub fn destination(mut self, rank: i64) -> Self {
        self.destination = Some(rank);
        self
    }

    /// `Seq`: the call's number within its group.
    #[must_use]
    pub fn seq(mut self, seq: i64) -> Self {
        self.seq = Some(seq);
        self
    }

    /// `In split size` and `Out split size`, in elements per peer (all-to-all).
    #[must_use]
    pub fn splits(mut self, input: &[i64], output: &[i64]) -> Self {
        self.in_split = input.to_vec();
        self.out_split = output.to_vec();
        self
    }

    /// The arguments in the order the writer uses; kernels carry a copy without `Rank`.
    pub(crate) fn args(&self, on_kernel: bool) -> Vec<(Cow<'static, str>, Json)> {
        let size = i64::try_from(self.ranks.len()).unwrap_or(i64::MAX);
        let mut args: Vec<(Cow<'static, str>, Json)> = vec![
            ("Collective name".into(), self.name.as_str().into()),
            ("In msg nelems".into(), self.in_nelems.into()),
            ("Out msg nelems".into(), self.out_nelems.into()),
            ("Group size".into(), size.into()),
            ("dtype".into(), self.dtype.as_str().into()),
            (
                "In split size".into(),
                int_list(&self.in_split, ", ").as_str().into(),
            ),
            (
                "Out split size".into(),
                int_list(&self.out_split, ", ").as_str().into(),
            ),
            ("Process Group Name".into(), self.group_name.as_str().into()),
            (
                "Process Group Description".into(),
                self.group_description.as_str().into(),
            ),
            (
                "Process Group Ranks".into(),
                shortened(&self.ranks).as_str().into(),
            ),
        ];
        let optional = [
            ("Rank", self.rank.filter(|_| !on_kernel)),
            ("Src Rank", self.source),
            ("Dst Rank", self.destination),
            ("Seq", self.seq),
        ];
        args.extend(
            optional
                .into_iter()
                .filter_map(|(key, value)| Some((key.into(), value?.into()))),
        );
        args
    }
}

/// Rank lists above 30 entries are cut by the writer to the first 29, a literal `...` and the last.
fn shortened(ranks: &[i64]) -> String {
    match ranks {
        [head @ .., last] if ranks.len() > 30 => {
            let head: Vec<String> = head.iter().take(29).map(i64::to_string).collect();
            format!("[{}, ..., {last}]", head.join(", "))
        }
        _ => int_list(ranks, ", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rank_lists_are_shortened_as_the_writer_does() {
        assert_eq!(shortened(&[0, 4]), "[0, 4]");
        let ranks: Vec<i64> = (0..128).collect();
        let text = shortened(&ranks);
        assert!(
            text.starts_with("[0, 1, ") && text.ends_with(", 28, ..., 127]"),
            "{text}"
        );
    }

    #[test]
    fn kernels_never_carry_rank() {
        let collective = Collective::new("send", "Float", 4, 4, 2).rank(1).destination(1);
        let keys = |on_kernel| {
            collective
                .args(on_kernel)
                .into_iter()
                .map(|(key, _)| key.into_owned())
                .collect::<Vec<_>>()
        };
        assert!(keys(false).contains(&"Rank".to_owned()));
        assert!(!keys(true).contains(&"Rank".to_owned()));
        assert!(keys(true).contains(&"Dst Rank".to_owned()));
    }
}
