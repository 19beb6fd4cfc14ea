/* attention: scaled-dot-product attention, O = softmax(scale * Q * K^T) * V, without a matrix of scores. */
#include "attention.h"

#include <kiln/families.h>

/* clang-format off */
static const kiln_param params[] = {
    {.name = "type", .type = KILN_PARAM_WORD, .role = KILN_ROLE_CONTRACT, .words = "f32 f64 f16 bf16",
     .default_value = "f16", .summary = "element type of Q, K, V and O"},
    {.name = "head_dim", .type = KILN_PARAM_INT, .role = KILN_ROLE_CONTRACT, .min = 16, .max = 256, .step = 8,
     .default_value = "128", .summary = "elements of a row of Q, K, V and O"},
    {.name = "causal", .type = KILN_PARAM_BOOL, .role = KILN_ROLE_CONTRACT, .default_value = "false",
     .summary = "query i sees keys j <= i + k_length - q_length; false: all keys"},
    {.name = "strategy", .type = KILN_PARAM_WORD, .role = KILN_ROLE_TUNING, .words = "simt mma",
     .default_value = "simt", .summary = "simt: CUDA cores; mma: tensor cores, for f16 and bf16"},
    {.name = "tile_q", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "32 64 128", .default_value = "64",
     .summary = "queries per thread block; K and V are read once for each such tile"},
    {.name = "tile_k", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "32 64", .default_value = "64",
     .summary = "keys at a time"},
    {.name = "split_k", .type = KILN_PARAM_INT, .role = KILN_ROLE_TUNING, .words = "1 4 16", .default_value = "1",
     .summary = "thread blocks that share the keys of a tile of queries; more than one take a workspace"},
    {.name = "pack_gqa", .type = KILN_PARAM_BOOL, .role = KILN_ROLE_TUNING, .default_value = "false",
     .summary = "a tile has queries of all heads that share one of K and V: for few queries; K and V are read once for them"},
    {.name = NULL},
};

#define LAST(count)          "(max(" count ", 1) - 1)"
#define SPAN(matrix, heads, length)                                                                                    \
    "select(batch * " heads " * " length " == 0, 0, " LAST("batch") " * " matrix "_batch_stride + " LAST(heads) " * "  \
    matrix "_head_stride + " LAST(length) " * " matrix "_row_stride + head_dim)"

#define WORKSPACE "batch * q_heads * q_length * split_k * (head_dim + 8)"

static const kiln_arg args[] = {
    {"q", KILN_ARG_IN, "$type", SPAN("q", "q_heads", "q_length"), 16, NULL, "Q"},
    {"k", KILN_ARG_IN, "$type", SPAN("k", "kv_heads", "k_length"), 16, NULL, "K"},
    {"v", KILN_ARG_IN, "$type", SPAN("v", "kv_heads", "k_length"), 16, NULL, "V"},
    {"out", KILN_ARG_OUT, "$type", SPAN("out", "q_heads", "q_length"), 16, NULL, "O"},
    {"lse", KILN_ARG_OPTIONAL_OUT, "$type:f64:f32", "batch, q_heads, q_length", 4, NULL,
     "natural logarithm of the sum of exp(score) of each row; -infinity where no key is seen"},
    {"batch", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "matrices of each head"},
    {"q_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of Q and O"},
    {"kv_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of K and V; each serves q_heads / kv_heads of Q in a row"},
    {"q_length", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of Q and O"},
    {"k_length", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of K and V"},
    {"scale", KILN_ARG_VALUE, "$type:f64:f32", NULL, 0, NULL, "of the scores, at least 0 and finite; as a rule 1 / sqrt(head_dim)"},
    {"q_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of Q from row to row"},
    {"k_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "the same of K"},
    {"v_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "the same of V"},
    {"out_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "the same of O"},
    {"q_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of Q from batch to batch; 0 where there is one"},
    {"q_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of Q from head to head; 0 where there is one"},
    {"k_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of K; 0: all batches share it"},
    {"k_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of K"},
    {"v_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of V; 0: all batches share it"},
    {"v_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of V"},
    {"out_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of O, whose batches must not overlap"},
    {"out_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "the same of O, whose heads must not overlap"},
    {"workspace", KILN_ARG_SCRATCH, "$type:f64:f32", WORKSPACE, 16, "split_k > 1", "what parts of the keys come to; workspace and tile_counters belong to one launch at a time"},
    {"tile_counters", KILN_ARG_INOUT, "u32", "batch * q_heads * ceil_div(q_length, 32)", 4, "split_k > 1",
     "all 0 before a launch, else O is wrong, and again after it; one launch at a time"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "numbers that workspace holds; tile_counters has one for each 32 queries of each head; 0: there are neither, and no tile's keys are shared"},
    {.name = NULL},
};

#define LONGEST "1073741824"
/* What a tile is made of: a head's queries; packed, those of the heads that share one of K and V. */
#define GROUP "(q_heads / max(kv_heads, 1))"
#define HEADS "select(pack_gqa, kv_heads, q_heads)"
#define QUERIES "(q_length * select(pack_gqa, " GROUP ", 1))"
#define EIGHTHS(a, b, c) a " % 8 == 0 && " b " % 8 == 0 && " c " % 8 == 0"

static const kiln_rule rules[] = {
    {"q_heads % max(kv_heads, 1) == 0 && (kv_heads >= 1 || q_heads == 0)", "q_heads must be a multiple of kv_heads"},
    {"batch <= 65535", "batch must be at most 65535"},
    {"q_heads <= 65535", "q_heads must be at most 65535"},
    {"q_length <= " LONGEST, "q_length must be at most 2^30"},
    {"k_length <= " LONGEST, "k_length must be at most 2^30"},
    {"!negative(scale) && finite(scale)", "scale must be at least 0 and finite"},
    {EIGHTHS("q_row_stride", "q_head_stride", "q_batch_stride"), "strides of q must be multiples of 8"},
    {EIGHTHS("k_row_stride", "k_head_stride", "k_batch_stride"), "strides of k must be multiples of 8"},
    {EIGHTHS("v_row_stride", "v_head_stride", "v_batch_stride"), "strides of v must be multiples of 8"},
    {EIGHTHS("out_row_stride", "out_head_stride", "out_batch_stride"), "strides of out must be multiples of 8"},
    {"split_k == 1 || workspace_size >= " WORKSPACE, "workspace_size must be at least " WORKSPACE},
    {"split_k == 1 || batch * q_heads * ceil_div(q_length, 32) <= 2147483648", "too many tiles for split_k"},
    {"pack_gqa == false || q_length * " GROUP " <= " LONGEST, "q_length must be at most 2^30 over all heads of a tile"},
    {"out_row_stride >= head_dim || q_length <= 1", "out_row_stride must be at least head_dim"},
    {"out_head_stride >= head_dim || q_heads <= 1", "out_head_stride must be at least head_dim"},
    {"out_batch_stride >= head_dim || batch <= 1", "out_batch_stride must be at least head_dim"},
    {NULL, NULL},
};

#define WIDE_BYTES  "select(type == f64, 8, 4)"
#define TYPE_BYTES  "select(type == f64, 8, select(type == f32, 4, 2))"
#define SIMT_SHARED "((tile_q + tile_k) * select(type == f64, 272, 144) + tile_q * tile_k * " WIDE_BYTES " + 512)"
#define GAP_BYTES   "select(head_dim % 64 == 0, 16, select(head_dim % 32 == 0, 8, select(head_dim % 16 == 0, 4, 0)))"
#define MMA_SHARED  "((tile_q + 2 * tile_k) * (2 * head_dim + " GAP_BYTES "))"
#define BLOCKS      "(1 + (tile_q > 64 && head_dim < 129))"
#define MMA_THREADS "min(2 * tile_q, 128 + 128 * (head_dim > 128))"
#define THREADS     "select(strategy == mma, " MMA_THREADS ", 128)"
#define SHARED      "select(strategy == mma, " MMA_SHARED ", " SIMT_SHARED ")"

/* Thread instructions, counted, of full tiles. Copies of rows take turns of all threads, 16 bytes each. */
#define OLD      "(sm < 80)"
#define ODD      "(head_dim / 8 % 2)"

/* Tiles of keys that are visited. Causal: exact where lengths are multiples of tiles and q_length is at most k_length;
 * what is packed is taken to see all keys. */
#define Q_TILES  "ceil_div(" QUERIES ", tile_q)"
#define STAIRS   "(causal && pack_gqa == false)"
#define SEEING   "min(q_length, k_length)"
#define ROUNDS   "ceil_div(" SEEING ", tile_q)"
#define TRIANGLE                                                                                                       \
    "select(tile_q < tile_k, (" ROUNDS " / 2 + 1) * ((" ROUNDS " + 1) / 2), tile_q / tile_k * (" ROUNDS     \
    " * (" ROUNDS " - 1) / 2) + ceil_div(" SEEING ", tile_k))"
#define TILES                                                                                                          \
    "select(" STAIRS ", " ROUNDS " * ceil_div(k_length - " SEEING ", tile_k) + " TRIANGLE ", " Q_TILES                     \
    " * ceil_div(k_length, tile_k))"
#define MASKED   "select(" STAIRS ", " ROUNDS " * max(tile_q / tile_k, 1), " Q_TILES " * (k_length % tile_k != 0))"

/* CUDA cores: a lane has ROWS x KEYS scores, and columns of O in vectors. */
#define ROWS       "(tile_q / 8)"
#define KEYS       "(tile_k / 16)"
#define IN_16      "select(type == f64, 2, 4)"
#define COLUMNS    "ceil_div(head_dim, 16)"
#define VECTOR     "select(head_dim % 64 == 0 && type != f64, 4, select(head_dim % 32 == 0, 2, 1))"
#define SIMT_TURN  "select(type == f16, 16, select(type == bf16, 12, 3))"
#define A_TURN     "(2048 / " TYPE_BYTES ")"
#define V_PANELS   "max(tile_k / 32, ceil_div(tile_k * head_dim * 9, 8 * (tile_q + tile_k) * 32))"
#define PANELS                                                                                                         \
    "head_dim / 32 * 18 + (head_dim % 32 != 0) * 30 + " SIMT_TURN " * head_dim * (tile_q + tile_k) / " A_TURN
#define OF_V       V_PANELS " * 12 + " SIMT_TURN " * tile_k * head_dim / " A_TURN
#define SIMT_TILE                                                                                                      \
    "(10+" PANELS "+" ROWS "*" KEYS "+head_dim / 8*(5+8 / " IN_16 "*(" ROWS "+" KEYS ")+8*" ROWS   \
    "*" KEYS ")+" ROWS "*(" COLUMNS "+select(type == f64, 25*" KEYS "+51, 5*" KEYS "+19))+" OF_V     \
    "+tile_k / " IN_16 "*(4+" ROWS "+" IN_16 "*" COLUMNS " / " VECTOR "+1+" IN_16 "*" ROWS "*"     \
    COLUMNS "))"
#define PAIR       "select(type == f16, 1 + 2 * " OLD ", select(type == bf16, 1 + 10 * " OLD ", 0))"
#define SIMT_FIXED                                                                                                     \
    "(72 + 15 * (head_dim >= 32) + " ROWS " * (select(type == f64, 37, 24) + 2 * " COLUMNS " + 4 * " COLUMNS " / "     \
    VECTOR " + " PAIR " * " COLUMNS " / min(" VECTOR ", 2)))"
#define SIMT_PART                                                                                                      \
    "(105 + " ROWS " * (select(type == f64, 91, 39) + 3 * " COLUMNS " + 6 * " COLUMNS " / " VECTOR "))"
#define SIMT_MASK  "(3 + " KEYS " + 2 * " ROWS " * " KEYS ")"

/* Tensor cores: a warp has BLOCKS of 16 rows; per score a maximum, an fma, an exponential and a sum, half of a conversion;
 * per 16 x 16 of K or V one ldmatrix. What was summed is taken to shrink in the first tile alone. */
#define MMA_TURNS  "ceil_div(tile_k * head_dim, 8 * " MMA_THREADS ")"
#define MMA_COPY                                                                                                       \
    "(select(" ODD ", 15 + (" MMA_TURNS " - 1) * (head_dim / 2 + " MMA_THREADS " % (head_dim / 8)) / (head_dim / 8), "  \
    "8 - " OLD " + tile_k * " GAP_BYTES " / 2 / " MMA_THREADS ") + (1 + " OLD ") * " MMA_TURNS ")"
#define MMA_TILE                                                                                                       \
    "(" BLOCKS " * (20 + tile_k * (9 + 2 * " OLD ") / 4 + head_dim / 16 * (tile_k / 4 * (1 + " OLD                     \
    ") + (head_dim > 128 || tile_q > 64)) + " ODD " * (1 + tile_k * (3 + " OLD ") / 16)) + head_dim / 16 * tile_k / 8"  \
    " + " ODD " * tile_k / 16 + 9 + 2 * " MMA_COPY ")"
/* How often sums join a total of more keys: attention_total.h. */
#define CHUNKS "(k_length / split_k / 4097 * split_k)"
#define MMA_FIXED                                                                                                      \
    "(182 + " BLOCKS " * (27 + head_dim * (13 + 2 * " OLD ") / 4 + " CHUNKS " * 2 * head_dim) - head_dim / 8 + split_k * (2 + 3 * " OLD " + 9 * " \
    ODD ") * " MMA_TURNS ")"
#define MMA_PART   "(140 + " BLOCKS " * (92 + head_dim * 21 / 8) + head_dim * 5 / 8)"
#define MMA_MASK   "(7 + tile_k * " BLOCKS ")"

/* Beyond what a tile with split_k 1 takes: each part's beginning, leaving and joining, and what was summed shrinks in each
 * part that has keys. */
#define SHRINK     "min(split_k, ceil_div(k_length, tile_k)) * (12 + head_dim / 2) / split_k"
#define SPLIT                                                                                                          \
    "(split_k > 1) * (split_k * select(strategy == mma, " MMA_PART " + " SHRINK ", " SIMT_PART ") - 145 - head_dim * 3 / 5)"
#define INSTRUCTIONS                                                                                                   \
    "batch * " HEADS " * " THREADS " * (" Q_TILES " * (14 * causal * split_k + (40 + head_dim / 2) * pack_gqa + " SPLIT " + select(strategy == mma, " MMA_FIXED ", " SIMT_FIXED \
    ")) + " TILES " * select(strategy == mma, " MMA_TILE ", " SIMT_TILE ") + " MASKED " * select(strategy == mma, "    \
    MMA_MASK ", " SIMT_MASK "))"

static const kiln_rule refusals[] = {
    {"strategy == simt || type == f16 || type == bf16", "strategy mma is for f16 and bf16"},
    {"type != f64 || tile_q == 32", "f64 needs tile_q 32: registers"},
    {"type != f64 || tile_k == 32 || head_dim <= 128", "f64 needs tile_k 32 beyond head_dim 128: registers"},
    {"(pack_gqa == false && split_k == 1) || strategy == mma || tile_q == 32 || head_dim <= 192",
     "pack_gqa and split_k need tile_q 32 beyond head_dim 192 with strategy simt: registers"},
    {"strategy == mma || tile_q <= 64", "tile_q 128 is for strategy mma"},
    {"tile_q < 128 || tile_k == 32 || head_dim <= 96 || head_dim >= 128",
     "tile_q 128 needs tile_k 32 between head_dim 96 and 128: registers"},
    {"strategy == simt || " MMA_SHARED " + 16 * (split_k > 1) <= 101376", "the tiles need more than 99 KB of shared memory"},
    {NULL, NULL},
};

/* With a workspace, parts of the keys until two thread blocks per multiprocessor are at work, as long as each has some
 * tiles; packed where few queries have heads that share K and V. Else the largest tile of which all multiprocessors have one,
 * since K and V are read once for each; 128 only where little of the last tile is empty. */
#define PARTS(parts, heads, queries)                                                                                   \
    "workspace_size >= batch * q_heads * q_length * " parts " * (head_dim + 8) && k_length >= 128 * " parts               \
    " && batch * " heads " * ceil_div(" queries ", 32) * " parts " <= 2 * multiprocessors"
#define SINGLE(parts) PARTS(parts, "q_heads", "q_length")
#define PACKED(parts) FEW " && " PARTS(parts, "kv_heads", "q_length * " GROUP)
#define FEW           "q_heads > kv_heads && q_length <= 16"
#define FILLS(rows)   "batch * q_heads * ceil_div(q_length, " rows ") >= multiprocessors"
#define LONG          "q_length >= 512 && " FILLS("128") " && sm >= 80"
#define MEDIUM        "q_length > 32 && " FILLS("64")

static const kiln_dispatch dispatch[] = {
    {PACKED("16"), "strategy=mma,tile_q=32,split_k=16,pack_gqa=true"},
    {PACKED("4"), "strategy=mma,tile_q=32,split_k=4,pack_gqa=true"},
    {FEW, "strategy=mma,tile_q=32,split_k=1,pack_gqa=true"},
    {SINGLE("16"), "strategy=mma,tile_q=32,split_k=16,pack_gqa=false"},
    {SINGLE("4"), "strategy=mma,tile_q=32,split_k=4,pack_gqa=false"},
    {LONG, "strategy=mma,tile_q=128,split_k=1,pack_gqa=false"},
    {MEDIUM, "strategy=mma,tile_q=64,split_k=1,pack_gqa=false"},
    {"1", "strategy=mma,tile_q=32,split_k=1,pack_gqa=false"},
    {"1", "strategy=mma,tile_q=64,split_k=1,pack_gqa=false"},
    {"1", "strategy=mma,split_k=1,pack_gqa=false"},
    {PACKED("16"), "split_k=16,pack_gqa=true"},
    {PACKED("4"), "split_k=4,pack_gqa=true"},
    {FEW, "tile_q=32,split_k=1,pack_gqa=true"},
    {SINGLE("16"), "split_k=16,pack_gqa=false"},
    {SINGLE("4"), "split_k=4,pack_gqa=false"},
    {MEDIUM, "tile_q=64,split_k=1,pack_gqa=false"},
    {"1", "tile_q=32,split_k=1,pack_gqa=false"},
    {"1", "split_k=1,pack_gqa=false"},
    {"1", "split_k=1"},
    {"1", ""},
    {NULL, NULL},
};
/* clang-format on */

#define HEAD "seq_len, head_dim"

static const kiln_arg single_head_args[] = {
    {"q", KILN_ARG_IN, "$type", HEAD, 16, NULL, "Q"},
    {"k", KILN_ARG_IN, "$type", HEAD, 16, NULL, "K"},
    {"v", KILN_ARG_IN, "$type", HEAD, 16, NULL, "V"},
    {"out", KILN_ARG_OUT, "$type", HEAD, 16, NULL, "O"},
    {"seq_len", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of each matrix, one behind the other"},
    {"scale", KILN_ARG_VALUE, "$type:f64:f32", NULL, 0, NULL,
     "of the scores, at least 0 and finite; as a rule 1 / sqrt(head_dim)"},
    {.name = NULL},
};

static const kiln_value single_head_values[] = {
    {"batch", "1"},
    {"q_heads", "1"},
    {"kv_heads", "1"},
    {"q_length", "seq_len"},
    {"k_length", "seq_len"},
    {"q_row_stride", "head_dim"},
    {"k_row_stride", "head_dim"},
    {"v_row_stride", "head_dim"},
    {"out_row_stride", "head_dim"},
    {.arg = NULL},
};

static const kiln_call calls[] = {
    {"single_head", "one head of as many queries as keys, in matrices without gaps", single_head_args,
     single_head_values},
    {.name = NULL},
};

static void emit(ptx_fn *f, const kiln_variant *v)
{
    (kiln_is(v, "strategy", "mma") ? attention_emit_mma : attention_emit_simt)(f, v);
}

const kiln_family attention_family = {
    .name = "attention",
    .summary = "scaled-dot-product attention: O = softmax(scale * Q * K^T) * V, causal or not",
    .source = "FlashAttention-2 (arXiv:2307.08691)",
    .accuracy =
        "with r exact, p_j the exact probabilities, s_j the scores, m their maximum, u half an ulp of f32 "
        "(f64 "
        "for f64), u_T of O's type, and d_j = u * ((head_dim + 2) * scale * sum |q * k_j| + 2 * |s_j - m| + "
        "8), "
        "an element of O is within sum p_j * d_j * |v_j - r| + u * (k_length + 4) * sum p_j * |v_j| + u_T * "
        "|r| "
        "of r; on tensor cores d_j has head_dim / 16 * 2^-20 * scale * sum |q * k_j| more, and the second "
        "term "
        "is u_T * sum p_j * |v_j|, in f16 with 2^-25 * sum |v_j| / sum e^(s_j - m) more; lse is within sum "
        "p_j * "
        "d_j + u * (c + 2 * split_k + 8 + 8 * (|lse| + |m|)), c = k_length / 16, on tensor cores "
        "min(k_length, "
        "4096) / 4 + k_length / 4096; while scale is 0 or a normal number, and sum |q * k_j| and 2 * scale * "
        "sum |q * k_j| are below the largest f32 (f64 for f64)",
    .nonfinite = "a NaN in Q or K, or a score of +infinity, makes O and lse NaN in the rows that see it, and "
                 "no others; a key "
                 "whose score is -infinity counts as one that is not seen; with scale 0 Q is not read; what "
                 "V has goes "
                 "where the arithmetic takes it, also into rows that do not see it",
    .params = params,
    .args = args,
    .refusals = refusals,
    .rules = rules,
    .empty = "batch == 0 || q_heads == 0 || q_length == 0",
    .block = {THREADS},
    .grid = {"ceil_div(" QUERIES ", tile_q) * split_k", HEADS, "batch"},
    .shared_bytes = SHARED,
    .dispatch = dispatch,
    .calls = calls,
    .cost = {.bytes_read = TYPE_BYTES " * head_dim * batch * (q_heads * q_length + 2 * kv_heads * k_length)",
             .bytes_written = TYPE_BYTES " * head_dim * batch * q_heads * q_length + " WIDE_BYTES
                                         " * batch * q_heads * q_length",
             .thread_instructions = INSTRUCTIONS,
             .elements = "batch * q_heads * q_length * k_length"},
    .min_sm = 75,
    .variant_min_sm = "select(strategy == mma && (type == bf16 || " MMA_SHARED " > 65536), 80, 75)",
    .emit = emit,
};
