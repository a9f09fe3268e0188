"""Runs whole processes and measures them: wall time and peak memory."""

import os
import statistics
import subprocess
import sys
import time


def run(command):
    """Runs a command, its output thrown away; returns (seconds, peak bytes). Ends the script when it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        message = process.stderr.read().decode(errors="replace")
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}\n{message}")
    process.stderr.close()
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, usage.ru_maxrss * unit


def medians(runs):
    """Returns the medians of (seconds, peak bytes) pairs."""
    return tuple(statistics.median(column) for column in zip(*runs))


def table(header, rows):
    """Prints a Markdown table, its columns aligned."""
    rows = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
