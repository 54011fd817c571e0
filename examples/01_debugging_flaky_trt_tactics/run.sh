#!/usr/bin/env bash
# Runs the walk-through of README.md: no GPU and no TensorRT is needed. Sets up its own virtual environment if need be.
set -euo pipefail
example=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$example")")

if ! command -v polygraphy-trt-sim >/dev/null; then
    echo "Installing into $root/.venv ..."
    python3 -m venv "$root/.venv"
    "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check "$root"
    export PATH="$root/.venv/bin:$PATH"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 "$example/make_models.py"

show() {
    printf '\n$ %s\n' "${*@Q}" | sed "s/'\([A-Za-z0-9_./=-]*\)'/\1/g"
    "$@"
}

echo
echo '=== A network where nothing is wrong'
show polygraphy-trt-sim -- polygraphy run identity.onnx --onnxrt --save-outputs golden.json
show polygraphy-trt-sim -- polygraphy debug build identity.onnx --fp16 --save-tactics replay.json \
    --artifacts-dir replays --artifacts replay.json --until=2 \
    --check polygraphy run polygraphy_debug.engine --trt --load-outputs golden.json
show polygraphy-trt-sim -- polygraphy debug diff-tactics --dir replays

echo
echo '=== A network with one faulty FP16 kernel'
# One of the kernels that compete for the layer conv4 + relu4; `--list-kernels convnet.onnx --fp16` shows them all.
kernel=sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize32x32x64_stage6_warpsize2x2x1_g1_tensor16x8x16
fault=(--seed 3 --fault "$kernel:offset")
show polygraphy-trt-sim -- polygraphy run convnet.onnx --onnxrt --save-outputs golden_convnet.json
show polygraphy-trt-sim "${fault[@]}" -- polygraphy debug build convnet.onnx --fp16 --save-tactics replay.json \
    --artifacts-dir replays_convnet --artifacts replay.json --until=16 --hide-fail-output \
    --check polygraphy run polygraphy_debug.engine --trt --load-outputs golden_convnet.json --atol 0.02
show polygraphy-trt-sim -- polygraphy debug diff-tactics --dir replays_convnet

echo
echo '=== The same, proved: builds that have it alone fail, builds that lack it alone pass'
show polygraphy-trt-sim "${fault[@]}" -- polygraphy debug bisect-tactics convnet.onnx --fp16 --dir replays_convnet \
    --artifacts-dir proof --save-avoid avoid.json --hide-fail-output \
    --check polygraphy run polygraphy_debug.engine --trt --load-outputs golden_convnet.json --atol 0.02

echo
echo '=== An engine without it'
show polygraphy-trt-sim "${fault[@]}" -- polygraphy debug build convnet.onnx --fp16 --avoid-tactics avoid.json \
    --save-tactics replay.json --artifacts replay.json --artifacts-dir shipped --until=good \
    --check polygraphy run polygraphy_debug.engine --trt --load-outputs golden_convnet.json --atol 0.02
show polygraphy-trt-sim -- polygraphy debug convert-tactics shipped/good/replay_*.json -o tactics.cache
