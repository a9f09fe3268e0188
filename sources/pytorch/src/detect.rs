//! Whether a file is a PyTorch trace, as far as its name tells.
//!
//! Only names that nothing else has are claimed: execution traces, memory timelines and traces of other
//! tools are `.json` files too.

use veloq_core::{Detection, Probe};

/// Returns the claim on a file.
pub(crate) fn detect(probe: &Probe<'_>) -> Detection {
    let plain = probe.name.strip_suffix(".gz").unwrap_or(probe.name);
    if plain.len() > ".pt.trace.json".len() && plain.ends_with(".pt.trace.json") {
        Detection::Yes("the name ends in .pt.trace.json")
    } else if plain.ends_with(".json") {
        Detection::Maybe("any .json or .json.gz file may be a trace")
    } else {
        Detection::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unmistakable_names_are_claimed() {
        let claim = |name| {
            detect(&Probe {
                name,
                size_bytes: 10,
                head: b"{",
            })
        };
        assert!(claim("rank0.pt.trace.json").is_claimed());
        assert!(claim("host_1.123.pt.trace.json.gz").is_claimed());
        assert!(matches!(claim("run.json.gz"), Detection::Maybe(_)));
        assert_eq!(claim("run.parquet"), Detection::No);
        assert_eq!(claim("run.gz"), Detection::No);
    }
}
