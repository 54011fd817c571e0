#!/usr/bin/env bash
# Finds a culprit that was declared one: a kernel that the check rejects by name. On a machine with a GPU, set TRT to nothing
# (TRT= ./run.sh model.onnx) to run it all with real TensorRT; otherwise the simulator stands in.
set -euo pipefail
example=$(cd "$(dirname "$0")" && pwd)
read -ra trt <<<"${TRT-polygraphy-trt-sim --}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
    cp "$1" "$work/model.onnx"
else
    python3 "$example/../01_debugging_flaky_trt_tactics/make_models.py" "$work"
    mv "$work/convnet.onnx" "$work/model.onnx"
fi
cd "$work"

build() { # build DIRECTORY OPTIONS... : eight builds, or as many as the options say
    local directory=$1
    shift
    ${trt[@]+"${trt[@]}"} polygraphy debug build model.onnx --fp16 --artifacts-dir "$directory" -q "$@"
}

echo '=== 1. Twelve builds, to see which kernels compete'
build dry --save-tactics replay.json --artifacts replay.json --until=12 --check true
kernel=$(python3 "$example/pick_kernel.py" dry/good)
echo "The culprit shall be $kernel"
reject=(--check python3 "$example/reject_kernel.py" '{engine}' "$kernel")

echo '=== 2. Builds that are judged by it'
build judged --save-tactics replay.json --artifacts replay.json --until=16 "${reject[@]}"
polygraphy debug diff-tactics --dir judged

echo '=== 3. A bad build and a good build, forced: the one must fail, the other pass'
for side in bad good; do
    replay=$(ls judged/$side/*.json | head -1)
    build "forced_$side" --load-tactics "$replay" --require-honoured --until=1 "${reject[@]}"
done
