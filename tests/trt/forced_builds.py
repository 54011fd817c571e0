"""Records two builds, forces mixtures of both, and writes what came of it to result.json. Run by test_build.py under the simulator."""

import json
import os
from dataclasses import replace
from pathlib import Path

from polygraphy.tools.args import LoggerArgs

from polygraphy_debug_ext.cli.build import Build
from polygraphy_debug_ext.cli.worker_main import _OF_THE_RUN
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment
from polygraphy_debug_ext.trt.build import EngineBuilder, Report

GOOD, BAD, SAVED, HYBRID = (Path(f"{name}.json") for name in ("good", "bad", "saved", "hybrid"))


def make_builder() -> EngineBuilder:
    tool = Build()
    options = ["convnet.onnx", "--fp16", "--save-tactics", str(SAVED), "--until", "1", "--check", "true"]
    args = tool.setup_parser().parse_args(options)
    for kind, group in tool.arg_groups.items():
        if kind not in (*_OF_THE_RUN, LoggerArgs):
            group.parse(args)
    return EngineBuilder(tool.arg_groups, args)


def built(builder: EngineBuilder, number: int, hybrid: Assignment | None = None) -> tuple[Assignment, Report]:
    os.environ["POLYGRAPHY_DEBUG_ITERATION"] = str(number)
    if hybrid is None:
        report = builder.build()
    else:
        replay.write(HYBRID, hybrid)
        report = builder.build(HYBRID, [GOOD, BAD])
    return replay.read(SAVED), report


def kernels(assignment: Assignment) -> dict[str, str | None]:
    return {name: tactic.kernel for name, tactic in assignment.layers.items() if not tactic.swallowed}


def main() -> None:
    builder = make_builder()
    sides = []
    for number, path in enumerate((GOOD, BAD)):
        sides.append(built(builder, number)[0])
        replay.write(path, sides[-1])
    good, bad = sides
    differing = [name for name, kernel in kernels(good).items() if kernels(bad).get(name, kernel) != kernel]
    result: dict[str, object] = {"differing": differing}
    mixtures: list[dict[str, object]] = []
    for number, wanted in enumerate((differing[::2], differing[1::2], differing, [])):
        layers = {
            name: bad.layers[name] if name in wanted else tactic for name, tactic in good.layers.items()
        }
        hybrid = replace(good, layers=layers, timing_cache=None)
        has, report = built(builder, 10 + number, hybrid)
        keyed = [sum(tactic.cache_key is not None for tactic in each.layers.values()) for each in (good, has)]
        mixtures.append(
            {
                "wanted": kernels(hybrid),
                "has": kernels(has),
                "not_honoured": dict(report.not_honoured),
                "keyed": keyed,
            }
        )
    name, tactic = next(
        (name, tactic) for name, tactic in good.layers.items() if tactic.kernel and "gemm" in tactic.kernel
    )
    wrong = replace(
        tactic, kernel="no such kernel", tactic=12345, cache_key=tactic.cache_key and f"0x{7:032x}"
    )
    _, report = built(builder, 20, replace(good, layers={**good.layers, name: wrong}, timing_cache=None))
    result["unknown"] = {"layer": name, "not_honoured": dict(report.not_honoured)}
    result["mixtures"] = mixtures
    Path("result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
