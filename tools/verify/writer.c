/* The launch before a kernel, which writes the kernel's inputs.
 *
 * The emulated driver runs the writer to its end first and reports reads of its output before the kernel waits;
 * the writer only rewrites the bytes that are there. On a real device the buffers hold poison until the writer,
 * 20 microseconds later, writes the inputs: a kernel that does not wait reads the poison.
 */
#include "writer.h"

/* One grid.x per buffer; its thread blocks along grid.y copy it together. */
enum { WRITER_THREADS = 256, BYTES_PER_THREAD = 16, MOST_BLOCKS = 64 };

#define ENTRY                                                                                                \
    ".address_size 64\n"                                                                                     \
    ".visible .entry writer(.param .align 8 .b8 buffers[1536])\n{\n"                                         \
    ".reg .u64 %to, %from, %a, %i, %n, %all; .reg .u32 %r, %s, %t; .reg .pred %p;\n"

#define COPY                                                                                                 \
    "mov.u32 %r, %ctaid.x; mul.wide.u32 %i, %r, 24; mov.u64 %a, buffers; add.u64 %a, %a, %i;\n"              \
    "ld.param.u64 %to, [%a]; ld.param.u64 %from, [%a+8]; ld.param.u64 %n, [%a+16];\n"                        \
    "mov.u32 %r, %ctaid.y; mov.u32 %s, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %r, %r, %s, %t;\n"            \
    "cvt.u64.u32 %i, %r; mov.u32 %r, %nctaid.y; mul.wide.u32 %all, %r, %s;\n"                                \
    "NEXT: setp.ge.u64 %p, %i, %n; @%p ret;\n"                                                               \
    "add.u64 %a, %from, %i; ld.global.u8 %r, [%a]; add.u64 %a, %to, %i; st.global.u8 [%a], %r;\n"            \
    "add.u64 %i, %i, %all; bra NEXT;\n}\n"

static const char emulated_ptx[] = ".version 6.3\n.target sm_75\n" ENTRY COPY;

static const char late_ptx[] = ".version 7.8\n.target sm_90\n" ENTRY "griddepcontrol.launch_dependents;\n"
                               "mov.u64 %n, %globaltimer;\n"
                               "LATER: nanosleep.u32 500; mov.u64 %i, %globaltimer; sub.u64 %i, %i, %n;\n"
                               "setp.lt.u64 %p, %i, 20000; @%p bra LATER;\n" COPY;

bool writer_is_needed(const device *d, const kiln_kernel *kernel)
{
    return d->overlaps && (kernel->flags & KILN_KERNEL_DEPENDENT) && d->driver.launch_kernel_ex &&
           kiln_select(&d->loader.device, kernel->module)->sm >= DEVICE_FIRST_OVERLAP_SM;
}

static int load(device *d)
{
    CUmodule module;
    const int result =
        d->driver.module_load_data_ex(&module, d->is_emulated ? emulated_ptx : late_ptx, 0, NULL, NULL);
    return result ? result : d->driver.module_get_function(&d->writer, module, "writer");
}

int writer_launch(device *d, const device_buffer *buffers, size_t count)
{
    struct {
        uint64_t to, from, bytes;
    } ranges[WRITER_MOST_BUFFERS] = {{0}};
    size_t made = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        const device_buffer *b = &buffers[i];
        if (!b->is_made)
            continue;
        ranges[made].to = b->address;
        ranges[made].from = b->made_from;
        ranges[made++].bytes = b->bytes;
        most = b->bytes > most ? b->bytes : most;
    }
    const int result = made == 0 || d->writer ? 0 : load(d);
    if (result != 0 || made == 0)
        return result;
    const size_t blocks = most / (WRITER_THREADS * BYTES_PER_THREAD) + 1;
    void *params[] = {ranges};
    return d->driver.launch_kernel(d->writer, (unsigned)made,
                                   (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, WRITER_THREADS,
                                   1, 1, 0, NULL, params, NULL);
}
