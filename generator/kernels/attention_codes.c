#include "attention_codes.h"

enum { F16_DOWN = 5 }; /* a weight is at most 4, and a code 128 */

attention_kv attention_kv_of(const kiln_variant *v)
{
    static const char *const words[] = {[ATTENTION_SAME] = "same",
                                        [ATTENTION_E4M3] = "e4m3",
                                        [ATTENTION_INT8] = "int8",
                                        [ATTENTION_INT8_TOKEN] = "int8_token"};
    attention_kv kv = ATTENTION_SAME;
    while (!kiln_is(v, "kv", words[kv]))
        kv++;
    return kv;
}

bool attention_has_head_scales(const attention *a)
{
    return a->kv == ATTENTION_E4M3 || a->kv == ATTENTION_INT8;
}

static uint32_t down(const attention *a, bool is_v)
{
    return is_v && a->kv == ATTENTION_INT8_TOKEN && a->type == PTX_F16 ? F16_DOWN : 0;
}

codes_values attention_codes_of(const attention *a, ptx_type type, bool is_v)
{
    return (codes_values){type, a->kv == ATTENTION_E4M3, a->has_sm_89, down(a, is_v)};
}

ptx_val attention_head_scale(const attention *a, ptx_val scales)
{
    ptx_fn *f = a->f;
    ptx_val block = attention_grid_head(a), head = a->pack_gqa ? block : ptx_div(f, block, a->group);
    return ptx_load_hint(f, ptx_at(f, scales, head), PTX_NC);
}

double attention_value_factor(const attention *a)
{
    return 1 << down(a, true);
}
