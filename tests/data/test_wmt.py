import pytest

from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading
from talkconv.data.wmt import wmt14_en_fr, wmt16_en_de
from tests.data.cases import write

DE = DataSettings(corpus="wmt16_en_de", source_lang="en", target_lang="de")
FR = DataSettings(corpus="wmt14_en_fr", source_lang="en", target_lang="fr")


def write_sgm(path, name):
    lines = [
        f'<srcset setid="{name}" srclang="any">',
        '<doc sysid="ref" docid="1" genre="news" origlang="en">',
        "<p>",
        f'<seg id="1">{name} one</seg>',
        f'<SEG id="2">{name} two</SEG>',
        "</p>",
        "</doc>",
        "</srcset>",
    ]
    write(path, lines)


def write_wmt(folder, foreign, stems, sets):
    for stem in stems:
        for lang in ("en", foreign):
            write(folder / "training" / f"{stem}.{lang}", [f"{stem} {lang} {n}" for n in (1, 2)])
    for name in sets:
        write_sgm(folder / "dev" / f"{name}-src.en.sgm", f"{name} en")
        write_sgm(folder / "dev" / f"{name}-ref.{foreign}.sgm", f"{name} {foreign}")
    return folder


GERMAN = ["europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v11.de-en"]


def test_english_german(tmp_path):
    write_wmt(tmp_path, "de", GERMAN, ["newstest2013", "newstest2014-deen"])
    splits = wmt16_en_de(tmp_path, DE).splits
    rows = {name: list(split.rows(Reading())) for name, split in splits.items()}
    assert [row[0].split()[0] for row in rows["train"][::2]] == GERMAN
    assert rows["train"][0] == ("europarl-v7.de-en en 1", "europarl-v7.de-en de 1")
    assert rows["valid"] == [
        ("newstest2013 en one", "newstest2013 de one"),
        ("newstest2013 en two", "newstest2013 de two"),
    ]
    assert rows["test"][0] == ("newstest2014-deen en one", "newstest2014-deen de one")


def test_english_french_with_packed_files(tmp_path):
    stems = ["europarl-v7.fr-en", "commoncrawl.fr-en", "news-commentary-v9.fr-en"]
    write_wmt(
        tmp_path,
        "fr",
        [*stems, "undoc.2000.fr-en"],
        ["newstest2012", "newstest2013", "newstest2014-fren"],
    )
    for lang in ("en", "fr"):
        write(tmp_path / f"giga-fren.release2.fixed.{lang}.gz", [f"giga {lang}"])
    splits = wmt14_en_fr(tmp_path, FR).splits
    rows = {name: list(split.rows(Reading())) for name, split in splits.items()}
    assert rows["train"][-1] == ("giga en", "giga fr")
    assert len(rows["train"]) == 9
    assert [row[0] for row in rows["valid"]] == [
        "newstest2012 en one",
        "newstest2012 en two",
        "newstest2013 en one",
        "newstest2013 en two",
    ]
    assert len(splits["train"].files) == 10


def test_missing_files_are_listed(tmp_path):
    write_wmt(tmp_path, "de", GERMAN[:2], ["newstest2013", "newstest2014-deen"])
    told = r"does not:\n  news-commentary-v11.de-en.en\n  news-commentary-v11.de-en.de\n"
    with pytest.raises(ValueError, match=told):
        wmt16_en_de(tmp_path, DE)


def test_another_language(tmp_path):
    with pytest.raises(ValueError, match="this corpus has en and de, got en and fr"):
        wmt16_en_de(tmp_path, FR)
