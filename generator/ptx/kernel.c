/* The kernel under construction: its lists, its problems, and queries. */
#include "ir.h"

#include <stdarg.h>
#include <stdio.h>

ptx_fn *ptx_new(arena *a, const char *entry, target t, const uint32_t block[3])
{
    ptx_fn *f = arena_alloc(a, sizeof *f);
    f->arena = a;
    f->entry = entry;
    f->target = t;
    for (int i = 0; i < 3; i++)
        f->block[i] = block[i];
    list_add(f, &f->regs, sizeof(ptx_reg));
    scope *kernel = list_add(f, &f->scopes, sizeof *kernel);
    kernel->open = true;
    return f;
}

void ptx_min_blocks(ptx_fn *f, uint32_t blocks)
{
    f->min_blocks = blocks;
}

void ptx_find_alike(ptx_fn *f, target_range *alike)
{
    f->alike = alike;
}

bool ptx_has_sm(ptx_fn *f, uint32_t sm)
{
    return target_has(f->target, sm, f->alike);
}

uint32_t ptx_block_x(const ptx_fn *f)
{
    return f->block[0];
}

/* A multiprocessor has 65536 registers, and gives a thread a multiple of 8. */
uint32_t ptx_entry_registers(const ptx_fn *f)
{
    enum { ALL = 65536, MOST = 256 };
    const uint32_t blocks = f->min_blocks ? f->min_blocks : 1,
                   each = ALL / (f->block[0] * f->block[1] * f->block[2] * blocks) / 8 * 8;
    return each < MOST ? each : MOST;
}

size_t ptx_param_count(const ptx_fn *f)
{
    return f->params.count;
}

const char *ptx_param_at(const ptx_fn *f, size_t i, ptx_type *type, ptx_type *element)
{
    const kernel_param *p = (const kernel_param *)f->params.items + i;
    *type = p->type;
    *element = p->element;
    return p->name;
}

uint32_t ptx_shared_bytes(const ptx_fn *f)
{
    const uint32_t align = f->dynamic_align ? f->dynamic_align : 1;
    return (f->shared_bytes + align - 1) / align * align;
}

bool ptx_take_dynamic(ptx_fn *f, uint32_t bytes)
{
    const bool is_free = f->dynamic_bytes == 0;
    f->dynamic_bytes = is_free ? bytes : f->dynamic_bytes;
    return is_free;
}

ptx_caller ptx_set_caller(ptx_fn *f, ptx_caller caller)
{
    const ptx_caller until_now = f->caller;
    f->caller = caller;
    return until_now;
}

/* ---- what the builder's files share ----------------------------------------------------------------------------- */

void *list_add(ptx_fn *f, list *l, size_t element_bytes)
{
    return arena_push(f->arena, &l->items, &l->count, &l->capacity, element_bytes);
}

ptx_reg *fn_reg(const ptx_fn *f, uint32_t reg)
{
    return (ptx_reg *)f->regs.items + reg;
}

ptx_inst *fn_inst(const list *insts, size_t i)
{
    return ((ptx_inst **)insts->items)[i];
}

scope *fn_scope(const ptx_fn *f, uint32_t i)
{
    return (scope *)f->scopes.items + i;
}

ptx_place fn_place(const ptx_fn *f, ptx_place own)
{
    return f->caller.file ? (ptx_place){f->caller.file, f->caller.line} : own;
}

void fn_problem(ptx_fn *f, ptx_place at, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    problem *p = list_add(f, &f->problems, sizeof *p);
    p->at = fn_place(f, at);
    p->text = arena_string(f->arena, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

bool text_is_ptx(const char *s)
{
    while (*s >= ' ' && *s <= '~')
        s++;
    return !*s;
}
