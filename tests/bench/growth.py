#!/usr/bin/env python3
"""Charts how time and memory grow with the size of a trace, and with its shape.

    cargo build --release --workspace
    python3 tests/bench/growth.py [--max-events 30000000] [--target target/release] [--folder /tmp]

Writes synthetic traces of growing size, opens each one cold, and prints time, throughput and peak memory. Linear
growth shows as a level throughput and a level number of bytes an event.
"""

import argparse
import os
import subprocess
import tempfile

from measure import run, table

SHAPES = [
    ("one thread, 10^7 rows nested 64 deep", 10_000_000, ["--shape", "nested", "--depth", "64"]),
    ("one thread, 10^6 rows nested in one another", 1_000_000, ["--shape", "nested"]),
    ("one launch, 10^5 kernels", 100_000, ["--shape", "graph-fanout"]),
    ("10^6 distinct names", 1_000_000, ["--shape", "distinct-names"]),
    ("10^6 streams of one row", 1_000_000, ["--shape", "many-streams"]),
    ("10^6 rows, 95 % Python frames", 1_000_000, ["--shape", "python-heavy"]),
]


def opened(target, folder, events, flags):
    trace = os.path.join(folder, "trace.json")
    subprocess.run([os.path.join(target, "tracegen"), trace, "--events", str(events), *flags], check=True)
    size = os.path.getsize(trace)
    veloq = os.path.join(target, "veloq")
    seconds, peak = run([veloq, "pytorch", "summary", trace])
    warm, warm_peak = run([veloq, "pytorch", "stats", trace, "--limit", "10"])
    subprocess.run([veloq, "clean", trace], check=True, stdout=subprocess.DEVNULL)
    os.remove(trace)
    return (
        f"{size / 1e6:.0f} MB",
        f"{seconds:.2f} s",
        f"{size / 1e6 / seconds:.0f} MB/s",
        f"{peak / 1e6:.0f} MB",
        f"{peak / events:.0f}",
        f"{warm:.2f} s",
        f"{warm_peak / 1e6:.0f} MB",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-events", type=int, default=30_000_000)
    parser.add_argument("--target", default="target/release")
    parser.add_argument("--folder")
    args = parser.parse_args()
    header = ("size", "cold summary", "throughput", "peak memory", "bytes/event", "warm stats", "peak memory")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        sizes = [10_000, 100_000, 1_000_000, 10_000_000, 30_000_000]
        rows = [(f"{n:,}", *opened(args.target, folder, n, [])) for n in sizes if n <= args.max_events]
        table(("events", *header), rows)
        print()
        rows = [(label, *opened(args.target, folder, n, flags)) for label, n, flags in SHAPES if n <= args.max_events]
        table(("shape", *header), rows)


if __name__ == "__main__":
    main()
