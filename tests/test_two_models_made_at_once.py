"""The chat model and the embedding are made by two threads, and neither spoils the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from llm.local_backend import LocalOptions
from llm.local_embedding import LocalEmbedder
from llm.local_loader import load_model
from tests.driven_backend import at_once

pytest_plugins = "tests.local_fixtures"

ROUNDS = 8


def test_each_keeps_its_number_type_and_the_process_its_own(
    tiny_folder: Path, tmp_path: Path
) -> None:
    options = LocalOptions(tmp_path, str(tiny_folder), dtype="bfloat16")
    embedder = LocalEmbedder(tiny_folder, "tiny")
    expected = embedder.embed(["What is it?"])

    def assert_alike(made: LocalEmbedder) -> None:
        vectors = made.embed(["What is it?"])
        assert vectors.dtype == np.float32
        # Where in memory a model lies moves the last bit; half the digits would move the third.
        assert np.abs(vectors - expected).max() < 1e-5

    def make_chat_models() -> None:
        for _ in range(ROUNDS):
            loaded = load_model(tiny_folder, "tiny", options)
            tensors = [*loaded.model.parameters()]
            assert {each.dtype for each in tensors} == {torch.bfloat16}

    def make_embeddings() -> None:
        for _ in range(ROUNDS):
            assert_alike(LocalEmbedder(tiny_folder, "tiny"))

    def embed() -> None:
        for _ in range(ROUNDS):
            assert_alike(embedder)

    at_once(make_chat_models, make_embeddings, embed)
    assert torch.get_default_dtype() == torch.float32
