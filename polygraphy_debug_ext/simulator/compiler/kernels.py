"""The kernels that exist, in families: which kind of layer a family serves, in which precision, with which formats.

A kernel has one id wherever it is used. The big libraries have 64-bit ids derived from the kernel's name; runners of the
builder itself have small ids of their own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL_RUNNERS = (
    "Reformat", "Shuffle", "NoOp", "PointWiseV2", "Concat", "Slice", "Gather", "ElementWise", "Cast", "Constant",
    "Scale", "Reduce", "Resize", "TopK", "Quantize", "Dequantize", "Normalization",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel; `source` is the tactic source that it comes from, if the user can switch it off."""

    name: str
    runner: str
    tactic: int
    precision: str
    input_format: str
    output_format: str
    source: str = ""

    @property
    def named_in_log(self) -> bool:
        """Whether the timing lines show the name: those of the builder's own runners show only the id."""
        return self.runner not in SMALL_RUNNERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Kernels that differ in their variant only: `{0}` in the pattern. `formats` are those of inputs and outputs."""

    runner: str
    precision: str
    pattern: str
    variants: tuple[str, ...]
    formats: str = "LINEAR>LINEAR"
    source: str = ""


_FFMA = ("128x128x8_stage3_warpsize2x2x1", "128x64x8_stage3_warpsize2x2x1", "128x32x8_stage3_warpsize2x2x1",
         "64x64x8_stage3_warpsize1x4x1", "32x32x8_stage3_warpsize1x2x1")  # fmt: skip
_TENSOR = ("128x128x32_stage4_warpsize2x2x1", "256x64x32_stage3_warpsize4x1x1", "128x64x64_stage3_warpsize2x2x1",
           "64x64x64_stage4_warpsize2x2x1", "64x32x64_stage5_warpsize2x1x1", "32x32x64_stage6_warpsize2x2x1")  # fmt: skip
_INT8 = ("256x128x64_stage3_warpsize4x2x1", "128x64x64_stage3_warpsize2x2x1", "64x64x64_stage3_warpsize2x1x1",
         "32x64x64_stage4_warpsize2x1x1")  # fmt: skip

_CONV = "sm80_xmma_fprop_implicit_gemm"
_CONV_FAMILIES = (
    Family(runner="CaskConvolution", precision="FLOAT", variants=_FFMA,
           pattern=_CONV + "_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize{0}_g1_ffma_aligna4_alignc4"),
    Family(runner="CaskConvolution", precision="FLOAT", variants=_FFMA[1:4], formats="HWC>HWC",
           pattern=_CONV + "_indexed_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize{0}_g1_ffma_aligna4_alignc4"),
    Family(runner="CaskConvolution", precision="HALF", variants=_TENSOR, formats="HWC8>HWC8",
           pattern=_CONV + "_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize{0}_g1_tensor16x8x16"),
    Family(runner="CaskConvolution", precision="HALF", variants=_TENSOR[2:5], formats="HWC8>HWC8",
           pattern=_CONV + "_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize{0}_g1_tensor16x8x16"),
    Family(runner="CaskConvolution", precision="INT8", variants=_INT8, formats="CHW32>CHW32",
           pattern=_CONV + "_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32_nchw_vect_c_32_tilesize{0}_g1_tensor16x8x32"),
)  # fmt: skip
_DECONV = "sm80_xmma_deconv_implicit_gemm"
_DECONV_FAMILIES = (
    Family(runner="CaskDeconvolution", precision="FLOAT", variants=_FFMA[1:],
           pattern=_DECONV + "_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize{0}_g1_ffma"),
    Family(runner="CaskDeconvolution", precision="HALF", variants=_TENSOR[2:], formats="HWC8>HWC8",
           pattern=_DECONV + "_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize{0}_g1_tensor16x8x16"),
)  # fmt: skip
_GEMM = "sm80_xmma_gemm"
_GEMM_FAMILIES = (
    Family(runner="CaskGemmMatrixMultiply", precision="FLOAT", variants=_FFMA,
           pattern=_GEMM + "_f32f32_f32f32_f32_tn_n_tilesize{0}_ffma_aligna4_alignc4"),
    Family(runner="CaskGemmMatrixMultiply", precision="FLOAT", variants=("32x128_tn_v0", "128x64_tn_v1"),
           pattern="ampere_sgemm_{0}", source="CUBLAS"),
    Family(runner="CaskGemmMatrixMultiply", precision="HALF", variants=_TENSOR,
           pattern=_GEMM + "_f16f16_f16f16_f16_tn_n_tilesize{0}_tensor16x8x16_aligna4_alignc4"),
    Family(runner="CaskGemmMatrixMultiply", precision="HALF", variants=_TENSOR[2:4],
           pattern=_GEMM + "_f16f16_f16f32_f32_tn_n_tilesize{0}_tensor16x8x16_aligna4_alignc4"),
    Family(runner="CaskGemmMatrixMultiply", precision="INT8", variants=_INT8,
           pattern=_GEMM + "_i8i8_i8i32_f32_tn_n_tilesize{0}_tensor16x8x32"),
)  # fmt: skip
_POOL_FAMILIES = (
    Family(runner="CaskPooling", precision="FLOAT", variants=("P1_tQ32_tR3_tS3", "P2_tQ16_tR2_tS2", "P4_tQ8_tR2_tS2"),
           pattern="sm50_xmma_pooling_tiled_FP32NCHW_t{0}_tUnroll4_tThreads128"),
    Family(runner="CaskPooling", precision="FLOAT", variants=("generic",), formats="HWC>HWC",
           pattern="sm50_xmma_pooling_nhwc_FP32_{0}_2D"),
    Family(runner="CaskPooling", precision="HALF", variants=("windowed", "small_window", "NOT_PROPAGATE_NAN"),
           formats="HWC8>HWC8", pattern="sm72_xmma_pooling_nhwc_FP16FP32_{0}_2D"),
    Family(runner="CaskPooling", precision="INT8", variants=("packed", "packed_wide"), formats="CHW32>CHW32",
           pattern="sm72_xmma_pooling_{0}_Int8CHW32"),
)  # fmt: skip
_SOFTMAX_FAMILIES = (
    Family(runner="CaskSoftMaxV2", precision="FLOAT", variants=("r32", "r64", "r128"),
           pattern="sm50_xmma_softmax_fp32_warp_{0}_v1"),
    Family(runner="CaskSoftMaxV2", precision="HALF", variants=("r32", "r64", "r128"),
           pattern="sm53_xmma_softmax_fp16_warp_{0}_v1"),
)  # fmt: skip


def _small(
    runner: str, stem: str, variants: tuple[str, ...], precisions: str = "FLOAT HALF"
) -> tuple[Family, ...]:
    letters = {"FLOAT": "f32", "HALF": "f16", "INT8": "i8", "ANY": "any"}
    return tuple(
        Family(
            runner=runner,
            precision=precision,
            variants=variants,
            pattern=f"{stem}_{letters[precision]}_{{0}}",
        )
        for precision in precisions.split()
    )


FAMILIES: dict[str, tuple[Family, ...]] = {
    "conv": _CONV_FAMILIES,
    "deconv": _DECONV_FAMILIES,
    "gemm": _GEMM_FAMILIES,
    "pool": _POOL_FAMILIES,
    "softmax": _SOFTMAX_FAMILIES,
    "pointwise": (
        *_small("PointWiseV2", "pointwiseV2", ("unroll1", "unroll2", "unroll4", "vec8"), "FLOAT HALF INT8"),
        Family(runner="PointWiseV2", precision="HALF", variants=("vec8", "unroll8"), formats="HWC8>HWC8",
               pattern="pointwiseV2_nhwc_f16_{0}"),
    ),
    "scale": (*_small("Scale", "scaleKernel", ("loop", "vec4")),),
    "shuffle": (*_small("Shuffle", "shuffleKernel", ("tiled", "naive"), "ANY"),),
    "copy": (*_small("Reformat", "copyPackedKernel", ("vec4", "scalar"), "ANY"),),
    "cast": (*_small("Cast", "castKernel", ("vec4", "scalar"), "ANY"),),
    "concat": (*_small("Concat", "concatKernel", ("vec4", "scalar"), "ANY"),),
    "slice": (*_small("Slice", "sliceKernel", ("strided", "packed"), "ANY"),),
    "gather": (*_small("Gather", "gatherKernel", ("axis", "generic"), "ANY"),),
    "reduce": (*_small("Reduce", "reduceKernel", ("warp", "block", "twopass")),),
    "norm": (*_small("Normalization", "normalizationKernel", ("warp", "block", "twopass")),),
    "resize": (*_small("Resize", "resizeKernel", ("nchw", "tiled"), "ANY"),),
    "topk": (*_small("TopK", "topkKernel", ("radix", "bitonic"), "ANY"),),
    "quantize": (*_small("Quantize", "quantizeKernel", ("vec4", "scalar"), "ANY"),),
    "dequantize": (*_small("Dequantize", "dequantizeKernel", ("vec4", "scalar"), "ANY"),),
    "generic": (*_small("ElementWise", "genericKernel", ("vec4", "scalar"), "ANY"),),
    "reformat": (*_small("Reformat", "copyVectorizedKernel", ("packed", "tiled", "generic"), "ANY"),),
}  # fmt: skip
# What computes in FP16 can do so in BF16, by the names that NVIDIA's own kernels have.
_BRAIN_NAMES = {"f16": "bf16", "fp16": "bf16", "FP16": "BF16"}
# The builder's own runners number their tactics as TensorRT does: from 0, except where public logs show others.
_FIRST_SMALL_IDS = {"Reformat": (0x0, 0x3E8, 0x3EA), "PointWiseV2": (0x1C, 0x1, 0x5, 0x1D)}


@cache
def of_kind(kind: str) -> tuple[Kernel, ...]:
    """The kernels that serve a kind of layer, in a fixed order."""
    kernels: list[Kernel] = []
    for family in (*FAMILIES[kind], *_brains(FAMILIES[kind])):
        source, target = family.formats.split(">")
        for index, variant in enumerate(family.variants):
            name = family.pattern.format(variant)
            kernels.append(
                Kernel(
                    name=name,
                    runner=family.runner,
                    tactic=_tactic(family.runner, name, index),
                    precision=family.precision,
                    input_format=source,
                    output_format=target,
                    source=family.source,
                )
            )
    return tuple(kernels)


def _brains(families: tuple[Family, ...]) -> Iterator[Family]:
    for family in families:
        if family.precision == "HALF":
            pattern = family.pattern
            for half, brain in _BRAIN_NAMES.items():
                pattern = pattern.replace(half, brain)
            yield replace(family, precision="BF16", pattern=pattern)


def _tactic(runner: str, name: str, index: int) -> int:
    if runner not in SMALL_RUNNERS:
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    first = _FIRST_SMALL_IDS.get(runner, ())
    return first[index] if index < len(first) else index


def fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but the text of its parts."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def bell(*parts: object) -> float:
    """A number from (nearly) the standard normal distribution, exact on every platform: a sum of twelve fractions."""
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=48).digest()
    pieces = [int.from_bytes(digest[start:end], "big") for start, end in pairwise(range(0, 49, 4))]
    return sum(pieces) / 2**32 - 6.0
