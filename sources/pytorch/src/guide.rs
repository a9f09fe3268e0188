//! How to use the source: recipes for people and programs, and a skill for coding agents.

use veloq_core::{Recipe, RecipeStep, Skill};

pub(crate) const SKILL: Skill = Skill {
    name: "pytorch-profile-analysis",
    text: include_str!("../skills/pytorch-profile-analysis/SKILL.md"),
};

const fn step(command: &'static str, read: &'static str) -> RecipeStep {
    RecipeStep { command, read }
}

pub(crate) const RECIPES: &[Recipe] = &[
    Recipe {
        id: "step-time",
        question: "Where does a step's time go?",
        steps: &[
            step(
                "pytorch slices TRACE --type step",
                "Compare duration_ns with attributed_gpu_busy_ns: a step much longer than its device work waits \
                 for the CPU. A step that is longer than the others with the same device work has something of \
                 its own: ask for it with --step in the commands below.",
            ),
            step(
                "pytorch stats TRACE --type kernel,memcpy,memset --group-by step,type",
                "Device work by step. busy_ns, not total_ns, is what the device was occupied: streams overlap.",
            ),
            step(
                "pytorch slices TRACE --aggregate --group-by name --limit 20",
                "Which part of the steps is long: data loading, optimizer, or what the program itself annotated. \
                 max_cpu_ns far above avg_cpu_ns: only in some steps; --step N looks at one.",
            ),
            step(
                "pytorch stats TRACE --type cpu-op --sort self_ns:desc --limit 15",
                "Operators by the CPU time that is their own. A large self_ns with a gpu_self_ns of 0 is work on \
                 the CPU, or waiting for the device.",
            ),
        ],
    },
    Recipe {
        id: "gpu-starved",
        question: "Is the GPU starved, and by what?",
        steps: &[
            step(
                "pytorch summary TRACE",
                "devices[].busy_ratio is the share of the device's own window in which it had work. Much below \
                 0.9 in a training loop means that it waits.",
            ),
            step(
                "pytorch timeline TRACE --interval 500us",
                "Buckets with a low gpu_ns are the gaps. cpu_ns as long as the bucket there: the CPU is busy, and \
                 too slow; a low cpu_ns: it waits, for data or for other processes.",
            ),
            step(
                "pytorch stats TRACE --type runtime,driver --limit 10",
                "Calls by time. Synchronisations at the top mean that the CPU waits for the device; launches at \
                 the top mean too many small kernels.",
            ),
            step(
                "pytorch stats TRACE --type kernel --group-by launched-by --sort count:desc --limit 10",
                "Many kernels with an avg_ns below some 10 us: launching them costs more than running them. Fuse \
                 them, or capture a graph.",
            ),
        ],
    },
    Recipe {
        id: "slow-kernels",
        question: "Which operators launch the slow kernels?",
        steps: &[
            step(
                "pytorch stats TRACE --type kernel --limit 10",
                "Kernels by total time. max_ns far above p50_ns: some calls are slow, not the kernel.",
            ),
            step(
                "pytorch stats TRACE --type kernel --group-by launched-by,name --limit 15",
                "The operator behind each. device_time.unattributed_ns is what no operator launched.",
            ),
            step(
                "pytorch search TRACE --type kernel --sort duration_ns:desc --limit 1",
                "The slowest single kernel; its row_id is for the next step.",
            ),
            step(
                "pytorch correlate TRACE ROW_ID",
                "From the step down to the kernel: frames, operators, the launching call. launch.queue_ns tells \
                 how long the kernel waited for its stream.",
            ),
        ],
    },
    Recipe {
        id: "exposed-communication",
        question: "Is communication hidden behind compute?",
        steps: &[
            step(
                "pytorch stats TRACE --is-comm --group-by type,comm-kind",
                "What is communicated, and how long. Only device rows (kernel) occupy the device.",
            ),
            step(
                "pytorch collectives TRACE --limit 20",
                "exposed_ns is the part of each collective that no compute of the same device covers. busbw far \
                 below the link's speed with large sizes: a slow link, or waiting for a late rank, which one \
                 rank's trace cannot tell apart.",
            ),
            step(
                "pytorch timeline TRACE --interval 500us",
                "exposed_comm_ns of comm_ns, over time: is it the end of each backward pass, or all along?",
            ),
        ],
    },
    Recipe {
        id: "python-cost",
        question: "Which Python line costs most?",
        steps: &[
            step(
                "pytorch stats TRACE --type python --sort self_ns:desc --limit 15",
                "Frames by the CPU time that is their own. Needs with_stack=True; the profiler itself slows down \
                 Python, so compare frames with each other rather than with a run without it.",
            ),
            step(
                "pytorch stats TRACE --type kernel --group-by python-context --limit 15",
                "Device time by the innermost frame around its launch: the line to change to make the device's \
                 work smaller.",
            ),
            step(
                "pytorch stats TRACE --type kernel --group-by module --limit 15",
                "The same by nn.Module call.",
            ),
        ],
    },
    Recipe {
        id: "memory-growth",
        question: "What grew memory?",
        steps: &[
            step(
                "pytorch search TRACE --type memory --sort bytes:desc --limit 10",
                "The largest allocations; negative bytes are frees. Needs profile_memory=True. A row's step tells \
                 whether it comes back in each step.",
            ),
            step(
                "pytorch inspect TRACE ROW_ID",
                "args has the total that was allocated by then; parent, module and python_stack tell who asked.",
            ),
        ],
    },
];
