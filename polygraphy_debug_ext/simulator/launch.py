"""`polygraphy-trt-sim`: runs a command, and everything that it starts, against the simulator."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator import faults, personality, settings
from polygraphy_debug_ext.simulator.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
USAGE, NOT_EXECUTABLE, NOT_FOUND = 2, 126, 127
#: What builder flags allow, by the option of the same name.
PRECISIONS = {"fp16": "HALF", "bf16": "BF16", "int8": "INT8"}
DESCRIPTION = """\
Runs COMMAND with a TensorRT that is simulated on the CPU, also in every process that COMMAND starts. Engines compute
real numbers through ONNX Runtime; builds time simulated kernels, so that repeated builds choose different tactics.
"""
EPILOG = f"""\
faults:
  A fault is planted as {faults.GRAMMAR}
  KERNEL and LAYER are case-sensitive globs (a text that is exactly equal matches too); without a LAYER all layers are hit.
  While the engine runs (R is the probability per inference):
    offset         the lower half of the values comes out too high, by V
                   (default: by the largest magnitude, at least 1)
    nan, zero      all values come out as NaN or 0
    run-crash      the process dies with SIGSEGV
  While the kernel is timed, in every build in which a layer offers it (R is the probability per build):
    build-error    the kernel fails and is skipped
    build-crash    the process dies with SIGSEGV
    build-hang     the build never ends
    sticky         a CUDA error from which this process does not recover: all later builds and calls fail
  --list-kernels shows what can be planted. A layer inside Myelin is known by its op, its ONNX nodes, its name in the engine,
  and the name of the graph around it.

examples:
  polygraphy-trt-sim -- polygraphy run model.onnx --trt --onnxrt --fp16
  polygraphy-trt-sim --trt 8.6 --list-kernels model.onnx --fp16
  polygraphy-trt-sim --fault 'sm80_xmma_fprop_*f16f16_f16*tilesize64x64x64*@conv1 + relu1:offset' -- polygraphy debug build ...
  polygraphy-trt-sim --seed 7 --fault '*fprop*_f16*:nan:rate=0.5' -- python script.py
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns only if there was no command to become."""
    own, command = _split(list(sys.argv[1:] if arguments is None else arguments))
    options = _parser().parse_args(own)
    try:
        chosen = settings.validated(
            settings.Settings(
                trt=options.trt,
                seed=options.seed,
                noise=options.noise,
                fault=tuple(options.fault),
                gpu=options.gpu,
            )
        )
        if options.list_kernels is not None:
            return _list_kernels(options, chosen, command)
    except UsageError as error:
        return _complain(str(error), USAGE)
    if not command:
        return _complain(
            "no command is given: put it after --, as in: polygraphy-trt-sim -- polygraphy run ... (see -h)",
            USAGE,
        )
    return _run(command, environment(chosen, dict(os.environ)))


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polygraphy-trt-sim",
        usage="polygraphy-trt-sim [options] -- COMMAND [ARGUMENT ...]\n"
        "       polygraphy-trt-sim [options] --list-kernels MODEL.onnx [--fp16] [--int8]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    versions = personality.names()
    parser.add_argument("--trt", choices=versions, default=personality.DEFAULT,
                        help="the version of TensorRT to imitate (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--seed", type=int, help="make builds and flaky faults repeatable (default: they never repeat)"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="plant a fault; can be repeated (see below)",
    )
    parser.add_argument("--noise", type=float, default=settings.DEFAULT_NOISE, metavar="SIGMA",
                        help="spread of the measured times, 0 for none (default: %(default)s)")  # fmt: skip
    parser.add_argument("--gpu", metavar="NAME", default=settings.DEFAULT_GPU,
                        help="the device that timing caches belong to: another name is another device (default: %(default)s)")  # fmt: skip
    parser.add_argument("--list-kernels", metavar="MODEL.onnx",
                        help="print layer, kernel, tactic and precision of every candidate, separated by tabs")  # fmt: skip
    parser.add_argument("--fp16", action="store_true", help="with --list-kernels: as if built with --fp16")
    parser.add_argument("--bf16", action="store_true", help="with --list-kernels: as if built with --bf16")
    parser.add_argument(
        "--int8", action="store_true", help="with --list-kernels: as if built with --int8 and a calibrator"
    )
    return parser


def _list_kernels(options: argparse.Namespace, chosen: settings.Settings, command: list[str]) -> int:
    from polygraphy_debug_ext.simulator.listing import list_kernels  # noqa: PLC0415 - needs onnx, launching does not

    if command:
        raise UsageError("--list-kernels takes no command")
    loaded = personality.load(chosen.trt)
    asked = [name for name in PRECISIONS if getattr(options, name)]
    lacking = [name for name in asked if not loaded.has("BuilderFlag", name.upper())]
    if lacking:
        why = (
            "has no such precision"
            if loaded.has("BuilderFlag", "FP16")
            else "takes precisions from the model"
        )
        _complain(
            f"TensorRT {chosen.trt} {why}: no effect of {', '.join(f'--{name}' for name in lacking)}", 0
        )
    allowed = {"FLOAT", *(PRECISIONS[name] for name in asked if name not in lacking)}
    for row in list_kernels(Path(options.list_kernels), chosen.trt, frozenset(allowed)):
        sys.stdout.write(f"{row.layer}\t{row.kernel}\t{row.tactic}\t{row.precision}" + "\n")
    return 0


def environment(chosen: settings.Settings, base: dict[str, str]) -> dict[str, str]:
    """The environment in which `tensorrt` is the simulator."""
    library_path = "PATH" if os.name == "nt" else "LD_LIBRARY_PATH"
    found = dict(base)
    found[settings.VARIABLE] = chosen.dump()
    found["PYTHONPATH"] = _joined(str(HERE / "site"), base.get("PYTHONPATH", ""))
    # Checks are often `polygraphy run ...`: they must find the one that belongs to this interpreter.
    found["PATH"] = _joined(str(Path(sys.executable).parent), base.get("PATH", ""))
    found[library_path] = _joined(found.get(library_path, ""), str(HERE / "cudart"))
    return found


def _joined(*parts: str) -> str:
    return os.pathsep.join(part for part in parts if part)


def _run(command: list[str], env: dict[str, str]) -> int:
    program = shutil.which(command[0], path=env["PATH"])
    if program is None:
        # What is there but cannot be run is another mistake than what is not there.
        exists = shutil.which(command[0], mode=os.F_OK, path=env["PATH"]) is not None
        if exists:
            return _complain(f"{command[0]} cannot be executed", NOT_EXECUTABLE)
        return _complain(f"command not found: {command[0]}", NOT_FOUND)
    try:
        if os.name == "nt":
            return subprocess.run([program, *command[1:]], env=env, check=False).returncode
        os.execve(program, command, env)  # noqa: S606 - to become the command is the point
    except OSError as error:
        return _complain(f"{command[0]} cannot be executed: {error.strerror}", NOT_EXECUTABLE)


def _complain(problem: str, status: int) -> int:
    sys.stderr.write(f"polygraphy-trt-sim: {problem}\n")
    return status
