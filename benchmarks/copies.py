"""Copying a large base while its worker is killed: `python -m benchmarks.copies [--documents 10000] [--kills 3]`.

Starts a portal of its own, fills a base with documents of three passages each (original, vectors and index rows included), copies it over REST,
kills the worker with SIGKILL at even distances, and compares source and copy. Prints a row for RESULTS.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.support.copied import beside, copy_under_fire
from tests.support.rest import Rest
from tests.support.stack import LiveStack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-copies-") as folder:
        stack = LiveStack(Path(folder) / "data").start()
        try:
            rest = Rest(stack.base_url).sign_up()
            base = rest.make_base()
            beside(stack, "fill", base, str(args.documents))
            took, source, copy = copy_under_fire(stack, rest, base, args.documents, args.kills)
            agree = "database, index and files agree" in stack.manage("reconcile", "--check", "--young", "0", check=False).stdout
        finally:
            stack.stop()
    print("| documents | kill -9 | seconds | source | copy | reconcile |\n|---|---|---|---|---|---|")
    told = [", ".join(f"{count:,} {name}" for name, count in each.items()) for each in (source, copy)]
    print(f"| {args.documents:,} | {args.kills} | {took:.0f} | {told[0]} | {told[1]} | {'agrees' if agree else 'DISAGREES'} |")


if __name__ == "__main__":
    main()
