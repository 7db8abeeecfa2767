/* SPDX-License-Identifier: MIT */
/* cli/page/page_settings.c - the allocator settings that were tried: a replay of the allocations
 * with each, as `tidemark whatif` does it.
 *
 * A replay takes a second for some million events, so a long run has none on its page. */
#include <stdlib.h>

#include "base/error.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/whatif_answer.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_parts.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "tidemark/tidemark.h"

enum { MAX_EVENTS = 300000 };

void tmk_page_put_settings(struct tmk_page_parts *p)
{
    const struct tmk_process_answer *f = p->about;
    bool is_tried = f->has_peak && f->device != TIDEMARK_HOST && f->n_events <= MAX_EVENTS;
    struct tmk_whatif_question question = {.p = f->p,
                                           .device = f->device,
                                           .capacity_bytes = TMK_BYTES_UNKNOWN,
                                           .allowed_bytes = TMK_BYTES_UNKNOWN};
    struct tmk_whatif_answer *v = tmk_xcalloc(1, sizeof *v);
    int rc = is_tried ? tmk_whatif_answer_init(v, &question, NULL) : 0;
    if (rc == TMK_ENOMEM)
        tmk_die("out of memory");
    if (is_tried && rc == 0 && v->n_rows > 0 && !v->recorded->is_async)
        tmk_whatif_put(v, p->tree, "whatif");
    else
        tmk_tree_unknown(p->tree, "whatif");
    tmk_whatif_answer_fini(v);
    free(v);
}
