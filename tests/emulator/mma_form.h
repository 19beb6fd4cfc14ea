/* A form of mma.sync as the ISA describes it, for the tests: its types as bits and values, the elements that each lane
   holds (9.7.14.5.1 to 9.7.14.5.13), and a kernel that executes it once. Independent of the emulator's code. */
#ifndef MMA_FORM_H
#define MMA_FORM_H

#include "emu_test.h"

#include <math.h>

typedef struct element {
    const char *name;
    int bits;               /* bits in a register */
    int exponent, fraction; /* field widths; 0: an integer */
    int shift;              /* lowest bit: .e2m1 is in mid-byte; .tf32 is above 13 ignored bits */
    bool is_signed;
} element;

static const element elements[] = {
    {"f16", 16, 5, 10, 0, true},  {"bf16", 16, 8, 7, 0, true}, {"tf32", 32, 8, 10, 13, true},
    {"e4m3", 8, 4, 3, 0, true},   {"e5m2", 8, 5, 2, 0, true},  {"e3m2", 8, 3, 2, 0, true},
    {"e2m3", 8, 2, 3, 0, true},   {"e2m1", 8, 2, 1, 2, true},  {"f32", 32, 8, 23, 0, true},
    {"f64", 64, 11, 52, 0, true}, {"s8", 8, 0, 0, 0, true},    {"u8", 8, 0, 0, 0, false},
    {"s4", 4, 0, 0, 0, true},     {"u4", 4, 0, 0, 0, false},   {"b1", 1, 0, 0, 0, false},
    {"s32", 32, 0, 0, 0, true},
};

static inline uint64_t low_bits(int count)
{
    return UINT64_MAX >> (64 - count);
}

static inline double element_value(const element *t, uint64_t bits)
{
    if (!t->exponent) {
        uint64_t sign = UINT64_C(1) << (t->bits - 1);
        return t->is_signed ? (double)(int64_t)((bits ^ sign) - sign) : (double)bits;
    }
    bits >>= t->shift;
    int top = (int)low_bits(t->exponent), e = (int)(bits >> t->fraction) & top, bias = top / 2;
    uint64_t f = bits & low_bits(t->fraction);
    bool has_infinity = t->exponent >= 5, negative = bits >> (t->exponent + t->fraction) & 1;
    double v =
        e ? ldexp(1 + ldexp((double)f, -t->fraction), e - bias) : ldexp((double)f, 1 - bias - t->fraction);
    if (has_infinity && e == top)
        v = f ? (double)NAN : (double)INFINITY;
    if (strcmp(t->name, "e4m3") == 0 && e == top && f == 7)
        v = (double)NAN;
    return negative ? -v : v;
}

/* Returns the bits of a value that the type can represent. */
static inline uint64_t element_bits(const element *t, double v)
{
    if (!t->exponent)
        return (uint64_t)(int64_t)v & low_bits(t->bits);
    if (isnan(v))
        return low_bits(t->exponent + t->fraction) << t->shift;
    if (isinf(v))
        return (low_bits(t->exponent) << t->fraction | (uint64_t)(v < 0) << (t->exponent + t->fraction))
               << t->shift;
    int bias = (int)low_bits(t->exponent - 1), e = v == 0 ? 1 - bias : ilogb(v);
    e = e < 1 - bias ? 1 - bias : e;
    uint64_t magnitude = (uint64_t)ldexp(fabs(v), t->fraction - e), one = UINT64_C(1) << t->fraction;
    uint64_t bits = magnitude < one ? magnitude : magnitude - one + ((uint64_t)(e + bias) << t->fraction);
    return (bits | (uint64_t)(signbit(v) != 0) << (t->exponent + t->fraction)) << t->shift;
}

/* .kind::mxf4 and .kind::mxf4nvf4 have two in a byte. */
static const element packed_e2m1 = {"e2m1", 4, 2, 1, 0, true};

/* Which element a lane holds; g = lane / 4, t = lane % 4. A: element i is in row g, plus 8 if i & row_bit; column t * each
   + i % each, plus `next` for every `a_run` elements. B: column g; row t * each + i % each, plus `next` for every `each`
   elements. C and D: row g, plus 8 from element 2 on; column 2 t + i % 2. */
typedef struct fragment_rule {
    const char *shape;
    int bits, each;
    int a, b, c; /* elements per lane */
    int row_bit, a_run, next;
} fragment_rule;

static const fragment_rule fragment_rules[] = {
    /*            bits each   a   b  c row_bit a_run next */
    {"m8n8k4", 16, 0, 4, 4, 8, 0, 0, 0},      /* 9.7.14.5.1, quad_place below */
    {"m8n8k4", 64, 1, 1, 1, 2, 0, 1, 0},      /* .2 */
    {"m8n8k16", 8, 4, 4, 4, 2, 0, 4, 0},      /* .3 */
    {"m8n8k32", 4, 8, 8, 8, 2, 0, 8, 0},      /* .4 */
    {"m8n8k128", 1, 32, 32, 32, 2, 0, 32, 0}, /* .5 */
    {"m16n8k4", 32, 1, 2, 1, 4, 1, 2, 0},     /* .6 */
    {"m16n8k4", 64, 1, 2, 1, 4, 1, 2, 0},          {"m16n8k8", 16, 2, 4, 2, 4, 2, 4, 0}, /* .7 */
    {"m16n8k8", 32, 1, 4, 2, 4, 1, 2, 4},          {"m16n8k8", 64, 1, 4, 2, 4, 1, 2, 4},
    {"m16n8k16", 16, 2, 8, 4, 4, 2, 4, 8},                                                   /* .8 */
    {"m16n8k16", 64, 1, 8, 4, 4, 1, 2, 4},         {"m16n8k16", 8, 4, 8, 4, 4, 4, 8, 0},     /* .9 */
    {"m16n8k32", 4, 8, 16, 8, 4, 8, 16, 0},                                                  /* .10 */
    {"m16n8k32", 8, 4, 16, 8, 4, 4, 8, 16},        {"m16n8k64", 4, 8, 32, 16, 4, 8, 16, 32}, /* .11 */
    {"m16n8k128", 1, 32, 64, 32, 4, 32, 64, 0},                                              /* .12 */
    {"m16n8k256", 1, 32, 128, 64, 4, 32, 64, 128}, /* .13, where column i of A means i & 0x1F */
};

typedef struct mma_form {
    char name[96]; /* the part after mma.sync.aligned. */
    int m, k;
    int products; /* m8n8k4 with .f16 has four, and layouts; other forms: A by row, B by column */
    bool a_by_column, b_by_row, saturates;
    const element *d, *a, *b, *c;
    const fragment_rule *rule;
    char bit_operation;     /* x: xor, a: and */
    char rounding;          /* n, z, m or p */
    int chunks;             /* of k, each with a scale; 0: no block scaling */
    bool is_ue4m3;          /* its scales; else .ue8m0 */
    int byte[2], thread[2]; /* selectors of A's scales and B's */
    bool has_register_selectors;
} mma_form;

typedef struct place {
    int product, row, column;
} place;

static inline const element *element_named(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strlen(elements[i].name) == size && memcmp(elements[i].name, name, size) == 0)
            return &elements[i];
    return NULL;
}

static inline const fragment_rule *rule_of(const char *shape, int bits)
{
    size_t size = strcspn(shape, ".");
    for (size_t i = 0; i < sizeof fragment_rules / sizeof *fragment_rules; i++) {
        const fragment_rule *r = &fragment_rules[i];
        if (r->bits == bits && strlen(r->shape) == size && memcmp(r->shape, shape, size) == 0)
            return r;
    }
    return NULL;
}

/* Returns false if the ISA has no layout for the form. */
static inline bool parse_form(const char *name, mma_form *f)
{
    const element **types[4] = {&f->d, &f->a, &f->b, &f->c};
    int type_count = 0, layouts = 0;
    bool by_row[2] = {true, false};
    *f = (mma_form){.rounding = 'n'};
    snprintf(f->name, sizeof f->name, "%s", name);
    if (sscanf(name, "m%dn8k%d", &f->m, &f->k) != 2)
        return false;
    for (const char *at = strchr(name, '.'); at; at = strchr(at, '.')) {
        size_t size = strcspn(++at, ".");
        const element *t = element_named(at, size);
        if (t && type_count < 4)
            *types[type_count++] = t;
        else if (strncmp(at, "row", size) == 0 || strncmp(at, "col", size) == 0)
            by_row[layouts++ & 1] = at[0] == 'r';
        else if (strncmp(at, "satfinite", size) == 0)
            f->saturates = true;
        else if (size == 2 && at[0] == 'r')
            f->rounding = at[1];
        else if (size == 13 && strncmp(at, "scale_vec::", 11) == 0)
            f->chunks = at[11] - '0';
        else if (size == 5 && strncmp(at, "ue4m3", size) == 0)
            f->is_ue4m3 = true;
        else if (strncmp(at, "xor", size) == 0 || strncmp(at, "and", size) == 0)
            f->bit_operation = at[0];
    }
    if (type_count != 4)
        return false;
    if (strstr(name, "block_scale") && !f->chunks)
        f->chunks = strstr(name, "kind::mxf4.") ? 2 : 1;
    if (f->chunks && f->k == 64)
        f->a = f->b = &packed_e2m1;
    f->a_by_column = !by_row[0];
    f->b_by_row = by_row[1];
    f->rule = rule_of(name, f->a->bits);
    f->products = f->rule && !f->rule->each ? 4 : 1;
    return f->rule != NULL;
}

/* Places in m8n8k4 with .f16: 9.7.14.5.1. */
static inline place quad_place(const mma_form *f, char matrix, int lane, int i)
{
    int high = lane < 16 ? 0 : 4, product = lane % 16 / 4;
    bool is_wide = (matrix == 'C' ? f->c : f->d)->bits == 32;
    switch (matrix) {
    case 'A':
        return f->a_by_column ? (place){product, i % 4 + high, lane % 4}
                              : (place){product, lane % 4 + high, i};
    case 'B':
        return f->b_by_row ? (place){product, lane % 4, i + high} : (place){product, i, lane % 4 + high};
    default:
        return is_wide ? (place){product, (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)}
                       : (place){product, lane % 4 + high, i};
    }
}

/* Returns the place of a lane's element i of A, B, C or D. */
static inline place place_of(const mma_form *f, char matrix, int lane, int i)
{
    const fragment_rule *r = f->rule;
    int g = lane >> 2, t = lane % 4;
    if (f->products == 4)
        return quad_place(f, matrix, lane, i);
    switch (matrix) {
    case 'A':
        return (place){0, i & r->row_bit ? g + 8 : g, t * r->each + i % r->each + i / r->a_run * r->next};
    case 'B':
        return (place){0, t * r->each + i % r->each + i / r->each * r->next, g};
    default:
        return (place){0, i < 2 ? g : g + 8, 2 * t + i % 2};
    }
}

typedef struct matrices { /* values; codes of scales, by row of A or column of B and chunk */
    double a[4][16][256], b[4][256][8], c[4][16][8], d[4][16][8];
    uint8_t scale_a[16][4], scale_b[8][4];
} matrices;

/* ISA 5.2.3; NaN: also what has the bit that .ue4m3 lacks. */
static inline double scale_value(const mma_form *f, unsigned code)
{
    if (!f->is_ue4m3)
        return code == 255 ? (double)NAN : ldexp(1, (int)code - 127);
    return code >= 0x7f ? (double)NAN
           : code >= 8  ? ldexp(8 + code % 8, (int)(code / 8) - 10)
                        : ldexp(code, -9);
}

/* 9.7.14.3: rows g and g + 8 of A in the pair of threads that the selector gives, columns of B in one thread. Other bytes are
   any. */
static inline void put_scales(const mma_form *f, const matrices *m, int lane, uint32_t words[2])
{
    const int g = lane / 4, t = lane % 4;
    words[0] = (uint32_t)random_bits();
    words[1] = (uint32_t)random_bits();
    for (int n = 0; n < f->chunks; n++) {
        int at_a = 8 * (f->byte[0] + n), at_b = 8 * (f->byte[1] + n);
        if (t / 2 == f->thread[0])
            words[0] = (words[0] & ~(255u << at_a)) | (uint32_t)m->scale_a[g + t % 2 * 8][n] << at_a;
        if (t == f->thread[1])
            words[1] = (words[1] & ~(255u << at_b)) | (uint32_t)m->scale_b[g][n] << at_b;
    }
}

static inline double *value_at(matrices *m, char matrix, place p)
{
    return matrix == 'A'   ? &m->a[p.product][p.row][p.column]
           : matrix == 'B' ? &m->b[p.product][p.row][p.column]
           : matrix == 'C' ? &m->c[p.product][p.row][p.column]
                           : &m->d[p.product][p.row][p.column];
}

static inline int words_of(const element *t, int count)
{
    return count * t->bits / 32;
}

static inline void put_bits(uint32_t *words, int at, int bits, uint64_t value)
{
    for (int n = 0; n < bits; n += 32) /* only f64 spans words; it begins at one */
        words[(at + n) / 32] |= (uint32_t)(value >> n) << at % 32;
}

static inline uint64_t get_bits(const uint32_t *words, int at, int bits)
{
    uint64_t low = words[at / 32] >> at % 32;
    return bits == 64 ? low | (uint64_t)words[at / 32 + 1] << 32 : low & low_bits(bits);
}

static inline void add_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline void add_text(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

#define ADD(...) add_text(body, sizeof body, __VA_ARGS__)

enum { SCALE_WORDS = 2 };

/* One kernel: A, B and C of all lanes from memory, with block scaling the scales, the instruction, D to memory. */
static inline const char *mma_body(const mma_form *f)
{
    static char body[8192];
    const element *types[4] = {f->a, f->b, f->c, f->d};
    int counts[4] = {f->rule->a, f->rule->b, f->rule->c, f->rule->c}, in_words = 0;
    char lists[4][256] = {""};
    for (int v = 0; v < 3; v++)
        in_words += words_of(types[v], counts[v]);
    body[0] = '\0';
    ADD(".reg .u64 %%p<3>; .reg .u32 %%t;\n"
        "ld.param.u64 %%p0, [p0]; ld.param.u64 %%p1, [p1]; mov.u32 %%t, %%tid.x;\n"
        "mad.wide.u32 %%p1, %%t, %d, %%p1; mad.wide.u32 %%p0, %%t, %d, %%p0;\n",
        (in_words + SCALE_WORDS * !!f->chunks) * 4, words_of(f->d, counts[3]) * 4);
    for (int v = 0, at = 0; v < 4; v++) {
        const char *type = strcmp(types[v]->name, "f32") == 0   ? "f32"
                           : strcmp(types[v]->name, "f64") == 0 ? "f64"
                                                                : "b32";
        int step = types[v]->bits == 64 ? 8 : 4, registers = words_of(types[v], counts[v]) * 4 / step;
        ADD(".reg .%s %%v%d_<%d>;\n", type, v, registers);
        for (int n = 0; n < registers; n++, at += v < 3 ? step : 0) {
            if (v < 3)
                ADD("ld.global.%s %%v%d_%d, [%%p1+%d];\n", type, v, n, at);
            add_text(lists[v], sizeof lists[v], "%s%%v%d_%d", n ? ", " : "", v, n);
        }
    }
    if (f->chunks)
        ADD(".reg .b32 %%s<2>; .reg .u16 %%h<4>; ld.global.v2.b32 {%%s0, %%s1}, [%%p1+%d];\n"
            "mov.u16 %%h0, %d; mov.u16 %%h1, %d; mov.u16 %%h2, %d; mov.u16 %%h3, %d;\n",
            in_words * 4, f->byte[0], f->thread[0], f->byte[1], f->thread[1]);
    ADD("mma.sync.aligned.%s {%s}, {%s}, {%s}, {%s}", f->name, lists[3], lists[0], lists[1], lists[2]);
    if (f->chunks && f->has_register_selectors)
        ADD(", %%s0, {%%h0, %%h1}, %%s1, {%%h2, %%h3}");
    else if (f->chunks)
        ADD(", %%s0, {%d, %d}, %%s1, {%d, %d}", f->byte[0], f->thread[0], f->byte[1], f->thread[1]);
    ADD(";\n");
    int step = f->d->bits == 64 ? 8 : 4;
    for (int n = 0; n < words_of(f->d, counts[3]) * 4 / step; n++)
        ADD("st.global.%s [%%p0+%d], %%v3_%d;\n", step == 8 ? "b64" : "b32", n * step, n);
    ADD("ret;");
    return body;
}

/* Executes the form: computes d from a, b and c, whose values have its types. */
static inline void run_form(const char *header, const mma_form *f, matrices *m)
{
    enum { MOST_WORDS = 32 };
    static uint32_t in[32 * MOST_WORDS], out[32 * MOST_WORDS];
    const element *types[3] = {f->a, f->b, f->c};
    int counts[3] = {f->rule->a, f->rule->b, f->rule->c}, in_words = 0;
    for (int v = 0; v < 3; v++)
        in_words += words_of(types[v], counts[v]);
    const int all_words = in_words + SCALE_WORDS * !!f->chunks;
    memset(in, 0, sizeof in);
    for (int lane = 0; lane < 32 && f->chunks; lane++)
        put_scales(f, m, lane, in + lane * all_words + in_words);
    for (int lane = 0; lane < 32; lane++)
        for (int v = 0, at = lane * all_words * 32; v < 3; v++)
            for (int i = 0; i < counts[v]; i++, at += types[v]->bits) {
                double x = *value_at(m, "ABC"[v], place_of(f, "ABC"[v], lane, i));
                bool is_tf32 = types[v]->shift == 13;
                put_bits(in, at, types[v]->bits, element_bits(types[v], x) | (is_tf32 ? 0x1fff : 0));
            }
    int d_words = words_of(f->d, f->rule->c);
    run_body(header, mma_body(f), 32, in, (size_t)(32 * all_words * 4), out, (size_t)(32 * d_words * 4));
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < f->rule->c; i++) {
            uint64_t bits = get_bits(out, lane * d_words * 32 + i * f->d->bits, f->d->bits);
            double d = element_value(f->d, bits);
            if (isnan(d)) /* all NaNs become the same one, on every host */
                assert_int_equal(bits, low_bits(f->d->bits - 1));
            *value_at(m, 'D', place_of(f, 'D', lane, i)) = d;
        }
}

#endif
