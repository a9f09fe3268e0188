//! Kineto's category strings and what they mean; the only place where they occur.
//!
//! Spellings changed over the years (`Operator` became `cpu_op`, `Kernel` became `kernel`), so categories
//! are compared through an alias table that ignores case. An unknown category is kept, as
//! [`RowType::Other`], and counted under its own name.

use crate::row::RowType;

/// What a category says of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    /// Rows of one type, whatever their name.
    Plain(RowType),
    /// `Operator` and `Net`: operators, and annotations written as such before 2021-06.
    Operator,
    /// Annotations on the CPU, steps among them.
    Annotation,
    /// Annotations projected on a device's stream.
    DeviceAnnotation,
    /// Device activity: kernels, and on some backends copies and fills among them.
    Kernel,
    /// Allocator events, recognised by name.
    Instant,
    /// Flow markers that join forward and backward operators.
    ForwardBackwardFlow,
    /// Any other category, an absent one included.
    Unknown,
}

const ALIASES: &[(&str, Category)] = &[
    ("cpu_op", Category::Plain(RowType::CpuOp)),
    ("operator", Category::Operator),
    ("net", Category::Operator),
    ("user_annotation", Category::Annotation),
    ("gpu_user_annotation", Category::DeviceAnnotation),
    ("user", Category::DeviceAnnotation),
    ("python_function", Category::Plain(RowType::Python)),
    ("cuda_runtime", Category::Plain(RowType::Runtime)),
    ("runtime", Category::Plain(RowType::Runtime)),
    ("xpu_runtime", Category::Plain(RowType::Runtime)),
    ("mtia_runtime", Category::Plain(RowType::Runtime)),
    ("glow_runtime", Category::Plain(RowType::Runtime)),
    ("privateuse1_runtime", Category::Plain(RowType::Runtime)),
    ("cuda_driver", Category::Plain(RowType::Driver)),
    ("xpu_driver", Category::Plain(RowType::Driver)),
    ("privateuse1_driver", Category::Plain(RowType::Driver)),
    ("kernel", Category::Kernel),
    ("mtia_ccp_events", Category::Kernel),
    ("gpu_memcpy", Category::Plain(RowType::Memcpy)),
    ("memcpy", Category::Plain(RowType::Memcpy)),
    ("gpu_memset", Category::Plain(RowType::Memset)),
    ("memset", Category::Plain(RowType::Memset)),
    ("cpu_instant_event", Category::Instant),
    ("collective_comm", Category::Plain(RowType::Comm)),
    ("cuda_sync", Category::Plain(RowType::Sync)),
    ("xpu_sync", Category::Plain(RowType::Sync)),
    ("cuda_event", Category::Plain(RowType::Sync)),
    ("overhead", Category::Plain(RowType::Overhead)),
    ("mtia_counters", Category::Plain(RowType::Counter)),
    ("hardware_counters", Category::Plain(RowType::Counter)),
    ("xpu_scope_profiler", Category::Plain(RowType::Counter)),
    ("fwdbwd", Category::ForwardBackwardFlow),
    ("forward_backward", Category::ForwardBackwardFlow),
];

/// Returns what a category string means.
pub(crate) fn category_of(text: &str) -> Category {
    ALIASES
        .iter()
        .find(|(alias, _)| alias.eq_ignore_ascii_case(text))
        .map_or(Category::Unknown, |(_, category)| *category)
}

/// The type of one row, with whether the category said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) row_type: RowType,
    /// A copy or a fill that its backend filed under kernels.
    pub(crate) is_reclassified: bool,
}

impl From<RowType> for Classified {
    fn from(row_type: RowType) -> Self {
        Self {
            row_type,
            is_reclassified: false,
        }
    }
}

/// Returns the type of a row from its category, phase, name and process.
///
/// `process` is the row's pid where it is text: the legacy profiler, which wrote no categories, tells
/// operators from kernels by it.
pub(crate) fn classify(category: Category, phase: u8, name: &str, process: Option<&str>) -> Classified {
    if phase == b'C' {
        return RowType::Counter.into();
    }
    let is_span = phase == b'X';
    match category {
        Category::Plain(row_type) => row_type.into(),
        Category::Operator if step_number(name).is_some() => RowType::Step.into(),
        Category::Operator => RowType::CpuOp.into(),
        Category::Annotation if is_span && step_number(name).is_some() => RowType::Step.into(),
        Category::Annotation | Category::DeviceAnnotation => RowType::Annotation.into(),
        Category::Kernel => classify_kernel(name),
        Category::Instant | Category::Unknown if name == "[memory]" || name == "[OutOfMemory]" => {
            RowType::Memory.into()
        }
        Category::Unknown if is_span => match process {
            Some(text) if text.eq_ignore_ascii_case("CPU functions") => RowType::CpuOp.into(),
            Some(text) if text.eq_ignore_ascii_case("CUDA functions") => classify_kernel(name),
            _ => RowType::Other.into(),
        },
        Category::Instant | Category::ForwardBackwardFlow | Category::Unknown => RowType::Other.into(),
    }
}

/// Returns the type of a device row filed under kernels.
///
/// XPU's scope profiler writes a second row named `metrics: <kernel>` for each kernel; it is no work of
/// its own. ROCm before 2024 filed copies as `CopyHostToDevice` and the like.
fn classify_kernel(name: &str) -> Classified {
    if name.starts_with("metrics: ") {
        return RowType::Counter.into();
    }
    let is_copy = name.starts_with("Memcpy ")
        || [
            "CopyHostToDevice",
            "CopyDeviceToHost",
            "CopyDeviceToDevice",
            "CopyHostToHost",
        ]
        .contains(&name);
    let is_fill = name.starts_with("Memset ") || name == "FillBuffer";
    match (is_copy, is_fill) {
        (true, _) => Classified {
            row_type: RowType::Memcpy,
            is_reclassified: true,
        },
        (_, true) => Classified {
            row_type: RowType::Memset,
            is_reclassified: true,
        },
        _ => RowType::Kernel.into(),
    }
}

/// Returns N of `ProfilerStep#N` (or `ProfilerStep #N`).
pub(crate) fn step_number(name: &str) -> Option<i64> {
    let rest = name.strip_prefix("ProfilerStep")?;
    let digits = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('#')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The prefix of the Python rows that are calls of an `nn.Module`.
pub(crate) const MODULE_PREFIX: &str = "nn.Module: ";

#[cfg(test)]
mod tests {
    use super::*;

    fn row_type(category: &str, phase: u8, name: &str) -> RowType {
        classify(category_of(category), phase, name, None).row_type
    }

    #[test]
    fn spellings_of_all_eras_mean_the_same() {
        for (old, new, expected) in [
            ("Operator", "cpu_op", RowType::CpuOp),
            ("Runtime", "cuda_runtime", RowType::Runtime),
            ("Kernel", "kernel", RowType::Kernel),
            ("Memcpy", "gpu_memcpy", RowType::Memcpy),
            ("Memset", "gpu_memset", RowType::Memset),
            ("gpu_user_Annotation", "gpu_user_annotation", RowType::Annotation),
        ] {
            assert_eq!(row_type(old, b'X', "x"), expected, "{old}");
            assert_eq!(row_type(new, b'X', "x"), expected, "{new}");
        }
    }

    #[test]
    fn steps_are_cpu_side_rows_with_a_number() {
        assert_eq!(row_type("user_annotation", b'X', "ProfilerStep#6"), RowType::Step);
        assert_eq!(row_type("Operator", b'X', "ProfilerStep#6"), RowType::Step);
        assert_eq!(
            row_type("gpu_user_annotation", b'X', "ProfilerStep#6"),
            RowType::Annotation
        );
        assert_eq!(
            row_type("user_annotation", b'X', "ProfilerStep*"),
            RowType::Annotation
        );
        assert_eq!(step_number("ProfilerStep#12x"), None);
        assert_eq!(step_number("ProfilerStep #12"), Some(12));
    }

    #[test]
    fn copies_filed_under_kernels_are_reclassified() {
        let copy = classify(Category::Kernel, b'X', "Memcpy HtoD (Host -> Device)", None);
        assert_eq!(
            copy,
            Classified {
                row_type: RowType::Memcpy,
                is_reclassified: true
            }
        );
        assert_eq!(row_type("kernel", b'X', "metrics: gemm"), RowType::Counter);
    }

    #[test]
    fn legacy_rows_are_told_by_their_process() {
        let classified = |process| classify(Category::Unknown, b'X', "mm", Some(process)).row_type;
        assert_eq!(classified("CPU functions"), RowType::CpuOp);
        assert_eq!(classified("CUDA functions"), RowType::Kernel);
        assert_eq!(classified("Spans"), RowType::Other);
    }

    #[test]
    fn unknown_categories_are_kept_as_other() {
        assert_eq!(row_type("brand_new", b'X', "x"), RowType::Other);
        assert_eq!(row_type("", b'i', "Record Window End"), RowType::Other);
        assert_eq!(row_type("", b'i', "[memory]"), RowType::Memory);
    }
}
