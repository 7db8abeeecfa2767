/* SPDX-License-Identifier: MIT */
/* tui/choice.c - see choice.h. */
#include "tui/choice.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/utf8.h"
#include "passes/forecast.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/top_model.h"

const struct tmk_key_help tmk_key_helps[] = {
    {"up down PgUp PgDn Home End", N_("choose a process or a run")},
    {"Enter", N_("its details; Esc goes back")},
    {"r  l  e", N_("report, leak or explain of what is chosen")},
    {"k", N_("send a signal, after a question")},
    {"/", N_("filter by command, user, PID or run; Esc clears it")},
    {"M G O P R", N_("sort by memory, growth, time to OOM, PID, rank")},
    {"s S  < >", N_("sort by the next or the previous column")},
    {"I", N_("reverse the order")},
    {"Tab  t", N_("fold the run; list runs or processes only")},
    {"left right g", N_("graphs of other devices, or of the selected one")},
    {"+ -  p space", N_("look more or less often; pause")},
    {"mouse", N_("click a row (again: its details) or a title")},
    {"?  h", N_("this help")},
    {"q", N_("quit, or back")},
    {NULL, NULL},
};

const struct tmk_signal_name tmk_signal_names[] = {
    {"SIGTERM", N_("asks it to end"), SIGTERM},
    {"SIGINT", N_("like Ctrl-C"), SIGINT},
    {"SIGKILL", N_("ends it at once"), SIGKILL},
    {"SIGSTOP", N_("stops it"), SIGSTOP},
    {"SIGCONT", N_("lets it go on"), SIGCONT},
    {"SIGHUP", N_("the terminal is gone"), SIGHUP},
    {"SIGQUIT", N_("ends it with a core dump"), SIGQUIT},
    {"SIGUSR1", N_("what the program makes of it"), SIGUSR1},
    {"SIGUSR2", N_("what the program makes of it"), SIGUSR2},
    {NULL, NULL, 0},
};
enum { N_SIGNALS = TMK_N(tmk_signal_names) - 1 };

const double tmk_top_intervals[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60};
const unsigned tmk_top_n_intervals = TMK_N(tmk_top_intervals);

struct tmk_choice tmk_choice_start(bool ascii, const char *filter)
{
    struct tmk_choice start = {
        .sort = TMK_SORT_USED, .ascii = ascii, .graph = TMK_GRAPH_OF_SELECTED, .interval_s = 1};
    snprintf(start.filter, sizeof start.filter, "%s", filter ? filter : "");
    return start;
}

/* ---- order of processes ---- */

bool tmk_choice_is_shown(const struct tmk_choice *v, const struct tmk_top_process *p)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%" PRIu32, p->pid);
    return v->filter[0] == '\0' || strcasestr(p->command, v->filter) ||
           strcasestr(p->user, v->filter) || strstr(pid, v->filter) ||
           (p->is_watched && strcasestr(p->job.run, v->filter));
}

/* Order by risk, then by how soon. */
static int64_t urgency_of(const struct tmk_forecast *f)
{
    double seconds = f->has_time && f->seconds_to_oom < 1e12 ? f->seconds_to_oom : 1e12;
    return (int64_t)f->risk * 10000000000000 - (int64_t)seconds;
}

/* The number to sort by in a column of numbers; unknown is less than anything. */
static int64_t sort_number_of(const struct tmk_top_process *p, enum tmk_sort sort)
{
    uint64_t bytes = TMK_BYTES_UNKNOWN;
    bool has_job = p->is_watched && p->job.has_memory;
    bool has_growth = has_job && p->job.has_growth;
    switch (sort) {
    case TMK_SORT_PID:
        return p->pid;
    case TMK_SORT_RANK:
        return p->is_watched ? p->job.rank : -1;
    case TMK_SORT_STEP:
        return has_job ? p->job.step : INT64_MIN;
    case TMK_SORT_GROWTH:
        return has_growth ? (int64_t)p->job.bytes_per_step : INT64_MIN;
    case TMK_SORT_STEP_TIME:
        return has_job && p->job.step_ns ? (int64_t)p->job.step_ns : INT64_MIN;
    case TMK_SORT_FORECAST:
        return has_job ? urgency_of(&p->job.forecast) : INT64_MIN;
    case TMK_SORT_USED:
        bytes = p->used_bytes;
        break;
    case TMK_SORT_HOST:
        bytes = p->host_bytes;
        break;
    case TMK_SORT_ALLOCATED:
        bytes = has_job ? p->job.allocated_bytes : bytes;
        break;
    case TMK_SORT_RESERVED:
        bytes = has_job ? p->job.reserved_bytes : bytes;
        break;
    case TMK_SORT_PEAK:
        bytes = has_job ? p->job.peak_bytes : bytes;
        break;
    default:
        break;
    }
    return bytes > INT64_MAX ? -1 : (int64_t)bytes;
}

/* Compare two processes: numbers with the largest first, except those that name things (PID, rank);
 * texts by the alphabet. */
static int compare_processes(const struct tmk_top_process *a, const struct tmk_top_process *b,
                             enum tmk_sort sort)
{
    if (sort == TMK_SORT_USER)
        return strcmp(a->user, b->user);
    if (sort == TMK_SORT_COMMAND)
        return strcmp(a->command, b->command);
    if (sort == TMK_SORT_DEVICES)
        return strverscmp(a->devices, b->devices);
    int64_t na = sort_number_of(a, sort), nb = sort_number_of(b, sort);
    int order = (na > nb) - (na < nb);
    return sort == TMK_SORT_PID || sort == TMK_SORT_RANK ? order : -order;
}

struct process_ordering {
    const struct tmk_choice *v;
    const struct tmk_top_process *processes;
};

static int by_choice(const void *va, const void *vb, void *arg)
{
    const struct process_ordering *o = arg;
    const struct tmk_top_process *a = &o->processes[*(const uint32_t *)va];
    const struct tmk_top_process *b = &o->processes[*(const uint32_t *)vb];
    int order = compare_processes(a, b, o->v->sort);
    if (order == 0) /* so that rows do not change places */
        return a->pid < b->pid ? -1 : a->pid > b->pid;
    return o->v->is_reversed ? -order : order;
}

uint32_t tmk_choice_order(const struct tmk_choice *v, const struct tmk_top_model *m, uint32_t *ret)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < m->n_processes; i++)
        if (tmk_choice_is_shown(v, &m->processes[i]))
            ret[n++] = (uint32_t)i;
    struct process_ordering ordering = {v, m->processes};
    if (n > 1)
        qsort_r(ret, n, sizeof *ret, by_choice, &ordering);
    return n;
}

/* ---- lines ---- */

uint64_t tmk_choice_run_key(const struct tmk_top_process *p)
{
    return tmk_hash_bytes(p->job.run, strlen(p->job.run)) | 1;
}

static bool is_folded(const struct tmk_choice *v, uint64_t run)
{
    for (unsigned i = 0; i < v->n_folded; i++)
        if (v->folded[i] == run)
            return true;
    return false;
}

/* The processes that are left, in order, with what stands for the run of each. */
struct run_members {
    uint32_t *order;
    uint64_t *runs; /* 0: not watched, or has its line */
    uint32_t n;
};

/* Put a run's line and those of its processes, the first of which is `first`. Returns how many
 * lines. */
static uint32_t put_run(const struct tmk_choice *v, const struct run_members *all, uint32_t first,
                        uint32_t n_members, struct tmk_top_row *ret)
{
    uint64_t run = all->runs[first];
    bool folded = is_folded(v, run);
    uint32_t n = 1, n_put = 0;
    *ret = (struct tmk_top_row){all->order[first], n_members, folded, false, false};
    for (uint32_t i = first; i < all->n; i++) {
        if (all->runs[i] != run)
            continue;
        all->runs[i] = 0;
        n_put++;
        if (!folded)
            ret[n++] = (struct tmk_top_row){all->order[i], 0, false, true, n_put == n_members};
    }
    return n;
}

static uint32_t put_rows(const struct tmk_choice *v, const struct tmk_top_model *m,
                         const struct run_members *all, struct tmk_top_row *ret)
{
    uint32_t n = 0;
    bool *is_put = calloc(all->n + 1, sizeof *is_put);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct tmk_top_process *p = &m->processes[all->order[i]];
        all->runs[i] = v->is_flat || !p->is_watched ? 0 : tmk_choice_run_key(p);
    }
    for (uint32_t i = 0; is_put && i < all->n; i++) {
        uint32_t n_members = 0;
        if (is_put[i])
            continue;
        for (uint32_t k = i; all->runs[i] && k < all->n; k++)
            if (all->runs[k] == all->runs[i]) {
                n_members++;
                is_put[k] = true;
            }
        if (n_members > 1)
            n += put_run(v, all, i, n_members, ret + n);
        else
            ret[n++] = (struct tmk_top_row){all->order[i], 0, false, false, false};
    }
    free(is_put);
    return n;
}

uint32_t tmk_choice_rows(const struct tmk_choice *v, const struct tmk_top_model *m,
                         struct tmk_top_row *ret)
{
    struct run_members all = {malloc((m->n_processes + 1) * sizeof *all.order),
                              malloc((m->n_processes + 1) * sizeof *all.runs), 0};
    uint32_t n = 0;
    if (all.order && all.runs) {
        all.n = tmk_choice_order(v, m, all.order);
        n = put_rows(v, m, &all, ret);
    }
    free(all.order);
    free(all.runs);
    return n;
}

static bool is_row_selected(const struct tmk_choice *v, const struct tmk_top_process *p,
                            const struct tmk_top_row *row)
{
    if (v->run)
        return row->n > 0 && tmk_choice_run_key(p) == v->run;
    return row->n == 0 && p->pid == v->pid;
}

uint32_t tmk_choice_selected(const struct tmk_choice *v, const struct tmk_top_model *m,
                             const struct tmk_top_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_row_selected(v, &m->processes[rows[i].process], &rows[i]))
            return i;
    for (uint32_t i = 0; i < n; i++) /* it was folded, or its run has one process left */
        if (v->pid && m->processes[rows[i].process].pid == v->pid)
            return i;
    return 0;
}

/* ---- keys ---- */

/* Select the line that is `by` lines further, or the one at `place` on the screen that was
 * clicked. Returns it; its process UINT32_MAX: there is none. */
static struct tmk_top_row select_row(struct tmk_choice *v, const struct tmk_top_model *m,
                                     int64_t by, const uint32_t *place)
{
    struct tmk_top_row found = {.process = UINT32_MAX};
    struct tmk_top_row *rows = malloc((2 * m->n_processes + 1) * sizeof *rows);
    if (!rows)
        return found;
    uint32_t n = tmk_choice_rows(v, m, rows);
    int64_t at = place ? *place : tmk_choice_selected(v, m, rows, n) + by;
    at = at < 0 ? 0 : at >= n ? (int64_t)n - 1 : at;
    v->pid = 0;
    v->run = 0;
    if (n > 0) {
        found = rows[at];
        const struct tmk_top_process *p = &m->processes[found.process];
        v->pid = p->pid;
        v->run = found.n ? tmk_choice_run_key(p) : 0;
    }
    free(rows);
    return found;
}

static void scroll_list(struct tmk_choice *v, int64_t by, const struct tmk_hits *hits)
{
    int64_t to = (int64_t)v->scroll + by;
    v->scroll = to < 0 ? 0 : to > hits->scroll_most ? hits->scroll_most : (unsigned)to;
}

static void move_selection(struct tmk_choice *v, int64_t by, const struct tmk_top_model *m,
                           const struct tmk_hits *hits)
{
    if (v->shown == TMK_SHOWN_LIST)
        select_row(v, m, by, NULL);
    else
        scroll_list(v, by, hits);
}

/* Fold or unfold the run of the selected line. */
static void fold_run(struct tmk_choice *v, const struct tmk_top_model *m)
{
    struct tmk_top_row row = select_row(v, m, 0, NULL);
    if (row.process == UINT32_MAX || (row.n == 0 && !row.is_member))
        return;
    uint64_t run = tmk_choice_run_key(&m->processes[row.process]);
    v->run = run; /* its line is there either way */
    for (unsigned i = 0; i < v->n_folded; i++)
        if (v->folded[i] == run) {
            v->folded[i] = v->folded[--v->n_folded];
            return;
        }
    if (v->n_folded < TMK_FOLDED_MOST)
        v->folded[v->n_folded++] = run;
}

static void open_details(struct tmk_choice *v, const struct tmk_top_model *m)
{
    struct tmk_top_row row = select_row(v, m, 0, NULL); /* so that a process is selected */
    if (row.process == UINT32_MAX)
        return;
    if (row.n > 0) {
        fold_run(v, m);
        return;
    }
    v->shown = TMK_SHOWN_DETAILS;
    v->scroll = 0;
}

/* Wish for a command about the selected process or run. */
static void wish_command(struct tmk_choice *v, const struct tmk_top_model *m, const char *command)
{
    struct tmk_top_row row = select_row(v, m, 0, NULL);
    if (row.process == UINT32_MAX)
        return;
    const struct tmk_top_process *p = &m->processes[row.process];
    if (!p->is_watched) {
        snprintf(v->message, sizeof v->message,
                 _("%" PRIu32 " is not watched; to watch it: tidemark attach %" PRIu32), p->pid,
                 p->pid);
        return;
    }
    v->wish = (struct tmk_wish){.kind = TMK_WISH_COMMAND, .pid = p->pid, .command = command};
    if (row.n > 0)
        snprintf(v->wish.target, sizeof v->wish.target, "%s", p->job.run);
    else
        snprintf(v->wish.target, sizeof v->wish.target, "%" PRIu32, p->pid);
}

/* ---- signals ---- */

static void ask_for_signal(struct tmk_choice *v, const struct tmk_top_model *m)
{
    struct tmk_top_row row = select_row(v, m, 0, NULL);
    if (row.process == UINT32_MAX)
        return;
    const struct tmk_top_process *p = &m->processes[row.process];
    if (row.n > 0) {
        snprintf(v->message, sizeof v->message,
                 _("a signal goes to one process: choose it below its run%s"),
                 row.is_folded ? _(" (Tab unfolds)") : "");
        return;
    }
    if (p->start_ticks == 0) {
        snprintf(v->message, sizeof v->message,
                 _("%" PRIu32 " cannot be seen from here, so it gets no signal"), p->pid);
        return;
    }
    v->wish = (struct tmk_wish){.pid = p->pid, .start_ticks = p->start_ticks};
    tmk_utf8_repair(p->command, v->asked_command, sizeof v->asked_command);
    v->signal = 0;
    v->asks = TMK_ASKS_SIGNAL;
}

static void choose_signal(struct tmk_choice *v, const struct tmk_key *key)
{
    bool is_up = key->kind == TMK_KEY_UP || (key->kind == TMK_KEY_CHARACTER && key->c == 'k');
    bool is_down = key->kind == TMK_KEY_DOWN || (key->kind == TMK_KEY_CHARACTER && key->c == 'j');
    if (key->kind == TMK_KEY_ESCAPE || (key->kind == TMK_KEY_CHARACTER && key->c == 'q')) {
        v->asks = TMK_ASKS_NOTHING;
    } else if (is_up && v->signal > 0) {
        v->signal--;
    } else if (is_down && v->signal + 1 < N_SIGNALS) {
        v->signal++;
    } else if (key->kind == TMK_KEY_ENTER) {
        v->wish.signal = tmk_signal_names[v->signal].number;
        v->asks = TMK_ASKS_YES;
    }
}

static void answer_question(struct tmk_choice *v, const struct tmk_key *key)
{
    if (key->kind == TMK_KEY_RESIZE || key->kind == TMK_KEY_NONE)
        return;
    v->asks = TMK_ASKS_NOTHING;
    if (key->kind == TMK_KEY_CHARACTER && (key->c == 'y' || key->c == 'Y'))
        v->wish.kind = TMK_WISH_SIGNAL;
    else
        snprintf(v->message, sizeof v->message, _("no signal was sent"));
}

/* ---- sorting and the rest ---- */

static void sort_by(struct tmk_choice *v, enum tmk_sort sort)
{
    v->is_reversed = v->sort == sort && !v->is_reversed;
    v->sort = sort;
}

/* Sort by the next column that is on the screen. */
static void sort_next(struct tmk_choice *v, int by, const struct tmk_hits *hits)
{
    for (unsigned i = 0; i < hits->n_heads; i++)
        if (hits->heads[i].sort == v->sort) {
            unsigned to = (i + hits->n_heads + (unsigned)by) % hits->n_heads;
            v->sort = hits->heads[to].sort;
            v->is_reversed = false;
            return;
        }
    v->sort = TMK_SORT_PID;
}

static void click_at(struct tmk_choice *v, const struct tmk_key *key, const struct tmk_top_model *m,
                     const struct tmk_hits *hits)
{
    if (v->shown != TMK_SHOWN_LIST)
        return;
    for (unsigned i = 0; key->y == hits->head_y && i < hits->n_heads; i++)
        if (key->x >= hits->heads[i].x && key->x < hits->heads[i].x + hits->heads[i].width)
            sort_by(v, hits->heads[i].sort);
    if (key->y < hits->table_y || key->y >= hits->table_y + hits->n_rows)
        return;
    uint32_t place = hits->top + key->y - hits->table_y, before = v->pid;
    uint64_t run_before = v->run;
    select_row(v, m, 0, &place);
    if (v->pid == before && v->run == run_before)
        open_details(v, m);
}

static void go_back(struct tmk_choice *v)
{
    if (v->shown == TMK_SHOWN_HELP)
        v->shown = v->before_help;
    else if (v->shown == TMK_SHOWN_DETAILS)
        v->shown = TMK_SHOWN_LIST;
    else
        v->filter[0] = '\0';
}

/* Look more or less often: the next interval of the list in that direction. */
static void change_interval(struct tmk_choice *v, bool is_slower)
{
    unsigned n = tmk_top_n_intervals;
    for (unsigned i = 0; i < n; i++) {
        double next = tmk_top_intervals[is_slower ? i : n - 1 - i];
        if (is_slower ? next > v->interval_s : next < v->interval_s) {
            v->interval_s = next;
            break;
        }
    }
    snprintf(v->message, sizeof v->message, _("a look every %g s"), v->interval_s);
}

static void show_help(struct tmk_choice *v)
{
    v->before_help = v->shown;
    v->shown = TMK_SHOWN_HELP;
}

/* Keys of the list that sort. */
static bool press_sort_key(struct tmk_choice *v, uint32_t c, const struct tmk_hits *hits)
{
    static const struct {
        char key;
        enum tmk_sort sort;
    } keys[] = {{'M', TMK_SORT_USED},
                {'G', TMK_SORT_GROWTH},
                {'O', TMK_SORT_FORECAST},
                {'P', TMK_SORT_PID},
                {'R', TMK_SORT_RANK}};
    for (size_t i = 0; i < TMK_N(keys); i++)
        if (c == (unsigned char)keys[i].key) {
            sort_by(v, keys[i].sort);
            return true;
        }
    if (c == 's' || c == '>')
        sort_next(v, 1, hits);
    else if (c == 'S' || c == '<')
        sort_next(v, -1, hits);
    else if (c == 'I')
        v->is_reversed = !v->is_reversed;
    else
        return false;
    return true;
}

static void press_list_key(struct tmk_choice *v, uint32_t c, const struct tmk_top_model *m,
                           const struct tmk_hits *hits)
{
    if (press_sort_key(v, c, hits))
        return;
    if (c == 'k')
        ask_for_signal(v, m);
    else if (c == 't')
        v->is_flat = !v->is_flat;
    else if (c == 'g')
        v->graph = TMK_GRAPH_OF_SELECTED;
    else if (c == '/')
        v->asks = TMK_ASKS_FILTER;
}

static void press_key(struct tmk_choice *v, uint32_t c, const struct tmk_top_model *m,
                      const struct tmk_hits *hits)
{
    if (c == 'q' && v->shown == TMK_SHOWN_LIST)
        v->ends = true;
    else if (c == 'q')
        go_back(v);
    else if (c == ' ' || c == 'p')
        v->is_paused = !v->is_paused;
    else if ((c == '?' || c == 'h') && v->shown != TMK_SHOWN_HELP)
        show_help(v);
    else if (c == '+' || c == '-')
        change_interval(v, c == '-');
    else if (c == 'j' || (c == 'k' && v->shown != TMK_SHOWN_LIST))
        move_selection(v, c == 'j' ? 1 : -1, m, hits);
    else if (v->shown != TMK_SHOWN_HELP && (c == 'r' || c == 'l' || c == 'e'))
        wish_command(v, m, c == 'r' ? "report" : c == 'l' ? "leak" : "explain");
    else if (v->shown == TMK_SHOWN_LIST)
        press_list_key(v, c, m, hits);
}

/* Add a character to the filter, or remove the last one. */
static void edit_filter(struct tmk_choice *v, const struct tmk_key *key)
{
    size_t n = strlen(v->filter);
    char text[5];
    if (key->kind == TMK_KEY_ENTER)
        v->asks = TMK_ASKS_NOTHING;
    else if (key->kind == TMK_KEY_ESCAPE) {
        v->asks = TMK_ASKS_NOTHING;
        v->filter[0] = '\0';
    } else if (key->kind == TMK_KEY_BACKSPACE) {
        while (n > 0 && ((unsigned char)v->filter[--n] & 0xc0) == 0x80)
            ;
        v->filter[n] = '\0';
    } else if (key->kind == TMK_KEY_CHARACTER && key->c >= ' ' &&
               n + tmk_grid_encode(key->c, text) < sizeof v->filter)
        strcpy(v->filter + n, text);
}

/* Show the devices that are `by` further than those on the screen. */
static void turn_graphs(struct tmk_choice *v, int by, const struct tmk_hits *hits)
{
    unsigned now = hits->graph_first;
    v->graph = by < 0 ? now - (now > 0) : now + (now < hits->graph_most);
}

/* A key while something is asked for; false: nothing is. */
static bool answer_key(struct tmk_choice *v, const struct tmk_key *key)
{
    if (v->asks == TMK_ASKS_FILTER)
        edit_filter(v, key);
    else if (v->asks == TMK_ASKS_SIGNAL)
        choose_signal(v, key);
    else if (v->asks == TMK_ASKS_YES)
        answer_question(v, key);
    else
        return false;
    return true;
}

void tmk_choice_key(struct tmk_choice *v, const struct tmk_key *key, const struct tmk_top_model *m,
                    const struct tmk_hits *hits)
{
    int64_t leap = hits->n_rows > 1 ? hits->n_rows - 1 : 10;
    if (key->kind != TMK_KEY_RESIZE && key->kind != TMK_KEY_NONE)
        v->message[0] = '\0';
    if (answer_key(v, key))
        return;
    switch (key->kind) {
    case TMK_KEY_UP:
        move_selection(v, -1, m, hits);
        break;
    case TMK_KEY_DOWN:
        move_selection(v, 1, m, hits);
        break;
    case TMK_KEY_PAGE_UP:
        move_selection(v, -leap, m, hits);
        break;
    case TMK_KEY_PAGE_DOWN:
        move_selection(v, leap, m, hits);
        break;
    case TMK_KEY_HOME:
        move_selection(v, -(int64_t)UINT32_MAX, m, hits);
        break;
    case TMK_KEY_END:
        move_selection(v, UINT32_MAX, m, hits);
        break;
    case TMK_KEY_LEFT:
        turn_graphs(v, -1, hits);
        break;
    case TMK_KEY_RIGHT:
        turn_graphs(v, 1, hits);
        break;
    case TMK_KEY_ENTER:
        if (v->shown == TMK_SHOWN_LIST)
            open_details(v, m);
        break;
    case TMK_KEY_ESCAPE:
    case TMK_KEY_BACKSPACE:
        go_back(v);
        break;
    case TMK_KEY_TAB:
        if (v->shown == TMK_SHOWN_LIST)
            fold_run(v, m);
        break;
    case TMK_KEY_CLICK:
        click_at(v, key, m, hits);
        break;
    case TMK_KEY_CHARACTER:
        press_key(v, key->c, m, hits);
        break;
    case TMK_KEY_NONE:
    case TMK_KEY_RESIZE:
        break;
    }
}
