/* Every row of the operations table, in every type, through ptxas: it takes each form at the floor that the row claims,
 * and refuses each form one .version below it and one target below it, so that no floor is claimed too high.
 *     ptx_rows_test SCRATCH_DIR
 * Exit status 77 (skipped) when ptxas is not on PATH. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../generator/ptx/ir.h"

enum { MOST_FORMS = 4096 };

typedef struct form {
    const op_row *row;
    ptx_type type, from;
} form;

static form forms[MOST_FORMS];
static int form_count, failures;
static const char *scratch;

/* ---- every form of every row ------------------------------------------------------------------------------------ */

static void collect(void)
{
    for (size_t i = 0; i < op_row_count; i++)
        for (int t = 0; t < PTX_PTR; t++)
            for (int s = 0; s < PTX_PTR; s++) {
                const op_row *row = &op_rows[i];
                bool typed = row->types ? (row->types >> t) & 1 : t == 0;
                bool sourced = row->from == FROM_SAME ? s == t : row->from ? (row->from >> s) & 1 : s == 0;
                if (typed && sourced && op_find(row->op, (ptx_type)t, (ptx_type)s) == row)
                    forms[form_count++] = (form){row, (ptx_type)t, (ptx_type)s};
            }
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

static ptx_val operand_for(ptx_fn *f, char letter, const form *m, ptx_val pointer)
{
    switch (letter) {
    case 't':
    case 'v':
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
        return ptx_cast_ptr(f, pointer, m->type);
    case 'i':
        return ptx_u32(0xea);
    default:
        return ptx_u32(3);
    }
}

/* Packing needs as many parts as fill the whole; most of these forms do not exist, and are left out. */
static int parts_of(const form *m)
{
    if (m->row->op != PTX_OP_PACK && m->row->op != PTX_OP_UNPACK)
        return 1;
    uint32_t part = ptx_type_bytes(m->from), whole = ptx_type_bytes(m->type);
    return part && whole > part && whole / part <= 4 ? (int)(whole / part) : 0;
}

static bool direct(ptx_op op)
{
    return op == PTX_OP_SPECIAL || op == PTX_OP_SYMBOL || op == PTX_OP_LOAD_PARAM;
}

/* Emits one form; its instruction is the last of the body. */
static bool emit_form(ptx_fn *f, const form *m, ptx_val pointer)
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
            for (int i = 0; i < (*s == 'z' ? parts : 1); i++)
                operands[count++] = operand_for(f, *s, m, pointer);
    }
    return inst_build(f, m->row->op, m->type, m->from, parts, count, operands,
                      (ptx_place){__FILE__, __LINE__}) != NULL;
}

/* ---- modules and ptxas ------------------------------------------------------------------------------------------ */

static bool same_floor(const form *m, ptx_floor floor)
{
    return m->row->needs.version == floor.version && m->row->needs.sm == floor.sm &&
           m->row->needs.kind == floor.kind;
}

/* One kernel of all forms with a floor; line_of[form] is the line of its instruction, 0 when it is not there. */
static text module_of(arena *a, ptx_floor floor, ptx_floor target, int line_of[])
{
    ptx_fn *f = ptx_new(a, "rows", target, (uint32_t[]){64, 1, 1});
    ptx_val pointer = ptx_param_ptr(f, PTX_U32, "p");
    uint32_t marks[MOST_FORMS] = {0};
    text t = text_new(a);
    for (int i = 0; i < form_count; i++) {
        line_of[i] = 0;
        if (same_floor(&forms[i], floor) && emit_form(f, &forms[i], pointer))
            marks[i] = (uint32_t)f->body.count;
    }
    if (f->problems.count) {
        ptx_check(f, stderr);
        exit(1);
    }
    ptx_print_header(&t, target);
    ptx_print_body(&t, f);
    /* the body is the last body.count + 2 lines: instructions, "ret;" and "}" */
    int lines = 0;
    for (size_t i = 0; i < t.length; i++)
        lines += t.data[i] == '\n';
    for (int i = 0; i < form_count; i++)
        if (marks[i])
            line_of[i] = lines - 2 - (int)f->body.count + (int)marks[i];
    return t;
}

/* Assembles; flagged[line] tells which lines ptxas complains about. Returns its exit status. */
static int assemble(const text *t, ptx_floor target, bool flagged[], int most)
{
    char path[1024], command[4096], line[1024];
    snprintf(path, sizeof path, "%s/rows.ptx", scratch);
    FILE *file = fopen(path, "wb");
    if (!file)
        exit(1);
    fwrite(t->data, 1, t->length, file);
    fclose(file);
    snprintf(command, sizeof command, "ptxas -arch=sm_%u%.1s %s -o %s/rows.cubin 2>&1", target.sm,
             &target.kind, path, scratch);
    memset(flagged, 0, (size_t)most * sizeof *flagged);
    FILE *pipe = popen(command, "r");
    if (!pipe)
        exit(1);
    while (fgets(line, sizeof line, pipe)) {
        const char *at = strstr(line, ", line ");
        int n = at ? atoi(at + 7) : 0;
        if (n > 0 && n < most)
            flagged[n] = true;
        if (getenv("ROWS_VERBOSE"))
            fputs(line, stderr);
    }
    return pclose(pipe);
}

static void report(const form *m, ptx_floor at, const char *what)
{
    fprintf(stderr, "%s (%s, from %s) at sm_%u%.1s %u.%u: %s\n", m->row->text, ptx_type_name(m->type),
            ptx_type_name(m->from), at.sm, &at.kind, at.version / 10u, at.version % 10u, what);
    failures++;
}

enum { MOST_LINES = 1 << 15 };
static bool flagged[MOST_LINES];

static void try_floor(ptx_floor floor, ptx_floor target, bool accepted, const char *what)
{
    static int line_of[MOST_FORMS];
    arena *a = arena_new();
    text t = module_of(a, floor, target, line_of);
    int status = assemble(&t, target, flagged, MOST_LINES), seen = 0;
    for (int i = 0; i < form_count; i++) {
        if (!line_of[i])
            continue;
        seen++;
        if (flagged[line_of[i]] == accepted)
            report(&forms[i], target, what);
    }
    if (accepted && status != 0 && failures == 0)
        failures++, fprintf(stderr, "sm_%u %u: ptxas failed without a line\n", target.sm, target.version);
    printf("sm_%u%.1s %u.%u: %d forms %s\n", target.sm, &target.kind, target.version / 10u,
           target.version % 10u, seen, accepted ? "accepted" : "refused");
    arena_free(a);
}

/* ---- below the floor -------------------------------------------------------------------------------------------- */

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

/* What ptxas 13.0 takes below the documented floor: e4m3 and e5m2 came to sm_89 with 8.1 (PTX ISA, release notes). */
static bool known_lenient(ptx_floor floor)
{
    return floor.sm == 89;
}

static void try_around(ptx_floor floor)
{
    ptx_floor at = floor;
    at.kind = floor.kind == 'f' ? 'a' : floor.kind;
    try_floor(floor, at, true, "refused at its floor");
    uint16_t version = version_below(floor.version), sm = target_below(floor.sm);
    if (version && version >= floor_target_version(at.sm, at.kind) && !known_lenient(floor))
        try_floor(floor, (ptx_floor){version, at.sm, at.kind}, false, "taken one version below its floor");
    if (floor.kind == 'f') {
        try_floor(floor, (ptx_floor){88, 100, 'f'}, true, "refused on the family target");
        try_floor(floor, (ptx_floor){88, 120, 'f'}, true, "refused on the family target");
        try_floor(floor, (ptx_floor){88, 121, 'a'}, true, "refused on the architecture target");
        try_floor(floor, (ptx_floor){88, 120, 0}, false, "taken on the base target");
    } else if (sm) {
        try_floor(floor, (ptx_floor){floor.version, sm, 0}, false, "taken one target below its floor");
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
    if (failures)
        return 1;
    if (system("ptxas --version >/dev/null 2>&1") != 0) {
        printf("SKIPPED: ptxas is not on PATH\n");
        return 77;
    }
    for (size_t i = 0; i < op_row_count; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first &= memcmp(&op_rows[i].needs, &op_rows[j].needs, sizeof(ptx_floor)) != 0;
        if (first)
            try_around(op_rows[i].needs);
    }
    return failures ? 1 : 0;
}
