/* attention: scaled-dot-product attention, O = softmax(scale * Q * K^T) * V, without a matrix of scores. */
#include "attention_copy.h"
#include "descriptor.h"

#include "device/if_needed.h"
#include "device/shared.h"
#include "device/split.h"
#include <kiln/author/families.h>

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "type", "f32 f64 f16 bf16", "f16", "element type of Q, K, V and O"),
    PARAM(INT, CONTRACT, "head_dim", NULL, "128", "elements of a row of Q and K\nand of V and O, unless head_dim_v is given", .min = 16, .max = 576, .step = 8),
    PARAM(BOOL, CONTRACT, "causal", NULL, "false",
          "a query sees no keys after its own, see causal_offset\nfalse: it sees all keys"),
    PARAM(WORD, TUNING, "strategy", "simt mma", "simt", "simt: CUDA cores; mma: tensor cores, for f16 and bf16"),
    PARAM(INT, TUNING, "tile_q", "16 32 64 128", "64",
          "queries per thread block; K and V are read once for each such tile; 16: for few queries, each warp takes its own keys"),
    PARAM(INT, TUNING, "tile_k", "32 64 128", "64", "keys that a thread block takes at a time"),
    PARAM(INT, TUNING, "split_k", "0 1 4 16", "1",
          "thread blocks that share the keys of a tile of queries; more than one need a workspace; 0: as many as the call's splits says"),
    PARAM(BOOL, TUNING, "pack_gqa", NULL, "false",
          "a tile has the queries of all heads that share a head of K and V, which is read once for them; for few queries"),
    PARAM(WORD, CONTRACT, "score", "plain softcap alibi mask", "plain",
          "how a score s = scale * q * k is changed\nplain: s; softcap: softcap * tanh(s / softcap); alibi: s - slope * |own key - key|; mask: s + an element of mask", .numbers = "1 2 3 4", .is_later = true),
    PARAM(WORD, CONTRACT, "layout", "dense ragged paged", "dense",
          "layout of sequences\ndense: batch strides, one length; ragged: sequences' rows one after the other, with offsets and lengths on the device; paged: Q and O as in ragged, K and V in pages", .numbers = "1 2 3", .is_later = true),
    PARAM(INT, CONTRACT, "head_dim_v", NULL, "0",
          "elements of a row of V and O; 0: head_dim", .min = 0, .max = 512, .step = 8, .is_later = true),
    PARAM(WORD, CONTRACT, "kv", "same e4m3 int8 int8_token", "same",
          "elements of K and V\nsame: of Q's type; e4m3, int8: codes of 8 bits, with a scale for each head; int8_token: codes of 8 bits, with a scale for each key and head, as rope writes them", .numbers = "1 2 3 4", .is_later = true),
    {.name = NULL},
};

#define DIM_V "select(head_dim_v == 0, head_dim, head_dim_v)"
#define LAST(count)          "(max(" count ", 1) - 1)"
#define SPAN(matrix, outer, heads, rows, dim)                                                                               \
    "select(" outer " * " heads " * " rows " == 0, 0, " LAST(outer) " * " matrix "_batch_stride + " LAST(heads) " * "  \
    matrix "_head_stride + " LAST(rows) " * " matrix "_row_stride + " dim ")"

/* How many matrices are a batch stride apart, and how many rows each has. */
#define Q_BATCH "select(layout == dense, batch, 1)"
#define Q_ROWS  "select(layout == dense, q_length, sequences_q_rows)"
#define K_BATCH "select(layout == paged, pages_count, select(layout == ragged && given(sequences_k_offsets), 1, batch))"
#define K_ROWS  "select(layout == paged, pages_size, select(layout == ragged && given(sequences_k_offsets), sequences_k_rows, k_length))"

#define HAS_HEAD_SCALES "kv == e4m3 || kv == int8"

#define ROWS      Q_BATCH " * q_heads * " Q_ROWS
#define MASK_SPAN                                                                                                      \
    "select(batch * q_heads * q_length * k_length == 0, 0, " LAST("batch") " * mask_batch_stride + " LAST("q_heads")   \
    " * mask_head_stride + " LAST("q_length") " * mask_row_stride + k_length)"

/* How many parts the keys of a tile are cut into. With split_k 0 and no `splits`: the most that give at most MOST_BLOCKS
 * thread blocks and at least two tiles of keys per part, so that more than one part means few rows and few tiles. */
#define MOST_BLOCKS "512"
#define MOST_PARTS  "max(1, min(256, ceil_div(k_length, 2 * tile_k)))"
#define IS_SPLIT    "min(splits / 2, 1)"

/* A larger argument never gives fewer. With split_k a rule limits tiles to 2^31, and so rows to 2^36. */
#define MOST_ROWS   "min(" ROWS ", 68719476736)"
#define ROW_PARTS   "max(min(" MOST_ROWS " * " MOST_PARTS ", " MOST_BLOCKS " * tile_q), " MOST_ROWS " * splits * " IS_SPLIT ")"
#define WORKSPACE   "(" MOST_ROWS " * split_k + (split_k == 0) * " ROW_PARTS ") * (" DIM_V " + 8)"
#define TILES       "min(batch * q_heads * ceil_div(q_length, 32), 2147483648)"
#define SMALL_TILES "min(batch * q_heads * ceil_div(q_length, 16), 4294967296)"
/* With split_k 0 a tile has one counter for its groups of parts, and one for each of 16 groups. All variants need the same
 * number, so that any variant can replace another. */
#define COUNTERS    "max(" TILES ", 17 * max(min(" SMALL_TILES ", " MOST_BLOCKS "), " SMALL_TILES " * " IS_SPLIT "))"

static const kiln_arg args[] = {
    {"q", KILN_ARG_IN, "$type", SPAN("q", Q_BATCH, "q_heads", Q_ROWS, "head_dim"), 16, NULL, "Q"},
    {"k", KILN_ARG_IN, "$type", SPAN("k", K_BATCH, "kv_heads", K_ROWS, "head_dim"), 16, "kv == same", "K"},
    {"v", KILN_ARG_IN, "$type", SPAN("v", K_BATCH, "kv_heads", K_ROWS, DIM_V), 16, "kv == same", "V"},
    {"out", KILN_ARG_OUT, "$type", SPAN("out", Q_BATCH, "q_heads", Q_ROWS, DIM_V), 16, NULL, "O"},
    {"lse", KILN_ARG_OPTIONAL_OUT, "$type:f64:f32", Q_BATCH ", q_heads, " Q_ROWS, 4, NULL, "log-sum-exp of each row\nthe natural logarithm of the sum of exp(score); -infinity where no key is seen"},
    {"batch", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "sequences, or matrices of each head"},
    {"q_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of Q and O"},
    {"kv_heads", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "heads of K and V; each serves q_heads / kv_heads consecutive heads of Q"},
    {"q_length", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of Q and O of the longest sequence\nlonger ones are truncated to it"},
    {"k_length", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of K and V of the longest sequence\nlonger ones are truncated to it"},
    {"scale", KILN_ARG_VALUE, "$type:f64:f32", NULL, 0, NULL, "factor of scores, usually 1 / sqrt(head_dim)\nat least 0 and finite"},
    {"q_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements from row to row"},
    {"k_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements from row to row"},
    {"v_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements from row to row"},
    {"out_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements from row to row"},
    {"q_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from batch to batch\n0 where there is only one"},
    {"q_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from head to head\n0 where there is only one"},
    {"k_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from batch to batch, or from page to page\n0: all batches share one"},
    {"k_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from head to head"},
    {"v_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from batch to batch, or from page to page\n0: all batches share one"},
    {"v_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from head to head"},
    {"out_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from batch to batch\nbatches of O must not overlap"},
    {"out_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements from head to head\nheads of O must not overlap"},
    {"workspace", KILN_ARG_SCRATCH, "$type:f64:f32", WORKSPACE, 16, "split_k != 1", "partial results of one launch\nworkspace and tile_counters belong to one launch at a time"},
    {"tile_counters", KILN_ARG_INOUT, "u32", COUNTERS, 4, "split_k != 1", "all 0 before a launch, which leaves them 0\nthey belong to one launch at a time; if one is not 0, O is wrong"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of workspace; 0: none, and the keys are not split\ntile_counters has the larger of two counts: one for each 32 queries of each head; or 17 for each 16 of them, at most 8704 unless splits is above 1"},
    {"window_left", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "a query sees fewer keys than this before its own; 0: all"},
    {"window_right", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "a query sees fewer keys than this after its own; 0: all\nwith causal, 0: none after its own"},
    {"first_keys", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "how many of the first keys a query sees, whatever window.left is"},
    {"causal_offset", KILN_ARG_VALUE, "i32", NULL, 0, NULL, "query i's own key is i + k_length - q_length + causal_offset\nvalues above 2^29 count as 2^29, and below -2^29 as -2^29"},
    {"sinks", KILN_ARG_OPTIONAL_IN, "$type:f64:f32", "q_heads", 0, NULL, "a further score in each row's softmax\nit counts in the sum and in lse, and has no row of V; it must be neither +infinity nor a NaN. For keys that all queries see, set first_keys"},
    {"splits", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "parts that the keys are cut into, 1 to 256; 0: as suits the device\nsums are rounded by parts: with equal splits a variant gives equal bits on devices of one compute capability, however many multiprocessors they have"},
    {"sequences_q_offsets", KILN_ARG_OPTIONAL_IN, "u32", "batch + 1", 4, "layout != dense", "first row of each sequence in Q and O\nin increasing order, then the end of the last sequence; null: each sequence has q_length rows"},
    {"sequences_k_offsets", KILN_ARG_OPTIONAL_IN, "u32", "batch + 1", 4, "layout == ragged", "first row of each sequence in K and V\nin increasing order, then the end of the last sequence; null: sequences are a batch stride apart"},
    {"sequences_k_lengths", KILN_ARG_OPTIONAL_IN, "u32", "batch", 4, "layout != dense", "keys of each sequence\nits first rows; later rows are not read; null: as many keys as it has rows, in pages k_length"},
    {"sequences_q_rows", KILN_ARG_VALUE, "u32", NULL, 0, "layout != dense", "rows of Q and O of all sequences\nat least q_length, and without q_offsets batch * q_length"},
    {"sequences_k_rows", KILN_ARG_VALUE, "u32", NULL, 0, "layout == ragged", "rows of K and V of all sequences\nignored without k_offsets"},
    {"pages_table", KILN_ARG_IN, "i32", "pages_entries", 4, "layout == paged", "page of key j: [sequence * stride + j / size]\nwith starts: [starts[sequence] + j / size]; entries after a sequence's last key are not read"},
    {"pages_starts", KILN_ARG_OPTIONAL_IN, "u32", "batch + 1", 4, "layout == paged", "first entry of each sequence\nthen the end of the last sequence, which is not read; null: sequences are a stride apart"},
    {"pages_entries", KILN_ARG_VALUE, "u32", NULL, 0, "layout == paged", "entries of table"},
    {"pages_stride", KILN_ARG_VALUE, "u32", NULL, 0, "layout == paged", "entries from sequence to sequence; 0: all share them\nignored with starts"},
    {"pages_count", KILN_ARG_VALUE, "u32", NULL, 0, "layout == paged", "pages of K and V, a batch stride apart"},
    {"pages_size", KILN_ARG_VALUE, "u32", NULL, 0, "layout == paged", "rows of a page, a multiple of 8\nrows are contiguous: vLLM's keys split into groups of x elements are not supported"},
    {"k_codes", KILN_ARG_IN, "i8", SPAN("k", K_BATCH, "kv_heads", K_ROWS, "head_dim"), 16, "kv != same", "K: signed bytes, or e4m3 numbers"},
    {"v_codes", KILN_ARG_IN, "i8", SPAN("v", K_BATCH, "kv_heads", K_ROWS, DIM_V), 16, "kv != same", "V: signed bytes, or e4m3 numbers"},
    {"k_scale", KILN_ARG_CONSTANT, "f32", "kv_heads", 4, HAS_HEAD_SCALES, "factor of each head's codes\nat least 0 and finite, not checked"},
    {"v_scale", KILN_ARG_CONSTANT, "f32", "kv_heads", 4, HAS_HEAD_SCALES, "factor of each head's codes\nat least 0 and finite, not checked"},
    {"k_scales", KILN_ARG_IN, "f32", SPAN("scale", K_BATCH, "kv_heads", K_ROWS, "1"), 4, "kv == int8_token", "factor of the codes of each key and head of K"},
    {"v_scales", KILN_ARG_IN, "f32", SPAN("scale", K_BATCH, "kv_heads", K_ROWS, "1"), 4, "kv == int8_token", "the same for V, with the same strides"},
    {"scale_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, "kv == int8_token", "scales from key to key"},
    {"scale_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, "kv == int8_token", "scales from batch to batch, or from page to page"},
    {"scale_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, "kv == int8_token", "scales from head to head"},
    {"softcap", KILN_ARG_VALUE, "$type:f64:f32", NULL, 0, "score == softcap", "bound of the scores\nat least 0 and finite; 0 makes all of them 0"},
    {"alibi_slopes", KILN_ARG_IN, "$type:f64:f32", "q_heads", 0, "score == alibi", "slope of each head of Q"},
    {"mask", KILN_ARG_IN, "$type", MASK_SPAN, 0, "score == mask", "added to the scores\nrow i is query i's; -infinity hides a key, whatever its score; its row of V must still be finite"},
    {"mask_row_stride", KILN_ARG_VALUE, "u32", NULL, 0, "score == mask", "elements of mask from row to row; 0: all queries share it"},
    {"mask_head_stride", KILN_ARG_VALUE, "u64", NULL, 0, "score == mask", "the same from head to head of Q"},
    {"mask_batch_stride", KILN_ARG_VALUE, "u64", NULL, 0, "score == mask", "the same from batch to batch"},
    {.name = NULL},
};

#define LONGEST "1073741824"
#define WIDEST  "536870912"
/* A tile's rows: a head's queries; with pack_gqa, those of the heads that share a head of K and V. */
#define GROUP "(q_heads / max(kv_heads, 1))"
#define HEADS "select(pack_gqa, kv_heads, q_heads)"
#define QUERIES "(q_length * select(pack_gqa, " GROUP ", 1))"
#define STRIDES(of, except, n) {except of "_row_stride % " n " == 0 && " of "_head_stride % " n " == 0 && " of "_batch_stride % " n " == 0", \
                                "strides of " of " must be multiples of " n}

#define TILES_X "ceil_div(" QUERIES ", tile_q)"
#define CHOSEN  "max(1, min(" MOST_PARTS ", min(" MOST_BLOCKS ", multiprocessors * blocks_per_multiprocessor) / max(1, " TILES_X " * " HEADS " * batch)))"
#define PARTS   "select(split_k == 0, select(splits == 0, " CHOSEN ", splits), split_k)"

static const kiln_workspace workspace = {"workspace", "tile_counters", "workspace_size", WORKSPACE, COUNTERS};

static const kiln_value usual[] = {
    {"splits", "0"},
    {"sequences_q_rows", "batch * q_length"},
    {"sequences_k_rows", "batch * k_length"},
    {"pages_size", "16"},
    {"pages_stride", "ceil_div(k_length, max(1, pages_size))"},
    {"pages_count", "batch * pages_stride"},
    {"pages_entries", "pages_count"},
    {NULL, NULL}};

static const kiln_rule rules[] = {
    {"q_heads % max(kv_heads, 1) == 0 && (kv_heads >= 1 || q_heads == 0)", "q_heads must be a multiple of kv_heads"},
    {"batch <= 65535", "batch must be at most 65535"},
    {"q_heads <= 65535", "q_heads must be at most 65535"},
    {"q_length <= " LONGEST, "q_length must be at most 2^30"},
    {"k_length <= " LONGEST, "k_length must be at most 2^30"},
    {"!negative(scale) && finite(scale)", "scale must be at least 0 and finite"},
    STRIDES("q", "", "8"),
    STRIDES("k", "", "8"),
    STRIDES("v", "", "8"),
    STRIDES("k", "kv == same || ", "16"),
    STRIDES("v", "kv == same || ", "16"),
    STRIDES("out", "", "8"),
    {"split_k == 1 || workspace_size >= " WORKSPACE, "workspace_size must be at least split_k * (O's head_dim + 8) for each row of O, or with split_k 0 enough for the most parts"},
    {"split_k == 1 || batch * q_heads * ceil_div(q_length, 32) <= 2147483648", "split_k needs at most 2^31 tiles of 32 queries"},
    {"split_k == 1 || splits <= 1 || batch * q_heads * ceil_div(q_length, 16) <= 252645135", "splits above 1 needs at most 2^32 / 17 tiles of 16 queries"}, /* their 17 counters each have numbers of 32 bits */
    {"splits <= 256", "splits must be at most 256"},
    {"split_k == 0 || splits == 0 || splits == split_k", "splits must be 0 or split_k"},
    {"pack_gqa == false || q_length * " GROUP " <= " LONGEST, "q_length times the heads of a tile must be at most 2^30"},
    {"out_row_stride >= " DIM_V " || " Q_ROWS " <= 1", "out_row_stride must be at least O's head_dim where O has more than one row"},
    {"out_head_stride >= " DIM_V " || q_heads <= 1", "out_head_stride must be at least O's head_dim where q_heads is above 1"},
    {"layout != dense || out_batch_stride >= " DIM_V " || batch <= 1", "out_batch_stride must be at least O's head_dim where batch is above 1"},
    {"window_left <= " WIDEST, "window_left must be at most 2^29"},
    {"window_right <= select(causal, 1, " WIDEST ")", "window_right must be at most 2^29, and with causal at most 1"},
    {"first_keys <= " LONGEST, "first_keys must be at most 2^30"},
    {"score != softcap || (!negative(softcap) && finite(softcap))", "softcap must be at least 0 and finite"},
    {"layout == dense || sequences_q_rows >= q_length * select(given(sequences_q_offsets), 1, batch)",
     "sequences.q_rows must be at least q_length, and without sequences.q_offsets batch * q_length"},
    {"layout != paged || (pages_size >= 8 && pages_size <= " LONGEST " && pages_size % 8 == 0)", "pages.size must be a multiple of 8, from 8 to 2^30"},
    {"layout != paged || (pages_entries - min(pages_entries, " LAST("batch") " * select(given(pages_starts), 0, pages_stride))) * pages_size >= k_length", "pages.table must have entries for k_length keys of every sequence, or with pages.starts of at least one"},
    {"layout != paged || pages_count >= 1 || k_length == 0", "pages.count must be at least 1"},
    {NULL, NULL},
};

#define WIDE_BYTES  "select(type == f64, 8, 4)"
#define TYPE_BYTES  "select(type == f64, 8, select(type == f32, 4, 2))"
#define KV_BYTES    "select(kv == same, " TYPE_BYTES ", 1)"
#define SCALE_BYTES "select(kv == int8_token, 8, 0)" /* of a key */

/* A thread block's part of the keys. */
#define PART_KEYS "ceil_div(k_length, " PARTS ")"
/* Causal tiles differ in length. The longest of all heads begin first only with split_k 1; otherwise some of them begin
 * last, and the launch takes as long as with another wave of thread blocks. */
#define IS_UNORDERED "causal && split_k != 1 && q_length > tile_q"
#define WAVES        "ceil_div(" TILES_X " * " PARTS " * " HEADS " * batch, max(1, multiprocessors * blocks_per_multiprocessor))"
#define LENGTH       PART_KEYS " + select(" IS_UNORDERED ", " PART_KEYS " / max(1, " WAVES "), 0)"

/* In all layouts except dense, Q and O are rows of concatenated sequences; pages hold K and V. */
static const kiln_dense dense[] = {
    {"q", "batch, q_length, q_heads, head_dim", "q_batch_stride q_row_stride q_head_stride", "layout == dense"},
    {"out", "batch, q_length, q_heads, " DIM_V, "out_batch_stride out_row_stride out_head_stride", "layout == dense"},
    {"lse", "batch, q_heads, q_length", "", "layout == dense"},
    {"lse", "q_heads, sequences_q_rows", "", "layout != dense"},
    {"q", "sequences_q_rows, q_heads, head_dim", "q_row_stride q_head_stride", "layout != dense"},
    {"out", "sequences_q_rows, q_heads, " DIM_V, "out_row_stride out_head_stride", "layout != dense"},
    {"k k_codes", "sequences_k_rows, kv_heads, head_dim", "k_row_stride k_head_stride", "layout == ragged"},
    {"v v_codes", "sequences_k_rows, kv_heads, " DIM_V, "v_row_stride v_head_stride", "layout == ragged"},
    {"k_scales v_scales", "sequences_k_rows, kv_heads", "scale_row_stride scale_head_stride", "layout == ragged"},
    {"k k_codes", "batch, k_length, kv_heads, head_dim", "k_batch_stride k_row_stride k_head_stride", "layout != paged"},
    {"v v_codes", "batch, k_length, kv_heads, " DIM_V, "v_batch_stride v_row_stride v_head_stride", "layout != paged"},
    {"k_scales v_scales", "batch, k_length, kv_heads", "scale_batch_stride scale_row_stride scale_head_stride", "layout != paged"},
    {"k k_codes", "pages_count, pages_size, kv_heads, head_dim", "k_batch_stride k_row_stride k_head_stride", "layout == paged"},
    {"v v_codes", "pages_count, pages_size, kv_heads, " DIM_V, "v_batch_stride v_row_stride v_head_stride", "layout == paged"},
    {"k_scales v_scales", "pages_count, pages_size, kv_heads", "scale_batch_stride scale_row_stride scale_head_stride", "layout == paged"},
    {"mask", "batch, q_heads, q_length, k_length", "mask_batch_stride mask_head_stride mask_row_stride", "score == mask"},
    {.args = NULL},
};

static const kiln_value example[] = {
    {"batch", "1"},           {"q_heads", "8"},           {"kv_heads", "2"},    {"q_length", "64"},
    {"k_length", "256"},      {"scale", "1 / sqrt(head_dim)"}, {"sequences_q_rows", "64"}, {"sequences_k_rows", "256"},
    {"pages_entries", "16"},  {"pages_count", "16"},      {"pages_size", "16"}, {"softcap", "30"},
    {"seq_len", "64"},        {.arg = NULL},
};
/* clang-format on */

#define HEAD   "seq_len, head_dim"
#define HEAD_V "seq_len, " DIM_V

static const kiln_arg single_head_args[] = {
    {"q", KILN_ARG_IN, "$type", HEAD, 16, NULL, "Q"},
    {"k", KILN_ARG_IN, "$type", HEAD, 16, NULL, "K"},
    {"v", KILN_ARG_IN, "$type", HEAD_V, 16, NULL, "V"},
    {"out", KILN_ARG_OUT, "$type", HEAD_V, 16, NULL, "O"},
    {"seq_len", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of each matrix, one after the other"},
    {"scale", KILN_ARG_VALUE, "$type:f64:f32", NULL, 0, NULL,
     "factor of scores, usually 1 / sqrt(head_dim)\nat least 0 and finite"},
    {.name = NULL},
};

static const kiln_value single_head_values[] = {
    {"batch", "1"},
    {"q_heads", "1"},
    {"kv_heads", "1"},
    {"q_length", "seq_len"},
    {"k_length", "seq_len"},
    {"sequences_q_rows", "seq_len"},
    {"q_row_stride", "head_dim"},
    {"k_row_stride", "head_dim"},
    {"v_row_stride", DIM_V},
    {"out_row_stride", DIM_V},
    {.arg = NULL},
};

static const kiln_call calls[] = {
    {"single_head", "one head of as many queries as keys, in matrices without gaps", single_head_args,
     single_head_values},
    {.name = NULL},
};

/* ---- a variant ------------------------------------------------------------------------------------------------------- */

enum { MATRICES = 6 }; /* Q, K, V, O; scales of K and V */

/* With pack_gqa, a thread block has a head of K and V, and all heads of Q and O that share it. */
static void init_head(attention *a, ptx_val q_heads, ptx_val kv_heads)
{
    ptx_fn *f = a->f;
    ptx_val block = attention_grid_head(a), batch = ptx_ctaid_z(f);
    a->group = ptx_div(f, q_heads, kv_heads);
    ptx_val head = a->pack_gqa ? ptx_mul(f, block, a->group) : block;
    ptx_val kv_head = a->pack_gqa ? block : ptx_div(f, block, a->group);
    a->q_heads = q_heads;
    a->rows = a->pack_gqa ? ptx_mul(f, a->q_length, a->group) : a->q_length;
    head = ptx_cvt(f, PTX_U64, head);
    kv_head = ptx_cvt(f, PTX_U64, kv_head);
    bool is_dense = a->layout == ATTENTION_DENSE, is_paged = a->layout == ATTENTION_PAGED;
    batch = ptx_cvt(f, PTX_U64, a->layout == ATTENTION_RAGGED ? a->kv_batch : batch);
    attention_matrix *const all[MATRICES] = {&a->q, &a->k, &a->v, &a->out, &a->k_scales, &a->v_scales};
    for (int i = 0; i < (a->kv == ATTENTION_INT8_TOKEN ? MATRICES : 4); i++) {
        const bool is_q = i == 0 || i == 3;
        if (i == 3 && !is_dense)
            continue; /* attention_find_before moves O */
        ptx_val element = ptx_mul(f, is_q ? head : kv_head, all[i]->head_stride);
        if (is_dense || (!is_q && !is_paged))
            element = ptx_mad(f, batch, all[i]->batch_stride, element);
        if (!is_dense && (is_q || !is_paged))
            element = ptx_mad_wide(f, all[i]->first_row, all[i]->row_stride, element);
        all[i]->first = ptx_at(f, all[i]->first, element);
    }
}

/* Computes what is known before a launch; f may be null. */
static attention geometry(ptx_fn *f, const kiln_variant *v)
{
    enum { RECORD_NUMBERS = 8 /* beside the columns: four for a part, four for its group */, PAD = 8 };
    attention a = {.f = f,
                   .type = kiln_type(v, "type"),
                   .has_sm_80 = kiln_has_sm(v, 80),
                   .head_dim = kiln_int(v, "head_dim"),
                   .head_dim_v = kiln_int(v, kiln_int(v, "head_dim_v") ? "head_dim_v" : "head_dim"),
                   .tile_q = kiln_int(v, "tile_q"),
                   .tile_k = kiln_int(v, "tile_k"),
                   .split_k = kiln_int(v, "split_k"),
                   .is_causal = kiln_bool(v, "causal"),
                   .pack_gqa = kiln_bool(v, "pack_gqa"),
                   .layout = (attention_layout)kiln_word_index(v, "layout"),
                   .kv = (attention_kv)kiln_word_index(v, "kv"),
                   .shaping = (attention_shaping)kiln_word_index(v, "score")};
    a.wide = a.type == PTX_F64 ? PTX_F64 : PTX_F32;
    a.wide_bytes = a.type == PTX_F64 ? 8 : 4;
    a.unit = UNIT_BYTES / a.wide_bytes;
    a.has_order = a.is_causal && a.split_k == 1;
    a.has_head_scales = a.kv == ATTENTION_E4M3 || a.kv == ATTENTION_INT8;
    const uint32_t bytes = a.type == PTX_F16 || a.type == PTX_BF16 ? 2 : a.wide_bytes;
    const bool is_paged = a.layout == ATTENTION_PAGED, is_same = a.kv == ATTENTION_SAME;
    a.q = a.out = (attention_matrix){.type = a.type, .bytes = bytes, .pack_gqa = a.pack_gqa};
    a.k = (attention_matrix){
        .type = is_same ? a.type : PTX_S8, .bytes = is_same ? bytes : 1, .is_paged = is_paged};
    a.v = a.k;
    a.v.in_entry = 8;
    a.k_scales = a.v_scales =
        (attention_matrix){.type = PTX_F32, .bytes = 4, .is_paged = is_paged, .in_entry = 16};
    a.record = a.head_dim_v + RECORD_NUMBERS;
    a.shared_record = a.record + (is_same ? 0 : PAD);
    a.entry_bytes = a.kv == ATTENTION_INT8_TOKEN ? 2 * UNIT_BYTES : UNIT_BYTES;
    return a;
}

static attention init(ptx_fn *f, const kiln_variant *v)
{
    attention a = geometry(f, v);
    a.q.first = ptx_param_ptr(f, a.type, "q");
    if (a.kv == ATTENTION_SAME) {
        a.k.first = ptx_param_ptr(f, a.type, "k");
        a.v.first = ptx_param_ptr(f, a.type, "v");
    }
    a.out.first = ptx_param_ptr(f, a.type, "out");
    a.lse = ptx_param_ptr(f, a.wide, "lse");
    ptx_param(f, PTX_U32, "batch");
    ptx_val q_heads = ptx_param(f, PTX_U32, "q_heads");
    ptx_val kv_heads = ptx_param(f, PTX_U32, "kv_heads");
    a.q_length = ptx_param(f, PTX_U32, "q_length");
    a.k_length = ptx_param(f, PTX_U32, "k_length");
    ptx_val scale = ptx_param(f, a.wide, "scale");
    a.q.row_stride = ptx_param(f, PTX_U32, "q_row_stride");
    a.k.row_stride = ptx_param(f, PTX_U32, "k_row_stride");
    a.v.row_stride = ptx_param(f, PTX_U32, "v_row_stride");
    a.out.row_stride = ptx_param(f, PTX_U32, "out_row_stride");
    a.q.batch_stride = ptx_param(f, PTX_U64, "q_batch_stride");
    a.q.head_stride = ptx_param(f, PTX_U64, "q_head_stride");
    a.k.batch_stride = ptx_param(f, PTX_U64, "k_batch_stride");
    a.k.head_stride = ptx_param(f, PTX_U64, "k_head_stride");
    a.v.batch_stride = ptx_param(f, PTX_U64, "v_batch_stride");
    a.v.head_stride = ptx_param(f, PTX_U64, "v_head_stride");
    a.out.batch_stride = ptx_param(f, PTX_U64, "out_batch_stride");
    a.out.head_stride = ptx_param(f, PTX_U64, "out_head_stride");
    if (a.split_k != 1) {
        a.workspace = ptx_param_ptr(f, a.wide, "workspace");
        a.tile_counters = ptx_param_ptr(f, PTX_U32, "tile_counters");
    }
    ptx_param(f, PTX_U64, "workspace_size"); /* for dispatch */
    a.window_left = ptx_as(f, PTX_S32, ptx_param(f, PTX_U32, "window_left"));
    a.window_right = ptx_as(f, PTX_S32, ptx_param(f, PTX_U32, "window_right"));
    a.first_keys = ptx_param(f, PTX_U32, "first_keys");
    a.causal_offset = ptx_param(f, PTX_S32, "causal_offset");
    a.sinks = ptx_param_ptr(f, a.wide, "sinks");
    ptx_param(f, PTX_U32, "splits"); /* for the grid */
    attention_find_sequence(&a);
    if (a.kv != ATTENTION_SAME) {
        a.k.first = ptx_param_ptr(f, PTX_S8, "k_codes");
        a.v.first = ptx_param_ptr(f, PTX_S8, "v_codes");
    }
    if (a.has_head_scales) {
        a.k_scale = ptx_param_ptr(f, PTX_F32, "k_scale");
        a.v_scale = ptx_param_ptr(f, PTX_F32, "v_scale");
    }
    if (a.kv == ATTENTION_INT8_TOKEN) {
        a.k_scales.first = ptx_param_ptr(f, PTX_F32, "k_scales");
        a.v_scales.first = ptx_param_ptr(f, PTX_F32, "v_scales");
        a.k_scales.row_stride = a.v_scales.row_stride = ptx_param(f, PTX_U32, "scale_row_stride");
        a.k_scales.batch_stride = a.v_scales.batch_stride = ptx_param(f, PTX_U64, "scale_batch_stride");
        a.k_scales.head_stride = a.v_scales.head_stride = ptx_param(f, PTX_U64, "scale_head_stride");
    }
    attention_order_blocks(&a);
    init_head(&a, q_heads, kv_heads);
    if (a.has_head_scales)
        scale = ptx_mul(f, scale, attention_head_scale(&a, a.k_scale));
    a.first = ptx_mul(f, attention_find_tile(&a), a.tile_q);
    attention_find_keys(&a);
    attention_init_scores(&a, scale);
    return a;
}

static const attention_strategy *strategy_of(const attention *a, bool is_mma)
{
    return !is_mma                                    ? &attention_strategy_simt
           : a->head_dim > 256 || a->head_dim_v > 256 ? &attention_strategy_wide
           : a->tile_q == 16                          ? &attention_strategy_decode
                                                      : &attention_strategy_mma;
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    attention a = geometry(NULL, v);
    const attention_strategy *of = strategy_of(&a, kiln_is(v, "strategy", "mma"));
    const uint32_t tile_q = a.tile_q, tile_k = a.tile_k, head_dim = a.head_dim, head_dim_v = a.head_dim_v,
                   widest = head_dim > head_dim_v ? head_dim : head_dim_v;
    const bool is_mma = of != &attention_strategy_simt, is_wide = of == &attention_strategy_wide,
               is_decode = tile_q == 16;
    const bool is_f64 = a.type == PTX_F64, is_half = a.type == PTX_F16 || a.type == PTX_BF16;
    const bool is_split = a.split_k != 1, has_codes = a.kv != ATTENTION_SAME;
    const bool is_plain = a.shaping == ATTENTION_PLAIN, is_dense = a.layout == ATTENTION_DENSE;
    of->shape(s, &a);
    const uint32_t bytes = s->shared_bytes + SPLIT_SHARED_BYTES * is_split + attention_pages_bytes(&a);
    /* Below sm_80 registers also hold the copies in flight. */
    const bool is_tight = tile_q == 128 && tile_k == 64 && widest == 96;
    s->min_sm = is_mma && (a.type == PTX_BF16 || is_wide || is_tight || bytes > SHARED_SM_75) ? 80 : 75;
    /* clang-format off */
    kiln_require(s, !is_mma || is_half, "type strategy", "strategy mma needs type f16 or bf16");
    kiln_require(s, !is_decode || (is_mma && tile_k == 64), "strategy tile_q tile_k", "tile_q 16 needs strategy mma and tile_k 64");
    kiln_require(s, !is_decode || (head_dim % 16 == 0 && head_dim_v % 16 == 0 && widest <= 256), "head_dim head_dim_v tile_q",
                 "tile_q 16 needs head_dim and head_dim_v to be multiples of 16 up to 256");
    kiln_require(s, !is_decode || a.split_k < 2, "tile_q split_k", "tile_q 16 needs split_k 0 or 1");
    kiln_require(s, !is_f64 || tile_q == 32, "type tile_q", "type f64 needs tile_q 32: registers");
    kiln_require(s, !is_f64 || tile_k == 32 || head_dim <= 128, "type head_dim tile_k",
                 "type f64 with head_dim above 128 needs tile_k 32: registers");
    kiln_require(s, (!a.pack_gqa && !is_split && is_dense) || is_mma || tile_q == 32 || head_dim <= 192, "head_dim strategy tile_q split_k pack_gqa layout",
                 "strategy simt with head_dim above 192, and pack_gqa, split_k other than 1 or layout other than dense, needs tile_q 32: registers");
    kiln_require(s, is_mma || head_dim <= 256, "head_dim strategy", "head_dim above 256 needs strategy mma");
    kiln_require(s, is_mma || head_dim_v == head_dim, "head_dim head_dim_v strategy", "a head_dim_v that differs from head_dim needs strategy mma");
    kiln_require(s, kiln_int(v, "head_dim_v") != head_dim, "head_dim head_dim_v", "head_dim_v is left out where it is head_dim");
    kiln_require(s, is_mma || tile_q <= 64, "strategy tile_q", "tile_q 128 needs strategy mma");
    kiln_require(s, tile_k < 128 || (is_mma && widest <= 64 && tile_q <= 64), "head_dim head_dim_v strategy tile_q tile_k",
                 "tile_k 128 needs strategy mma, tile_q 32 or 64, and head_dim and head_dim_v of at most 64: registers");
    kiln_require(s, tile_q < 128 || tile_k == 32 || widest <= 96 || widest > 128 || (widest == 128 && !is_split), "head_dim head_dim_v tile_q tile_k split_k",
                 "tile_q 128 with the larger of head_dim and head_dim_v from 104 to 120, or of 128 and split_k other than 1, needs tile_k 32: registers");
    kiln_require(s, tile_q < 128 || widest <= 64 || is_plain || (is_dense && a.shaping != ATTENTION_MASK), "head_dim head_dim_v score layout tile_q",
                 "head_dim or head_dim_v above 64 with score mask, or with any but plain in a layout other than dense, needs tile_q 32 or 64: registers");
    kiln_require(s, !is_wide || (head_dim % 16 == 0 && head_dim_v % 128 == 0), "head_dim head_dim_v",
                 "head_dim or head_dim_v above 256 needs head_dim a multiple of 16 and head_dim_v of 128");
    kiln_require(s, !is_wide || (tile_q <= 64 && tile_k == 32), "head_dim head_dim_v tile_q tile_k",
                 "head_dim or head_dim_v above 256 needs tile_q 32 or 64, and tile_k 32");
    kiln_require(s, !has_codes || !is_f64, "type kv", "kv other than same needs type f16, bf16 or f32");
    kiln_require(s, !has_codes || (head_dim % 16 == 0 && head_dim_v % 16 == 0), "head_dim head_dim_v kv",
                 "kv other than same needs head_dim and head_dim_v to be multiples of 16: rows of codes are read 16 bytes at a time");
    kiln_require(s, !has_codes || !is_mma || (head_dim % 32 == 0 && head_dim_v % 32 == 0), "head_dim head_dim_v strategy kv",
                 "strategy mma with kv other than same needs head_dim and head_dim_v to be multiples of 32");
    kiln_require(s, !has_codes || !is_wide, "head_dim head_dim_v kv", "kv other than same needs head_dim and head_dim_v of at most 256");
    kiln_require_shared_bytes(s, is_mma && !is_wide ? bytes : 0, SHARED_SM_86, "head_dim head_dim_v strategy tile_q tile_k split_k kv",
                              "the tiles of strategy mma");
    kiln_require_shared_bytes(s, is_mma && is_wide ? bytes : 0, SHARED_SM_80, "head_dim head_dim_v strategy tile_q tile_k split_k",
                              "the tiles of strategy mma with head_dim or head_dim_v above 256");
    /* clang-format on */
}

/* A sequence may have fewer tiles of queries than the longest one. */
static void emit(ptx_fn *f, const kiln_variant *v)
{
    attention a = init(f, v);
    IF_NEEDED (f, a.layout != ATTENTION_DENSE, ptx_lt(f, a.first, a.rows)) {
        strategy_of(&a, kiln_is(v, "strategy", "mma"))->emit(&a);
    }
}

/* Terms beyond `accuracy`, which defines the names. */
static const kiln_bound bounds[] = {
    {"strategy not simt",
     "d_j grows by head_dim / 16 * 2^-20 * scale * sum |q * k_j|, and the second term is u_T * sum p_j * |v_j|"},
    {"t",
     "w * sum |v_j| / l + 2^-149 * (k_length + 2), plus half the smallest subnormal of O's type. A weight e^(s_j - m) below w, of a key far below another key or a sink, may be flushed to 0; w is 2^-126, or 2^-126 + 2^-25 in f16 on tensor cores. In f64 2^-1022 and 2^-1074 replace 2^-126 and 2^-149"},
    {"lse",
     "the error is at most sum p_j * d_j + u * (c + 2 * parts + 8 + 8 * (|lse| + |m|)). c is k_length / 16, or on tensor cores min(k_length, 4096) / 4 + k_length / 4096. parts is split_k, or splits if split_k is 0, or at most max(1, min(256, ceil(k_length / (2 * tile_k)))) if both are 0. Add four to parts with tile_q 16"},
    {"score not plain", "d_j grows by u * 12 * softcap, u * 4 * slope * distance or u * 4 * |mask|"},
    {"sinks",
     "a sink counts as a key with zeros in V, also in m and l, and a d_j of u * (2 * |sink| + 2 * |sink - m| + 8)"},
    {"kv not same",
     "k_j and v_j are codes times scales; d_j grows by u * scale * sum |q * k_j|, and the second term by u * sum p_j * |v_j|. This holds while scale times k_scale is 0 or a normal number, sums of codes are below the largest f32, and v_scales in f16 at most 511"},
    {"kv int8_token",
     "only in t, |v_j| means |code of v_j| / 32 in f16 on tensor cores, and otherwise the larger of |v_j| and |code of v_j|"},
    {NULL, NULL}};

const kiln_family attention_family = {
    .name = "attention",
    .summary = "scaled-dot-product attention over dense, ragged or paged keys",
    .source = "FlashAttention-2 (arXiv:2307.08691)",
    .accuracy =
        "let r be the exact element, p_j the exact probabilities, s_j the scores, m their maximum, l = sum e^(s_j - m), u half an ulp of f32 (f64 for f64), u_T half an ulp of O's type, and d_j = u * ((head_dim + 2) * scale * sum |q * k_j| + 2 * |s_j - m| + 8). The error of an element of O is at most sum p_j * d_j * |v_j - r| + u * (k_length + 4) * sum p_j * |v_j| + u_T * |r| + t. This holds if scale is 0 or a normal number, sum |q * k_j| is below the largest f32 (f64 for f64), and scale * sum |q * k_j| is at most 2^25 (2^53 for f64)",
    .bounds = bounds,
    .nonfinite =
        "a NaN in Q or K, or a score of +infinity, makes O and lse NaN in the rows that see it, and in no "
        "others; softcap makes an infinite score softcap or -softcap. A key whose score is -infinity counts as one that is not "
        "seen; so does a key whose element of mask is -infinity, whatever its score. With scale 0, Q is not "
        "read. A NaN or an infinity in V follows IEEE arithmetic, also into rows that do not see its key, or whose mask "
        "hides it: 0 times it is a NaN. Keys from a sequence's length on are not read, neither in K nor in V. k_scale and "
        "v_scale are finite. A NaN in k_scales or v_scales makes that key's elements NaN. An infinity does so only where "
        "it multiplies 0: a sum of codes times Q, or a code of V",
    .params = params,
    .args = args,
    .groups = "window sequences pages",
    .workspace = &workspace,
    .workspace_parts = "splits",
    .dense = dense,
    .example = example,
    .rules = rules,
    .empty = "batch == 0 || q_heads == 0 || q_length == 0",
    .shape = shape,
    .grid = {TILES_X " * " PARTS, HEADS, "batch"},
    .time = {.length = LENGTH,
             .wait = "select(strategy == simt, 800, select(tile_q == 16, 100, 250))",
             .block_bytes = PART_KEYS " * ((head_dim + " DIM_V ") * " KV_BYTES " + " SCALE_BYTES
                                      ") + tile_q * (head_dim + " DIM_V ") * " TYPE_BYTES,
             .extra = "select(" PARTS " == 1, select(split_k == 1, 0, 1000), 2000 + min(" PARTS
                      ", 32) * min(tile_q, " QUERIES ") * " DIM_V " / 16)"},
    .calls = calls,
    .usual = usual,
    .cost = {.bytes_read = TYPE_BYTES " * head_dim * " ROWS " + ((head_dim + " DIM_V ") * " KV_BYTES
                                      " + " SCALE_BYTES ") * kv_heads * " K_BATCH " * " K_ROWS
                                      " + select(" HAS_HEAD_SCALES ", 8 * kv_heads, 0)",
             .bytes_written = "(" TYPE_BYTES " * " DIM_V " + " WIDE_BYTES ") * " ROWS,
             .elements = "batch * q_heads * q_length * k_length"},
    .min_sm = 75,
    .emit = emit,
};
