/* Modules. Loading: text to symbols, variables to memory, kernels to programs. Then the entry points, with the caller's
   logs. Linking is refused: only machine code needs it. */
#define _XOPEN_SOURCE 700
#include "api.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONST_BANK_BYTES 65536

static CUresult check_target(const emu_module *m, const emu_device *device, emu_log *log, emu_log *notes)
{
    unsigned newest = emu_driver_ptx_version(emu_the_driver.version);
    unsigned introduced = emu_target_version(m->target.number, m->target.kind);
    if (m->version && m->version <= newest && !emu_is_ptx_version(m->version)) {
        emu_log_error(log, 1, (emu_text){0}, "there is no .version %u.%u", m->version / 10, m->version % 10);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (m->version > newest && !emu_the_driver.is_version_chosen)
        emu_log_append(notes, "note: .version %u.%u is newer than %u.%u, whose rules apply\n",
                       m->version / 10, m->version % 10, newest / 10, newest % 10);
    if (m->version > newest && emu_the_driver.is_version_chosen) {
        emu_log_error(log, 1, (emu_text){0},
                      ".version %u.%u is newer than %u.%u, the newest that this driver takes",
                      m->version / 10, m->version % 10, newest / 10, newest % 10);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (!m->target.number)
        return CUDA_SUCCESS; /* the parser has logged the errors */
    if (!introduced || m->version < introduced) {
        emu_log_error(log, 1, (emu_text){0},
                      introduced ? ".target %.*s needs .version %u.%u" : "there is no .target %.*s",
                      EMU_TEXT(m->target.name), introduced / 10, introduced % 10);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (!emu_target_runs_on(m->target.number, m->target.kind, device->model->number)) {
        emu_log_error(log, 1, (emu_text){0}, ".target %.*s does not run on this device, sm_%u",
                      EMU_TEXT(m->target.name), device->model->number);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return CUDA_SUCCESS;
}

static bool allocate_const(CUmodule m, emu_log *log)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->parsed->variable_count; i++) {
        const emu_symbol *s = m->parsed->variables[i];
        if (s->space != EMU_CONST)
            continue;
        bytes = emu_align_up(bytes, s->alignment);
        m->addresses[s->sequence] = bytes;
        bytes += s->bytes;
    }
    if (bytes > CONST_BANK_BYTES)
        emu_log_error(log, 1, (emu_text){0}, "the .const variables take %llu bytes; the limit is %d",
                      (unsigned long long)bytes, CONST_BANK_BYTES);
    else if (bytes)
        m->const_bank =
            emu_memory_alloc(bytes, EMU_ALLOCATION_CONST, (unsigned)m->context->device->ordinal, m->context);
    return log->errors == 0 && (!bytes || m->const_bank);
}

static bool allocate_globals(CUmodule m, emu_log *log)
{
    for (size_t i = 0; i < m->parsed->variable_count; i++) {
        const emu_symbol *s = m->parsed->variables[i];
        if (s->space != EMU_GLOBAL)
            continue;
        if (s->linkage == EMU_EXTERN) {
            emu_log_error(log, s->line, (emu_text){0}, "the external variable '%.*s' is not defined",
                          EMU_TEXT(s->name));
            continue;
        }
        emu_allocation *a = emu_memory_alloc(s->bytes ? s->bytes : 1, EMU_ALLOCATION_MODULE,
                                             (unsigned)m->context->device->ordinal, m->context);
        if (!a)
            return false;
        a->name = emu_arena_format(&m->parsed->arena, "%.*s", EMU_TEXT(s->name));
        m->globals[s->sequence] = a;
        m->addresses[s->sequence] = a->base;
    }
    return log->errors == 0;
}

static char *host_address(CUmodule m, const emu_symbol *s)
{
    uint64_t start = s->space == EMU_CONST ? m->const_bank->base : 0;
    return (char *)(uintptr_t)(start + m->addresses[s->sequence]);
}

static bool address_value(CUmodule m, const emu_symbol *s, const emu_initial *e, emu_log *log,
                          uint64_t *value)
{
    uint32_t number;
    const emu_symbol *v = emu_find(m->parsed, s->scope, e->name, e->declared, &number);
    if (v && v->kind == EMU_SYMBOL_FUNCTION && e->value)
        emu_log_error(log, e->line, (emu_text){0},
                      "nothing can be added to the address of the function '%.*s'", EMU_TEXT(e->name));
    if (v && v->kind == EMU_SYMBOL_FUNCTION) {
        *value = emu_function_address(v->function) + e->value;
        return true;
    }
    if (!v || v->kind != EMU_SYMBOL_VARIABLE || (v->space != EMU_GLOBAL && v->space != EMU_CONST)) {
        emu_log_error(log, e->line, (emu_text){0}, "'%.*s' is not a .global or .const variable or a function",
                      EMU_TEXT(e->name));
        return false;
    }
    *value = m->addresses[v->sequence] + e->value;
    if (v->space == EMU_CONST && e->generic)
        *value += m->const_bank->base;
    return true;
}

/* The bits of an initial value, as an element of the variable's type. */
static uint64_t number_value(const emu_symbol *s, const emu_initial *e)
{
    double d;
    float f;
    uint64_t bits = e->value;
    if (e->kind == EMU_INITIAL_SINGLE && s->type == EMU_F64) {
        memcpy(&f, &bits, sizeof f);
        d = (double)f;
        memcpy(&bits, &d, sizeof d);
    } else if (e->kind == EMU_INITIAL_DOUBLE && emu_types[s->type].bytes == 4) {
        memcpy(&d, &bits, sizeof d);
        f = (float)d;
        bits = 0;
        memcpy(&bits, &f, sizeof f);
    }
    return bits;
}

static void initialise(CUmodule m, const emu_symbol *s, emu_log *log)
{
    bool is_float = s->type == EMU_F32 || s->type == EMU_F64;
    unsigned bytes = emu_types[s->type].bytes;
    for (size_t i = 0; i < s->initial_count; i++) {
        const emu_initial *e = &s->initial[i];
        uint64_t value = number_value(s, e);
        bool is_number = e->kind == EMU_INITIAL_DOUBLE || e->kind == EMU_INITIAL_SINGLE;
        if (e->kind == EMU_INITIAL_ADDRESS && !address_value(m, s, e, log, &value))
            continue;
        const emu_class class = emu_types[s->type].class;
        if (e->kind == EMU_INITIAL_ADDRESS ? class != EMU_UNSIGNED
                                           : is_number != is_float && !(is_number && class == EMU_BITS)) {
            emu_log_error(log, e->line, (emu_text){0}, "an initialiser of '%.*s' is not of type .%s",
                          EMU_TEXT(s->name), emu_types[s->type].name);
            continue;
        }
        if (e->mask)
            value = (value & e->mask) >> __builtin_ctzll(e->mask);
        memcpy(host_address(m, s) + e->index * bytes, &value, bytes > 8 ? 8 : bytes);
    }
}

static emu_program *decode(CUmodule m, const emu_function *f, emu_log *log)
{
    emu_decode_input in = {.module = m->parsed,
                           .kernel = f,
                           .variable_addresses = m->addresses,
                           .places = m->places,
                           .decoding = ++m->decodings,
                           .only_kernel = !f->is_entry,
                           .device_number = m->context->device->model->number,
                           .log = log};
    return emu_decode(&in);
}

/* program is NULL if the kernel uses something that is not emulated; `refusal` then names it. */
static void add_function(CUmodule m, const emu_function *f, emu_program *program, const char *refusal,
                         emu_log *log)
{
    static uint64_t serials;
    CUfunction function = emu_alloc(sizeof *function);
    function->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
    function->module = m;
    function->function = f;
    function->program = program;
    function->name = emu_arena_format(&m->parsed->arena, "%.*s", EMU_TEXT(f->name));
    function->preferred_carveout = -1;
    for (int i = 0; i < 3; i++)
        function->cluster[i] = (int)f->cluster[i];
    function->next = m->functions;
    m->functions = function;
    emu_register(function, EMU_FUNCTION, m->context);
    if (!program) {
        function->refusal =
            emu_arena_format(&m->parsed->arena, "kernel '%s' is refused:\n%s", function->name, refusal);
        return;
    }
    function->max_dynamic_shared_bytes = (int)(EMU_SHARED_PER_BLOCK - program->static_shared_bytes);
    if (program->static_shared_bytes > EMU_SHARED_PER_BLOCK)
        emu_log_error(log, f->line, (emu_text){0},
                      "kernel '%.*s' declares %u bytes of shared memory; the limit is %u", EMU_TEXT(f->name),
                      program->static_shared_bytes, EMU_SHARED_PER_BLOCK);
}

/* Every function must be valid PTX. A valid kernel that is not emulated is refused when the program asks for it. */
static void decode_functions(CUmodule m, emu_log *log, emu_log *notes)
{
    for (const emu_function *f = m->parsed->functions; f && !log->errors; f = f->next) {
        if (!f->is_defined)
            continue;
        emu_log own = {0};
        emu_program *program = decode(m, f, &own);
        if (emu_log_wrong(&own)) {
            emu_log_free(log);
            *log = own;
            continue;
        }
        if (f->is_entry)
            add_function(m, f, program, own.text, log);
        if (f->is_entry && !program)
            emu_log_append(notes, "%s", m->functions->refusal);
        if (f->is_entry && program && program->sets_registers && emu_entry_registers(m->functions) == 0)
            emu_log_append(
                notes,
                "note: setmaxnreg has no effect in kernel '%s', which gives neither .maxnreg nor .minnctapersm "
                "with .maxntid or .reqntid\n",
                m->functions->name);
        emu_log_free(&own);
    }
}

/* INVALID_PTX for wrong PTX, NOT_SUPPORTED for PTX that a device would accept. */
static CUresult result_of(const emu_log *log)
{
    return emu_log_wrong(log) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult load(CUmodule m, emu_log *log, emu_log *notes)
{
    emu_text source = {m->source + 1, strlen(m->source + 1)};
    bool parsed = emu_parse(m->parsed, source, log);
    emu_log target_log = {0};
    CUresult r = check_target(m->parsed, m->context->device, &target_log, notes);
    if (r != CUDA_SUCCESS) { /* the file's own error comes first */
        emu_log_free(log);
        *log = target_log;
        return r;
    }
    if (!parsed)
        return result_of(log);
    m->addresses = emu_arena_alloc(&m->parsed->arena, m->parsed->symbol_count * sizeof *m->addresses);
    m->places = emu_arena_alloc(&m->parsed->arena, m->parsed->symbol_count * sizeof *m->places);
    m->globals = emu_arena_alloc(&m->parsed->arena, m->parsed->symbol_count * sizeof *m->globals);
    if (!allocate_const(m, log) || !allocate_globals(m, log))
        return log->errors ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < m->parsed->variable_count; i++)
        initialise(m, m->parsed->variables[i], log);
    if (!log->errors)
        decode_functions(m, log, notes);
    return log->errors ? result_of(log) : CUDA_SUCCESS;
}

/* `log` gets errors; `notes` gets remarks that do not stop the load: a newer .version, refused kernels. */
static CUresult load_module(CUcontext context, const char *text, emu_log *log, emu_log *notes,
                            CUmodule *module)
{
    CUmodule m = emu_alloc(sizeof *m);
    size_t size = strlen(text);
    m->context = context;
    m->source = emu_alloc(size + 2);
    m->source[0] = '\n';
    memcpy(m->source + 1, text, size);
    m->parsed = emu_alloc(sizeof *m->parsed);
    /* so that decimal points do not depend on the locale */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    CUresult r = load(m, log, notes);
    if (c_locale) {
        uselocale(before);
        freelocale(c_locale);
    }
    m->next = context->modules;
    context->modules = m;
    emu_register(m, EMU_MODULE, context);
    if (r != CUDA_SUCCESS)
        emu_unload_module(m);
    else
        *module = m;
    return r;
}

void emu_unload_module(CUmodule m)
{
    for (CUmodule *at = &m->context->modules; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    while (m->functions) {
        CUfunction f = m->functions;
        m->functions = f->next;
        emu_unregister(f);
        emu_program_free(f->program);
        free(f);
    }
    for (uint32_t i = 0; m->globals && i < m->parsed->symbol_count; i++)
        if (m->globals[i]) {
            m->globals[i]->name = NULL;
            emu_memory_free(m->globals[i]);
        }
    if (m->const_bank)
        emu_memory_free(m->const_bank);
    emu_unregister(m);
    emu_arena_free(&m->parsed->arena);
    free(m->parsed);
    free(m->source);
    free(m);
}

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
    void **error_size, **info_size; /* options that return the number of bytes written */
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

/* Machine code, alone or in a fat binary, is for real devices. A text may be shorter than a magic number, but ends in NUL. */
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
        emu_log_append(
            &log,
            "the image is machine code; the emulated driver takes PTX only: with kiln, set ptx_only of kiln_options\n");
    else
        r = load_module(context, image, &log, &notes, module);
    give_log(jit->info_log, jit->info_room, jit->info_size, notes.text, notes.size);
    if (r == CUDA_SUCCESS)
        (*module)->has_told = jit->error_log || jit->info_log;
    else
        emu_log_append(&notes, "%s", log.text ? log.text : "");
    give_log(jit->error_log, jit->error_room, jit->error_size, notes.text, notes.size);
    if (r != CUDA_SUCCESS && !jit->error_log && log.text)
        emu_print_report(log.text, 1); /* no log of the caller reports the reason */
    emu_log_free(&log);
    emu_log_free(&notes);
    return r;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    EMU_ENTER_UNSAFE(context);
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
    size_t size = 0, room = 0, n;
    char *text = NULL;
    do {
        text = emu_with_room(text, size + 1, &room, 1); /* ends with a zero */
        n = fread(text + size, 1, room - 1 - size, file);
        size += n;
    } while (n > 0);
    fclose(file);
    CUresult r = cuModuleLoadDataEx(module, text, 0, NULL, NULL);
    free(text);
    return r;
}

CUresult cuModuleUnload(CUmodule module)
{
    EMU_ENTER_UNSAFE(context);
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
    CUresult r = emu_ready();
    if (r != CUDA_SUCCESS || !mode)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    *mode = 1; /* eager loading */
    return CUDA_SUCCESS;
}

/* There is no machine code to link. */
CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state)
{
    EMU_ENTER(context);
    (void)count, (void)options, (void)values, (void)state;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
                          unsigned count, int *options, void **values)
{
    (void)state, (void)type, (void)data, (void)size, (void)name, (void)count, (void)options, (void)values;
    EMU_ENTER(context);
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count, int *options,
                          void **values)
{
    return cuLinkAddData_v2(state, type, NULL, 0, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
    (void)state, (void)cubin, (void)size;
    EMU_ENTER(context);
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    (void)state;
    EMU_ENTER(context);
    return CUDA_ERROR_INVALID_HANDLE;
}
