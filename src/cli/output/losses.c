/* SPDX-License-Identifier: MIT */
/* cli/output/losses.c - see losses.h. */
#include "cli/output/losses.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "trace/layout.h"

void tmk_losses_add(struct tmk_losses *sum, const struct tmk_quality *q)
{
    uint64_t not_followed = q->n_untracked + q->n_unnamed;
    bool is_stopped = q->stop != TMK_STOP_NONE;
    bool is_damaged = q->n_bad_chunks > 0 || q->n_stray_bytes > 0 || q->header_damaged;
    sum->n_processes +=
        q->n_dropped || q->n_given_up || not_followed || is_stopped || is_damaged || q->unfinished;
    sum->n_dropped += q->n_dropped;
    sum->n_given_up += q->n_given_up;
    sum->n_not_followed += not_followed;
    sum->n_stopped += is_stopped;
    sum->n_unfinished += q->unfinished;
    sum->n_damaged += is_damaged;
}

const char *tmk_losses_text(const struct tmk_losses *sum, char text[TMK_LOSSES_TEXT_BYTES])
{
    const struct {
        uint64_t n;
        const char *one, *many;
    } parts[] = {
        {sum->n_dropped, N_("event dropped"), N_("events dropped")},
        {sum->n_given_up, N_("old event given up"), N_("old events given up")},
        {sum->n_not_followed, N_("block or name not followed"), N_("blocks or names not followed")},
        {sum->n_stopped, N_("recording stopped early"), N_("recordings stopped early")},
        {sum->n_unfinished, N_("trace not closed"), N_("traces not closed")},
        {sum->n_damaged, N_("trace damaged"), N_("traces damaged")},
    };
    struct tmk_text t;
    const char *comma = "";
    tmk_text_init(&t, text, TMK_LOSSES_TEXT_BYTES);
    tmk_text_add(&t, _("in %llu other process%s: "), (unsigned long long)sum->n_processes,
                 sum->n_processes == 1 ? "" : "es");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char count[TMK_AMOUNT_BYTES];
        if (parts[i].n == 0)
            continue;
        tmk_text_add(&t, "%s%s %s", comma, tmk_count_text(parts[i].n, count),
                     _(parts[i].n == 1 ? parts[i].one : parts[i].many));
        comma = ", ";
    }
    tmk_text_string(&t, _(" (tidemark check says in which)"));
    return text;
}
