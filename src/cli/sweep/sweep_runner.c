/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_runner.c - see sweep_runner.h.
 *
 * There is one loop and no thread: signals are blocked and waited for, with a limit, so that the
 * end of a configuration, ^C and a time limit all arrive the same way. */
#include "cli/sweep/sweep_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/watch.h"
#include "cli/sweep/keeper.h"
#include "cli/sweep/sweep_cell.h"
#include "cli/sweep/sweep_progress_text.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "sweep/fit.h"
#include "sweep/journal_out.h"
#include "sweep/order.h"
#include "sweep/results.h"

struct runner_slot { /* one of the configurations that run at once */
    bool is_used;
    uint32_t cell;
    struct tmk_keeper keeper;
    struct tmk_sweep_cell files;
    uint64_t start_ns, deadline_ns;
};

struct sweep_runner {
    struct tmk_sweep_plan *p;
    struct tmk_results *r;
    struct tmk_sweep_progress progress;
    uint32_t *order;
    uint32_t n, next; /* size of the order, and the next index */
    struct runner_slot *slots;
    unsigned n_running;
    sigset_t set;
    int interrupted_by; /* signal, 0: none */
    int status;         /* exit status; not 0: nothing more is begun */
    struct tmk_fit *fit;
    uint32_t n_fitted; /* cells measured when the fit was made */
};

/* ---- hopeless cells ---- */

static uint32_t count_measured(const struct tmk_results *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_cells; i++)
        n += tmk_cell_is_measured(&r->cells[i]);
    return n;
}

/* The capacity of a GPU: --capacity, or the one seen so far. 0: not known. */
static uint64_t runner_capacity(const struct sweep_runner *run)
{
    uint64_t most = 0;
    if (run->p->capacity)
        return run->p->capacity;
    for (uint32_t i = 0; i < run->r->n_cells; i++) {
        uint64_t c = run->r->cells[i].capacity;
        most = c != TMK_BYTES_UNKNOWN && c > most ? c : most;
    }
    return most;
}

static bool knows_reserved(const struct tmk_results *r)
{
    for (uint32_t i = 0; i < r->n_cells; i++)
        if (tmk_cell_is_measured(&r->cells[i]) && r->cells[i].peak_reserved == TMK_BYTES_UNKNOWN)
            return false;
    return true;
}

/* Fit again: after each cell at first, less often when there are many, because a fit takes time. */
static void fit_again(struct sweep_runner *run)
{
    uint32_t n = count_measured(run->r);
    if (n < run->n_fitted + 1 + run->n_fitted / 16)
        return;
    run->n_fitted = n;
    run->fit = tmk_fit_close(run->fit);
    tmk_fit_make(run->r, knows_reserved(run->r) ? TMK_FIT_RESERVED : TMK_FIT_ALLOCATED, &run->fit,
                 NULL); /* too few cells: none is hopeless yet */
}

/* Whether even the low bound of the estimate does not fit. Then the cell is marked and not run. */
static bool is_hopeless(struct sweep_runner *run, uint32_t cell)
{
    uint64_t capacity = runner_capacity(run);
    if (!run->p->skip_hopeless || capacity == 0)
        return false;
    fit_again(run);
    if (!run->fit)
        return false;
    struct tmk_estimate e = tmk_fit_cell(run->fit, cell);
    if (!e.known || e.low <= (double)capacity)
        return false;
    tmk_sweep_cell_hopeless(run->r, cell, e.low, capacity);
    return true;
}

/* ---- begin and end ---- */

static bool write_down(struct sweep_runner *run, uint32_t cell)
{
    struct tmk_error err = {0};
    if (tmk_journal_add(run->p->journal, run->r, cell, &err) == 0)
        return true;
    tmk_sweep_progress_clear(&run->progress);
    tmk_say("%s", err.text[0] ? err.text : _("out of memory"));
    run->status = TMK_EXIT_FINDING;
    return false;
}

static void begin_cell(struct sweep_runner *run, struct runner_slot *s, unsigned number,
                       uint32_t cell)
{
    s->cell = cell;
    int status = tmk_sweep_cell_start(run->p, cell, number, &s->files, &s->keeper);
    if (status != 0) {
        tmk_sweep_cell_forget(&s->files);
        run->status = status;
        return;
    }
    s->is_used = true;
    s->start_ns = tmk_clock_monotonic_ns();
    s->deadline_ns = run->p->timeout_ns ? s->start_ns + run->p->timeout_ns : UINT64_MAX;
    run->n_running++;
}

/* Find the next cell to run; false: there is none. */
static bool find_next_cell(struct sweep_runner *run, uint32_t *ret)
{
    for (; run->next < run->n; run->next++) {
        uint32_t cell = run->order[run->next];
        if (run->r->cells[cell].outcome != TMK_CELL_PENDING)
            continue;
        if (!is_hopeless(run, cell)) {
            run->next++;
            *ret = cell;
            return true;
        }
        if (!write_down(run, cell))
            return false;
        tmk_sweep_progress_cell(&run->progress, &run->r->cells[cell], NULL);
    }
    return false;
}

static void fill_slots(struct sweep_runner *run)
{
    for (unsigned i = 0; i < run->p->n_jobs && run->status == 0 && !run->interrupted_by; i++) {
        uint32_t cell;
        if (run->slots[i].is_used)
            continue;
        if (!find_next_cell(run, &cell))
            return;
        begin_cell(run, &run->slots[i], i, cell);
    }
}

/* Whether the program could not be started at all. Then the others cannot either. */
static bool not_started(struct sweep_runner *run, const struct tmk_kept *kept)
{
    if (!kept->failure)
        return false;
    tmk_sweep_progress_clear(&run->progress);
    if (run->status == 0)
        run->status = tmk_watch_not_started(run->p->command[0], kept->failure).status;
    return true;
}

static void finish_cell(struct sweep_runner *run, struct runner_slot *s,
                        const struct tmk_kept *kept)
{
    uint64_t ns = tmk_clock_monotonic_ns() - s->start_ns;
    s->is_used = false;
    run->n_running--;
    if (!not_started(run, kept) && !run->interrupted_by) {
        s->files.seconds = (double)ns / 1e9;
        char *log = tmk_sweep_cell_end(run->p, s->cell, kept, &s->files);
        if (write_down(run, s->cell))
            tmk_sweep_progress_cell(&run->progress, &run->r->cells[s->cell], log);
        free(log);
    }
    tmk_sweep_cell_forget(&s->files);
}

/* ---- waiting ---- */

static void interrupt_cells(struct sweep_runner *run, int number)
{
    bool again = run->interrupted_by != 0;
    if (!again) {
        tmk_sweep_progress_clear(&run->progress);
        tmk_say("ending what runs; once more to kill it");
    }
    run->interrupted_by = number;
    for (unsigned i = 0; i < run->p->n_jobs; i++)
        if (run->slots[i].is_used)
            (again ? tmk_keeper_kill : tmk_keeper_stop)(&run->slots[i].keeper);
}

static uint64_t ns_until_next(const struct sweep_runner *run, uint64_t now)
{
    uint64_t wait = 1000000000u;
    for (unsigned i = 0; i < run->p->n_jobs; i++) {
        const struct runner_slot *s = &run->slots[i];
        if (s->is_used && !s->files.timed_out && s->deadline_ns < now + wait)
            wait = s->deadline_ns > now ? s->deadline_ns - now : 0;
    }
    return wait;
}

static void look_at_slots(struct sweep_runner *run)
{
    uint64_t now = tmk_clock_monotonic_ns();
    const struct runner_slot *oldest = NULL;
    for (unsigned i = 0; i < run->p->n_jobs; i++) {
        struct runner_slot *s = &run->slots[i];
        struct tmk_kept kept;
        if (!s->is_used)
            continue;
        if (tmk_keeper_ended(&s->keeper, &kept)) {
            finish_cell(run, s, &kept);
            continue;
        }
        if (now >= s->deadline_ns && !s->files.timed_out) {
            s->files.timed_out = true;
            tmk_keeper_stop(&s->keeper);
        }
        if (!oldest || s->start_ns < oldest->start_ns)
            oldest = s;
    }
    if (oldest && !run->interrupted_by)
        tmk_sweep_progress_running(&run->progress, run->n_running, &run->r->cells[oldest->cell],
                                   now - oldest->start_ns);
}

static void wait_once(struct sweep_runner *run)
{
    uint64_t ns = ns_until_next(run, tmk_clock_monotonic_ns());
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    int number = sigtimedwait(&run->set, NULL, &limit);
    if (number > 0 && number != SIGCHLD)
        interrupt_cells(run, number);
    look_at_slots(run);
}

/* ---- the loop ---- */

static void block_signals(struct sweep_runner *run, sigset_t *ret_before)
{
    static const int taken[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(&run->set);
    for (size_t i = 0; i < TMK_N(taken); i++)
        sigaddset(&run->set, taken[i]);
    sigprocmask(SIG_BLOCK, &run->set, ret_before);
}

static void take_run_order(struct sweep_runner *run)
{
    run->order = tmk_xcalloc(run->r->n_cells, sizeof *run->order);
    if (tmk_order_cells(run->r, run->order, &run->n) < 0)
        tmk_die("out of memory");
}

/* Tells what is left out: ", 2 excluded by a<=b", with the conditions as they were given. */
static void excluded_text(const struct sweep_runner *run, char *text, size_t size)
{
    const struct tmk_results *r = run->r;
    struct tmk_text t;
    tmk_text_init(&t, text, size);
    tmk_text_add(&t, _(", %u excluded by "), r->n_cells - run->n);
    for (uint32_t i = 0; i < r->n_wheres; i++)
        tmk_text_add(&t, "%s%s", i > 0 ? " and " : "", r->wheres[i]);
}

static void say_cells_begin(const struct sweep_runner *run)
{
    uint32_t pending = tmk_results_n_pending(run->r, run->order, run->n),
             n_out = run->r->n_cells - run->n;
    char excluded[256] = "";
    if (n_out > 0)
        excluded_text(run, excluded, sizeof excluded);
    if (run->r->n_bad_lines)
        tmk_say("%u lines of %s cannot be read; these configurations are measured again",
                run->r->n_bad_lines, TMK_SWEEP_JOURNAL);
    if (run->p->goes_on && pending == 0)
        tmk_say("all %u configurations in %s have ended already%s", run->n, run->r->folder,
                excluded);
    else if (run->p->goes_on)
        tmk_say("going on with the sweep in %s: %u of %u configurations have ended%s",
                run->r->folder, run->n - pending, run->n, excluded);
    else
        tmk_say("%u configuration%s%s%s; results in %s", run->n, run->n == 1 ? "" : "s", excluded,
                run->p->n_jobs > 1 ? _(", several at once") : "", run->r->folder);
}

static void say_cells_end(struct sweep_runner *run)
{
    tmk_sweep_progress_clear(&run->progress);
    uint32_t pending = tmk_results_n_pending(run->r, run->order, run->n);
    if (run->interrupted_by) {
        run->status = 128 + run->interrupted_by;
        tmk_say("stopped; %u of %u configurations have ended. To go on: %s", run->n - pending,
                run->n, run->p->resume);
    } else if (run->status != 0 && run->status != 126 && run->status != 127) {
        tmk_say("given up; to go on: %s", run->p->resume);
    } else if (run->p->skip_hopeless && runner_capacity(run) == 0) {
        tmk_say("--skip-hopeless: the memory of no device is known; give --capacity too");
    }
}

int tmk_sweep_run(struct tmk_sweep_plan *p)
{
    struct sweep_runner run = {.p = p, .r = p->results};
    sigset_t before;
    take_run_order(&run);
    run.slots = tmk_xcalloc(p->n_jobs, sizeof *run.slots);
    tmk_sweep_progress_init(&run.progress, run.r, run.order, run.n, p->n_jobs);
    say_cells_begin(&run);
    block_signals(&run, &before);
    for (fill_slots(&run); run.n_running > 0; fill_slots(&run))
        wait_once(&run);
    say_cells_end(&run);
    sigprocmask(SIG_SETMASK, &before, NULL);
    tmk_fit_close(run.fit);
    free(run.slots);
    free(run.order);
    return run.status;
}

void tmk_sweep_list(const struct tmk_sweep_plan *p)
{
    struct sweep_runner run = {.r = p->results};
    take_run_order(&run);
    for (uint32_t i = 0; i < run.n; i++) {
        const struct tmk_cell *c = &run.r->cells[run.order[i]];
        char *line = tmk_sweep_cell_command(p, c);
        char text[512];
        printf("%s\t%s%s%s\n", tmk_cell_text(run.r, c, text, sizeof text), line,
               c->outcome == TMK_CELL_PENDING ? "" : "\t",
               c->outcome == TMK_CELL_PENDING ? "" : tmk_cell_outcome_name(c->outcome));
        free(line);
    }
    if (run.r->n_cells > run.n) {
        char excluded[256];
        excluded_text(&run, excluded, sizeof excluded);
        tmk_say("%s", excluded + strlen(", "));
    }
    free(run.order);
}
