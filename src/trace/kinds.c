/* SPDX-License-Identifier: MIT */
/* trace/kinds.c - see kinds.h. The tables have no pointers, since the recorder uses them too. */
#include "trace/kinds.h"

#include "trace/layout.h"

enum { LONGEST_WORD = 12 };

const uint16_t tmk_fields_of_kinds[TMK_N_KINDS] = {
#define X(name, number, word, form, fields) [number] = (fields),
    TMK_EVENT_KINDS(X)
#undef X
};

static const char words[TMK_N_KINDS][LONGEST_WORD] = {
#define X(name, number, word, form, fields) [number] = (word),
    TMK_EVENT_KINDS(X)
#undef X
};

const uint8_t tmk_forms_of_kinds[TMK_N_KINDS] = {[TMK_KIND_FOUND] = TMK_RING_SIZED,
#define X(name, number, word, form, fields) [number] = TMK_RING_##form,
                                                 TMK_EVENT_KINDS(X)
#undef X
#define X(name, file_name, type, form) [TMK_KIND_DEF_##name] = TMK_RING_##form,
                                                     TMK_DEFINITIONS(X)
#undef X
};

const char *tmk_kind_word(unsigned kind)
{
    return kind < TMK_N_KINDS ? words[kind] : "";
}

bool tmk_kind_takes_text(unsigned kind, uint64_t a, uint32_t n_bytes)
{
    if (kind == TMK_KIND_SAMPLE)
        return n_bytes == sizeof(struct tmk_sample_body);
    if (kind == TMK_KIND_DEF_PARAMETER)
        return n_bytes >= sizeof(struct tmk_parameter_head);
    return kind != TMK_KIND_DEF_MODULE || a <= n_bytes;
}
