/* Scaled-dot-product attention: O = softmax(scale * Q * K^T) * V, with or without a causal mask. */
#include "families.h"

#include "attention_inputs.h"
#include "attention_reference.h"
#include "attention_sizes.h"

const family_row attention_row = {
    .name = "attention",
    .args = "q out lse batch q_heads kv_heads q_length k_length scale workspace_size splits",
    .patterns = attention_patterns,
    .plan = attention_plan,
    .make = attention_make,
    .expect = attention_expect,
    .expects_nonfinite = true};
