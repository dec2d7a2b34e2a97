"""Raw files for the tests, and functions that prepare them."""

import gzip
from pathlib import Path

from talkconv.data.data_settings import DataSettings

PAIRS = DataSettings(corpus="pairs", source_lang="de", target_lang="en", vocabulary=60)
SUMMARIES = DataSettings(corpus="summaries", vocabulary=80)
WORDS = DataSettings(corpus="text", block=8)

GERMAN = ["Der Hund läuft.", "Die Katze schläft.", "Ein Hund schläft nicht."]
ENGLISH = ["The dog runs.", "The cat sleeps.", "A dog doesn't sleep."]


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    """Write a text file, gzipped if its name ends with .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(line + end for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_pairs(folder: Path, times: int = 4) -> Path:
    for split in ("train", "valid", "test"):
        repeated = times if split == "train" else 1
        write(folder / f"{split}.de", GERMAN * repeated)
        write(folder / f"{split}.en", ENGLISH * repeated)
    return folder


def write_text(folder: Path) -> Path:
    for split in ("train", "valid", "test"):
        write(folder / f"{split}.txt", ["", " = A title = ", "", " one two two three <unk> ", ""])
    return folder


def write_segmented(folder: Path) -> Path:
    """Write pairs that are tokenized and segmented, with the codes file and two test sets."""
    english = ["the do@@ g runs .", "the cat sleep@@ s .", "a do@@ g does n&apos;t sleep ."]
    german = ["der hund läu@@ ft .", "die kat@@ ze schlä@@ ft .", "ein hund schlä@@ ft nicht ."]
    for split in ("train", "valid", "test", "test2017"):
        write(folder / f"{split}.en", english)
        write(folder / f"{split}.de", german)
    write(
        folder / "codes.bpe",
        ["#version: 0.2", "d o", "t h", "th e</w>", "r u", "ru n", "run s</w>"],
    )
    return folder


def left_in(folder: Path) -> list[str]:
    """Return all names in a folder, hidden or not."""
    return sorted(path.name for path in folder.iterdir())
