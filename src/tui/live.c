/* SPDX-License-Identifier: MIT */
/* tui/live.c - see live.h. The loop looks, draws, and waits for a key or the next look; nothing
 * here takes long, but for a command that the user wants to see. */
#include "tui/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "kit/language.h"
#include "tui/choice.h"
#include "tui/gather.h"
#include "tui/grid.h"
#include "tui/picture.h"
#include "tui/screen.h"
#include "tui/send_signal.h"

enum { NS_PER_MS = 1000000, BUSY_MS = 50 };

struct live {
    struct tmk_gather *gather;
    struct tmk_top_model *model;
    struct tmk_choice view;
    struct tmk_hits hits;
    uint64_t due_ns;
    bool is_stale; /* the screen shows less than is known */
};

static int draw_top(struct live *l)
{
    struct tmk_grid grid = {0};
    unsigned width, height;
    tmk_screen_size(&width, &height);
    int rc = tmk_grid_init(&grid, width, height, l->view.ascii);
    if (rc == 0)
        rc = tmk_picture_draw(&grid, l->model, &l->view, &l->hits);
    if (rc == 0)
        tmk_screen_show(&grid);
    tmk_grid_fini(&grid);
    l->view.top = l->hits.top;
    l->is_stale = false;
    return rc;
}

static uint64_t interval_ns(const struct live *l)
{
    return (uint64_t)(l->view.interval_s * 1e9);
}

/* ---- wishes ---- */

static void send_wished_signal(struct live *l, const struct tmk_wish *wish)
{
    struct tmk_error err = {0};
    int rc = tmk_send_signal(wish->pid, wish->start_ticks, wish->signal, &err);
    if (rc < 0)
        snprintf(l->view.message, sizeof l->view.message, "%s", err.text);
    else
        snprintf(l->view.message, sizeof l->view.message, _("%s was sent to %" PRIu32),
                 tmk_signal_names[l->view.signal].name, wish->pid);
}

/* Shows what a command says in the user's pager, and waits where that does not. */
static const char page_script[] =
    "p=${TIDEMARK_PAGER:-${PAGER:-less}}\n"
    "command -v \"${p%% *}\" >/dev/null 2>&1 || p=cat\n"
    "\"$0\" \"$1\" \"$2\" 2>&1 | LESS=R $p\n"
    "case $p in less*) ;; *) printf '\\nEnter goes back to top '; read -r answer ;; esac\n";

static void run_wished_command(struct live *l, const struct tmk_wish *wish)
{
    char program[4096], columns[32];
    unsigned width, height;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return;
    program[n] = '\0';
    tmk_screen_size(&width, &height);
    snprintf(columns, sizeof columns, "COLUMNS=%u", width);
    const char *words[] = {"/bin/sh",     "-c",         page_script, program,
                           wish->command, wish->target, NULL};
    const char *more[] = {columns, "CLICOLOR_FORCE=1", NULL};
    if (tmk_screen_run(words, more) < 0)
        snprintf(l->view.message, sizeof l->view.message, _("tidemark %s could not be started"),
                 wish->command);
    l->due_ns = tmk_clock_monotonic_ns();
}

static void fulfil_wish(struct live *l)
{
    struct tmk_wish wish = l->view.wish;
    if (wish.kind == TMK_WISH_NONE)
        return;
    l->view.wish = (struct tmk_wish){0};
    if (wish.kind == TMK_WISH_SIGNAL)
        send_wished_signal(l, &wish);
    else
        run_wished_command(l, &wish);
}

/* ---- the loop ---- */

/* Gather what is known now. */
static int look_at_machine(struct live *l, struct tmk_error *err)
{
    uint64_t now = tmk_clock_monotonic_ns();
    if (now >= l->due_ns) {
        uint64_t interval = interval_ns(l);
        l->due_ns = l->due_ns + interval > now ? l->due_ns + interval : now + interval;
        if (!l->view.is_paused) {
            int rc = tmk_gather_look(l->gather, false, err);
            if (rc < 0)
                return rc;
            l->is_stale = true;
        }
    }
    if (l->view.is_paused)
        return 0;
    l->is_stale |= tmk_gather_jobs(l->gather);
    if (l->view.shown == TMK_SHOWN_DETAILS)
        l->is_stale |= tmk_gather_details(l->gather, l->view.pid);
    return 0;
}

static unsigned wait_ms(const struct live *l)
{
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t ms = now >= l->due_ns ? 0 : (l->due_ns - now) / NS_PER_MS + 1;
    return tmk_gather_is_busy(l->gather) && ms > BUSY_MS ? BUSY_MS : (unsigned)ms;
}

static int run_top_loop(struct live *l, struct tmk_error *err)
{
    while (!l->view.ends && !tmk_screen_is_over()) {
        int rc = look_at_machine(l, err);
        if (rc == 0 && l->is_stale && (rc = draw_top(l)) < 0)
            tmk_fail(err, rc, "out of memory");
        if (rc < 0)
            return rc;
        struct tmk_key key = tmk_screen_key(wait_ms(l));
        if (key.kind == TMK_KEY_NONE)
            continue;
        double before = l->view.interval_s;
        tmk_choice_key(&l->view, &key, l->model, &l->hits);
        if (l->view.interval_s != before) {
            tmk_gather_interval(l->gather, l->view.interval_s);
            l->due_ns = tmk_clock_monotonic_ns();
        }
        fulfil_wish(l);
        l->is_stale = true;
    }
    return 0;
}

int tmk_live_run(double interval_s, const char *filter, struct tmk_error *err)
{
    struct live l = {.view = tmk_choice_start(!tmk_screen_is_utf8(), filter),
                     .due_ns = tmk_clock_monotonic_ns()};
    l.view.interval_s = interval_s;
    int rc = tmk_gather_open(interval_s, &l.gather, err);
    if (rc < 0)
        return rc;
    l.model = tmk_gather_model(l.gather);
    rc = tmk_screen_open(err);
    if (rc == 0)
        rc = run_top_loop(&l, err);
    tmk_screen_close();
    tmk_gather_close(l.gather);
    tmk_screen_reraise();
    return rc;
}
