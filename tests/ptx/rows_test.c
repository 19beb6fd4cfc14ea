/* Assembles every row of the builder's tables with ptxas: operations in every type, mma shapes, wgmma's types in several shapes,
 * special registers, cache hints, orders, wide vectors. ptxas must accept each form with the row's requirements, and reject it one
 * .version or one target below, so that no row requires too much.
 *     ptx_rows_test SCRATCH_DIR
 * Exit status 77 (skipped) when ptxas is not on PATH. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../generator/ptx/ir.h"

enum { MOST_FORMS = 4096 };

typedef enum form_kind {
    FORM_OP,
    FORM_MMA,     /* number: shape */
    FORM_WGMMA,   /* number: types; count: n; row: with A in registers or in shared memory */
    FORM_MATRIX,  /* ldmatrix and stmatrix; number: matrices */
    FORM_SPECIAL, /* number: index */
    FORM_LOAD,    /* number: hints */
    FORM_STORE,
    FORM_COPY,
    FORM_ATOM,
    FORM_RED,
    FORM_FENCE,
    FORM_MEMBAR,
    FORM_BULK, /* bulk copies; number: dimensions of a tensor */
    FORM_KINDS
} form_kind;

typedef struct form {
    form_kind kind;
    const op_row *row;
    ptx_type type, from;
    int number, count;
    ptx_requirement needs;
    const char *text;
} form;

static form forms[MOST_FORMS];
static int form_count, failures;
static int kind_counts[FORM_KINDS];
static const char *scratch;

/* ---- every form of every row ------------------------------------------------------------------------------------ */

static void add(form m)
{
    if (form_count == MOST_FORMS)
        exit(1);
    forms[form_count++] = m;
    kind_counts[m.kind]++;
}

static void collect_operations(void)
{
    for (size_t i = 0; i < op_row_count; i++)
        for (int t = 0; t < PTX_PTR; t++)
            for (int s = 0; s < PTX_PTR; s++) {
                const op_row *row = &op_rows[i];
                bool typed = row->types ? (row->types >> t) & 1 : t == 0;
                bool sourced = row->from == FROM_SAME ? s == t : row->from ? (row->from >> s) & 1 : s == 0;
                if (typed && sourced && op_find(row->op, (ptx_type)t, (ptx_type)s) == row)
                    add((form){.kind = FORM_OP,
                               .row = row,
                               .type = (ptx_type)t,
                               .from = (ptx_type)s,
                               .needs = row->needs,
                               .text = row->text});
            }
}

static void collect_matrices(void)
{
    static const ptx_op ops[] = {PTX_OP_LDMATRIX, PTX_OP_LDMATRIX_TRANS, PTX_OP_STMATRIX,
                                 PTX_OP_STMATRIX_TRANS};
    for (int shape = 0; shape < PTX_MMA_SHAPE_COUNT; shape++)
        add((form){
            .kind = FORM_MMA, .number = shape, .needs = mma_rows[shape].needs, .text = mma_rows[shape].text});
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int count = 1; count <= 4; count *= 2) {
            const op_row *row = op_first(ops[i]);
            add((form){
                .kind = FORM_MATRIX, .row = row, .number = count, .needs = row->needs, .text = row->text});
        }
}

static void collect_group_products(void)
{
    static const int widths[] = {8, 32, 112, 248, 256};
    for (int types = 0; types < PTX_WGMMA_TYPES_COUNT; types++)
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
            for (int is_shared = 0; is_shared < 2; is_shared++)
                if (widths[i] != 248 || wgmma_rows[types].d_type != PTX_S32)
                    add((form){.kind = FORM_WGMMA,
                               .row = op_first(is_shared ? PTX_OP_WGMMA_SHARED : PTX_OP_WGMMA),
                               .number = types,
                               .count = widths[i],
                               .needs = wgmma_rows[types].needs,
                               .text = wgmma_rows[types].names});
}

static void collect_bulk_copies(void)
{
    static const ptx_op ops[] = {PTX_OP_BULK_LOAD, PTX_OP_BULK_STORE, PTX_OP_TENSOR_LOAD,
                                 PTX_OP_TENSOR_STORE};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int dimensions = 1; dimensions <= (i < 2 ? 1 : 5); dimensions++) {
            const op_row *row = op_first(ops[i]);
            add((form){
                .kind = FORM_BULK, .row = row, .number = dimensions, .needs = row->needs, .text = row->text});
        }
}

/* Vectors of 32 bytes, which need sm_100, and smaller ones. */
static void collect_accesses(form_kind kind, int takes)
{
    static const struct {
        ptx_type type;
        int count;
    } vectors[] = {{PTX_U32, 1}, {PTX_F32, 4}, {PTX_F32, 8}, {PTX_B32, 8}, {PTX_U64, 4}, {PTX_F64, 4}};
    for (size_t i = 0; i < hint_row_count; i++) {
        bool hint = !(hint_rows[i].bit & (HINT_ORDERS | HINT_SCOPES));
        for (size_t v = 0; hint && v < sizeof vectors / sizeof vectors[0]; v++) {
            bool wide = ptx_type_bytes(vectors[v].type) * (uint32_t)vectors[v].count == 32;
            if (!(hint_rows[i].takes & takes) || ((hint_rows[i].bit & HINT_LEVEL2) && !wide))
                continue;
            add((form){.kind = kind,
                       .type = vectors[v].type,
                       .number = hint_rows[i].bit,
                       .count = vectors[v].count,
                       .needs = wide ? (ptx_requirement){88, {100, TARGET_BASE}} : hint_rows[i].needs,
                       .text = hint_rows[i].text});
        }
    }
}

static void collect_copies(void)
{
    for (size_t i = 0; i < hint_row_count; i++)
        for (int bytes = 4; bytes <= 16; bytes *= 2) {
            bool takes = hint_rows[i].takes & TAKE_CP_ASYNC;
            if (takes && (hint_rows[i].bit != PTX_CG || bytes == 16))
                add((form){.kind = FORM_COPY,
                           .number = hint_rows[i].bit,
                           .count = bytes,
                           .needs =
                               requirement_join(hint_rows[i].needs, (ptx_requirement){70, {80, TARGET_BASE}}),
                           .text = hint_rows[i].text});
        }
}

/* Every order with every scope of an instruction. */
static void collect_orders(form_kind kind, int takes)
{
    for (size_t i = 0; i < hint_row_count; i++)
        for (size_t j = 0; j < hint_row_count; j++) {
            bool is_order = (hint_rows[i].bit & HINT_ORDERS) || (takes == TAKE_MEMBAR && i == 0);
            bool is_scope = hint_rows[j].bit & HINT_SCOPES;
            if (is_order && is_scope && ((hint_rows[i].takes & takes) || takes == TAKE_MEMBAR))
                add((form){.kind = kind,
                           .type = PTX_U32,
                           .count = 1,
                           .number = hint_rows[j].bit | (takes == TAKE_MEMBAR ? 0 : hint_rows[i].bit),
                           .needs = requirement_lowest,
                           .text = hint_rows[i].text});
        }
}

static void collect(void)
{
    collect_operations();
    collect_matrices();
    collect_group_products();
    collect_bulk_copies();
    for (int which = 0; which < PTX_SREG_COUNT; which++)
        add((form){.kind = FORM_SPECIAL,
                   .number = which,
                   .needs = sreg_rows[which].needs,
                   .text = sreg_rows[which].name});
    collect_accesses(FORM_LOAD, TAKE_LOAD);
    collect_accesses(FORM_STORE, TAKE_STORE);
    collect_copies();
    collect_orders(FORM_LOAD, TAKE_LOAD);
    collect_orders(FORM_STORE, TAKE_STORE);
    collect_orders(FORM_ATOM, TAKE_ATOM);
    collect_orders(FORM_RED, TAKE_RED);
    collect_orders(FORM_FENCE, TAKE_FENCE);
    collect_orders(FORM_MEMBAR, TAKE_MEMBAR);
}

/* ---- operands of any type --------------------------------------------------------------------------------------- */

static ptx_val operand(ptx_fn *f, ptx_type type)
{
    if (type == PTX_PRED)
        return ptx_lt(f, ptx_tid_x(f), ptx_u32(7));
    if (type == PTX_B8) {
        ptx_val bytes[4];
        ptx_unpack(f, PTX_B8, 4, bytes, ptx_tid_x(f));
        return bytes[0];
    }
    if (type == PTX_U8 || type == PTX_S8)
        return val_retyped(ptx_var(f, ptx_u32(1)), type);
    return ptx_var(f, ptx_bits(type, 1));
}

/* One variable in each state space, for every form's address, and a tensor map. */
typedef struct pointers {
    ptx_val global, shared, map;
} pointers;

static ptx_val pointer_for(const form *m, int index, const pointers *p)
{
    bool copy = strncmp(m->row->text, "cp.async$C", 10) == 0;
    bool shared = copy ? index == 0 : strstr(m->row->text, ".shared") != NULL;
    return shared ? p->shared : p->global;
}

static ptx_val operand_for(ptx_fn *f, char letter, const form *m, int index, const pointers *p)
{
    switch (letter) {
    case 't':
    case 'v':
    case 'g':
    case 'b':
        return operand(f, m->type);
    case 's':
    case 'z':
        return operand(f, m->from);
    case 'p':
        return operand(f, PTX_PRED);
    case 'w':
        return operand(f, type_wide(m->type));
    case 'a':
        return m->type == PTX_NONE ? pointer_for(m, index, p)
                                   : ptx_cast_ptr(f, pointer_for(m, index, p), m->type);
    case 'k':
        return operand(f, PTX_B64);
    case 'f':
        return ptx_f32(0.5f);
    case 'm':
        return ptx_u32(PTX_ALL_LANES);
    case 'i':
        return ptx_u32(m->row->op == PTX_OP_LOP3 ? 0xea : m->row->traits & TRAIT_GROUP ? 24 : 16);
    default:
        return ptx_u32(strstr(m->row->text, ".parity") ? 1 : strstr(m->row->text, "bulk") ? 16 : 3);
    }
}

/* Packing needs enough parts to fill the result; forms that do not exist are left out. */
static int parts_of(const form *m)
{
    if (m->row->op != PTX_OP_PACK && m->row->op != PTX_OP_UNPACK)
        return 1;
    uint32_t part = ptx_type_bytes(m->from), whole = ptx_type_bytes(m->type);
    return part && whole > part && whole / part <= 4 ? (int)(whole / part) : 0;
}

/* Operations that FORM_OP cannot make, or that another kind makes. */
static bool direct(ptx_op op)
{
    return op == PTX_OP_SPECIAL || op == PTX_OP_SYMBOL || op == PTX_OP_TENSOR_MAP || op == PTX_OP_BULK_LOAD ||
           op == PTX_OP_BULK_STORE || op == PTX_OP_TENSOR_LOAD || op == PTX_OP_TENSOR_STORE ||
           op == PTX_OP_LOAD_PARAM || op == PTX_OP_MMA || op == PTX_OP_MMA_SCALED || op == PTX_OP_WGMMA ||
           op == PTX_OP_WGMMA_SHARED || op == PTX_OP_FENCE || op == PTX_OP_MEMBAR || op == PTX_OP_RAW;
}

static bool emit_operation(ptx_fn *f, const form *m, const pointers *p)
{
    ptx_val operands[8];
    int count = 0, parts = parts_of(m);
    if (parts == 0 || direct(m->row->op))
        return false;
    if (m->row->op == PTX_OP_BARRIER_NAMED || m->row->op == PTX_OP_BARRIER_ARRIVE) {
        operands[0] = ptx_u32(1);
        operands[1] = ptx_u32(64);
        count = 2;
    } else {
        for (const char *s = strchr(m->row->signature, ':') + 1; *s; s++)
            for (int i = 0; i < (*s == 'z' ? parts : 1); i++, count++)
                operands[count] = operand_for(f, *s, m, count, p);
    }
    ptx_inst *inst =
        inst_build(f, m->row->op, m->type, m->from, parts, count, operands, (ptx_place){__FILE__, __LINE__});
    if (inst && strchr(m->row->signature, 'k'))
        inst->hints = HINT_POLICY;
    return inst != NULL;
}

static void emit_mma(ptx_fn *f, ptx_mma_shape shape)
{
    ptx_mma_info info = ptx_mma_describe(shape);
    ptx_val a[8], b[4], sums[4];
    for (int i = 0; i < info.a_count; i++)
        a[i] = operand(f, info.a_type);
    for (int i = 0; i < info.b_count; i++)
        b[i] = operand(f, info.b_type);
    for (int i = 0; i < info.c_count; i++)
        sums[i] = operand(f, info.c_type);
    if (info.scales == 0) {
        ptx_mma_to(f, shape, sums, a, b);
        return;
    }
    const ptx_mma_scales of_a = {operand(f, PTX_U32), 4 - info.scales, 1},
                         of_b = {operand(f, PTX_U32), 4 - info.scales, 3};
    ptx_mma_scaled(f, shape, sums, a, b, sums, of_a, of_b);
}

/* All flags that the types have. */
static void emit_group_product(ptx_fn *f, const form *m)
{
    const wgmma_row *row = &wgmma_rows[m->number];
    const bool is_integer = row->d_type == PTX_S32, is_shared = m->row->op == PTX_OP_WGMMA_SHARED;
    const ptx_wgmma_form of = {.types = (ptx_wgmma_types)m->number,
                               .n = m->count,
                               .negates_a = !is_integer,
                               .transposes_a = is_shared && row->bits == 16,
                               .transposes_b = row->bits == 16,
                               .saturates = is_integer};
    const ptx_mma_info info = ptx_wgmma_describe(of);
    ptx_val a[4], d[128], at = operand(f, PTX_U64), adds = operand(f, PTX_PRED);
    for (int i = 0; i < info.a_count; i++)
        a[i] = operand(f, info.a_type);
    for (int i = 0; i < info.c_count; i++)
        d[i] = operand(f, info.c_type);
    if (is_shared)
        ptx_wgmma_shared(f, of, adds, d, at, at);
    else
        ptx_wgmma(f, of, 0, d, a, at);
}

static void emit_matrix(ptx_fn *f, const form *m, const pointers *p)
{
    ptx_val values[4];
    for (int i = 0; i < m->number; i++)
        values[i] = operand(f, PTX_B32);
    if (m->row->op == PTX_OP_LDMATRIX || m->row->op == PTX_OP_LDMATRIX_TRANS)
        ptx_ldmatrix_at(f, m->row->op, m->number, values, p->shared, PTX_HERE);
    else
        ptx_stmatrix_at(f, m->row->op, m->number, p->shared, values, PTX_HERE);
}

static void emit_access(ptx_fn *f, const form *m, const pointers *p)
{
    ptx_val values[8], at = ptx_cast_ptr(f, p->global, m->type);
    if (m->number & HINT_POLICY)
        at = ptx_with_policy(f, at, operand(f, PTX_B64));
    for (int i = 0; i < m->count; i++)
        values[i] = operand(f, m->type);
    if (m->kind == FORM_LOAD)
        ptx_load_vec(f, m->count, values, at, m->number & ~HINT_POLICY);
    else
        ptx_store_vec(f, m->count, at, values, m->number & ~HINT_POLICY);
}

static void emit_bulk_copy(ptx_fn *f, const form *m, const pointers *p)
{
    ptx_val first[5], barrier = ptx_cast_ptr(f, p->shared, PTX_B64), bytes = operand(f, PTX_U32);
    for (int i = 0; i < m->number; i++)
        first[i] = operand(f, i % 2 ? PTX_S32 : PTX_U32);
    if (m->row->op == PTX_OP_BULK_LOAD)
        ptx_bulk_load(f, p->shared, p->global, bytes, barrier);
    else if (m->row->op == PTX_OP_BULK_STORE)
        ptx_bulk_store(f, p->global, p->shared, bytes);
    else if (m->row->op == PTX_OP_TENSOR_LOAD)
        ptx_tensor_load(f, m->number, p->shared, p->map, first, barrier);
    else
        ptx_tensor_store(f, m->number, p->map, first, p->shared);
}

/* Emits one form; its instruction is the last of the body. */
static bool emit_form(ptx_fn *f, const form *m, const pointers *p)
{
    ptx_val from = p->global;
    switch (m->kind) {
    case FORM_OP:
        return emit_operation(f, m, p);
    case FORM_MMA:
        emit_mma(f, (ptx_mma_shape)m->number);
        break;
    case FORM_WGMMA:
        emit_group_product(f, m);
        break;
    case FORM_MATRIX:
        emit_matrix(f, m, p);
        break;
    case FORM_SPECIAL:
        ptx_special(f, (ptx_sreg)m->number);
        break;
    case FORM_LOAD:
    case FORM_STORE:
        emit_access(f, m, p);
        break;
    case FORM_COPY:
        if (m->number & HINT_POLICY)
            from = ptx_with_policy(f, from, operand(f, PTX_B64));
        ptx_cp_async(f, p->shared, from, (uint32_t)m->count, m->number & ~HINT_POLICY);
        break;
    case FORM_ATOM:
        ptx_atom_add(f, p->global, ptx_u32(1), m->number);
        break;
    case FORM_RED:
        ptx_red_add(f, p->global, ptx_u32(1), m->number);
        break;
    case FORM_FENCE:
        ptx_fence(f, m->number);
        break;
    case FORM_MEMBAR:
        ptx_membar(f, m->number);
        break;
    case FORM_BULK:
        emit_bulk_copy(f, m, p);
        break;
    case FORM_KINDS:
        return false;
    }
    return true;
}

/* ---- modules and ptxas ------------------------------------------------------------------------------------------ */

static bool same_needs(ptx_requirement a, ptx_requirement b)
{
    return a.version == b.version && target_compare(a.target, b.target) == 0;
}

/* Makes one kernel with all forms of these requirements; line_of[form] is the line of its instruction, or 0. */
static text module_of(arena *a, ptx_requirement needs, ptx_requirement at, int line_of[])
{
    ptx_fn *f = ptx_new(a, "rows", at.target, (uint32_t[]){128, 1, 1});
    const pointers p = {ptx_param_ptr(f, PTX_U32, "p"), ptx_shared(f, PTX_U32, 64, 128),
                        ptx_tensor_map(f, "map")};
    uint32_t marks[MOST_FORMS] = {0};
    text t = text_new(a);
    for (int i = 0; i < form_count; i++) {
        line_of[i] = 0;
        if (same_needs(forms[i].needs, needs) && emit_form(f, &forms[i], &p))
            marks[i] = (uint32_t)f->body.count;
    }
    if (f->problems.count) {
        ptx_check(f, stderr);
        exit(1);
    }
    ptx_print_header(&t, at);
    ptx_print_body(&t, f, false);
    /* the body is the last body.count + 2 lines: instructions, "ret;" and "}" */
    int lines = 0;
    for (size_t i = 0; i < t.length; i++)
        lines += t.data[i] == '\n';
    for (int i = 0; i < form_count; i++)
        if (marks[i])
            line_of[i] = lines - 2 - (int)f->body.count + (int)marks[i];
    return t;
}

/* Assembles; flagged[line] marks the lines of ptxas' errors. Returns its exit status. */
static int assemble(const text *t, target made_for, bool flagged[], int most)
{
    char path[1024], command[4096], line[1024], name[TARGET_NAME_BYTES];
    snprintf(path, sizeof path, "%s/rows.ptx", scratch);
    FILE *file = fopen(path, "wb");
    if (!file)
        exit(1);
    fwrite(t->data, 1, t->length, file);
    fclose(file);
    snprintf(command, sizeof command, "ptxas -arch=%s '%s' -o '%s/rows.cubin' 2>&1",
             target_print(made_for, name), path, scratch);
    memset(flagged, 0, (size_t)most * sizeof *flagged);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): folders of the build */
    if (!pipe)
        exit(1);
    while (fgets(line, sizeof line, pipe)) {
        const char *at = strstr(line, ", line ");
        long n = at ? strtol(at + 7, NULL, 10) : 0;
        if (n > 0 && n < most)
            flagged[n] = true;
        if (getenv("ROWS_VERBOSE"))
            fputs(line, stderr);
    }
    return pclose(pipe);
}

static void report(const form *m, ptx_requirement at, const char *what)
{
    char name[TARGET_NAME_BYTES];
    fprintf(stderr, "%s (%s, from %s, kind %d, number %d, count %d) at %s %u.%u: %s\n", m->text,
            ptx_type_name(m->type), ptx_type_name(m->from), m->kind, m->number, m->count,
            target_print(at.target, name), at.version / 10u, at.version % 10u, what);
    failures++;
}

enum { MOST_LINES = 1 << 15 };
static bool flagged[MOST_LINES];

static void try_at(ptx_requirement needs, ptx_requirement at, bool accepted, const char *what)
{
    static int line_of[MOST_FORMS];
    char name[TARGET_NAME_BYTES];
    target_print(at.target, name);
    arena *a = arena_new();
    text t = module_of(a, needs, at, line_of);
    int status = assemble(&t, at.target, flagged, MOST_LINES), seen = 0;
    for (int i = 0; i < form_count; i++) {
        if (!line_of[i])
            continue;
        seen++;
        if (flagged[line_of[i]] == accepted)
            report(&forms[i], at, what);
    }
    if (accepted && status != 0 && failures == 0)
        failures++, fprintf(stderr, "%s %u: ptxas failed without a line\n", name, at.version);
    printf("%s %u.%u: %d forms %s\n", name, at.version / 10u, at.version % 10u, seen,
           accepted ? "accepted" : "refused");
    arena_free(a);
}

/* ---- below the requirements ------------------------------------------------------------------------------------------ */

static uint16_t version_below(uint16_t version)
{
    while (--version >= 63)
        if (ptx_min_driver(version))
            return version;
    return 0;
}

static uint16_t target_below(uint16_t sm)
{
    static const uint16_t all[] = {75, 80, 86, 87, 89, 90, 100};
    for (size_t i = 1; i < sizeof all / sizeof all[0]; i++)
        if (all[i] == sm)
            return all[i - 1];
    return 0;
}

/* Forms that ptxas 13.0 accepts below the documented requirement: e4m3 and e5m2 came to sm_89 with 8.1 (PTX ISA, release notes). */
static bool known_lenient(ptx_requirement needs)
{
    return needs.target.sm == 89 && needs.version == 81;
}

static void try_around(ptx_requirement needs)
{
    ptx_requirement at = needs;
    if (needs.target.kind == TARGET_FAMILY)
        at.target.kind = TARGET_ARCH;
    try_at(needs, at, true, "refused where it has what it needs");
    uint16_t version = version_below(needs.version),
             sm = needs.target.kind == TARGET_ARCH ? 0 : target_below(needs.target.sm);
    if (needs.target.kind == TARGET_ARCH)
        try_at(needs, (ptx_requirement){needs.version, {needs.target.sm, TARGET_BASE}}, false,
               "taken on the base target");
    if (version && version >= target_version(at.target) && !known_lenient(needs))
        try_at(needs, (ptx_requirement){version, at.target}, false, "taken one version below what it needs");
    if (needs.target.kind == TARGET_FAMILY) {
        const bool has_all_families = needs.target.sm == 100;
        try_at(needs, (ptx_requirement){88, {100, TARGET_FAMILY}}, has_all_families,
               has_all_families ? "refused on the family target" : "taken on an older family target");
        try_at(needs, (ptx_requirement){88, {120, TARGET_FAMILY}}, true, "refused on the family target");
        try_at(needs, (ptx_requirement){88, {121, TARGET_ARCH}}, true, "refused on the architecture target");
        try_at(needs, (ptx_requirement){88, {120, TARGET_BASE}}, false, "taken on the base target");
    } else if (sm) {
        try_at(needs, (ptx_requirement){needs.version, {sm, TARGET_BASE}}, false,
               "taken one target below what it needs");
    }
}

/* ---- the table itself ------------------------------------------------------------------------------------------- */

static void check_order(void)
{
    for (size_t i = 1; i < op_row_count; i++) {
        bool same = op_rows[i].op == op_rows[i - 1].op;
        if (op_rows[i].op < op_rows[i - 1].op ||
            (same && strcmp(op_rows[i].signature, op_rows[i - 1].signature) != 0))
            failures++, fprintf(stderr, "row %zu (%s): out of order\n", i, op_rows[i].text);
    }
    for (int op = 0; op < PTX_OP_COUNT; op++)
        if (op_first((ptx_op)op)->op != (ptx_op)op)
            failures++, fprintf(stderr, "operation %d has no row\n", op);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    scratch = argv[1];
    check_order();
    collect();
    printf("%zu rows, %d forms\n", op_row_count, form_count);
    for (int kind = 0; kind < FORM_KINDS; kind++)
        if (!kind_counts[kind])
            failures++, fprintf(stderr, "no forms of kind %d\n", kind);
    if (failures)
        return 1;
    /* NOLINTNEXTLINE(cert-env33-c): a fixed command */
    if (system("ptxas --version >/dev/null 2>&1") != 0) {
        printf("SKIPPED: ptxas is not on PATH\n");
        return 77;
    }
    for (int i = 0; i < form_count; i++) {
        bool first = true;
        for (int j = 0; j < i; j++)
            first &= !same_needs(forms[i].needs, forms[j].needs);
        if (first)
            try_around(forms[i].needs);
    }
    return failures ? 1 : 0;
}
