#!/usr/bin/env python3
"""Times veloq on a trace beside what unpacks it, and beside Python's JSON parser.

    python3 tests/bench/compare.py TRACE… [--veloq target/release/veloq] [--runs 5]

Every round runs every command once, so that whatever else the machine does falls on all of them; the table
gives medians of the rounds. The trace is linked (or copied) into a temporary folder: its own is left alone.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from measure import medians, run, table


def questions(veloq, trace):
    """Returns warm questions as (label, command)."""
    ask = lambda *args: [veloq, "pytorch", args[0], trace, *args[1:]]
    asked = [
        ("summary", ask("summary")),
        ("search --name", ask("search", "--name", "*gemm*")),
        ("search --sort", ask("search", "--sort", "duration_ns:desc")),
        ("stats", ask("stats", "--limit", "10")),
        ("stats --type kernel", ask("stats", "--type", "kernel", "--limit", "10")),
        ("timeline", ask("timeline", "--interval", "10ms")),
        ("slices", ask("slices")),
    ]
    found = json.loads(subprocess.run(ask("search", "--type", "kernel", "--limit", "1"), capture_output=True).stdout)
    for row in found["data"]["rows"]:
        asked += [("inspect", ask("inspect", row["row_id"])), ("correlate", ask("correlate", row["row_id"]))]
    # A question that the trace cannot answer (no steps, several ranks) is not timed.
    can_answer = lambda command: subprocess.run(command, capture_output=True).returncode == 0
    return [(label, command) for label, command in asked if can_answer(command)]


def compare(trace, veloq, runs, folder):
    link = os.path.join(folder, os.path.basename(trace))
    try:
        os.link(trace, link)
    except OSError:
        shutil.copy(trace, link)
    is_gzip = open(link, "rb").read(2) == b"\x1f\x8b"
    load = "import gzip, json, sys; json.load((gzip.open if sys.argv[2] else open)(sys.argv[1], 'rb'))"
    unpack = ("gzip -dc", ["gzip", "-dc", link]) if is_gzip else ("cat", ["cat", link])
    cold = [veloq, "pytorch", "summary", link]
    cold_commands = [
        unpack,
        ("python3 json.load", [sys.executable, "-c", load, link, "gz" if is_gzip else ""]),
        ("veloq summary, cold", cold),
    ]
    figures = {}
    for _ in range(runs):
        for label, command in cold_commands:
            if command is cold:
                subprocess.run([veloq, "clean", link], check=True, stdout=subprocess.DEVNULL)
            figures.setdefault(label, []).append(run(command))
    warm = [("veloq --version", [veloq, "--version"])]
    warm += [(f"veloq {label}, warm", command) for label, command in questions(veloq, link)]
    for _ in range(runs):
        for label, command in warm:
            figures.setdefault(label, []).append(run(command))
    unpack_seconds, _ = medians(figures[unpack[0]])
    print(f"\n{os.path.basename(trace)}: {os.path.getsize(link) / 1e6:.1f} MB, medians of {runs}\n")
    rows = []
    for label, of_label in figures.items():
        seconds, peak = medians(of_label)
        rows.append((label, f"{seconds:.3f} s", f"{seconds / unpack_seconds:.2f}", f"{peak / 1e6:.0f} MB"))
    table(("command", "time", f"of {unpack[0]}", "peak memory"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    parser.add_argument("--veloq", default="target/release/veloq")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    for trace in args.traces:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(trace)), prefix=".veloq-bench-") as folder:
            compare(trace, os.path.abspath(args.veloq), args.runs, folder)


if __name__ == "__main__":
    main()
