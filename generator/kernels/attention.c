/* attention: scaled-dot-product attention, O = softmax(scale * Q * K^T) * V, without a matrix of scores. */
#include "attention.h"

#include "kernels.h"

/* clang-format off */
static const kiln_param params[] = {
    {.name = "type", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "f32 f64 f16 bf16",
     .default_value = "f16", .summary = "element type of Q, K, V and O"},
    {.name = "head_dim", .type = KILN_PARAM_INT, .role = KILN_ROLE_CONTRACT, .min = 16, .max = 256, .step = 8,
     .default_value = "128", .summary = "elements of a row of Q, K, V and O"},
    {.name = "causal", .type = KILN_PARAM_BOOL, .role = KILN_ROLE_CONTRACT, .default_value = "false",
     .summary = "query i sees keys j <= i + k_length - q_length; false: all keys"},
    {.name = "strategy", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "simt mma",
     .default_value = "simt", .summary = "simt: units for single numbers; mma: matrix units, for f16 and bf16"},
    {.name = "tile_q", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "32 64 128", .default_value = "64",
     .summary = "queries per thread block; K and V are read once for each such tile"},
    {.name = "tile_k", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "32 64", .default_value = "64",
     .summary = "keys at a time"},
    {.name = NULL},
};

#define LAST(count)          "(max(" count ", 1) - 1)"
#define SPAN(matrix, heads, length)                                                                                    \
    "select(batch * " heads " * " length " == 0, 0, " LAST("batch") " * " matrix "_batch_stride + " LAST(heads) " * "  \
    matrix "_head_stride + " LAST(length) " * " matrix "_row_stride + head_dim)"

static const kiln_arg args[] = {
    {"q", KILN_ARG_IN, "$type", SPAN("q", "q_heads", "q_length"), 16, NULL, "Q"},
    {"k", KILN_ARG_IN, "$type", SPAN("kv", "kv_heads", "k_length"), 16, NULL, "K"},
    {"v", KILN_ARG_IN, "$type", SPAN("kv", "kv_heads", "k_length"), 16, NULL, "V"},
    {"out", KILN_ARG_OUT, "$type", SPAN("out", "q_heads", "q_length"), 16, NULL, "O"},
    {"lse", KILN_ARG_OPTIONAL_OUT, "$type:f64:f32", "batch, q_heads, q_length", 4, NULL,
     "natural logarithm of the sum of exp(score) of each row; -infinity where no key is seen"},
    {"batch", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "matrices of each head"},
    {"q_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of Q and O"},
    {"kv_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of K and V; each serves q_heads / kv_heads of Q in a row"},
    {"q_length", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of Q and O"},
    {"k_length", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of K and V"},
    {"scale", KILN_ARG_VALUE, "$type:f64:f32", NULL, 0, NULL, "of the scores, at least 0; as a rule 1 / sqrt(head_dim)"},
    {"q_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of Q from row to row"},
    {"kv_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "the same of K and of V"},
    {"out_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "the same of O"},
    {"q_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of Q from batch to batch; 0 where there is one"},
    {"q_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of Q from head to head; 0 where there is one"},
    {"kv_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of K and of V; 0: all batches share them"},
    {"kv_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of K and of V"},
    {"out_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of O"},
    {"out_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of O"},
    {.name = NULL},
};

#define LONGEST "1073741824"
#define EIGHTHS(a, b, c) a " % 8 == 0 && " b " % 8 == 0 && " c " % 8 == 0"

static const kiln_rule rules[] = {
    {"q_heads % max(kv_heads, 1) == 0 && (kv_heads >= 1 || q_heads == 0)", "q_heads must be a multiple of kv_heads"},
    {"batch <= 65535", "batch must be at most 65535"},
    {"q_heads <= 65535", "q_heads must be at most 65535"},
    {"q_length <= " LONGEST, "q_length must be at most 2^30"},
    {"k_length <= " LONGEST, "k_length must be at most 2^30"},
    {EIGHTHS("q_row_stride", "q_head_stride", "q_batch_stride"), "strides of q must be multiples of 8"},
    {EIGHTHS("kv_row_stride", "kv_head_stride", "kv_batch_stride"), "strides of k and v must be multiples of 8"},
    {EIGHTHS("out_row_stride", "out_head_stride", "out_batch_stride"), "strides of out must be multiples of 8"},
    {"out_row_stride >= head_dim || q_length <= 1", "out_row_stride must be at least head_dim"},
    {NULL, NULL},
};

#define WIDE_BYTES  "select(type == f64, 8, 4)"
#define TYPE_BYTES  "select(type == f64, 8, select(type == f32, 4, 2))"
#define SIMT_SHARED "((tile_q + tile_k) * select(type == f64, 272, 144) + tile_q * tile_k * " WIDE_BYTES " + 512)"
#define MMA_SHARED  "((tile_q + 2 * tile_k) * 16 * (head_dim / 16 * 2 + 1))"
#define SHARED      "select(strategy == mma, " MMA_SHARED ", " SIMT_SHARED ")"

static const kiln_rule refusals[] = {
    {"strategy == simt || type == f16 || type == bf16", "strategy mma is for f16 and bf16"},
    {"type != f64 || tile_q == 32", "f64 needs tile_q 32: registers"},
    {"strategy == mma || tile_q <= 64", "tile_q 128 is for strategy mma"},
    {"strategy == simt || " MMA_SHARED " <= 101376", "the tiles need more than 99 KB of shared memory"},
    {NULL, NULL},
};

/* Short tiles where there are few queries. */
static const kiln_dispatch dispatch[] = {
    {"q_length <= 32", "strategy=mma,tile_q=32"},
    {"q_length >= 1024 && sm >= 80", "strategy=mma,tile_q=128"},
    {"1", "strategy=mma"},
    {"q_length <= 32", "tile_q=32"},
    {"1", ""},
    {NULL, NULL},
};
/* clang-format on */

static void emit(ptx_fn *f, const kiln_variant *v)
{
    (kiln_is(v, "strategy", "mma") ? attention_emit_mma : attention_emit_simt)(f, v);
}

const kiln_family attention_family = {
    .name = "attention",
    .summary = "scaled-dot-product attention: O = softmax(scale * Q * K^T) * V, causal or not",
    .source = "FlashAttention-2 (arXiv:2307.08691)",
    .nonfinite = "as the arithmetic goes, in the rows that see them; through V also in rows that do not",
    .params = params,
    .args = args,
    .refusals = refusals,
    .rules = rules,
    .empty = "batch == 0 || q_heads == 0 || q_length == 0",
    .block = {"select(strategy == mma && (tile_q < 128 || head_dim > 128), 2 * tile_q, 128)"},
    .grid = {"ceil_div(q_length, tile_q)", "q_heads", "batch"},
    .shared_bytes = SHARED,
    .dispatch = dispatch,
    .cost = {.bytes_read = TYPE_BYTES " * head_dim * batch * (q_heads * q_length + 2 * kv_heads * k_length)",
             .bytes_written = TYPE_BYTES " * head_dim * batch * q_heads * q_length + " WIDE_BYTES
                                         " * batch * q_heads * q_length",
             .elements = "batch * q_heads * q_length * k_length"},
    .min_sm = 75,
    .variant_min_sm = "select(strategy == mma && (type == bf16 || " MMA_SHARED " > 65536), 80, 75)",
    .emit = emit,
};
