import io

from rich.console import Console

from use_st5.io.progress_bars import ProgressBars


def test_the_state_is_that_of_what_is_not_done() -> None:
    with ProgressBars(console=Console(file=io.StringIO()), lines=False, disable=True) as bars:
        bars.add_task("done", total=2, completed=2)
        row = bars.add_task("  training", total=1_200, losses="", speed="")
        bars.add_task("sentences encoded", total=None)
        assert bars.state() == "training: 0 of 1,200; sentences encoded: 0"
        bars.update(row, completed=40, losses="nli 0.5", speed="2 steps/s")
        assert bars.state().startswith("training: 40 of 1,200  nli 0.5  2 steps/s; ")
