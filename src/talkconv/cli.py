"""The commands, a table: each is a function that lives in its room."""

import typer

from talkconv.bench.kernels import bench_kernels
from talkconv.bench.op import bench_op
from talkconv.doctor import doctor

app = typer.Typer(
    name="talkconv",
    help="Time-aware Large Kernel (TaLK) convolutions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(doctor)

bench = typer.Typer(
    help="Measure on this machine; tables here, JSON in results/.", no_args_is_help=True
)
bench.command("op")(bench_op)
bench.command("kernels")(bench_kernels)
app.add_typer(bench, name="bench")
