from talkconv.bench.measure import Timing, measure


def clock(seconds):
    """Return a timer and the list of its runs. It does not depend on the machine."""
    turns = []

    def timer(run):
        turns.append(run())
        return seconds[turns[-1]]

    return timer, turns


def test_contestants_take_turns():
    timer, turns = clock({"q": 0.002, "s": 0.03})
    runs = {"quick": lambda: "q", "slow": lambda: "s"}
    timings = measure(runs, seconds=0.01, turn=0.01, timer=timer)
    assert timings["quick"].median < timings["slow"].median
    assert timings["quick"].runs == 3
    # quick runs several times in its turn, slow once, and neither runs all its rounds in one go
    rounds = "".join(turns)
    assert "sqq" in rounds
    assert "qqs" in rounds
    assert "ss" not in rounds[4:]


def test_each_turn_of_a_fast_contestant_begins_with_a_run_that_is_not_timed():
    seen = []

    def timer(run):
        run()
        seen.append("timed")
        return 0.3

    measure({"fast": lambda: seen.append("run")}, seconds=0, least_rounds=2, timer=timer)
    # two runs decide how often one fits into a turn; then come two rounds
    assert seen[4:] == ["run", "run", "timed"] * 2


def test_a_slow_first_run_counts_and_no_run_follows_after_enough_seconds():
    timer, turns = clock({"slow": 7.0})
    timings = measure({"slow": lambda: "slow"}, seconds=1, least_rounds=3, enough=14, timer=timer)
    assert timings["slow"].runs == len(turns) == 2


def test_known_runs_are_not_made_again():
    timer, turns = clock({"slow": 5.0, "quick": 0.5})
    runs = {"slow": lambda: "slow", "quick": lambda: "quick"}
    timings = measure(
        runs, seconds=1, least_rounds=3, enough=10, timer=timer, known={"slow": 9.0, "quick": 0.1}
    )
    assert timings["slow"].runs == 2
    assert timings["slow"].median == 7.0
    # a short run is no measurement until its contestant has warmed up
    assert timings["quick"].median == 0.5
    assert turns.count("slow") == 1


def test_spread_is_the_quartiles():
    timing = Timing.of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (timing.low, timing.median, timing.high, timing.runs) == (2.0, 3.0, 4.0, 5)
    assert Timing.of([0.5]).high == 0.5
    assert str(Timing.of([0.001])) == "1.00 (1.00–1.00)"


def test_overlap_needs_both_quartiles():
    low, high = Timing(1.0, 0.9, 1.1, 9), Timing(2.0, 1.2, 2.1, 9)
    assert not low.overlaps(high)
    assert not high.overlaps(low)
    assert low.overlaps(Timing(1.3, 1.05, 1.4, 9))
