/* Shared by the emulator's tests: a context, loading of PTX bodies, launches, and captured stderr. */
#ifndef EMU_TEST_H
#define EMU_TEST_H

#include "cuda_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUcontext test_context;

/* xorshift64*: the same numbers in every run. */
static inline uint64_t random_bits(void)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1d;
}

static inline int begin_context(void **state)
{
    (void)state;
    setenv("KILN_EMU_VERBOSE", "2", 1);
    if (cuInit(0) != CUDA_SUCCESS)
        return 1;
    return cuCtxCreate_v2(&test_context, 0, 0) != CUDA_SUCCESS;
}

static inline int begin_100(void **state)
{
    setenv("KILN_EMU_DEVICE", "sm_100", 1);
    return begin_context(state);
}

static inline int end_context(void **state)
{
    (void)state;
    return cuCtxDestroy_v2(test_context) != CUDA_SUCCESS;
}

static char test_log[8192];

/* Loads a whole PTX text; the JIT error log is in test_log. */
static inline CUresult load_text(const char *text, CUmodule *module)
{
    enum { ERROR_LOG_BUFFER = 5, ERROR_LOG_BYTES = 6 };
    int options[] = {ERROR_LOG_BUFFER, ERROR_LOG_BYTES};
    void *values[] = {test_log, (void *)sizeof test_log};
    test_log[0] = '\0';
    return cuModuleLoadDataEx(module, text, 2, options, values);
}

/* Loads a kernel k(p0, p1: addresses; n: u32) with this body. The default header is for sm_90 at .version 8.8. */
static inline CUresult load_body(const char *header, const char *body, CUmodule *module)
{
    static char text[65536];
    snprintf(
        text, sizeof text,
        "%s\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 n)\n{\n%s\n}\n",
        header ? header : ".version 8.8\n.target sm_90", body);
    return load_text(text, module);
}

static inline CUfunction kernel_of(const char *header, const char *body)
{
    CUmodule module;
    CUfunction f;
    CUresult r = load_body(header, body, &module);
    if (r != CUDA_SUCCESS)
        fail_msg("load: %d\n%s", (int)r, test_log);
    assert_int_equal(cuModuleGetFunction(&f, module, "k"), CUDA_SUCCESS);
    return f;
}

static inline CUresult launch(CUfunction f, unsigned grid, unsigned block, CUdeviceptr p0, CUdeviceptr p1,
                              unsigned n)
{
    void *parameters[] = {&p0, &p1, &n};
    CUresult r = cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, NULL, parameters, NULL);
    return r != CUDA_SUCCESS ? r : cuCtxSynchronize();
}

static inline CUdeviceptr device_bytes(size_t bytes, const void *contents)
{
    CUdeviceptr p;
    assert_int_equal(cuMemAlloc_v2(&p, bytes), CUDA_SUCCESS);
    if (contents)
        assert_int_equal(cuMemcpyHtoD_v2(p, contents, bytes), CUDA_SUCCESS);
    return p;
}

/* Runs the body with one thread per element of `in`, and returns the result in `out`. */
static inline void run_body(const char *header, const char *body, unsigned threads, const void *in,
                            size_t in_bytes, void *out, size_t out_bytes)
{
    CUfunction f = kernel_of(header, body);
    CUdeviceptr p0 = device_bytes(out_bytes, NULL),
                p1 = device_bytes(in_bytes ? in_bytes : 4, in_bytes ? in : NULL);
    unsigned block = threads < 256 ? threads : 256;
    assert_int_equal(launch(f, (threads + block - 1) / block, block, p0, p1, threads), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(out, p0, out_bytes), CUDA_SUCCESS);
    cuMemFree_v2(p0);
    cuMemFree_v2(p1);
}

/* Redirect stderr to a file, and read what was printed. */
static int saved_stderr = -1;
static char printed[16384];

static inline void capture_stderr(void)
{
    fflush(stderr);
    saved_stderr = dup(2);
    FILE *file = tmpfile();
    assert_non_null(file);
    dup2(fileno(file), 2);
    fclose(file);
}

static inline const char *captured_stderr(void)
{
    fflush(stderr);
    off_t size = lseek(2, 0, SEEK_CUR);
    lseek(2, 0, SEEK_SET);
    size_t want = (size_t)size < sizeof printed - 1 ? (size_t)size : sizeof printed - 1;
    ssize_t got = read(2, printed, want);
    printed[got > 0 ? got : 0] = '\0';
    dup2(saved_stderr, 2);
    close(saved_stderr);
    return printed;
}

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected\n  %s\nin\n%s", part, text);
}

#endif
