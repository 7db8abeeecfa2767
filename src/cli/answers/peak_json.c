/* SPDX-License-Identifier: MIT */
/* cli/answers/peak_json.c - see peak_answer.h. */
#include "cli/answers/peak_answer.h"

#include <stdio.h>

#include "cli/answers/answer_json.h"
#include "cli/answers/moment_answer.h"
#include "cli/output/source_line.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"

static void add_site_values(struct tmk_tree *t, const struct tmk_peak_answer *a,
                            const struct tmk_peak_row *row)
{
    struct tmk_frame site = {0};
    char source[TMK_SOURCE_LINE_BYTES];
    bool is_known = tmk_stack_site(a->moment.p, row->stack, &site);
    tmk_tree_text(t, "file", is_known ? site.file : NULL);
    tmk_tree_u64_if(t, "line", is_known && site.line, site.line);
    tmk_tree_text(t, "function", is_known ? site.function : NULL);
    tmk_tree_text(t, "source", is_known ? tmk_source_line(a->moment.p, &site, source) : NULL);
}

static void add_peak_object(struct tmk_tree *t, const struct tmk_peak_answer *a,
                            const struct tmk_peak_row *row)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "key", row->key);
    tmk_tree_u64(t, "bytes", row->bytes);
    tmk_tree_u64(t, "blocks", row->n_blocks);
    if (a->by == TMK_BY_STACK)
        tmk_answer_put_stack(t, "stack", a->moment.p, row->stack);
    if (a->by == TMK_BY_SITE)
        add_site_values(t, a, row);
    tmk_tree_end(t);
}

void tmk_peak_json(const struct tmk_peak_answer *a)
{
    struct tmk_tree t;
    uint64_t reserved = 0;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_u64(&t, "time_ns", tmk_moment_answer_ns(&a->moment));
    tmk_answer_put_step(&t, "step", tmk_moment_answer_step(&a->moment));
    tmk_tree_u64(&t, "allocated", tmk_moment_answer_bytes(&a->moment));
    bool has_reserved = tmk_moment_answer_reserved(&a->moment, &reserved);
    tmk_tree_u64_if(&t, "reserved", has_reserved, reserved);
    tmk_answer_put_device(&t, tmk_moment_answer_device(&a->moment));
    tmk_answer_put_rank(&t, a->moment.p);
    tmk_answer_put_pid(&t, a->moment.p);
    bool is_other = a->moment.detail_lost && tmk_peak_found(a->moment.peak);
    if (tmk_tree_object_if(&t, "kept", is_other)) {
        tmk_tree_u64(&t, "time_ns", tmk_peak_time_ns(a->moment.peak) + a->moment.p->offset_ns);
        tmk_answer_put_step(&t, "step", tmk_peak_step(a->moment.peak));
        tmk_tree_u64(&t, "allocated", tmk_peak_bytes(a->moment.peak));
        tmk_tree_end(&t);
    }
    tmk_tree_list(&t, "by");
    for (uint64_t i = 0; i < a->n_rows; i++)
        add_peak_object(&t, a, &a->rows[i]);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}
