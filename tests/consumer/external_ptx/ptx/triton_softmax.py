"""Prints the kernel as PTX for sm_80, without a GPU (Triton 3.9): TRITON_DISABLE_LINE_INFO=1 python3 triton_softmax.py"""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax_kernel(out, x, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=at < columns)


source = ASTSource(softmax_kernel, {"out": "*fp32", "x": "*fp32", "columns": "i32"}, {"BLOCK": 512})
made = triton.compile(source, target=GPUTarget("cuda", 80, 32))
with open("triton_sm80.ptx", "w", encoding="ascii") as ptx:
    ptx.write(made.asm["ptx"])
print(made.metadata.num_warps * 32, "threads,", made.metadata.shared, "bytes of shared memory")
