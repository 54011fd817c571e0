"""Our options of `debug build`, beside Polygraphy's."""

from __future__ import annotations

from polygraphy.tools.args.base import BaseArgs


class TrialArgs(BaseArgs):  # type: ignore[misc]  # Polygraphy has no types
    """
    Trials: isolating, judging and resuming builds and checks.

    Depends on:

        - CheckCmdArgs
    """

    def allows_abbreviation_impl(self) -> bool:
        """Refuse abbreviations: they break the rest of the line that --check takes."""
        return False

    def add_parser_args_impl(self) -> None:
        """Add the options."""
        add = self.group.add_argument
        add(
            "--build-timeout",
            metavar="SECONDS",
            type=float,
            help="The time that a build may take. One that takes longer is ended, and counts as a failed build.",
        )
        add(
            "--build-failure",
            choices=["unresolved", "bad"],
            default="unresolved",
            help="What a build counts as that fails, crashes or takes too long. An engine that does not exist says nothing "
            "about the tactics that would have been in it, so the default is 'unresolved'; stock Polygraphy has 'bad'.",
        )
        add(
            "--check-timeout",
            metavar="SECONDS",
            type=float,
            help="The time that the --check command may take. If it takes longer, the iteration fails.",
        )
        add(
            "--check-repeat",
            metavar="N",
            type=int,
            default=1,
            help="Run the --check command up to N times per iteration, for checks that are flaky themselves. "
            "The iteration fails if any of them fails.",
        )
        add(
            "--skip-code",
            dest="skip_codes",
            metavar="CODE",
            type=int,
            nargs="+",
            help="The exit status(es) with which the --check command says that it cannot judge: "
            "the iteration is neither good nor bad. 125 is a common choice, as in `git bisect run`.",
        )
        add(
            "--resume",
            action="store_true",
            help="Go on with the last run in --artifacts-dir. All options must be the same, only --until may differ.",
        )
        add(
            "--in-process",
            action="store_true",
            help="Build inside this process, as stock Polygraphy does. A build that crashes or hangs ends the run then.",
        )
        self._add_tactic_options()

    def _add_tactic_options(self) -> None:
        add = self.group.add_argument
        add(
            "--tactic-source",
            choices=["auto", "selector", "cache", "log"],
            default="auto",
            help="Where --save-tactics learns what was chosen: from TensorRT's algorithm selector (up to TensorRT 10), from the "
            "editable timing cache (10.8 and later), or from the layers of the engine only ('log'; cannot be forced). "
            "'auto' takes the cache where there is one, else the selector, else the engine.",
        )
        add(
            "--require-honoured",
            action="store_true",
            help="Fail a build in which a tactic of --load-tactics was not honoured. Otherwise it is listed, and left free.",
        )
        add(
            "--ignore-timing-cache-mismatch",
            action="store_true",
            help="Force the tactics of --load-tactics through their timing cache even if it was made on another device or with "
            "another CUDA.",
        )
        add(
            "--avoid-tactics",
            metavar="FILE",
            help="Keep the tactics of this avoid list (JSON, as --save-avoid writes it) out of the engine: the algorithm selector is "
            "not offered them; in the editable timing cache they are replaced by the fastest other tactic. The engine is looked at "
            "afterwards, and built again if need be. What it cost is said.",
        )
        add(
            "--explore",
            metavar="near-ties[=N%]",
            help="Prefer, of the tactics of a layer that are at most N%% slower than its fastest (5%% by default), those that this "
            "run has seen least, so that rare ones show up early. The first build, and every fourth after it, is left to TensorRT, "
            "and its costs are what the next ones go by. After a crash of the build process, or with --resume, it begins anew.",
        )
