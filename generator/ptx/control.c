/* Blocks: if and else, predication, loops. */
#include "ir.h"

static ptx_block block_of(ptx_fn *f)
{
    return (ptx_block){.f = f, .scope = f->current};
}

uint32_t scope_open(ptx_fn *f, scope_kind kind, ptx_place at)
{
    if (fn_scope(f, f->current)->kind == SCOPE_WHEN)
        fn_problem(f, at, "no control inside PTX_WHEN: use PTX_IF around it");
    uint32_t index = (uint32_t)f->scopes.count;
    scope *s = list_add(f, &f->scopes, sizeof *s);
    s->kind = kind;
    s->parent = f->current;
    s->open = true;
    s->at = fn_place(f, at);
    f->current = index;
    return index;
}

static void scope_close(ptx_fn *f)
{
    scope *s = fn_scope(f, f->current);
    s->open = false;
    f->current = s->parent;
}

/* A bad predicate becomes poison and keeps the block, so that later code is still checked. */
static ptx_val predicate_or_poison(ptx_fn *f, ptx_val p, const char *what, ptx_place at)
{
    char name[48];
    snprintf(name, sizeof name, "%s: the predicate", what);
    if (!val_usable(f, p, name, at))
        return val_poison;
    if (p.type == PTX_PRED && p.kind == VAL_REGISTER)
        return p;
    fn_problem(f, at, "%s is %s, expected pred", name, ptx_type_name((ptx_type)p.type));
    return val_poison;
}

static void append_control(ptx_fn *f, inst_kind kind, uint32_t scope_index, ptx_val predicate, ptx_place at)
{
    ptx_inst *inst = inst_append(f, kind, 0, 1, at);
    inst->operands[0] = predicate;
    inst->scope = scope_index;
}

/* ---- if, else, when --------------------------------------------------------------------------------------------- */

static uint32_t begin_if(ptx_fn *f, scope_kind kind, ptx_val predicate, ptx_place at)
{
    uint32_t s = scope_open(f, kind, at);
    fn_scope(f, s)->label = ++f->labels;
    append_control(f, INST_IF, s, predicate, at);
    return s;
}

ptx_block ptx_if_begin(ptx_fn *f, ptx_val predicate, const char *file, int line)
{
    ptx_place at = {file, line};
    begin_if(f, SCOPE_IF, predicate_or_poison(f, predicate, "PTX_IF", at), at);
    return block_of(f);
}

/* Reopens the if that just ended: its end becomes the else. */
ptx_block ptx_else_begin(ptx_fn *f, const char *file, int line)
{
    ptx_place at = {file, line};
    ptx_inst *last = f->body.count ? fn_inst(&f->body, f->body.count - 1) : NULL;
    bool after_if = last && last->kind == INST_END_IF && fn_scope(f, last->scope)->kind == SCOPE_IF &&
                    fn_scope(f, last->scope)->parent == f->current;
    uint32_t s = scope_open(f, SCOPE_ELSE, at);
    if (!after_if) {
        fn_problem(f, at, "PTX_ELSE does not follow the end of a PTX_IF");
        return block_of(f);
    }
    fn_scope(f, last->scope)->has_else = true;
    fn_scope(f, s)->label = fn_scope(f, last->scope)->label;
    fn_scope(f, s)->pair = last->scope;
    last->kind = INST_ELSE;
    last->scope = s;
    return block_of(f);
}

ptx_block ptx_when_begin(ptx_fn *f, ptx_val predicate, const char *file, int line)
{
    ptx_place at = {file, line};
    ptx_val p = predicate_or_poison(f, predicate, "PTX_WHEN", at);
    scope_open(f, SCOPE_WHEN, at);
    f->guard = p;
    return block_of(f);
}

/* ---- loops ------------------------------------------------------------------------------------------------------ */

static uint32_t begin_loop(ptx_fn *f, scope_kind kind, ptx_place at)
{
    uint32_t s = scope_open(f, kind, at);
    fn_scope(f, s)->label = ++f->labels;
    append_control(f, INST_LOOP, s, val_poison, at);
    return s;
}

/* Gives literal bounds the type of the first bound that has one. */
static bool settle_bounds(ptx_fn *f, ptx_val bounds[3], ptx_place at)
{
    ptx_type type = PTX_NONE;
    for (int i = 0; i < 3 && type == PTX_NONE; i++)
        type = (ptx_type)bounds[i].type;
    for (int i = 0; i < 3; i++)
        if (!val_settle(f, &bounds[i], type, "PTX_FOR: a bound", at))
            return false;
    return true;
}

static bool less(ptx_val a, ptx_val b)
{
    switch (a.type) {
    case PTX_S32:
        return (int32_t)(uint32_t)a.bits < (int32_t)(uint32_t)b.bits;
    case PTX_S64:
        return (int64_t)a.bits < (int64_t)b.bits;
    default:
        return a.bits < b.bits;
    }
}

static bool counts(ptx_fn *f, ptx_val bounds[3], ptx_place at)
{
    if (!vals_in_order(f, 3, bounds, at) || !settle_bounds(f, bounds, at))
        return false;
    for (int i = 0; i < 3; i++) {
        ptx_type type = (ptx_type)bounds[i].type;
        if (!val_usable(f, bounds[i], "PTX_FOR: a bound", at))
            return false;
        bool number = type == PTX_U32 || type == PTX_S32 || type == PTX_U64 || type == PTX_S64;
        if (!number || type != bounds[0].type) {
            fn_problem(f, at, "PTX_FOR: %s is %s, expected %s",
                       i == 0   ? "from"
                       : i == 1 ? "to"
                                : "step",
                       ptx_type_name(type),
                       number ? ptx_type_name((ptx_type)bounds[0].type) : "u32, s32, u64 or s64");
            return false;
        }
    }
    if (bounds[2].kind == VAL_IMMEDIATE && !less(ptx_bits((ptx_type)bounds[2].type, 0), bounds[2])) {
        fn_problem(f, at, "PTX_FOR: step must be positive");
        return false;
    }
    return true;
}

ptx_block ptx_ordered_for_begin(ptx_fn *f, ptx_val from, ptx_val to, ptx_val step, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    ptx_val bounds[3] = {from, to, step}, counter = val_poison;
    bool good = counts(f, bounds, at);
    from = bounds[0], to = bounds[1], step = bounds[2];
    bool never_empty = good && from.kind == VAL_IMMEDIATE && to.kind == VAL_IMMEDIATE && less(from, to);
    uint32_t test = 0;
    if (good)
        counter = ptx_var_at(f, from, file, line);
    if (good && !never_empty)
        test = begin_if(f, SCOPE_TEST, ptx_op2(f, PTX_OP_LT, counter, to, file, line), at);
    uint32_t s = begin_loop(f, SCOPE_FOR, at);
    scope *loop = fn_scope(f, s);
    loop->test = test;
    loop->counter = counter;
    loop->start = from;
    loop->to = to;
    loop->step = step;
    if (good) {
        ptx_reg *r = fn_reg(f, counter.reg);
        int first = val_zeros(f, from), each = val_zeros(f, step);
        r->counter = true;
        r->zeros = (uint8_t)(first < each ? first : each);
    }
    ptx_block block = block_of(f);
    block.value = counter;
    return block;
}

/* Takes the counter, so that the compiler does not warn if a body does not use it. */
bool ptx_for_body(const ptx_block *block, ptx_val counter)
{
    (void)counter;
    return block->state == 0;
}

ptx_block ptx_loop_begin(ptx_fn *f, const char *file, int line)
{
    begin_loop(f, SCOPE_LOOP, (ptx_place){file, line});
    return block_of(f);
}

void ptx_repeat_if_at(ptx_fn *f, ptx_val predicate, const char *file, int line)
{
    ptx_place at = {file, line};
    if (fn_scope(f, f->current)->kind != SCOPE_LOOP) {
        fn_problem(f, at, "ptx_repeat_if: not directly inside a PTX_LOOP");
        return;
    }
    append_control(f, INST_END_LOOP, f->current, predicate_or_poison(f, predicate, "ptx_repeat_if", at), at);
    fn_scope(f, f->current)->repeated = true;
}

void ptx_break_if_at(ptx_fn *f, ptx_val predicate, const char *file, int line)
{
    ptx_place at = {file, line};
    uint32_t s = f->current;
    while (s && fn_scope(f, s)->kind != SCOPE_FOR && fn_scope(f, s)->kind != SCOPE_LOOP)
        s = fn_scope(f, s)->parent;
    if (s == 0 || fn_scope(f, f->current)->kind == SCOPE_WHEN) {
        fn_problem(f, at,
                   s ? "no control inside PTX_WHEN: use PTX_IF around it"
                     : "ptx_break_if: not inside a loop");
        return;
    }
    append_control(f, INST_BREAK, s, predicate_or_poison(f, predicate, "ptx_break_if", at), at);
    fn_scope(f, s)->has_break = true;
}

void ptx_main_loop_at(ptx_fn *f, const char *file, int line)
{
    scope *s = fn_scope(f, f->current);
    if (s->kind != SCOPE_FOR && s->kind != SCOPE_LOOP) {
        fn_problem(f, (ptx_place){file, line}, "ptx_main_loop: not directly inside a PTX_FOR or PTX_LOOP");
        return;
    }
    if (f->has_main_loop)
        fn_problem(f, (ptx_place){file, line}, "ptx_main_loop: the kernel has one already");
    else if (s->counted == COUNT_SIDE)
        fn_problem(f, (ptx_place){file, line}, "ptx_main_loop: this is a side loop");
    s->counted = COUNT_MAIN;
    f->has_main_loop = true;
}

void ptx_side_loop_at(ptx_fn *f, const char *file, int line)
{
    scope *s = fn_scope(f, f->current);
    if (s->kind != SCOPE_FOR && s->kind != SCOPE_LOOP)
        fn_problem(f, (ptx_place){file, line}, "ptx_side_loop: not directly inside a PTX_FOR or PTX_LOOP");
    else if (s->counted == COUNT_MAIN)
        fn_problem(f, (ptx_place){file, line}, "ptx_side_loop: this is the main loop");
    s->counted = COUNT_SIDE;
}

void ptx_rarely_at(ptx_fn *f, const char *file, int line)
{
    scope *s = fn_scope(f, f->current);
    if (s->kind != SCOPE_IF && s->kind != SCOPE_ELSE)
        fn_problem(f, (ptx_place){file, line}, "ptx_rarely: not directly inside a PTX_IF or PTX_ELSE");
    s->counted = COUNT_NOT;
}

/* ---- ends ------------------------------------------------------------------------------------------------------- */

/* Counts, compares, branches back, and ends the test for an empty loop. */
static void end_for(ptx_fn *f, const ptx_block *block)
{
    uint32_t index = f->current;
    scope loop = *fn_scope(f, index);
    ptx_place at = loop.at;
    if (block->state == 0)
        fn_problem(f, at, "a break left this PTX_FOR: use ptx_break_if");
    ptx_val again = val_poison;
    if (loop.counter.kind == VAL_REGISTER) {
        fn_reg(f, loop.counter.reg)->counter = false;
        ptx_update_at(f, PTX_OP_ADD, loop.counter, loop.step, at.file, at.line);
        again = ptx_op2(f, PTX_OP_LT, loop.counter, loop.to, at.file, at.line);
    }
    append_control(f, INST_END_LOOP, index, again, at);
    scope_close(f);
    if (loop.test) {
        append_control(f, INST_END_IF, loop.test, val_poison, at);
        scope_close(f);
    }
}

/* Closes blocks inside this one that a break left open. */
static void close_left(ptx_fn *f, uint32_t index)
{
    while (f->current > index) {
        fn_problem(f, fn_scope(f, f->current)->at, "a break, return or goto left this block");
        scope_close(f);
        f->guard = val_poison;
    }
}

void ptx_block_end(ptx_block *block)
{
    ptx_fn *f = block->f;
    block->f = NULL;
    close_left(f, block->scope);
    scope *s = fn_scope(f, f->current);
    switch (s->kind) {
    case SCOPE_FOR:
        end_for(f, block);
        return;
    case SCOPE_LOOP:
        if (!s->repeated) {
            fn_problem(f, s->at, "PTX_LOOP does not end with ptx_repeat_if");
            append_control(f, INST_END_LOOP, f->current, val_poison, s->at);
        }
        break;
    case SCOPE_WHEN:
        f->guard = val_poison;
        break;
    case SCOPE_IF:
    case SCOPE_ELSE:
        append_control(f, INST_END_IF, f->current, val_poison, s->at);
        break;
    case SCOPE_KERNEL:
    case SCOPE_TEST:
        break;
    }
    scope_close(f);
}
