/* Modules, functions and their attributes; linking, which only real hardware code needs. */
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUjit_option */
enum {
    INFO_LOG_BUFFER = 3,
    INFO_LOG_BYTES = 4,
    ERROR_LOG_BUFFER = 5,
    ERROR_LOG_BYTES = 6,
    MOST_JIT_OPTIONS = 64
};

typedef struct jit_options {
    char *error_log, *info_log;
    size_t error_room, info_room;
    void **error_size, **info_size; /* get the bytes written */
} jit_options;

static CUresult read_options(unsigned count, const int *options, void **values, jit_options *jit)
{
    *jit = (jit_options){0};
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        size_t number = (size_t)(uintptr_t)values[i];
        switch (options[i]) {
        case INFO_LOG_BUFFER:
            jit->info_log = values[i];
            break;
        case ERROR_LOG_BUFFER:
            jit->error_log = values[i];
            break;
        case INFO_LOG_BYTES:
            jit->info_room = (unsigned)number;
            jit->info_size = &values[i];
            break;
        case ERROR_LOG_BYTES:
            jit->error_room = (unsigned)number;
            jit->error_size = &values[i];
            break;
        default:
            if (options[i] < 0 || options[i] >= MOST_JIT_OPTIONS)
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static void give_log(char *buffer, size_t room, void **size, const char *text, size_t bytes)
{
    size_t given = 0;
    if (buffer && room) {
        given = bytes < room - 1 ? bytes : room - 1;
        if (given)
            memcpy(buffer, text, given);
        buffer[given] = '\0';
    }
    if (size)
        *size = (void *)(uintptr_t)given;
}

/* Machine code, alone or in a fat binary, is for real devices. Text may be shorter than the marks: it ends in NUL. */
static bool is_machine_code(const char *image)
{
    static const char *const marks[] = {"\177ELF", "\x50\xed\x55\xba", "\xb1\x43\x62\x46"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strncmp(image, marks[i], 4) == 0)
            return true;
    return false;
}

static CUresult load_image(CUcontext context, CUmodule *module, const char *image, const jit_options *jit)
{
    emu_log log = {0}, notes = {0};
    CUresult r = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (is_machine_code(image))
        emu_log_append(&log, "the image is machine code; the emulated driver takes PTX text only\n");
    else
        r = emu_load_module(context, image, &log, &notes, module);
    give_log(jit->info_log, jit->info_room, jit->info_size, notes.text, notes.size);
    if (r == CUDA_SUCCESS)
        (*module)->has_told = jit->error_log || jit->info_log;
    else
        emu_log_append(&notes, "%s", log.text ? log.text : "");
    give_log(jit->error_log, jit->error_room, jit->error_size, notes.text, notes.size);
    if (r != CUDA_SUCCESS && !jit->error_log && log.text)
        emu_print_report(log.text, 1); /* nobody else would say why */
    emu_log_free(&log);
    emu_log_free(&notes);
    return r;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    EMU_ENTER(context);
    jit_options jit;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = read_options(count, options, values, &jit);
    return r != CUDA_SUCCESS ? r : load_image(context, module, image, &jit);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    EMU_ENTER(context);
    if (!module || !path)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "rb");
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    size_t size = 0, room = 65536;
    char *text = emu_alloc(room);
    for (size_t n; (n = fread(text + size, 1, room - 1 - size, file)) > 0;) {
        size += n;
        if (size + 1 < room)
            continue;
        char *grown = emu_alloc(2 * room);
        memcpy(grown, text, size);
        free(text);
        text = grown;
        room *= 2;
    }
    fclose(file);
    CUresult r = cuModuleLoadDataEx(module, text, 0, NULL, NULL);
    free(text);
    return r;
}

CUresult cuModuleUnload(CUmodule module)
{
    EMU_ENTER(context);
    if (!emu_is(module, EMU_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    emu_unload_module(module);
    return CUDA_SUCCESS;
}

static CUresult refuse(CUfunction f)
{
    if (!f->module->has_told)
        emu_print_report(f->refusal, 1);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    EMU_ENTER(context);
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(module, EMU_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (CUfunction f = module->functions; f; f = f->next)
        if (strcmp(f->name, name) == 0) {
            *function = f->program ? f : NULL;
            return f->program ? CUDA_SUCCESS : refuse(f);
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    EMU_ENTER(context);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(module, EMU_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    *count = 0;
    for (CUfunction f = module->functions; f; f = f->next)
        ++*count;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    EMU_ENTER(context);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(module, EMU_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    const emu_module *m = module->parsed;
    for (size_t i = 0; i < m->variable_count; i++) {
        const emu_symbol *s = m->variables[i];
        bool visible = s->scope == m->scope && (s->space == EMU_GLOBAL || s->space == EMU_CONST);
        if (!visible || !emu_text_is(s->name, name))
            continue;
        if (address)
            *address =
                module->addresses[s->sequence] + (s->space == EMU_CONST ? module->const_bank->base : 0);
        if (bytes)
            *bytes = s->bytes;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetLoadingMode(int *mode)
{
    if (!emu_the_driver.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = 1; /* eager */
    return CUDA_SUCCESS;
}

static unsigned product(const unsigned n[3])
{
    return n[0] * n[1] * n[2];
}

unsigned emu_max_threads(CUfunction f)
{
    if (f->function->has_required_threads)
        return product(f->function->required_threads);
    if (f->function->has_max_threads && product(f->function->max_threads) < 1024)
        return product(f->function->max_threads);
    return 1024;
}

/* Registers are virtual here; the number is what a kernel of moderate size has, or less when .maxnreg says so. */
static unsigned register_count(CUfunction f)
{
    unsigned most = f->function->max_registers;
    return most && most < 32 ? most : 32;
}

/* CUfunction_attribute */
enum {
    MAX_THREADS,
    SHARED_BYTES,
    CONST_BYTES,
    LOCAL_BYTES,
    REGISTERS,
    PTX_VERSION,
    BINARY_VERSION,
    CACHE_MODE_CA,
    MAX_DYNAMIC_SHARED,
    CARVEOUT,
    MOST_ATTRIBUTES = 16,
};

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f)
{
    EMU_ENTER(context);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case MAX_THREADS:
        *value = (int)emu_max_threads(f);
        break;
    case SHARED_BYTES:
        *value = (int)f->program->static_shared_bytes;
        break;
    case CONST_BYTES:
        *value = f->module->const_bank ? (int)f->module->const_bank->bytes : 0;
        break;
    case LOCAL_BYTES:
        *value = (int)f->program->local_bytes - 16;
        break;
    case REGISTERS:
        *value = (int)register_count(f);
        break;
    case PTX_VERSION:
        *value = (int)f->module->parsed->version;
        break;
    case BINARY_VERSION:
        *value = (int)context->device->model->number;
        break;
    case MAX_DYNAMIC_SHARED:
        *value = f->max_dynamic_shared_bytes;
        break;
    case CARVEOUT:
        *value = f->preferred_carveout;
        break;
    default:
        if (attribute < 0 || attribute >= MOST_ATTRIBUTES)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value)
{
    EMU_ENTER(context);
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    int room = (int)context->device->model->shared_per_block_optin - (int)f->program->static_shared_bytes;
    if (attribute == MAX_DYNAMIC_SHARED && value >= 0 && value <= room)
        f->max_dynamic_shared_bytes = value;
    else if (attribute == CARVEOUT && value >= -1 && value <= 100)
        f->preferred_carveout = value;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction f, int config)
{
    EMU_ENTER(context);
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
    EMU_ENTER(context);
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *module = f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    EMU_ENTER(context);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f->name;
    return CUDA_SUCCESS;
}

int emu_occupancy(CUfunction f, unsigned threads, size_t dynamic_shared_bytes)
{
    const emu_device_model *m = f->module->context->device->model;
    size_t reserved = m->number >= 80 ? EMU_RESERVED_SHARED_PER_BLOCK : 0;
    size_t shared = emu_align_up(f->program->static_shared_bytes + dynamic_shared_bytes, 128) + reserved;
    unsigned warps = (threads + EMU_LANES - 1) / EMU_LANES, registers = register_count(f) * warps * EMU_LANES;
    unsigned blocks = m->blocks_per_multiprocessor, by;
    by = m->threads_per_multiprocessor / (warps * EMU_LANES);
    blocks = by < blocks ? by : blocks;
    by = EMU_REGISTERS_PER_BLOCK / registers;
    blocks = by < blocks ? by : blocks;
    by = shared ? (unsigned)(m->shared_per_multiprocessor / shared) : blocks;
    return (int)(by < blocks ? by : blocks);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads,
                                                              size_t dynamic_shared_bytes, unsigned flags)
{
    EMU_ENTER(context);
    if (!blocks || threads <= 0 || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_is(f, EMU_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    bool fits = (unsigned)threads <= emu_max_threads(f);
    *blocks = fits ? emu_occupancy(f, (unsigned)threads, dynamic_shared_bytes) : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
                                                     size_t dynamic_shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, dynamic_shared_bytes, 0);
}

/* There is no machine code to link. */
CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state)
{
    EMU_ENTER(context);
    (void)count;
    (void)options;
    (void)values;
    (void)state;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
                          unsigned count, int *options, void **values)
{
    (void)state;
    (void)type;
    (void)data;
    (void)size;
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count, int *options,
                          void **values)
{
    return cuLinkAddData_v2(state, type, NULL, 0, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
    (void)state;
    (void)cubin;
    (void)size;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    (void)state;
    return CUDA_ERROR_INVALID_HANDLE;
}
