/* Names of roles, and notes. */
#include "facts.h"

#include <string.h>

enum { MOST_NOTES = 40 };

const char *const model_role_names[MODEL_ROLES] = {
    [MODEL_QKV] = "attn_qkv", [MODEL_Q] = "attn_q",           [MODEL_K] = "attn_k",
    [MODEL_V] = "attn_v",     [MODEL_OUTPUT] = "attn_output", [MODEL_GATE] = "ffn_gate",
    [MODEL_UP] = "ffn_up",    [MODEL_DOWN] = "ffn_down",
};

void model_note(arena *a, model_facts *m, const char *format, ...)
{
    va_list arguments;
    text t = text_new(a);
    va_start(arguments, format);
    text_vprintf(&t, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < m->note_count; i++)
        if (strcmp(m->notes[i], t.data) == 0)
            return;
    if (m->note_count > MOST_NOTES)
        return;
    *(const char **)arena_push(a, (void **)&m->notes, &m->note_count, &m->note_capacity, sizeof *m->notes) =
        m->note_count == MOST_NOTES ? "There is more that kiln does not know." : t.data;
}
