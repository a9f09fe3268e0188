//! Sizes and bandwidths of collectives, by the convention of nccl-tests.
//!
//! The *size* of a collective is the larger of what a rank puts in and gets out: all of an all-reduce, the
//! gathered whole of an all-gather, the whole before it is scattered. The *algorithm* bandwidth is size
//! over time; the *bus* bandwidth corrects it by what an ideal ring must move per rank, so that it compares
//! across kinds and group sizes (nccl-tests, doc/PERFORMANCE.md):
//!
//! ```text
//! n ranks, 1,000 us                  size        algbw     factor       busbw
//! all_reduce  1,000,000 floats, n=8   4 MB       4 GB/s    2(n-1)/n     7 GB/s
//! all_gather  1,000,000 -> 8,000,000
//!             BFloat16, n=8          16 MB      16 GB/s     (n-1)/n    14 GB/s
//! ```
//!
//! GB are 10^9 bytes. A collective's duration includes waiting for its last rank, so these are lower
//! bounds of what the network did.

use super::kind::CommKind;

/// Returns the bytes of one element of a type by its name in args; `None` for types not in the table.
pub(crate) fn element_bytes(dtype: &str) -> Option<i64> {
    Some(match dtype {
        "Byte" | "Char" | "Bool" => 1,
        "Short" | "Half" | "BFloat16" | "UInt16" => 2,
        "Int" | "Float" | "UInt32" => 4,
        "Long" | "Double" | "UInt64" | "ComplexFloat" => 8,
        "ComplexHalf" => 4,
        "ComplexDouble" => 16,
        "Float8_e4m3fn" | "Float8_e5m2" | "Float8_e4m3fnuz" | "Float8_e5m2fnuz" | "Float8_e8m0fnu" => 1,
        _ => return None,
    })
}

/// Returns the bytes of some elements; `None` when their number or type is not known.
pub(crate) fn bytes(elements: Option<i64>, dtype: Option<&str>) -> Option<i64> {
    elements?.checked_mul(element_bytes(dtype?)?)
}

/// Bandwidths in GB/s; absent where size, time or group size are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bandwidth {
    pub(crate) algorithm: Option<f64>,
    pub(crate) bus: Option<f64>,
}

impl Bandwidth {
    /// Returns the bandwidths of a collective of a group of `ranks`.
    ///
    /// None at all where the kind does not tell what is moved, or nothing took no time.
    pub(crate) fn of(
        kind: CommKind,
        in_bytes: Option<i64>,
        out_bytes: Option<i64>,
        dur_ns: i64,
        ranks: Option<i64>,
    ) -> Self {
        let (Some(in_bytes), Some(out_bytes)) = (in_bytes, out_bytes) else {
            return Self::default();
        };
        if !kind.is_transfer() || kind.is_undetermined() || dur_ns <= 0 {
            return Self::default();
        }
        let algorithm = gb_per_s(in_bytes.max(out_bytes), dur_ns);
        Self {
            algorithm: Some(algorithm),
            bus: bus_factor(kind, ranks).map(|factor| algorithm * factor),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and durations beyond 2^53 are not met, and a rate is rounded anyway"
)]
fn gb_per_s(bytes: i64, dur_ns: i64) -> f64 {
    bytes as f64 / dur_ns as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "groups have far fewer than 2^53 members"
)]
fn bus_factor(kind: CommKind, ranks: Option<i64>) -> Option<f64> {
    let others = || {
        let ranks = ranks.filter(|ranks| *ranks > 0)?;
        Some((ranks - 1) as f64 / ranks as f64)
    };
    match kind {
        CommKind::AllReduce => Some(2.0 * others()?),
        CommKind::AllGather
        | CommKind::ReduceScatter
        | CommKind::AllToAll
        | CommKind::Gather
        | CommKind::Scatter => others(),
        CommKind::Broadcast | CommKind::Reduce | CommKind::Send | CommKind::Recv => Some(1.0),
        CommKind::SendRecv
        | CommKind::Barrier
        | CommKind::Wait
        | CommKind::Coalesced
        | CommKind::Init
        | CommKind::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandwidth(kind: CommKind, elements: (i64, i64), dtype: &str, ranks: Option<i64>) -> Bandwidth {
        let sizes = [elements.0, elements.1].map(|count| bytes(Some(count), Some(dtype)));
        Bandwidth::of(kind, sizes[0], sizes[1], 1_000_000, ranks)
    }

    fn both(algorithm: f64, bus: f64) -> Bandwidth {
        Bandwidth {
            algorithm: Some(algorithm),
            bus: Some(bus),
        }
    }

    #[test]
    fn the_examples_of_the_convention_hold() {
        let million = (1_000_000, 1_000_000);
        let gathered = (1_000_000, 8_000_000);
        let scattered = (8_000_000, 1_000_000);
        for (kind, elements, dtype, expected) in [
            (CommKind::AllReduce, million, "Float", both(4.0, 7.0)),
            (CommKind::AllGather, gathered, "BFloat16", both(16.0, 14.0)),
            (CommKind::ReduceScatter, scattered, "BFloat16", both(16.0, 14.0)),
            (CommKind::AllToAll, million, "Double", both(8.0, 7.0)),
            (CommKind::Broadcast, million, "Byte", both(1.0, 1.0)),
            (CommKind::Send, million, "Half", both(2.0, 2.0)),
        ] {
            assert_eq!(bandwidth(kind, elements, dtype, Some(8)), expected, "{kind:?}");
        }
    }

    #[test]
    fn unknown_stays_unknown() {
        let million = (1_000_000, 1_000_000);
        assert_eq!(bytes(Some(4), Some("Float6")), None);
        assert_eq!(bytes(None, Some("Float")), None);
        assert_eq!(bytes(Some(i64::MAX), Some("Float")), None);
        assert_eq!(
            bandwidth(CommKind::AllReduce, million, "NewType", Some(8)),
            Bandwidth::default()
        );
        assert_eq!(bandwidth(CommKind::AllReduce, million, "Float", None).bus, None);
        assert_eq!(
            bandwidth(CommKind::AllReduce, million, "Float", Some(0)).bus,
            None
        );
        for kind in [
            CommKind::Barrier,
            CommKind::Wait,
            CommKind::SendRecv,
            CommKind::Unknown,
        ] {
            assert_eq!(
                bandwidth(kind, million, "Float", Some(8)),
                Bandwidth::default(),
                "{kind:?}"
            );
        }
        assert_eq!(
            Bandwidth::of(CommKind::AllReduce, Some(4), Some(4), 0, Some(8)),
            Bandwidth::default()
        );
    }

    #[test]
    fn a_group_of_one_uses_no_bus() {
        assert_eq!(
            bandwidth(CommKind::AllReduce, (1_000_000, 1_000_000), "Float", Some(1)),
            both(4.0, 0.0)
        );
    }
}
