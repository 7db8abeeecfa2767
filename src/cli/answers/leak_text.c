/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_text.c - see leak_answer.h: the leaks of a run, for people. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/leak_answer.h"
#include "cli/answers/leak_live.h"
#include "cli/front/target.h"
#include "cli/output/sheet.h"
#include "cli/output/source_line.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "kit/utf8.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_words.h"
#include "passes/leak/leaks.h"
#include "passes/steps.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"

enum {
    SHOWN_LEAKS = 10,
    SHOWN_PARTS = 6,
    SHOWN_FRAMES = 12,
    INNERMOST_FRAMES = 6,
    SHOWN_TYPES = 10,
    SHOWN_PROCESSES = 8
};

/* Print a line about a leak: what it is about, then the text, wrapped. */
__attribute__((format(printf, 2, 3))) static void say_wrapped(const char *what, const char *format,
                                                              ...)
{
    char lead[64];
    va_list args;
    va_start(args, format);
    char *text = tmk_xformat_list(_(format), args);
    va_end(args);
    const char *name = _(what);
    int pad = 11 - (int)tmk_utf8_width(name);
    snprintf(lead, sizeof lead, "    %s%*s", name, pad > 0 ? pad : 0, "");
    tmk_sheet_wrap(stdout, text, lead);
    free(text);
}

/* ---- the verdict ---- */

/* The sum of all leaks. Its rate is per step where all processes that leak have steps. */
struct sum {
    uint64_t n;       /* leaks */
    uint64_t n_steps; /* of the process that has most */
    bool by_time;     /* a process without steps leaks */
    double per_step, per_second;
};

static struct sum sum_up_leaks(const struct tmk_leak_answer *f)
{
    struct sum sum = {0};
    for (uint32_t i = 0; i < f->n; i++) {
        const struct tmk_leakage *l = f->items[i].leakage;
        uint64_t n_steps = tmk_leakage_n_steps(l);
        sum.n_steps = n_steps > sum.n_steps ? n_steps : sum.n_steps;
        for (uint64_t k = 0; k < tmk_leakage_n(l); k++) {
            const struct tmk_leak *leak = tmk_leakage_get(l, k);
            if (!tmk_leak_is_wanted(f, leak))
                continue;
            sum.by_time |= n_steps == 0;
            sum.n++;
            sum.per_step += leak->bytes_per_step;
            sum.per_second += leak->bytes_per_second;
        }
    }
    return sum;
}

static bool has_wanted_doubt(const struct tmk_leak_answer *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n_doubts(f->items[i].leakage); k++)
            if (tmk_leak_is_wanted(f, tmk_leakage_doubt(f->items[i].leakage, k)))
                return true;
    return false;
}

/* Say that it grew though it is no leak, of the process that grew most. False: none did. */
static bool say_grown(const struct tmk_leak_answer *f)
{
    const struct tmk_leakage *most = NULL;
    uint64_t most_bytes = 0;
    char words[TMK_LEAK_WORDS_BYTES];
    for (uint32_t i = 0; i < f->n && f->n_devices == 0; i++) {
        struct tmk_leak_floor floor = tmk_leakage_floor(f->items[i].leakage);
        if (floor.n_rises == 0 || floor.bytes < f->threshold_bytes || floor.bytes <= most_bytes)
            continue;
        most = f->items[i].leakage;
        most_bytes = floor.bytes;
    }
    if (!most)
        return false;
    char *text = tmk_xformat(_("clean: %s"), tmk_leakage_text(most, TMK_STEPS_TREND_STEADY, words));
    tmk_sheet_wrap(stdout, text, "");
    free(text);
    return true;
}

/* Say the verdict in the words of the run's health, if one process leaks and no device was asked
 * for. False: it was not said. */
static bool say_one_process(const struct tmk_leak_answer *f, const char *n_steps)
{
    const struct tmk_leak_process *leaky = NULL;
    char words[TMK_LEAK_WORDS_BYTES], label[40];
    for (uint32_t i = 0; i < f->n; i++) {
        if (tmk_leakage_n(f->items[i].leakage) == 0)
            continue;
        if (leaky)
            return false;
        leaky = &f->items[i];
    }
    if (!leaky || f->n_devices > 0)
        return false;
    bool has_steps = tmk_leakage_n_steps(leaky->leakage) > 0;
    char *text = tmk_xformat(
        _("leak: %s%s%s%s%s%s"), tmk_leakage_text(leaky->leakage, TMK_STEPS_TREND_STEADY, words),
        f->n > 1 ? _(" of ") : "", f->n > 1 ? tmk_process_label(leaky->p, label) : "",
        has_steps ? " (" : "", has_steps ? n_steps : "", has_steps ? _(" steps)") : "");
    tmk_sheet_wrap(stdout, text, "");
    free(text);
    return true;
}

static void say_leak_verdict_words(const struct tmk_leak_answer *f)
{
    char size[TMK_AMOUNT_BYTES], steps[TMK_AMOUNT_BYTES];
    struct sum sum = sum_up_leaks(f);
    uint64_t n = sum.n, n_steps = sum.n_steps;
    double rate = sum.by_time ? 60 * sum.per_second : sum.per_step;
    tmk_count_text(n_steps, steps);
    switch (tmk_leak_verdict_of(f)) {
    case TMK_LEAK_FOUND:
        if (say_one_process(f, steps))
            break;
        tmk_print(stdout, _("leak: %" PRIu64 " line%s of code keep%s %s more with every %s"), n,
                  n == 1 ? "" : "s", n == 1 ? "s" : "", tmk_size_text(tmk_size_whole(rate), size),
                  sum.by_time ? _("minute") : _("step"));
        if (!sum.by_time)
            tmk_print(stdout, _(" (%s steps)"), steps);
        tmk_print(stdout, "\n");
        break;
    case TMK_LEAK_CLEAN:
        if (say_grown(f))
            break;
        if (has_wanted_doubt(f)) {
            tmk_print(stdout, _("clean: no line is judged a leak; what grew is named below\n"));
            break;
        }
        tmk_print(stdout, _("clean: nothing grew steadily over %s%s"),
                  n_steps ? steps : _("the run"), n_steps ? _(" steps") : "");
        if (f->threshold_bytes)
            tmk_print(stdout, _(" by %s or more"), tmk_size_text(f->threshold_bytes, size));
        tmk_print(stdout, "\n");
        break;
    case TMK_LEAK_TOO_SHORT:
        if (n_steps)
            tmk_print(stdout, _("not enough steps to tell: %s %s ended; it takes %d\n"), steps,
                      n_steps == 1 ? _("has") : _("have"), TMK_LEAK_MIN_STEPS);
        else
            tmk_print(
                stdout,
                _("too short to tell: no step has ended, and blocks were made in less than %d of "
                  "%d parts of the time\n"),
                TMK_LEAK_MIN_STEPS, TMK_LEAK_TIME_PARTS);
        break;
    }
}

/* Say the verdict, in the colour that it has in every view. */
static void say_leak_verdict(const struct tmk_leak_answer *f)
{
    enum tmk_leak_verdict verdict = tmk_leak_verdict_of(f);
    enum tmk_role role = verdict == TMK_LEAK_FOUND   ? TMK_ROLE_BAD
                         : verdict == TMK_LEAK_CLEAN ? TMK_ROLE_GOOD
                                                     : TMK_ROLE_WARN;
    fputs(tmk_role_on(stdout, TMK_ROLE_STRONG), stdout);
    fputs(tmk_role_on(stdout, role), stdout);
    say_leak_verdict_words(f);
    fputs(tmk_role_off(stdout, role), stdout);
}

/* Say which processes have no steps. */
static void say_stepless(const struct tmk_leak_answer *f)
{
    uint32_t n_named = 0, n_without = f->n - tmk_leak_n_with_steps(f);
    char label[40], *who = tmk_xstrdup(_("this run"));
    if (n_without == 0 || tmk_leak_verdict_of(f) == TMK_LEAK_TOO_SHORT)
        return free(who);
    for (uint32_t i = 0; i < f->n && n_without < f->n; i++) {
        if (tmk_leakage_n_steps(f->items[i].leakage) > 0 || n_named == SHOWN_PROCESSES)
            continue;
        const char *name = tmk_process_label(f->items[i].p, label);
        char *more = n_named++ == 0 ? tmk_xstrdup(name) : tmk_xformat("%s, %s", who, name);
        free(who);
        who = more;
    }
    char *text =
        tmk_xformat(_("No step of %s%s is known, so growth was looked for over parts of the run "
                      "with as many blocks in each. Data that is loaded bit by bit may look "
                      "the same. tidemark.step() marks the end of a step."),
                    who, n_named && n_named < n_without ? _(" and others") : "");
    tmk_sheet_wrap(stdout, text, "  ");
    free(text);
    free(who);
}

/* Say what else is worth knowing. */
static void say_remarks(const struct tmk_leak_answer *f)
{
    uint64_t n_small = 0;
    for (uint32_t i = 0; i < f->n; i++)
        n_small += tmk_leakage_n_small(f->items[i].leakage);
    say_stepless(f);
    if (n_small > 0) {
        char size[TMK_AMOUNT_BYTES];
        bool is_more = tmk_leak_verdict_of(f) == TMK_LEAK_FOUND;
        char *text = tmk_xformat(_("%" PRIu64 " line%s%s grow%s steadily, by less than %s over "
                                   "the run; --threshold 0 shows %s."),
                                 n_small, n_small == 1 ? "" : "s", is_more ? _(" more") : "",
                                 n_small == 1 ? "s" : "", tmk_size_text(f->threshold_bytes, size),
                                 n_small == 1 ? _("it") : _("them"));
        tmk_sheet_wrap(stdout, text, "  ");
        free(text);
    }
}

/* ---- a leak ---- */

static void say_rate(const struct tmk_leak_process *item, const struct tmk_leak *leak)
{
    char step[TMK_AMOUNT_BYTES], hour[TMK_AMOUNT_BYTES], words[TMK_LEAK_WORDS_BYTES];
    bool has_steps = tmk_leakage_n_steps(item->leakage) > 0;
    tmk_size_text(tmk_size_whole(leak->bytes_per_second * 3600), hour);
    if (has_steps)
        say_wrapped("rate", "%s (%.3g block%s) a step%s%s; %s an hour at this speed",
                    tmk_size_text(tmk_size_whole(leak->bytes_per_step), step),
                    leak->blocks_per_step, leak->blocks_per_step == 1 ? "" : "s",
                    leak->is_faster ? _(" now, faster and faster") : "",
                    tmk_leak_cadence_text(leak, words), hour);
    else
        say_wrapped("rate", "%s a minute, %s an hour",
                    tmk_size_text(tmk_size_whole(leak->bytes_per_second * 60), step), hour);
}

static void say_extent(const struct tmk_leak_process *item, const struct tmk_leak *leak)
{
    char bytes[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24];
    tmk_size_text(leak->bytes, bytes);
    tmk_device_name(leak->device, device);
    if (leak->first_step != TMK_NO_STEP)
        say_wrapped("since", "step %" PRId64 ": %s on %s so far; confidence %.3g", leak->first_step,
                    bytes, device, leak->confidence);
    else
        say_wrapped("since", "%s: %s on %s so far; confidence %.3g",
                    tmk_time_text(leak->first_ns + item->p->offset_ns, time), bytes, device,
                    leak->confidence);
}

static void say_leak_end(const struct tmk_leak_process *item, const struct tmk_leak *leak)
{
    char steps[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24];
    double n_steps, seconds;
    int64_t step;
    tmk_device_name(leak->device, device);
    if (tmk_leak_has_run_out(item, leak, &step)) {
        if (step != TMK_NO_STEP)
            say_wrapped("full", "out of memory on %s in step %" PRId64, device, step);
        else
            say_wrapped("full", "out of memory on %s", device);
        return;
    }
    if (!tmk_leak_seconds_left(item, leak, &seconds))
        return;
    tmk_time_text(tmk_size_whole(seconds * 1e9), time);
    if (tmk_leak_steps_left(item, leak, &n_steps))
        say_wrapped("full", "%s in %s steps, or %s, if nothing else changes", device,
                    tmk_count_text(tmk_size_whole(n_steps), steps), time);
    else
        say_wrapped("full", "%s in %s, if nothing else changes", device, time);
}

static void say_parts(const struct tmk_leak_process *item, const struct tmk_leak *leak)
{
    /* A step's, or without steps a minute's, as the rate above. */
    double scale = 1;
    if (tmk_leakage_n_steps(item->leakage) == 0 && leak->bytes_per_step > 0)
        scale = leak->bytes_per_second * 60 / leak->bytes_per_step;
    for (uint64_t i = 0; i < leak->n_parts && i < SHOWN_PARTS; i++) {
        const struct tmk_leak_part *part = &leak->parts[i];
        char size[TMK_AMOUNT_BYTES];
        const char *category = _(tmk_category_name(part->category));
        say_wrapped(i == 0 ? "made of" : "", "%s %s%s%s",
                    tmk_size_text(tmk_size_whole(scale * part->bytes_per_step), size),
                    category ? category : "unknown", part->module ? " in " : "",
                    part->module ? part->module : "");
    }
    if (leak->n_parts > SHOWN_PARTS)
        say_wrapped("", "and %" PRIu64 " more", leak->n_parts - SHOWN_PARTS);
}

/* Choose the frames to show of a long stack: the innermost ones, and the user's. */
static void choose_frames(const struct tmk_process *p, const struct tmk_stack *s, bool *is_shown)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_frames && n < INNERMOST_FRAMES; i++, n++)
        is_shown[i] = true;
    for (uint32_t i = n; i < s->n_frames && n < SHOWN_FRAMES; i++) {
        struct tmk_frame f;
        is_shown[i] = s->n_frames <= SHOWN_FRAMES ||
                      (tmk_reader_frame(p->reader, s->frames[i], &f) && tmk_frame_is_users(&f));
        n += is_shown[i];
    }
}

static void say_stack(const struct tmk_process *p, const struct tmk_leak *leak)
{
    struct tmk_stack s;
    if (!tmk_reader_stack(p->reader, leak->stack, &s))
        return;
    bool *is_shown = tmk_xcalloc(s.n_frames + 1, sizeof *is_shown);
    uint32_t n_left_out = 0;
    choose_frames(p, &s, is_shown);
    is_shown[s.n_frames] = true; /* the end */
    for (uint32_t i = 0; i <= s.n_frames; i++) {
        struct tmk_frame f;
        char text[TMK_FRAME_TEXT_BYTES];
        n_left_out += !is_shown[i];
        if (!is_shown[i])
            continue;
        if (n_left_out > 0)
            say_wrapped("", "(%" PRIu32 " more frames; --json has all)", n_left_out);
        n_left_out = 0;
        if (i == s.n_frames)
            break;
        bool known = tmk_process_frame(p, s.frames[i], &f);
        say_wrapped(i == 0 ? "stack" : "", "%s", tmk_frame_text(known ? &f : NULL, true, text));
    }
    free(is_shown);
}

/* The text of the user's line, and the library's line that it called. */
static void say_source(const struct tmk_process *p, const struct tmk_leak *leak)
{
    char text[TMK_FRAME_TEXT_BYTES], made[TMK_FRAME_TEXT_BYTES], source[TMK_SOURCE_LINE_BYTES];
    struct tmk_frame library;
    if (leak->has_site && tmk_source_text(p, &leak->site, source)) {
        printf("    %s", tmk_role_on(stdout, TMK_ROLE_DETAIL));
        tmk_print(stdout, "| %s", source);
        puts(tmk_role_off(stdout, TMK_ROLE_DETAIL));
    }
    if (leak->has_site && tmk_stack_library_line(p, leak->stack, &library))
        say_wrapped("made in", "%s, called from %s", tmk_frame_text(&library, true, made),
                    tmk_frame_text(&leak->site, true, text));
}

static void show_leak(const struct tmk_leak_answer *f, const struct tmk_leak_process *item,
                      const struct tmk_leak *leak)
{
    char text[TMK_FRAME_TEXT_BYTES], label[40], words[TMK_LEAK_WORDS_BYTES];
    const char *site =
        leak->has_site ? tmk_frame_place_text(&leak->site, text) : _("a line that is not known");
    tmk_print(stdout, "\n  %s%s%s%s\n", site, f->n > 1 ? " [" : "",
              f->n > 1 ? tmk_process_label(item->p, label) : "", f->n > 1 ? "]" : "");
    say_source(item->p, leak);
    say_rate(item, leak);
    say_extent(item, leak);
    say_leak_end(item, leak);
    say_wrapped("evidence", "%s", tmk_leak_evidence_text(leak, words));
    say_wrapped("kept by", "%s", tmk_keeper_text(leak->keeper));
    if (leak->holder)
        say_wrapped("held by", "%s", leak->holder);
    say_wrapped("advice", "%s", tmk_leak_advice(leak));
    say_parts(item, leak);
    say_stack(item->p, leak);
}

static void show_cycles(const struct tmk_leak_answer *f, const struct tmk_leak_process *item)
{
    for (uint64_t i = 0; i < tmk_leakage_n_cycles(item->leakage) && i < SHOWN_LEAKS; i++) {
        const struct tmk_leak *c = tmk_leakage_cycle(item->leakage, i);
        char text[TMK_FRAME_TEXT_BYTES], size[TMK_AMOUNT_BYTES];
        if (!tmk_leak_is_wanted(f, c))
            continue;
        if (i == 0)
            tmk_print(stdout,
                      _("\n  Not a leak, but it grows for some steps and then falls back:\n"));
        tmk_print(stdout, "  %s\n", c->has_site ? tmk_frame_place_text(&c->site, text) : "-");
        say_wrapped("", "%s at once; %s. To keep it low: %s.", tmk_size_text(c->bytes, size),
                    tmk_keeper_text(c->keeper), tmk_leak_advice(c));
    }
}

static void say_doubt(const struct tmk_leak *doubt)
{
    char size[TMK_AMOUNT_BYTES], words[TMK_LEAK_WORDS_BYTES];
    say_wrapped("", "%s: %s", tmk_size_text(doubt->bytes, size), tmk_doubt_text(doubt, words));
}

static void show_doubts(const struct tmk_leak_answer *f)
{
    char text[TMK_FRAME_TEXT_BYTES], label[40];
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n_doubts(f->items[i].leakage); k++) {
            const struct tmk_leak *doubt = tmk_leakage_doubt(f->items[i].leakage, k);
            if (!tmk_leak_is_wanted(f, doubt) || ++n > SHOWN_LEAKS)
                continue;
            if (n == 1)
                tmk_print(stdout, _("\n  Not judged a leak, but it grew:\n"));
            tmk_print(stdout, "  %s%s%s%s\n",
                      doubt->has_site ? tmk_frame_place_text(&doubt->site, text) : "-",
                      f->n > 1 ? " [" : "", f->n > 1 ? tmk_process_label(f->items[i].p, label) : "",
                      f->n > 1 ? "]" : "");
            say_doubt(doubt);
        }
    if (n > SHOWN_LEAKS)
        tmk_print(stdout, _("  and %" PRIu64 " more; --json has all\n"), n - SHOWN_LEAKS);
}

/* ---- a living process ---- */

static void show_python(const struct tmk_leak_live *live)
{
    static const struct tmk_column columns[] = {
        {"type", TMK_LEFT, TMK_SHRINK},   {"before", TMK_RIGHT, TMK_FIXED},
        {"now", TMK_RIGHT, TMK_FIXED},    {"growth", TMK_RIGHT, TMK_FIXED},
        {"verdict", TMK_LEFT, TMK_FIXED},
    };
    char text[TMK_AMOUNT_BYTES], before[TMK_AMOUNT_BYTES], reason[TMK_LEAK_LIVE_REASON_BYTES];
    tmk_print(stdout, _("  Python's collector knows %s objects, %s before (a look took %.3g ms)\n"),
              tmk_count_text(live->n_objects, text), tmk_count_text(live->n_objects_before, before),
              live->cost_ms);
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    for (uint64_t i = 0; i < live->n_types && i < SHOWN_TYPES; i++) {
        const struct tmk_type_growth *type = &live->types[i];
        tmk_table_cell(t, type->type);
        tmk_table_count(t, type->before);
        tmk_table_count(t, type->after);
        tmk_table_cellf(t, "+%s", tmk_count_text(type->after - type->before, text));
        tmk_table_cell(t, !tmk_leak_live_is_judged(live) ? NULL
                          : type->is_leak                ? _("LEAK")
                                                         : _("ok"));
    }
    tmk_sheet_table(&sheet, t);
    if (tmk_leak_live_reason(live, reason))
        tmk_print(stdout, "  %s\n", reason);
    if (live->n_types == 0 && live->seconds > 0)
        tmk_print(stdout, _("  No type has more objects than before.\n"));
}

static void show_live(const struct tmk_leak_live *live)
{
    char before[TMK_AMOUNT_BYTES], after[TMK_AMOUNT_BYTES];
    tmk_print(stdout, "\n");
    if (live->seconds > 0)
        tmk_print(stdout, _("Over %.3g s, now:\n"), live->seconds);
    if (live->has_host)
        tmk_print(stdout, _("  the process uses %s of the host's memory, %s before\n"),
                  tmk_size_text(live->rss_after, after), tmk_size_text(live->rss_before, before));
    if (live->has_python)
        show_python(live);
    else if (live->reason[0])
        tmk_print(stdout, _("  Python's objects could not be counted: %s\n"), live->reason);
}

void tmk_leak_text(const struct tmk_leak_answer *f)
{
    uint64_t n_shown = 0, n = 0;
    say_leak_verdict(f);
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n(f->items[i].leakage); k++) {
            const struct tmk_leak *leak = tmk_leakage_get(f->items[i].leakage, k);
            if (!tmk_leak_is_wanted(f, leak) || ++n > SHOWN_LEAKS)
                continue;
            show_leak(f, &f->items[i], leak);
            n_shown++;
        }
    if (n > n_shown)
        tmk_print(stdout, _("\n  and %" PRIu64 " more; --json has all\n"), n - n_shown);
    for (uint32_t i = 0; i < f->n; i++)
        show_cycles(f, &f->items[i]);
    show_doubts(f);
    say_remarks(f);
    if (f->live)
        show_live(f->live);
}
