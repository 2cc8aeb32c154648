"""What the answer cache's judge says of questions that look alike.

    python -m benchmarks.cache                 # both files of pairs
    python -m benchmarks.cache --only dev      # or held_out
    python -m benchmarks.cache --show          # and the dev pairs that were judged wrongly
    python -m benchmarks.cache --judge-only    # no embedding, no similarity: some seconds

The embedding is the one that the settings name (EMBEDDING_MODEL), fetched where it has to be. What
the pairs are, and what the columns mean: README.md beside this file. Nothing is printed of the
lines that are held out. The status is 1 where an answer was given that doesn't fit.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.cache.judged_tables import shown, told
from benchmarks.cache.judging import judge_pairs
from benchmarks.cache.pairs import FILES, read_pairs
from llm.embedding import EmbeddingModel
from llm.same_question import same_question
from llm.settings import load_settings

LIMIT_S = 600.0
"""For the embedding to be fetched and loaded."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cache", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", choices=FILES, help="only this file")
    parser.add_argument(
        "--show", action="store_true", help="the dev pairs that were judged wrongly"
    )
    parser.add_argument("--judge-only", action="store_true", help="without the embedding")
    chosen = parser.parse_args()
    model = None if chosen.judge_only else EmbeddingModel.from_settings(load_settings())
    embedder = model.wait(LIMIT_S) if model else None
    if model and not embedder:
        print(f"No embedding: {model.trouble or 'it took too long.'}", file=sys.stderr)
    wrong = False
    for name, path in FILES.items():
        if chosen.only in (None, name):
            judged = judge_pairs(read_pairs(path), same_question, embedder)
            wrong |= any(one.wrong for one in judged)
            print(told(name, judged), end="\n\n")
            if chosen.show and name == "dev":
                print(shown(judged), end="\n\n")
    if model:
        model.close()
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
