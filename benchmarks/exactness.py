"""Whether what was typed is found: 200 codes among near neighbours, odd questions, two-character words in titles, bodies and tags.

    python -m benchmarks.exactness [--engine sqlite] [--engine postgres] [--engine postgres-plain] [--sample 500] [--per-family 10]

Every question goes through `search()`, as hybrid, with a random vector on every passage, so that the vector leg proposes others. A code is
right when its own document is the first hit; a two-character word when its document is among the first ten. Prints a Markdown table.
"""

from __future__ import annotations

import argparse

from benchmarks.portals import ENGINES, on_each, open_portal


def inside(engine: str, sample: int, per_family: int) -> None:
    open_portal()
    from apps.retrieval.engine import engine as opened
    from tests.support import exactness
    from tests.support.kit import make_kit

    mode = opened().stats().details.get("mode", "")
    assert mode == {"sqlite": "", "postgres": "vector", "postgres-plain": "plain"}[engine], mode
    found = exactness.check_codes(make_kit("Codes"), per_family, misleading=True)
    tallies = {
        f"{len(exactness.codes(per_family))} codes, alone and in a sentence: first": found,
        "odd questions: first": exactness.check_odd(make_kit("Odd"), misleading=True),
    }
    for where, tally in exactness.check_bigrams(make_kit("Pairs"), sample, misleading=True).items():
        tallies[f"two characters of a {where}: in the first ten"] = tally
    for what, tally in tallies.items():
        print(f"| {engine} | {what} | {tally} |", flush=True)
        for miss in tally.misses[:5]:
            print(f"    missed: {miss}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--per-family", type=int, default=10)
    parser.add_argument("--inside", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        inside(args.inside, args.sample, args.per_family)
        return
    print("| engine | what | found |\n|---|---|---|", flush=True)
    numbers = ["--sample", str(args.sample), "--per-family", str(args.per_family)]
    on_each(args.engine or ENGINES, "benchmarks.exactness", numbers)


if __name__ == "__main__":
    main()
