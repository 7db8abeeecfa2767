/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_place.c - finds where in the outermost dict a list will lie, from the
 * stack below it; see pickle_machine.h. */
#include "interop/pickle/pickle_machine.h"
#include "interop/pickle/pickle_value.h"

/* The index of the last mark below `at`, or -1. */
static int64_t mark_below(const struct tmk_pickle *p, uint64_t at)
{
    uint64_t i = p->n_marks;
    while (i > 0 && p->marks[i - 1] >= at)
        i--;
    return i > 0 ? (int64_t)p->marks[i - 1] : -1;
}

/* The key of the outermost dict under which the value at `at` will lie; NULL: it lies elsewhere. */
static const char *root_key(const struct tmk_pickle *p, uint64_t at)
{
    if (at < 2 || p->stack[0].kind != TMK_PICKLE_DICT || p->stack[at - 1].kind != TMK_PICKLE_TEXT)
        return NULL;
    int64_t mark = mark_below(p, at);
    bool in_group = mark == 1 && (at - 2) % 2 == 1; /* dict ( key value ... key HERE */
    bool alone = mark < 0 && at == 2;               /* dict key HERE */
    return in_group || alone ? p->stack[at - 1].object->text : NULL;
}

uint16_t tmk_pickle_ask_stream(const struct tmk_pickle *p, uint64_t at)
{
    const struct tmk_pickle_visitor *v = &p->visitor;
    const char *key = root_key(p, at);
    if (key)
        return v->stream(v->arg, key, 1, 0);
    int64_t mark = mark_below(p, at);
    /* list HERE, or list ( value ... HERE */
    uint64_t outer = mark >= 0 && (uint64_t)mark + 1 == at ? at - 2 : at - 1;
    uint64_t index = 0;
    if (at >= 2 && p->stack[at - 1].kind != TMK_PICKLE_MARK && mark > 0 &&
        root_key(p, (uint64_t)mark - 1)) {
        outer = (uint64_t)mark - 1;
        index = at - (uint64_t)mark - 1;
    }
    if (at < 2 || outer >= at || p->stack[outer].kind != TMK_PICKLE_LIST)
        return 0;
    key = root_key(p, outer);
    return key ? v->stream(v->arg, key, 2, p->stack[outer].object->n + index) : 0;
}
