/* SPDX-License-Identifier: MIT */
/* cli/answers/whatif_json.c - see whatif_answer.h: for programs. */
#include "cli/answers/answer_json.h"
#include "cli/answers/whatif_answer.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "passes/whatif/whatif.h"

static void add_whatif_oom(struct tmk_tree *t, const struct tmk_whatif_answer *v,
                           const struct tmk_whatif_result *r)
{
    if (!tmk_tree_object_if(t, "oom", r->has_oom))
        return;
    tmk_tree_u64(t, "event", r->oom.event);
    tmk_tree_u64(t, "request_bytes", r->oom.requested_bytes);
    tmk_tree_u64(t, "time_ns", r->oom.time_ns + v->p->offset_ns);
    tmk_answer_put_step(t, "step", r->oom.step);
    tmk_tree_bool(t, "recorded", r->oom.is_recorded);
    tmk_tree_end(t);
}

static void put_whatif_setting(struct tmk_tree *t, const struct tmk_whatif_answer *v,
                               const struct tmk_whatif_row *row)
{
    const struct tmk_whatif_result *r = &row->result;
    bool is_card = v->capacity_bytes != TMK_BYTES_UNKNOWN;
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "conf", row->conf);
    tmk_tree_bytes(t, "capacity", is_card ? v->capacity_bytes : row->setting.limit_bytes);
    tmk_tree_u64(t, "peak_allocated", r->peak_allocated_bytes);
    tmk_tree_u64(t, "peak_reserved", r->peak_reserved_bytes);
    tmk_tree_u64(t, "retries", r->n_retries);
    add_whatif_oom(t, v, r);
    tmk_tree_bytes(t, "limit", row->setting.limit_bytes);
    tmk_tree_u64(t, "wasted", r->wasted_bytes);
    tmk_tree_u64(t, "segments", r->n_segments);
    tmk_tree_u64(t, "ooms", r->n_ooms);
    tmk_tree_bytes(t, "smallest_limit",
                   row->has_smallest ? row->smallest_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_end(t);
}

/* Write the signs of a limit that is not known. */
static void add_returns(struct tmk_tree *t, const struct tmk_whatif_recorded *f)
{
    if (!tmk_tree_object_if(t, "unknown_limit", f->n_returns > 0))
        return;
    tmk_tree_u64(t, "times", f->n_returns);
    tmk_tree_u64(t, "at_least", f->peak_reserved_bytes);
    tmk_tree_u64(t, "below", f->limit_below_bytes);
    tmk_tree_end(t);
}

void tmk_whatif_put(const struct tmk_whatif_answer *v, struct tmk_tree *t, const char *key)
{
    const struct tmk_whatif_recorded *f = v->recorded;
    tmk_tree_object(t, key);
    tmk_tree_list(t, "settings");
    for (unsigned i = 0; i < v->n_rows; i++)
        put_whatif_setting(t, v, &v->rows[i]);
    tmk_tree_end(t);
    const struct tmk_whatif_row *best = tmk_whatif_best(v);
    tmk_tree_text(t, "best", best ? best->conf : NULL);
    tmk_tree_object(t, "measured");
    tmk_tree_u64(t, "peak_allocated", f->peak_allocated_bytes);
    tmk_tree_bytes(t, "peak_reserved", f->peak_reserved_bytes);
    tmk_tree_u64(t, "ooms", f->n_ooms);
    tmk_tree_end(t);
    tmk_tree_text(t, "alloc_conf", f->alloc_conf);
    tmk_tree_bool(t, "alloc_conf_inferred", f->is_conf_inferred);
    tmk_tree_bool(t, "requests_known", f->knows_requests);
    add_returns(t, f);
    tmk_tree_u64(t, "events", f->n_events);
    tmk_tree_u64(t, "seeded", f->n_seeded);
    tmk_tree_bytes(t, "card", f->card_bytes);
    tmk_tree_bytes(t, "outside", f->outside_bytes);
    tmk_answer_put_device(t, v->device);
    tmk_answer_put_rank(t, v->p);
    tmk_answer_put_pid(t, v->p);
    tmk_tree_end(t);
}

void tmk_whatif_json(const struct tmk_whatif_answer *v)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_whatif_put(v, &t, NULL);
}
