//! What the name of a trace file tells: the rank, the worker.
//!
//! Names are no format: schedulers, trainers and people make them. So a rank is taken only from the forms
//! that were met, and only when all of them in one name agree.

/// Returns the rank that a file's name gives.
///
/// ```text
/// rank-34.Jul_15_10_52_38.1074.pt.trace.json.gz       34
/// rank0_step3.json  trace_rank_0.json  rank_0.json    0
/// 1717-TP-3.trace.json.gz                             3
/// dp0_pp0_tp1_dcp0_ep0_rank5.171.pt.trace.json.gz     5
/// host_1102.1712.pt.trace.json                        none: a process id is no rank
/// ```
pub(crate) fn rank_in_file_name(name: &str) -> Option<i64> {
    let lower = name.to_ascii_lowercase();
    let by_rank = sole_number_behind(&lower, "rank", &["", "-", "_"]);
    by_rank.or_else(|| sole_number_behind(&lower, "-tp", &["-"]))
}

/// Returns the number behind a word where every occurrence of the word that has one has the same.
///
/// The word must not continue another one (`frank7`), nor the number a longer number or word (`rank3d`).
fn sole_number_behind(name: &str, word: &str, separators: &[&str]) -> Option<i64> {
    let mut found = None;
    for (at, _) in name.match_indices(word) {
        let continues = name[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        if continues && !word.starts_with('-') {
            continue;
        }
        let rest = &name[at + word.len()..];
        let Some(number) = separators.iter().find_map(|separator| {
            let rest = rest.strip_prefix(separator)?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let is_whole = !rest[digits..].starts_with(|c: char| c.is_ascii_alphabetic());
            rest[..digits].parse::<i64>().ok().filter(|_| is_whole)
        }) else {
            continue;
        };
        if found.is_some_and(|known| known != number) {
            return None;
        }
        found = Some(number);
    }
    found
}

/// Digits of a time stamp in seconds; the writer's handler stamps in ms or ns.
const MIN_STAMP_DIGITS: usize = 10;

/// Returns the worker that a file's name gives: `host_1102` of `host_1102.1712000000000.pt.trace.json`, or
/// whatever name the recording script gave its worker.
pub(crate) fn worker_in_file_name(name: &str) -> Option<&str> {
    let stem = name
        .strip_suffix(".gz")
        .unwrap_or(name)
        .strip_suffix(".pt.trace.json")?;
    let (worker, stamp) = stem.rsplit_once('.')?;
    let is_stamp = stamp.len() >= MIN_STAMP_DIGITS && stamp.bytes().all(|b| b.is_ascii_digit());
    (is_stamp && !worker.is_empty()).then_some(worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_taken_from_the_forms_met() {
        for (name, rank) in [
            ("rank-34.Jul_15_10_52_38.1074.pt.trace.json.gz", Some(34)),
            ("rank0_step3.json", Some(0)),
            ("gloo_ddp_rank1.pt.trace.json.gz", Some(1)),
            ("trace_rank_7.json", Some(7)),
            ("rank_12.json.gz", Some(12)),
            ("1717171717.123-TP-3.trace.json.gz", Some(3)),
            (
                "dp0_pp0_tp1_dcp0_ep0_rank5.1755301234567890123.pt.trace.json.gz",
                Some(5),
            ),
            ("Rank3.json", Some(3)),
            ("host_1102.1712.pt.trace.json", None),
            ("frank7.json", None),
            ("rank.json", None),
            ("rank3d_model.json", None),
            ("no_rank.json.gz", None),
            ("rank0_and_rank1.json", None),
            ("rank0_of_rank0.json", Some(0)),
            ("rank99999999999999999999.json", None),
        ] {
            assert_eq!(rank_in_file_name(name), rank, "{name}");
        }
    }

    #[test]
    fn workers_are_host_and_process() {
        for (name, worker) in [
            (
                "trainer_30620.1790857026123.pt.trace.json.gz",
                Some("trainer_30620"),
            ),
            (
                "a.b.example_12.1790857026123456789.pt.trace.json",
                Some("a.b.example_12"),
            ),
            ("rank0.1790857026123.pt.trace.json", Some("rank0")),
            ("rank-34.Jul_15_10_52_38.1074.pt.trace.json.gz", None),
            ("train.pt.trace.json", None),
            ("host_7.1790857026123.json", None),
            ("run.json", None),
        ] {
            assert_eq!(worker_in_file_name(name), worker, "{name}");
        }
    }
}
