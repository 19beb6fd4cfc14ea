/* Descriptors with one mistake each. The check at startup must name it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../test_families.h"
#include "bundle/images.h"
#include "bundle/maps.h"
#include "death.h"
#include "family/family.h"
#include "family/shape.h"

static void emit_nothing(ptx_fn *f, const kiln_variant *v)
{
    (void)f;
    (void)v;
}

static void validate(const void *family)
{
    family_validate(family);
}

/* A family without mistakes; each case changes one thing. */
static const kiln_arg args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "x", .kind = KILN_ARG_IN, .type = "f32", .shape = "n", .alignment = 4, .summary = "read"},
    {0}};
static const kiln_param params[] = {
    {.name = "type", .words = "f32 f16 none", .numbers = "99", .default_value = "f32", .summary = "of x"},
    {.name = "tile",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .min = 1,
     .max = 9,
     .step = 2,
     .default_value = "3",
     .summary = "size"},
    {0}};

#define SPELLING "lower-case letters, digits and _, at most 40, and a letter first"
#define TAKEN    "C, C++, their headers, kiln or its expressions use it"

#define BASE                                                                                                 \
    .name = "f", .summary = "s", .source = "s", .params = params, .args = args, .min_sm = 75,                \
    .emit = emit_nothing, .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"}

#define ARGS(...)    ((const kiln_arg[]){__VA_ARGS__, {0}})
#define PARAMS(...)  ((const kiln_param[]){__VA_ARGS__, {0}})
#define RULES(...)   ((const kiln_rule[]){__VA_ARGS__, {0}})
#define ALIGNED(...) ((const kiln_alignment[]){__VA_ARGS__, {0}})
#define VALUES(...)  ((const kiln_value[]){__VA_ARGS__, {0}})
#define MAPS(...)    ((const kiln_map[]){__VA_ARGS__, {0}})
#define CALL(...)    ((const kiln_call[]){{.name = "one", .summary = "s", __VA_ARGS__}, {0}})
#define X                                                                                                    \
    {                                                                                                        \
        .name = "x", .kind = KILN_ARG_IN, .type = "f32", .shape = "4", .alignment = 4, .summary = "read"     \
    }
#define POINTER .name = "p", .kind = KILN_ARG_OUT, .type = "f32", .shape = "1", .summary = "s"
#define WORD    .summary = "s", .default_value = "a"

#pragma GCC diagnostic ignored "-Woverride-init" /* a case overrides what BASE says */
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

static void test_mistakes(void **state)
{
    (void)state;
    const struct {
        const char *expected;
        kiln_family family;
    } rows[] = {
        {"a family has no name", {BASE, .name = NULL}},
        {"family F: not a legal family name", {BASE, .name = "F"}},
        {"family f__g: not a legal family name", {BASE, .name = "f__g"}},
        {"family 2f: not a legal family name", {BASE, .name = "2f"}},
        {"family f: no summary or no source", {BASE, .summary = NULL}},
        {"family f: no emit function", {BASE, .emit = NULL}},
        {"family f: min_sm is 70; the lowest target is sm_75", {BASE, .min_sm = 70}},
        {"family f: no arguments", {BASE, .args = NULL}},
        {"family f: parameter 'p': the type or the role is not one of family.h's",
         {BASE, .params = PARAMS(
                    {.name = "p", .type = (kiln_param_type)99, .default_value = "a", .summary = "s"})}},
        {"family f: argument 'z': the kind is not one of family.h's",
         {BASE, .args = ARGS(
                    X, {.name = "n", .type = "u64", .summary = "s"},
                    {.name = "z", .kind = (kiln_arg_kind)99, .type = "f32", .shape = "n", .summary = "s"})}},
        {"family f: the bound of \"w\" has no text",
         {BASE, .bounds = (const kiln_bound[]){{"w", NULL}, {0}}}},
        {"family f: the example's value of 'n' is null",
         {BASE, .example = (const kiln_value[]){{"n", NULL}, {0}}}},
        {"family f: usual: the value of 'n' is null",
         {BASE, .usual = (const kiln_value[]){{"n", NULL}, {0}}}},
        {"family f: dense: \"x\" has no dims or no strides",
         {BASE, .dense = (const kiln_dense[]){{.args = "x", .dims = "n"}, {0}}}},
        {"family f: workspace: arg, counters, size or elements is missing",
         {BASE, .workspace = &(const kiln_workspace){.arg = "x"}}},
        {"family f: workspace_parts: 'nope' is not an unsigned argument", {BASE, .workspace_parts = "nope"}},
        {"family f: 'Type' is not a legal parameter name: " SPELLING,
         {BASE, .params = PARAMS({.name = "Type", .words = "a", WORD})}},
        {"family f: 'sm' is not a legal parameter name: " TAKEN,
         {BASE, .params = PARAMS({.name = "sm", .words = "a", WORD})}},
        {"family f: 'family' is not a legal parameter name: " TAKEN,
         {BASE, .params = PARAMS({.name = "family", .words = "a", WORD})}},
        {"family f: 'int' is not a legal parameter name: " TAKEN,
         {BASE, .params = PARAMS({.name = "int", .words = "a", WORD})}},
        {"family f: parameter 'p' is declared twice",
         {BASE, .params = PARAMS({.name = "p", .words = "a", .numbers = "1", WORD},
                                 {.name = "p", .words = "a", WORD})}},
        {"family f: parameter 'p' has no words", {BASE, .params = PARAMS({.name = "p", WORD})}},
        {"family f: parameter 'p': single spaces stand between words",
         {BASE, .params = PARAMS({.name = "p", .words = "a  b", WORD})}},
        {"family f: parameter 'p': single spaces stand between words",
         {BASE, .params = PARAMS({.name = "p", .words = "a b ", WORD})}},
        {"family f: parameter 'p': 'b-c' is not a legal word",
         {BASE, .params = PARAMS({.name = "p", .words = "a b-c", WORD})}},
        {"family f: parameter 'p': YAML takes 'no' for another thing",
         {BASE, .params = PARAMS({.name = "p", .words = "a no", WORD})}},
        {"family f: parameter 'p' lists 'a' twice",
         {BASE, .params = PARAMS({.name = "p", .words = "a b a", WORD})}},
        {"family f: parameter 'p': 'a' is not an integer",
         {BASE, .params = PARAMS({.name = "p", .type = KILN_PARAM_INT, .words = "1 a", WORD})}},
        {"family f: parameter 'p' has no values",
         {BASE, .params = PARAMS({.name = "p", .type = KILN_PARAM_INT, WORD})}},
        {"family f: parameter 'p': the default 'a' is no legal value",
         {BASE, .params = PARAMS({.name = "p", .words = "b", WORD})}},
        {"family f: parameter 'p': the default 'a' is no legal value",
         {BASE, .params = PARAMS({.name = "p", .type = KILN_PARAM_BOOL, WORD})}},
        {"family f: parameter 'p': the default '4' is no legal value",
         {BASE, .params = PARAMS({.name = "p",
                                  .type = KILN_PARAM_INT,
                                  .min = 1,
                                  .max = 9,
                                  .step = 2,
                                  .summary = "s",
                                  .default_value = "4"})}},
        {"family f: parameter 'p': 1 words take a number of their own, `numbers` has 0",
         {BASE, .params = PARAMS({.name = "p", .words = "f16 a 4", WORD})}},
        {"family f: parameter 'p': 1 words take a number of their own, `numbers` has 2",
         {BASE, .params = PARAMS({.name = "p", .words = "f16 a 4", .numbers = "1 2", WORD})}},
        {"family f: parameter 'p': '0' is no number of a word",
         {BASE, .params = PARAMS({.name = "p", .words = "a b", .numbers = "1 0", WORD})}},
        {"family f: parameter 'p': 'f16' and 'a' have the same number",
         {BASE, .params = PARAMS({.name = "p", .words = "f16 f32 a", .numbers = "1", WORD})}},
        {"family f: parameter 'p': 'a' and 'b' have the same number",
         {BASE, .params = PARAMS({.name = "p", .words = "a 2 b", .numbers = "7 7", WORD})}},
        {"family f: parameter 'p' has no summary", {BASE, .params = PARAMS({.name = "p", .words = "a"})}},
        {"family f: 'max' is not a legal argument name: " TAKEN,
         {BASE, .args = ARGS({.name = "max", .type = "u64", .summary = "s"})}},
        {"family f: 'Gamma' is not a legal argument name: " SPELLING,
         {BASE, .args = ARGS({.name = "Gamma", .type = "u64", .summary = "s"})}},
        {"family f: 'a123456789b123456789c123456789d1234567890' is not a legal argument name: " SPELLING,
         {BASE, .args = ARGS(
                    {.name = "a123456789b123456789c123456789d1234567890", .type = "u64", .summary = "s"})}},
        {"family f: 'linux' is not a legal argument name: " TAKEN,
         {BASE, .args = ARGS({.name = "linux", .type = "u64", .summary = "s"})}},
        {"family f: 'uint_fast8_t' is not a legal argument name: " TAKEN,
         {BASE, .args = ARGS({.name = "uint_fast8_t", .type = "u64", .summary = "s"})}},
        {"family f: 'tile' is a parameter and an argument",
         {BASE, .args = ARGS({.name = "tile", .type = "u64", .summary = "s"})}},
        {"family f: 'Stage' is not a legal number name: " SPELLING, {BASE, .numbers = "Stage"}},
        {"family f: number 'stage' is declared twice", {BASE, .numbers = "stage stage"}},
        {"family f: the numbers \"stage  rows\" are not separated by single spaces",
         {BASE, .numbers = "stage  rows"}},
        {"family f: 'tile' is a parameter and a number", {BASE, .numbers = "tile"}},
        {"family f: 'n' is a number and an argument", {BASE, .numbers = "n"}},
        {"family f: 9 numbers; the limit is 8", {BASE, .numbers = "a b c d e f g h i"}},
        {"family f: expression \"rows\" cannot use parameters in its place",
         {BASE, .numbers = "rows", .empty = "rows"}},
        {"family f: argument 'n' is declared twice",
         {BASE, .args = ARGS({.name = "n", .type = "u64", .summary = "s"},
                             {.name = "n", .type = "u64", .summary = "s"})}},
        {"family f: argument 'm': 'int' is no type",
         {BASE, .args = ARGS({.name = "m", .type = "int", .summary = "s"})}},
        {"family f: argument 'm' has no type", {BASE, .args = ARGS({.name = "m", .summary = "s"})}},
        {"family f: argument 'm': no parameter 't'",
         {BASE, .args = ARGS({.name = "m", .type = "$t", .summary = "s"})}},
        {"family f: argument 'm': 'tile' has no words",
         {BASE, .args = ARGS({.name = "m", .type = "$tile", .summary = "s"})}},
        {"family f: argument 'm': no scalar can be u8, only u16 i16 u32 i32 u64 i64 s16 s32 s64 f32 f64",
         {BASE, .args = ARGS({.name = "m", .type = "u8", .summary = "s"})}},
        {"family f: argument 'm': no scalar whose type a parameter names can be f16, only f32 and f64, as of "
         "\"$name:f64:f32\"",
         {BASE, .params = PARAMS({.name = "p", .words = "f32 f16", .summary = "s", .default_value = "f32"}),
          .args = ARGS({.name = "m", .type = "$p", .summary = "s"})}},
        {"family f: argument 'm': the type '$type:f64' is not $name:word:other",
         {BASE, .args = ARGS({.name = "m", .type = "$type:f64", .summary = "s"})}},
        {"family f: argument 'm': 'none' is no type",
         {BASE,
          .args = ARGS({.name = "m", .kind = KILN_ARG_IN, .type = "$type", .shape = "1", .summary = "s"})}},
        {"family f: argument 'n' has no summary", {BASE, .args = ARGS({.name = "n", .type = "u64"})}},
        {"family f: argument 'p': pointers have shapes, values none",
         {BASE, .args = ARGS({.name = "p", .kind = KILN_ARG_OUT, .type = "f32", .summary = "s"})}},
        {"family f: argument 'p': pointers have shapes, values none",
         {BASE, .args = ARGS({.name = "p", .type = "f32", .shape = "1", .summary = "s"})}},
        {"family f: argument 'p': the alignment 512 is no power of two up to 256",
         {BASE, .args = ARGS({POINTER, .alignment = 512})}},
        {"family f: an alignment is given to 'n', which is no pointer",
         {BASE, .alignments = ALIGNED({"n", "8"})}},
        {"family f: an alignment is given to 'q', which is no pointer",
         {BASE, .alignments = ALIGNED({"q", "8"})}},
        {"family f: the alignment of 'p' is null",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", NULL})}},
        {"family f: argument 'p' is given two alignments",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", "4"}, {"p", "8"})}},
        {"family f: argument 'm': a value has no alignment",
         {BASE, .args = ARGS({.name = "m", .type = "u64", .alignment = 8, .summary = "s"})}},
        {"family f: argument 'p' has an alignment of its own, 4, beside that of its variants",
         {BASE, .args = ARGS({POINTER, .alignment = 4}), .alignments = ALIGNED({"p", "8"})}},
        {"family f: expression \"n * 2\" cannot use arguments in its place",
         {BASE, .alignments = ALIGNED({"x", "n * 2"}),
          .args = ARGS({.name = "n", .type = "u64", .summary = "s"},
                       {.name = "x", .kind = KILN_ARG_IN, .type = "f32", .shape = "n", .summary = "s"})}},
        {"family f: expression \"vector * 2\": 'vector' is no parameter, argument or fact",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", "vector * 2"})}},
        {"family f: argument 'p': the alignment 12 is no power of two up to 256",
         {BASE, .args = ARGS({.name = "p",
                              .kind = KILN_ARG_OUT,
                              .type = "f32",
                              .shape = "1",
                              .alignment = 12,
                              .summary = "s"})}},
        {"family f: expression \"sm, 1\" cannot use device facts in its place",
         {BASE, .args = ARGS({.name = "p",
                              .kind = KILN_ARG_OUT,
                              .type = "f32",
                              .shape = "sm, 1",
                              .alignment = 4,
                              .summary = "s"})}},
        {"family f: expression \"n == 1\" cannot use arguments in its place",
         {BASE, .args = ARGS({.name = "n", .type = "u64", .when = "n == 1", .summary = "s"})}},
        {"family f: expression \"sm > 1\" cannot use device facts in its place",
         {BASE, .rules = RULES({"sm > 1", "t"})}},
        {"family f: the rule \"n > 1\" has no text", {BASE, .rules = RULES({"n > 1", NULL})}},
        {"family f: expression \"n >\": expected a value at its end", {BASE, .rules = RULES({"n >", "t"})}},
        {"family f: expression \"tile == 1\" cannot use parameters in its place",
         {BASE, .empty = "tile == 1"}},
        {"family f: expression \"threads\" cannot use facts of the shape in its place",
         {BASE, .rules = RULES({"threads", "t"})}},
        {"family f: expression \"sm\" cannot use device facts in its place", {BASE, .shared_bytes = "sm"}},
        {"family f: expression \"sm\" cannot use device facts in its place",
         {BASE, .cost = {.elements = "sm"}}},
        {"family f: expression \"n >\": expected a value at its end", {BASE, .time = {.length = "n >"}}},
        {"family f: expression \"z\": 'z' is no parameter, argument or fact", {BASE, .time = {.extra = "z"}}},
        {"family f: call 'one' has no summary or no arguments", {BASE, .calls = CALL(.args = NULL)}},
        {"family f: call 'one' leaves 'x' null",
         {BASE, .calls = CALL(.args = ARGS({.name = "n", .type = "u64", .summary = "s"}))}},
        {"family f: call 'one' takes 'x' twice", {BASE, .calls = CALL(.args = ARGS(X, X))}},
        {"family f: call 'one': 'tile' is no legal argument or has no summary",
         {BASE, .calls = CALL(.args = ARGS(X, {.name = "tile", .type = "u32", .summary = "s"}))}},
        {"family f: call 'one': 'n' is neither the family's argument nor an unsigned one of its own",
         {BASE, .calls = CALL(.args = ARGS(X, {.name = "n", .type = "u32", .summary = "s"}))}},
        {"family f: call 'one': 'y' is neither the family's argument nor an unsigned one of its own",
         {BASE, .calls = CALL(.args = ARGS(X, {.name = "y", .type = "f32", .summary = "s"}))}},
        {"family f: call 'one' gives a value to 'x', which is not an unsigned argument",
         {BASE, .calls = CALL(.args = ARGS(X), .values = VALUES({"x", "0"}))}},
        {"family f: call 'one' takes 'n' and gives it a value",
         {BASE, .calls = CALL(.args = ARGS(X, {.name = "n", .type = "u64", .summary = "s"}),
                              .values = VALUES({"n", "4"}))}},
        {"family f_one: expression \"n\": 'n' is no parameter, argument or fact",
         {BASE, .calls = CALL(.args = ARGS(X), .values = VALUES({"n", "n"}))}},
        {"family f_one: expression \"tile\": 'tile' is no parameter, argument or fact",
         {BASE, .calls = CALL(.args = ARGS(X), .values = VALUES({"n", "tile"}))}},
        {"family f_one: expression \"sm\" cannot use device facts in its place",
         {BASE, .calls = CALL(.args = ARGS(X), .values = VALUES({"n", "sm"}))}},
        {"family f: 'M' is not a legal tensor map name: " SPELLING,
         {BASE, .maps = MAPS({.name = "M", .arg = "x"})}},
        {"family f: 'x' is a tensor map, and an argument or a parameter",
         {BASE, .maps = MAPS({.name = "x", .arg = "x"})}},
        {"family f: 'tile' is a tensor map, and an argument or a parameter",
         {BASE, .maps = MAPS({.name = "tile", .arg = "x"})}},
        {"family f: map 'm' is declared twice",
         {BASE, .maps = MAPS({"m", "x", .box = "4"}, {"m", "x", .box = "4"})}},
        {"family f: map 'm' is of 'n', which is no pointer", {BASE, .maps = MAPS({"m", "n", .box = "4"})}},
        {"family f: map 'm' is of '', which is no pointer", {BASE, .maps = MAPS({"m", .box = "4"})}},
        {"family f: map 'm' has no box", {BASE, .maps = MAPS({.name = "m", .arg = "x"})}},
        {"family f: expression \"n\" cannot use arguments in its place",
         {BASE, .maps = MAPS({"m", "x", .box = "n"})}},
        {"family f: expression \"n\" cannot use arguments in its place",
         {BASE, .maps = MAPS({"m", "x", .box = "4", .swizzle_bytes = "n"})}},
        {"family f: map 'm': \"n\" are not the strides of \"n\", without the last",
         {BASE, .maps = MAPS({"m", "x", .strides = "n", .box = "4"})}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_family_error(validate, &rows[i].family, rows[i].expected);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static void ask_shape(const void *argument)
{
    const kiln_family *family = argument;
    const variant v = {.family = family, .id = "f/type=f32,tile=3", .values = {{"f32", 0}, {"3", 3}}};
    shape_for(&v, (target){75, TARGET_BASE}, NULL);
}

#define SHAPE(name, ...)                                                                                     \
    static void name(kiln_shape *s, const kiln_variant *v)                                                   \
    {                                                                                                        \
        const kiln_shape made = {__VA_ARGS__};                                                               \
        (void)v;                                                                                             \
        *s = made;                                                                                           \
    }
SHAPE(wide, .block = {1536})
SHAPE(deep, .block = {1, 1, 65})
SHAPE(none, .shared_bytes = 4)
SHAPE(large, .block = {32, 11, 3})
SHAPE(upside_down, .block = {32}, .shared_bytes = 4, .least_shared_bytes = 8)
SHAPE(most, .block = {4, 4, 64})
SHAPE(crowded, .block = {32}, .blocks_per_multiprocessor = 33)
static void unnamed(kiln_shape *s, const kiln_variant *v)
{
    kiln_number(s, v, NULL, 1);
}

static void test_shapes(void **state)
{
    (void)state;
    const struct {
        const char *expected;
        kiln_family family;
    } rows[] = {
        {"f/type=f32,tile=3: 1536 threads along x of a block; 1 to 1024 can be there", {BASE, .shape = wide}},
        {"f/type=f32,tile=3: 65 threads along z of a block; 1 to 64 can be there", {BASE, .shape = deep}},
        {"f/type=f32,tile=3: 0 threads along x of a block; 1 to 1024 can be there", {BASE, .shape = none}},
        {"f/type=f32,tile=3: a block of 1056 threads; the limit is 1024", {BASE, .shape = large}},
        {"f/type=f32,tile=3: 33 blocks per multiprocessor; the limit is 32", {BASE, .shape = crowded}},
        {"family f: shape gives a number '' that it does not list", {BASE, .shape = unnamed}},
        {"f/type=f32,tile=3: at least 8 bytes of dynamic shared memory, at most 4",
         {BASE, .shape = upside_down, .shared_bytes = "n"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_family_error(ask_shape, &rows[i].family, rows[i].expected);
    const kiln_family large_enough = {BASE, .shape = most};
    ask_shape(&large_enough);
}

/* ---- alignments that depend on the variant ---------------------------------------------------------------------------- */

static void ask_alignment(const void *argument)
{
    const kiln_family *family = argument;
    const variant v = {.family = family, .id = "f/type=f32,tile=3", .values = {{"f32", 0}, {"3", 3}}};
    arena *a = arena_new();
    variant_arg_alignment(a, &v, &family->args[0]);
    arena_free(a);
}

static uint32_t alignment_of(const char *bytes, const char *type, const char *tile, uint32_t number)
{
    const kiln_arg list[] = {
        {.name = "p", .kind = KILN_ARG_IN, .type = type ? "$type" : "f32", .shape = "1", .summary = "s"},
        {0}};
    const kiln_alignment alignments[] = {{"p", bytes}, {0}};
    const kiln_family family = {BASE, .args = list, .alignments = alignments};
    const variant v = {.family = &family, .values = {{type ? type : "f32", 0}, {tile, number}}};
    arena *a = arena_new();
    const uint32_t alignment = variant_arg_alignment(a, &v, family.args);
    arena_free(a);
    return alignment;
}

static void test_alignments(void **state)
{
    (void)state;
    const struct {
        const char *expected;
        kiln_family family;
    } rows[] = {
        {"f/type=f32,tile=3: argument p: the alignment \"tile * 4\" is 12, no power of two up to 256",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", "tile * 4"})}},
        {"f/type=f32,tile=3: argument p: the alignment \"tile - 3\" is 0, no power of two up to 256",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", "tile - 3"})}},
        {"f/type=f32,tile=3: argument p: the alignment \"select(tile == 3, 512, 4)\" is 512, no power of two "
         "up to 256",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", "select(tile == 3, 512, 4)"})}},
        {"f/type=f32,tile=3: argument p: the alignment \"4294967296 * 4\" is 17179869184, no power of two up "
         "to 256",
         {BASE, .args = ARGS({POINTER}), .alignments = ALIGNED({"p", "4294967296 * 4"})}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_family_error(ask_alignment, &rows[i].family, rows[i].expected);
    assert_int_equal(alignment_of("(tile + 1) * 4", NULL, "1", 1), 8);
    assert_int_equal(alignment_of("(tile + 1) * 4", NULL, "7", 7), 32);
    assert_int_equal(alignment_of("tile + 1", "f16", "1", 1), 2);
    assert_int_equal(alignment_of("tile + 1", "f32", "1", 1), 4); /* an element is larger */
}

/* ---- tensor maps -------------------------------------------------------------------------------------------------- */

static const kiln_arg map_args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "x", .kind = KILN_ARG_IN, .type = "f16", .shape = "n, 64", .alignment = 16, .summary = "read"},
    {.name = "z", .kind = KILN_ARG_IN, .type = "f16", .shape = "n, 64", .alignment = 8, .summary = "read"},
    {.name = "w", .kind = KILN_ARG_IN, .type = "f32", .shape = "n", .when = "tile == 9", .summary = "read"},
    {.name = "d",
     .kind = KILN_ARG_IN,
     .type = "f16",
     .shape = "n, 1, 1, 1, 1, 64",
     .alignment = 16,
     .summary = "read"},
    {0}};

static void ask_maps(const void *argument)
{
    const kiln_family *family = argument;
    const variant v = {.family = family, .id = "f/type=f32,tile=3", .values = {{"f32", 0}, {"3", 3}}};
    tensor_map maps[KILN_MAX_MAPS];
    arena *a = arena_new();
    maps_of(a, &v, maps);
    arena_free(a);
}

static void test_maps(void **state)
{
    (void)state;
    const struct {
        const char *expected;
        kiln_map map;
    } rows[] = {
        {"map m is of w, which the variant lacks", {"m", "w", .box = "16"}},
        {"map m: the box \"8\" and the shape \"n, 64\" need the same 1 to 5 dimensions",
         {"m", "x", .box = "8"}},
        {"map m: the box \"1, 1, 1, 1, 1, 8\" and the shape \"n, 1, 1, 1, 1, 64\" need the same 1 to 5 "
         "dimensions",
         {"m", "d", .box = "1, 1, 1, 1, 1, 8"}},
        {"map m: a box has 1 to 256 elements per dimension, not 0", {"m", "x", .box = "tile - 3, 64"}},
        {"map m: a box has 1 to 256 elements per dimension, not 257", {"m", "x", .box = "257, 64"}},
        {"map m: a swizzle of 16 bytes, expected 0, 32, 64 or 128",
         {"m", "x", .box = "8, 8", .swizzle_bytes = "16"}},
        {"map m: a row of the box has 24 bytes, expected a multiple of 16", {"m", "x", .box = "8, 12"}},
        {"map m: a row of the box has 128 bytes, expected a multiple of 16 within the swizzle",
         {"m", "x", .box = "8, 64", .swizzle_bytes = "64"}},
        {"map m: argument z must be aligned to at least 16 bytes", {"m", "z", .box = "8, 64"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "f/type=f32,tile=3: %s", rows[i].expected);
        const kiln_map maps[] = {rows[i].map, {0}};
        const kiln_family family = {BASE, .args = map_args, .maps = maps};
        family_validate(&family);
        assert_family_error(ask_maps, &family, expected);
    }
    kiln_map many[KILN_MAX_MAPS + 2] = {{0}};
    static const char *const names[] = {"a", "b", "c", "e", "g", "h", "i", "j", "k"};
    for (int i = 0; i <= KILN_MAX_MAPS; i++)
        many[i] = (kiln_map){names[i], "x", .box = "8, 64"};
    const kiln_family family = {BASE, .args = map_args, .maps = many};
    assert_family_error(ask_maps, &family, "f/type=f32,tile=3: more than 8 tensor maps");
    many[KILN_MAX_MAPS].when = "tile == 9"; /* another variant's */
    ask_maps(&family);
}

/* ---- valid descriptors ------------------------------------------------------------------------------------------ */

static void test_good(void **state)
{
    (void)state;
    const kiln_family family = {BASE,
                                .shared_bytes = "min(n * 4, shared_bytes)",
                                .shape = most,
                                .grid = {"min(n, threads * blocks_per_multiprocessor)"},
                                .time = {.length = "n / tile + threads", .wait = "sm"},
                                .calls =
                                    CALL(.args = ARGS(X, {.name = "rows", .type = "u32", .summary = "s"}),
                                         .values = VALUES({"n", "rows * 4"}))};
    family_validate(&family);
    const kiln_family by_element = {BASE, .cost = {0},
                                    .args = ARGS({.name = "x",
                                                  .kind = KILN_ARG_IN,
                                                  .type = "$type:f16:f32",
                                                  .shape = "4",
                                                  .summary = "aligned to its elements"})};
    family_validate(&by_element);
    const variant v = {.family = &by_element, .values = {{"f16", 0}, {"3", 3}}};
    arena *a = arena_new();
    assert_int_equal(variant_arg_alignment(a, &v, by_element.args), 2);
    arena_free(a);
    families_validate(test_families);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mistakes), cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_alignments), cmocka_unit_test(test_maps),
                                       cmocka_unit_test(test_good)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
