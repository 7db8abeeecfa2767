/* SPDX-License-Identifier: MIT */
/* sql/skim.c - see skim.h. */
#include "sql/skim.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "kit/grow.h"
#include "sql/spread.h"
#include "trace/kinds.h"

static int spread_numbers(struct tmk_view in, uint64_t max, struct tmk_skim_numbers *ret)
{
    if (TMK_GROW(ret->values, max + 1, ret->room) < 0)
        return TMK_ENOMEM;
    ret->n = tmk_spread_u32(in, ret->values, max);
    return 0;
}

static int spread_times(struct tmk_skim *k, const struct tmk_cursor *c)
{
    uint64_t n = c->n_left;
    if (TMK_GROW(k->times, n + 1, k->time_room) < 0)
        return TMK_ENOMEM;
    struct tmk_view in = c->heads;
    uint64_t now_ns = c->now_ns, *times = k->times;
    for (k->n_events = 0; k->n_events < n; k->n_events++) {
        uint64_t head = tmk_view_varint(&in);
        if (in.bad)
            break;
        now_ns += head >> 3;
        times[k->n_events] = now_ns;
        k->kinds[k->n_events] = head & 7;
    }
    return 0;
}

/* Decode the kinds of all events and, where wanted, their times. */
static int spread_heads(struct tmk_skim *k, const struct tmk_cursor *c, bool want_times)
{
    if (TMK_GROW(k->kinds, (uint64_t)c->n_left + 8, k->kind_room) < 0)
        return TMK_ENOMEM;
    if (want_times)
        return spread_times(k, c);
    k->n_events = tmk_spread_low3(c->heads, k->kinds, c->n_left);
    return 0;
}

static int hold_blocks(struct tmk_skim *k, const struct tmk_cursor *c, uint16_t device)
{
    if (TMK_GROW(k->held, (uint64_t)c->n_addresses + 1, k->held_room) < 0)
        return TMK_ENOMEM;
    uint64_t *held = k->held;
    for (uint32_t i = 0; i < c->n_addresses; i++) {
        const struct tmk_address *a = &c->addresses[i];
        held[i] = a->live && a->device == device ? a->live - 1 : 0;
    }
    return 0;
}

int tmk_skim_chunk(struct tmk_skim *k, const struct tmk_cursor *c, bool want_times,
                   bool want_blocks, uint16_t device)
{
    uint64_t n = c->n_left;
    int rc = spread_heads(k, c, want_times);
    if (rc == 0)
        rc = spread_numbers(c->data[TMK_KIND_PUSH], n, &k->data[TMK_KIND_PUSH]);
    if (rc == 0)
        rc = spread_numbers(c->data[TMK_KIND_POP], n, &k->data[TMK_KIND_POP]);
    if (rc < 0 || !want_blocks)
        return rc;
    rc = spread_numbers(c->data[TMK_KIND_ALLOC], 2 * n, &k->data[TMK_KIND_ALLOC]);
    if (rc == 0)
        rc = spread_numbers(c->data[TMK_KIND_FREE], n, &k->data[TMK_KIND_FREE]);
    return rc < 0 ? rc : hold_blocks(k, c, device);
}

void tmk_skim_fini(struct tmk_skim *k)
{
    for (int i = 0; i <= TMK_KIND_OTHER; i++)
        free(k->data[i].values);
    free(k->kinds);
    free(k->times);
    free(k->held);
    *k = (struct tmk_skim){0};
}
