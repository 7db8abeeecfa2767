/* SPDX-License-Identifier: MIT */
/* kit/progress.c - see progress.h. */
#include "kit/progress.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "kit/language.h"
#include "kit/print.h"

#define SECOND_NS 1000000000u
#define QUIET_NS (2 * (uint64_t)SECOND_NS)
#define TERMINAL_NS (SECOND_NS / 10)
#define PLAIN_NS (10 * (uint64_t)SECOND_NS)

void tmk_progress_init(struct tmk_progress *p, FILE *out, const char *what)
{
    *p = (struct tmk_progress){
        .out = out,
        .what = what,
        .is_terminal = isatty(fileno(out)) == 1,
        .start_ns = tmk_clock_monotonic_ns(),
    };
    p->last_ns = p->start_ns;
}

void tmk_progress_tell(void *arg, uint32_t done, uint32_t total)
{
    struct tmk_progress *p = arg;
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t wait = p->is_terminal ? TERMINAL_NS : PLAIN_NS;
    if (now - p->start_ns < QUIET_NS || now - p->last_ns < wait)
        return;
    p->last_ns = now;
    fputs(p->is_terminal ? "\r\033[K" : "", p->out);
    tmk_print(p->out, "tidemark: %s: ", tmk_translated_for_people(p->what));
    if (total > 0)
        fprintf(p->out, "%u %%, ", (unsigned)((uint64_t)done * 100 / total));
    fprintf(p->out, "%" PRIu64 " s%s", (now - p->start_ns) / SECOND_NS, p->is_terminal ? "" : "\n");
    fflush(p->out);
    p->shown = true;
}

void tmk_progress_fini(struct tmk_progress *p)
{
    if (p->shown && p->is_terminal) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
    p->shown = false;
}
