//! `tracegen`: writes a synthetic trace of any size.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use veloq_tracegen::{Backend, Era, Merge, Shape, Size, Spec, generate, gzip_writer};

/// Write a synthetic PyTorch trace; equal arguments give equal bytes
#[derive(Parser)]
struct Args {
    /// Elements of traceEvents to write
    #[arg(long, default_value_t = 10_000, conflicts_with = "steps")]
    events: u64,
    /// Training steps to write, in place of a number of events
    #[arg(long)]
    steps: Option<u32>,
    /// Seed of all durations
    #[arg(long, default_value_t = Spec::default().seed)]
    seed: u64,
    /// What the rows look like
    #[arg(long, value_enum, default_value_t = ShapeArg::Training)]
    shape: ShapeArg,
    /// Depth of the stacks of `--shape nested`; as deep as there are rows when not given
    #[arg(long)]
    depth: Option<u64>,
    /// Ranks in the file
    #[arg(long, default_value_t = Spec::default().ranks)]
    ranks: u32,
    /// How several ranks share the file [default: prefix when there are several]
    #[arg(long, value_enum)]
    merge: Option<MergeArg>,
    /// Ranks of the job
    #[arg(long, default_value_t = Spec::default().world_size)]
    world_size: u32,
    /// Devices per rank
    #[arg(long, default_value_t = Spec::default().devices)]
    devices: u32,
    /// Compute streams per device
    #[arg(long, default_value_t = Spec::default().streams)]
    streams: u32,
    /// Layers of the model
    #[arg(long, default_value_t = Spec::default().layers)]
    layers: u32,
    /// Write ROCm rows
    #[arg(long)]
    rocm: bool,
    /// Writer era: 1, 3 to 9
    #[arg(long, default_value = "8", value_parser = parse_era)]
    era: Era,
    /// Leave out Python frames and modules
    #[arg(long)]
    no_python: bool,
    /// Leave out memory rows
    #[arg(long)]
    no_memory: bool,
    /// Leave out shapes
    #[arg(long)]
    no_shapes: bool,
    /// Replay a CUDA graph of so many kernels in each step
    #[arg(long)]
    graph_kernels: Option<u32>,
    /// File to write; gzipped when its name ends in .gz
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum ShapeArg {
    Training,
    Nested,
    GraphFanout,
    DistinctNames,
    ManyStreams,
    PythonHeavy,
}

#[derive(Clone, Copy, ValueEnum)]
enum MergeArg {
    Prefix,
    ArgsRank,
}

fn parse_era(text: &str) -> Result<Era, String> {
    Ok(match text {
        "1" => Era::E1,
        "3" => Era::E3,
        "4" => Era::E4,
        "5" => Era::E5,
        "6" => Era::E6,
        "7" => Era::E7,
        "8" => Era::E8,
        "9" => Era::E9,
        _ => return Err("not an era: give 1 or 3 to 9".to_owned()),
    })
}

impl Args {
    fn spec(&self) -> Spec {
        Spec {
            size: self.steps.map_or(Size::Events(self.events), Size::Steps),
            seed: self.seed,
            shape: match self.shape {
                ShapeArg::Training => Shape::Training,
                ShapeArg::Nested => Shape::Nested(self.depth),
                ShapeArg::GraphFanout => Shape::GraphFanout,
                ShapeArg::DistinctNames => Shape::DistinctNames,
                ShapeArg::ManyStreams => Shape::ManyStreams,
                ShapeArg::PythonHeavy => Shape::PythonHeavy,
            },
            backend: if self.rocm { Backend::Rocm } else { Backend::Cuda },
            era: self.era,
            ranks: self.ranks,
            merge: match self.merge {
                Some(MergeArg::Prefix) => Merge::PidPrefix,
                Some(MergeArg::ArgsRank) => Merge::ArgsRank,
                None if self.ranks > 1 => Merge::PidPrefix,
                None => Merge::None,
            },
            world_size: self.world_size,
            devices: self.devices,
            streams: self.streams,
            layers: self.layers,
            python: !self.no_python,
            memory: !self.no_memory,
            shapes: !self.no_shapes,
            graph_kernels: self.graph_kernels,
            ..Spec::default()
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(&args.out)?);
    let counts = if args.out.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = gzip_writer(&mut out);
        let counts = generate(&args.spec(), &mut encoder)?;
        encoder.finish()?;
        counts
    } else {
        generate(&args.spec(), &mut out)?
    };
    out.flush()?;
    writeln!(io::stderr(), "{} events, {} steps", counts.events, counts.steps)
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to report to when stderr is closed.
            let _ = writeln!(io::stderr(), "tracegen: {error}");
            ExitCode::FAILURE
        }
    }
}
