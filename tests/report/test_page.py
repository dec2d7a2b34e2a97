import re
import shutil
from dataclasses import replace

from talkconv.files import write_text
from talkconv.report.page import write_page
from tests.report.cases import read_plan


def test_a_page_can_be_made_without_any_run(workplace, tmp_path):
    plan = read_plan(workplace / "plan.toml")
    text = write_page(plan, tmp_path).read_text()
    assert "# Results" in text
    assert "| Others | 2.60M | 41.02 |" in text
    assert "TaLK (*tiny-talk: not trained yet, tiny-talk-seed2: not trained yet*)" in text
    assert "*tiny-talk: not trained yet*" in text.split("What the windows learned")[1]
    assert not (tmp_path / "pictures").exists()


def test_notes_stand_where_their_table_is(workplace, tmp_path):
    write_text(tmp_path / "notes" / "tiny.md", "TaLK loses here, because it is tiny.\n")
    write_text(tmp_path / "notes" / "introduction.md", "What this is.\n")
    text = write_page(read_plan(workplace / "plan.toml"), tmp_path).read_text()
    assert text.index("What this is.") < text.index("## 1. Tiny") < text.index("TaLK loses here")


def test_the_page_is_made_again_from_what_is_kept_alone(workplace, reported, tmp_path):
    """Numbers, pictures and commands come from results/, which a repository has."""
    text = (reported / "README.md").read_text()
    assert "Attention (*at step 6 of 12*)" in text
    assert "multi-bleu.perl" in text
    assert "Scored: 20" in text
    assert re.search(r"encoder 2 \| 3 \+ 3 \| \d\.\d, \d\.\d", text)
    for name in re.findall(r"\]\((pictures/.*?)\)", text):
        assert (reported / name).is_file(), name
    shutil.copytree(reported / "runs", tmp_path / "runs")
    assert write_page(read_plan(workplace / "plan.toml"), tmp_path).read_text() == text
    assert len(list((tmp_path / "pictures").iterdir())) == 2 * 4


def test_the_commands_are_those_of_the_plan(workplace, tmp_path):
    text = write_page(read_plan(workplace / "plan.toml"), tmp_path).read_text()
    assert "talkconv tune runs/tiny-attention --checkpoints 2 --length-penalty 1.0" in text
    assert (
        "talkconv evaluate runs/tiny-attention --split test "
        "--baseline runs/tiny-talk/evaluation/test.hypotheses" in text
    )
    assert "talkconv evaluate runs/tiny-talk-seed2 --split test\n" in text


def test_runs_of_other_settings_are_named(workplace, reported, tmp_path, no_pictures):
    shutil.copytree(reported / "runs", tmp_path / "runs")
    plan = read_plan(workplace / "plan.toml")
    assert "other settings" not in write_page(plan, tmp_path).read_text()
    (table,) = plan.tables
    changed = [*table.overrides, "training.clip=0.5", "training.precision=bf16"]
    text = write_page(replace(plan, tables=[replace(table, overrides=changed)]), tmp_path)
    assert (
        "Trained with other settings than the commands have: "
        "tiny-talk (training.clip = 0.0, training.precision = fp32), " in text.read_text()
    )


def test_the_network_that_was_scored_is_named(workplace, reported, tmp_path, no_pictures):
    shutil.copytree(reported / "runs", tmp_path / "runs")
    path = tmp_path / "runs" / "tiny-talk" / "evaluation" / "test.json"
    path.write_text(path.read_text().replace('"model": "best"', '"model": "averaged"'))
    text = write_page(read_plan(workplace / "plan.toml"), tmp_path).read_text()
    assert "the mean for tiny-talk." in text


def test_the_length_penalties_that_were_chosen_are_named(
    workplace, reported, tmp_path, no_pictures
):
    shutil.copytree(reported / "runs", tmp_path / "runs")
    plan = read_plan(workplace / "plan.toml")
    assert "length penalty" not in write_page(plan, tmp_path).read_text()
    tables = [replace(table, length_penalties=(1.0, 1.2)) for table in plan.tables]
    text = write_page(replace(plan, tables=tables), tmp_path).read_text()
    assert "The length penalty, 1.0 or 1.2, is chosen together with it: 1.0 for tiny-talk" in text
    assert "--checkpoints 2 --length-penalty 1.0 --length-penalty 1.2" in text


def test_a_table_can_do_without_its_picture(workplace, reported, tmp_path, no_pictures):
    shutil.copytree(reported / "runs", tmp_path / "runs")
    plan = read_plan(workplace / "plan.toml")
    assert "pictures/tiny-curves.svg" in write_page(plan, tmp_path).read_text()
    tables = [replace(table, curves=False) for table in plan.tables]
    text = write_page(replace(plan, tables=tables), tmp_path).read_text()
    assert "pictures/tiny-curves.svg" not in text
    assert "pictures/tiny-talk-windows.svg" in text
