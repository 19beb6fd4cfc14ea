// clang -x cuda --cuda-device-only --cuda-gpu-arch=sm_75 -nocudainc -nocudalib -O2 -S clang.c -o clang_sm75.ptx
// and for sm_80
#define BLOCK 64
extern "C" __attribute__((global, launch_bounds(BLOCK))) void transpose(float *out, const float *in,
                                                                        unsigned rows, unsigned columns)
{
    unsigned row = __nvvm_read_ptx_sreg_ctaid_x();
    for (unsigned column = __nvvm_read_ptx_sreg_tid_x(); column < columns; column += BLOCK)
        out[column * rows + row] = in[row * columns + column];
}
