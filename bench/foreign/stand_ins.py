"""Makes data of equal shape in place of what a script would download."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import pickle
import random
import string
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

TEXT = Path("shakespeare/input.txt")
"""Where Tiny Shakespeare is in the folder of ``TRAINMARK_DATA``."""
JAX_DATA = Path("/tmp/jax_example_data")
"""Where the examples of JAX look for MNIST, whatever the working folder is."""


def make(name: str, folder: Path) -> None:
    """Make what a script needs in its working folder.

    Args:
        name: a key of :data:`MAKERS`, or ``folder NAME``, which makes an empty one.
        folder: the working folder of the script.
    """
    kind, _, argument = name.partition(" ")
    if kind == "folder":
        (folder / argument).mkdir(exist_ok=True)
    else:
        MAKERS[name](folder)


def _nothing(_folder: Path) -> None:
    """The packages next to this file or variables of the environment are enough."""


def _sine_waves(folder: Path) -> None:
    """100 sine waves of 100 points, a tenth of what the script of the repository makes."""
    import numpy as np
    import torch

    shifts = np.random.Generator(np.random.PCG64(0)).integers(-80, 80, (100, 1))
    waves = np.sin((np.arange(100) + shifts) / 20)
    torch.save(waves, folder / "traindata.pt")


def _shakespeare() -> str:
    return (Path(os.environ["TRAINMARK_DATA"]) / TEXT).read_text("utf-8")


def _text(folder: Path) -> None:
    """Three parts of a text, instead of WikiText-2."""
    lines = _shakespeare().splitlines(keepends=True)
    target = folder / "data" / "wikitext-2"
    target.mkdir(parents=True, exist_ok=True)
    parts = {"train": lines[:4000], "valid": lines[4000:4400], "test": lines[4400:4800]}
    for name, part in parts.items():
        (target / f"{name}.txt").write_text("".join(part), "utf-8")


def _texts(folder: Path) -> None:
    """1,500 short texts, one a line, as MiniMind reads them."""
    text = _shakespeare()
    length = 200
    texts = (text[length * n : length * (n + 1)] for n in range(1500))
    lines = (json.dumps({"text": each}) for each in texts)
    (folder / "stand_in_text.jsonl").write_text("\n".join(lines) + "\n")


def _characters(folder: Path) -> None:
    """The script of the repository encodes a text next to it."""
    data = folder / "data" / "shakespeare_char"
    (data / "input.txt").write_text(_shakespeare(), "utf-8")
    subprocess.run([sys.executable, "prepare.py"], cwd=data, check=True, capture_output=True)


def _citations(folder: Path) -> None:
    """A graph of 2,708 papers of 7 classes with 1,433 words, as Cora has."""
    drawn = random.Random(0)
    papers = 2708
    words = 1433
    classes = 7
    target = folder / "cora"
    target.mkdir(exist_ok=True)
    lines: list[str] = []
    for paper in range(papers):
        of = paper % classes
        has = {drawn.randrange(words) for _ in range(9)} | {of * 200 + k for k in range(9)}
        values = (str(int(word in has)) for word in range(words))
        lines.append("\t".join(itertools.chain([str(paper)], values, [f"class{of}"])))
    (target / "cora.content").write_text("\n".join(lines) + "\n")
    cites = (f"{drawn.randrange(papers)}\t{drawn.randrange(papers)}" for _ in range(5429))
    (target / "cora.cites").write_text("\n".join(dict.fromkeys(cites)) + "\n")


def _planetoid(folder: Path) -> None:
    """A graph of Cora's size in the files that PyTorch Geometric reads."""
    import numpy as np

    random = np.random.Generator(np.random.PCG64(0))
    papers = 2708
    words = 1433
    classes = 7
    known = papers - 1000
    of = np.arange(papers) % classes
    has = (random.random((papers, words)) < 0.006) | (np.arange(words) // 200 == of[:, None])
    labels = np.eye(classes, dtype=np.int32)[of]
    features = has.astype(np.float32)
    ends = random.integers(0, papers, (5429, 2)).tolist()
    graph: dict[int, list[int]] = {paper: [] for paper in range(papers)}
    for one, other in ends:
        graph[one].append(other)
        graph[other].append(one)
    parts = {"x": features[:140], "y": labels[:140]}
    parts |= {"allx": features[:known], "ally": labels[:known]}
    parts |= {"tx": features[known:], "ty": labels[known:], "graph": graph}
    target = folder.parent / "data" / "Planetoid" / "Cora" / "raw"
    target.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        (target / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
    tested = "\n".join(map(str, range(known, papers)))
    (target / "ind.cora.test.index").write_text(f"{tested}\n")


def _molecules(folder: Path) -> None:
    """188 rings of 10 to 28 atoms with a class each, in the files of MUTAG."""
    drawn = random.Random(0)
    target = folder.parent / "data" / "TU" / "MUTAG" / "raw"
    target.mkdir(parents=True, exist_ok=True)
    bonds: list[str] = []
    graphs: list[int] = []
    atoms: list[int] = []
    classes: list[int] = []
    for graph in range(188):
        first = len(atoms) + 1
        count = drawn.randint(10, 28)
        kind = drawn.choice((1, -1))
        classes.append(kind)
        for atom in range(count):
            here = first + atom
            there = first + (atom + 1) % count
            bonds += [f"{here}, {there}", f"{there}, {here}"]
            graphs.append(graph + 1)
            atoms.append(drawn.randrange(7) if kind == 1 else drawn.randrange(3))
    lines: dict[str, Sequence[object]] = {
        "A": bonds,
        "graph_indicator": graphs,
        "graph_labels": classes,
        "node_labels": atoms,
        "edge_labels": [0] * len(bonds),
    }
    for name, values in lines.items():
        (target / f"MUTAG_{name}.txt").write_text("\n".join(map(str, values)) + "\n")


def _adults(folder: Path) -> None:
    """3,000 rows with the columns of ADULT_SAMPLE. Missing numbers would need an older pandas."""
    drawn = random.Random(0)
    target = folder / "stand_in_fastai" / "data" / "adult_sample"
    target.mkdir(parents=True, exist_ok=True)
    names = ("workclass", "education", "marital-status", "occupation", "relationship", "race")
    lines = [",".join(("age", "fnlwgt", "education-num", *names, "salary"))]
    for _ in range(3000):
        age = drawn.randint(17, 90)
        years = f"{drawn.randint(1, 16)}.0"
        kinds = [f"{name} {drawn.randrange(8)}" for name in names]
        salary = ">=50k" if age + drawn.randint(-20, 20) > 50 else "<50k"
        lines.append(",".join((str(age), str(drawn.randint(12285, 900000)), years, *kinds, salary)))
    (target / "adult.csv").write_text("\n".join(lines) + "\n")


def _digits(_folder: Path) -> None:
    """6,000 and 1,000 images of noise with labels, in MNIST's files."""
    drawn = random.Random(0)
    JAX_DATA.mkdir(exist_ok=True)
    for part, count in (("train", 6000), ("t10k", 1000)):
        images = struct.pack(">IIII", 2051, count, 28, 28) + drawn.randbytes(count * 28 * 28)
        labels = struct.pack(">II", 2049, count) + bytes(drawn.randrange(10) for _ in range(count))
        for name, content in (("images-idx3", images), ("labels-idx1", labels)):
            (JAX_DATA / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(content, 1))


def _llama(folder: Path) -> None:
    """A Llama of a small layer with random weights that reads characters.

    It lies in a folder with the name that it has on the hub, which Transformers looks for first.
    """
    target = folder / "TinyLlama" / "TinyLlama-1.1B-Chat-v1.0"
    target.mkdir(parents=True)
    vocabulary = {each: n for n, each in enumerate(["<unk>", "<s>", "</s>", *string.printable])}
    files = {
        "config.json": _llama_config(len(vocabulary)),
        "tokenizer.json": _tokenizer(vocabulary),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "<unk>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "</s>",
        },
    }
    for name, content in files.items():
        (target / name).write_text(json.dumps(content))
    _save_llama(len(vocabulary), target / "model.safetensors")


_WIDTH = 32
_INNER = 64
_LAYERS = 1


def _llama_config(words: int) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": words,
        "hidden_size": _WIDTH,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 512,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }


def _tokenizer(vocabulary: dict[str, int]) -> dict[str, object]:
    """Return what splits a text into characters, in the format of the package tokenizers."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = [each for each in vocabulary if each.startswith("<") and len(each) > 1]
    characters = {"Regex": r"[\s\S]"}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": vocabulary[each], "content": each, "special": True, **flags} for each in special
        ],
        "pre_tokenizer": {
            "type": "Split",
            "pattern": characters,
            "behavior": "Isolated",
            "invert": False,
        },
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }


def _save_llama(words: int, file: Path) -> None:
    """Save random weights under the names that Llama's layers have."""
    import numpy as np
    from safetensors.numpy import save_file

    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (words, _WIDTH),
        "model.norm.weight": (_WIDTH,),
        "lm_head.weight": (words, _WIDTH),
    }
    for layer in range(_LAYERS):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{each}_proj.weight": (_WIDTH, _WIDTH) for each in "qkvo"}
        shapes |= {f"{at}.mlp.{each}_proj.weight": (_INNER, _WIDTH) for each in ("gate", "up")}
        shapes[f"{at}.mlp.down_proj.weight"] = (_WIDTH, _INNER)
        shapes[f"{at}.input_layernorm.weight"] = (_WIDTH,)
        shapes[f"{at}.post_attention_layernorm.weight"] = (_WIDTH,)
    drawn = np.random.Generator(np.random.PCG64(0))
    weights = {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else drawn.normal(0, 0.02, shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    save_file(weights, file, metadata={"format": "pt"})


MAKERS: dict[str, Callable[[Path], None]] = {
    "images": _nothing,
    "sine waves": _sine_waves,
    "text": _text,
    "texts": _texts,
    "characters": _characters,
    "citations": _citations,
    "planetoid": _planetoid,
    "molecules": _molecules,
    "adults": _adults,
    "digits": _digits,
    "llama": _llama,
}
"""What makes each stand-in."""
