/* SPDX-License-Identifier: MIT */
/* cli/answers/post_mortem.c - see post_mortem.h. */
#include "cli/answers/post_mortem.h"

#include <inttypes.h>

#include "base/array.h"
#include "cli/answers/summary_line.h"
#include "cli/front/target.h"
#include "cli/output/source_line.h"
#include "cli/output/terminal.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "passes/group.h"
#include "passes/oom/ooms.h"
#include "tidemark/tidemark.h"
#include "trace/reader.h"

/* Events of other processes than the one with the largest peak that are replayed to look for an
 * out-of-memory event: a few seconds' worth. */
#define MAX_EVENTS 100000000u

struct tmk_process *tmk_post_mortem_subject(struct tmk_run *run)
{
    struct tmk_process *best = tmk_run_process(run, 0);
    for (uint32_t i = 1; i < tmk_run_n_processes(run); i++)
        if (tmk_process_peak(tmk_run_process(run, i)) > tmk_process_peak(best))
            best = tmk_run_process(run, i);
    return best;
}

/* Print that of one process. False: there is nothing to tell. */
static bool print_post_mortem(FILE *out, const struct tmk_process_answer *f)
{
    uint64_t n = tmk_ooms_n_kept(f->ooms);
    if (n == 0)
        return false;
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, n - 1);
    char wanted[TMK_AMOUNT_BYTES], used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    char time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES], label[40];
    char site[TMK_FRAME_TEXT_BYTES], source[TMK_SOURCE_LINE_BYTES], reserved[TMK_AMOUNT_BYTES];
    const char *text = o->has_site ? tmk_source_text(f->p, &o->site, source) : NULL;
    fputs(tmk_role_on(out, TMK_ROLE_BAD), out);
    tmk_print(out, _("\nOUT OF MEMORY in %s after %s%s\n"), tmk_process_label(f->p, label),
              tmk_time_text(o->time_ns + f->p->offset_ns, time),
              tmk_step_text(f->p, o->step, ", ", step));
    fputs(tmk_role_off(out, TMK_ROLE_BAD), out);
    bool is_of_host = o->is_of_driver && o->device == TIDEMARK_HOST;
    tmk_summary_line(out, "request", "%s %s%s", tmk_size_text(o->requested_bytes, wanted),
                     is_of_host ? _("of host memory") : _("on "),
                     is_of_host ? "" : tmk_device_name(o->device, device));
    if (!o->is_of_driver)
        tmk_summary_line(
            out, "allocated", "%s, reserved %s, limit %s", tmk_size_text(o->allocated_bytes, used),
            o->reserved_bytes != UINT64_MAX ? tmk_size_text(o->reserved_bytes, reserved) : "-",
            o->capacity_bytes ? tmk_size_text(o->capacity_bytes, limit) : "-");
    if (o->used_bytes != UINT64_MAX && o->total_bytes != UINT64_MAX)
        tmk_summary_line(out, "device", "%s of %s in use, %s of it by this process",
                         tmk_size_text(o->used_bytes, used), tmk_size_text(o->total_bytes, limit),
                         tmk_size_text(o->segment_bytes, wanted));
    if (o->has_site)
        tmk_summary_line(out, "line", "%s%s%s", tmk_frame_text(&o->site, true, site),
                         o->module ? _(", module ") : "", o->module ? o->module : "");
    if (text)
        tmk_summary_code(out, text);
    static const struct {
        const char *name;
        enum tmk_by by;
    } holders[] = {{N_("made of"), TMK_BY_CATEGORY},
                   {N_("modules"), TMK_BY_MODULE},
                   {N_("lines"), TMK_BY_SITE}};
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
    for (size_t i = 0; i < TMK_N(holders); i++)
        if (tmk_ooms_holders(f->ooms, n - 1, holders[i].by, &rows, &n_rows) == 0)
            tmk_summary_shares(out, holders[i].name, holders[i].by, rows, n_rows,
                               o->allocated_bytes);
    if (tmk_ooms_n(f->ooms) > 1)
        tmk_summary_line(out, "times", "%" PRIu64 "; this is the last", tmk_ooms_n(f->ooms));
    return true;
}

/* Print post-mortems of the processes that the summary is not about. Returns true when there was
 * one. */
static bool print_other_post_mortems(FILE *out, struct tmk_run *run, const struct tmk_process *done)
{
    uint64_t n_events = 0;
    bool any = false;
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        n_events += tmk_reader_status(p->reader)->n_events;
        if (p == done || n_events > MAX_EVENTS)
            continue;
        struct tmk_process_answer f;
        if (tmk_process_answer_init(&f, p, 1) == 0)
            any |= print_post_mortem(out, &f);
        tmk_process_answer_fini(&f);
    }
    return any;
}

bool tmk_post_mortem_print(FILE *out, struct tmk_run *run, const struct tmk_process_answer *f)
{
    bool any = print_post_mortem(out, f);
    any |= print_other_post_mortems(out, run, f->p);
    return any;
}
