"""The page about trained results: results/README.md, made from results/runs and results/notes."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from talkconv.files import write_text
from talkconv.report.commands import commands_of, prepare_command
from talkconv.report.curves import Curve, draw_curves
from talkconv.report.kept_run import RUNS, KeptRun, read_kept
from talkconv.report.other_settings import other_settings
from talkconv.report.plan import Plan, Table, Windows
from talkconv.report.score_tables import markdown_table, score_table
from talkconv.report.window_pictures import draw_reach, draw_sentence, draw_talk

PAGE, NOTES, PICTURES = "README.md", "notes", "pictures"


def write_page(plan: Plan, results: Path) -> Path:
    """Write the page and its pictures from the files in `results`."""
    runs = {run.name: read_kept(results / RUNS / run.name) for run in plan.runs()}
    parts = [f"# {plan.title}", _note(results, "introduction")]
    for number, table in enumerate(plan.tables, start=1):
        parts += _table_section(number, table, runs, results)
    parts += _windows_section(len(plan.tables) + 1, plan.windows, runs, results)
    page = results / PAGE
    write_text(page, "\n\n".join(part for part in parts if part) + "\n")
    return page


def _note(results: Path, name: str) -> str:
    """Return the paragraph that a person wrote about a table, or an empty one."""
    path = results / NOTES / f"{name}.md"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _table_section(
    number: int, table: Table, runs: Mapping[str, KeptRun], results: Path
) -> list[str]:
    parts = [
        f"## {number}. {table.title}",
        _note(results, table.name),
        score_table(table, runs),
        _protocol(table, runs),
    ]
    if table.curves:
        parts.append(_learning_curves(table, runs, results))
    parts += [_sources(table), _provenance([runs[run.name] for run in table.runs()])]
    return [*parts, _other_settings(table, runs), _commands(table)]


def _learning_curves(table: Table, runs: Mapping[str, KeptRun], results: Path) -> str:
    """Draw the curves of all rows, and return the link to the picture. It is empty without runs."""
    name = f"{table.name}-curves"
    curves = [
        Curve(row.label, [runs[run.name] for run in table.runs_of(row)]) for row in table.rows
    ]
    drawn = draw_curves(curves, results / PICTURES / name)
    return _picture(name, f"Learning curves. {table.title}") if drawn else ""


def _protocol(table: Table, runs: Mapping[str, KeptRun]) -> str:
    """Describe which network of each run was scored, and how, according to the saved scores."""
    evaluations = [
        (run.name, evaluation)
        for run in table.runs()
        for evaluation in runs[run.name].evaluations.values()
    ]
    if not evaluations:
        return ""
    sentences = [_chosen_network(table, evaluations), _chosen_penalty(table, evaluations)]
    signatures = {
        score["signature"]
        for _, evaluation in evaluations
        for score in evaluation["scores"]
        if score["name"] == table.score
    }
    sentences.append(f"{table.score}: {'; '.join(sorted(signatures))}.")
    beams = {
        evaluation["about"]["generation"]["num_beams"]
        for _, evaluation in evaluations
        if "generation" in evaluation["about"]
    }
    if beams:
        sentences.append(f"Beam {', '.join(map(str, sorted(beams)))}.")
    return " ".join(sentence for sentence in sentences if sentence)


def _chosen_network(table: Table, evaluations: Sequence[tuple[str, Any]]) -> str:
    if not table.average:
        return "Each run is scored with its best checkpoint on the validation set."
    # a run has several evaluations, one for each split
    models = {run: evaluation["about"]["model"] for run, evaluation in evaluations}
    averaged = [run for run, model in models.items() if model == "averaged"]
    return (
        f"Each run is scored with its best checkpoint or with the mean of its last "
        f"{table.average}, whichever is better on the validation set: the mean for "
        f"{', '.join(averaged) or 'none of them'}."
    )


def _chosen_penalty(table: Table, evaluations: Sequence[tuple[str, Any]]) -> str:
    tried = table.length_penalties
    if len(tried) == 1:
        return ""
    penalties = {
        run: evaluation["about"]["generation"]["length_penalty"] for run, evaluation in evaluations
    }
    chosen = [
        f"{penalty} for {', '.join(run for run, each in penalties.items() if each == penalty)}"
        for penalty in sorted(set(penalties.values()))
    ]
    return (
        f"The length penalty, {' or '.join(map(str, tried))}, is chosen together with it: "
        f"{'; '.join(chosen)}."
    )


def _sources(table: Table) -> str:
    rows = [f"{row.label}: {row.source}." for row in table.published if row.source]
    return " ".join(rows)


def _provenance(runs: Sequence[KeptRun]) -> str:
    """Return the machines, dates and commits behind the runs of a table and behind their scores."""
    trained = [run.summary["machine"] for run in runs if run.summary.get("machine")]
    scored = [
        evaluation["about"]["machine"]
        for run in runs
        for evaluation in run.evaluations.values()
        if evaluation["about"].get("machine")
    ]
    measured = [run.speed["machine"] for run in runs if run.speed]
    kinds = {"Trained": trained, "Scored": scored, "Speed measured": measured}
    return " ".join(f"{did}: {_machines(found)}." for did, found in kinds.items() if found)


def _machines(machines: Sequence[Mapping[str, Any]]) -> str:
    threads = _either(each.get("threads", 1) for each in machines)
    return (
        f"{_either(each['date'] for each in machines)}, "
        f"{_either(each['processor'] for each in machines)} with "
        f"{_either(each['cores'] for each in machines)} cores, threads of a process: {threads}, "
        f"torch {_either(each['torch'] for each in machines)}, commit "
        f"{_either(each['commit'] for each in machines)}"
    )


def _either(values: Iterable[Any]) -> str:
    return ", ".join(sorted({str(value) for value in values}))


def _other_settings(table: Table, runs: Mapping[str, KeptRun]) -> str:
    """Name the runs that the commands would not train again as they were."""
    found = {run.name: other_settings(run, runs[run.name]) for run in table.runs()}
    named = [f"{name} ({', '.join(each)})" for name, each in found.items() if each]
    if not named:
        return ""
    return f"Trained with other settings than the commands have: {', '.join(named)}."


def _commands(table: Table) -> str:
    lines = [shlex.join(prepare_command(table, Path("RAW")))]
    lines += [shlex.join(words) for run in table.runs() for words in commands_of(table, run)]
    text = "\n".join(lines)
    return f"<details><summary>Commands</summary>\n\n```bash\n{text}\n```\n\n</details>"


def _windows_section(
    number: int, shown: Sequence[Windows], runs: Mapping[str, KeptRun], results: Path
) -> list[str]:
    if not shown:
        return []
    parts = [f"## {number}. What the windows learned", _note(results, "windows")]
    for each in shown:
        parts += _windows(each, runs[each.run], results)
    return parts


def _windows(shown: Windows, run: KeptRun, results: Path) -> list[str]:
    parts = [f"### {shown.label}"]
    statistics: Any = run.windows
    if not statistics:
        return [*parts, f"*{run.name}: {run.status}*"]
    reach = f"{run.name}-windows"
    draw_reach(statistics, results / PICTURES / reach)
    parts += [
        f"Mean reach on the {statistics['sequences']:,} sequences of the {statistics['split']} "
        f"set, in tokens, and how often a window covers the whole sentence, or in a decoder all "
        f"tokens so far. A cell lists the heads.",
        _reach_table(statistics),
        _picture(
            reach,
            f"Mean reach of each head; the dashed lines are the most that a layer allows. "
            f"{shown.label}",
        ),
    ]
    for index, look in enumerate(statistics["looks"], start=1):
        name = f"{run.name}-sentence-{index}"
        draw_sentence(look, results / PICTURES / name)
        parts.append(_picture(name, f"The windows of every head over: {look['text']}"))
    if statistics["looks"]:
        # the sentence in the middle is neither too short to show much nor too long for a slide
        middle = statistics["looks"][len(statistics["looks"]) // 2]
        draw_talk(middle, results / PICTURES / f"{run.name}-talk")
        parts.insert(1, _picture(f"{run.name}-talk", "The encoder's windows over one sentence"))
    return parts


def _reach_table(statistics: Mapping[str, Any]) -> str:
    header = ["layer", "at most", "left", "right", "covers the whole sentence"]
    rows = []
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(statistics[side], start=1):
            limits = f"{layer['l_max']} + {layer['r_max']}"
            heads = [
                ", ".join(f"{reach:.1f}" for reach in layer[direction])
                for direction in ("left", "right")
            ]
            whole = ", ".join(f"{share:.0%}" for share in layer["whole"])
            rows.append([f"{side} {number}", limits, *heads, whole])
    return markdown_table(header, rows)


def _picture(name: str, text: str) -> str:
    return f"![{text}]({PICTURES}/{name}.svg)\n*{text}* ([PNG]({PICTURES}/{name}.png))"
