/* SPDX-License-Identifier: MIT */
/* tui/choice.c - see choice.h. */
#include "tui/choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/amount.h"
#include "passes/forecast.h"
#include "tui/grid.h"

const struct tmk_key_help tmk_key_helps[] = {
    {"up down PgUp PgDn Home End", "choose a process"},
    {"Enter", "its details; Esc goes back"},
    {"/", "filter by text: command, user, PID; Esc clears it"},
    {"s S  < >", "sort by the next or the previous column"},
    {"r", "reverse the order"},
    {"left right", "graphs of other devices"},
    {"space", "pause"},
    {"mouse", "click a row (again: its details) or a title"},
    {"?  h", "this help"},
    {"q", "quit, or back"},
    {NULL, NULL},
};

struct tmk_choice tmk_choice_start(bool ascii, const char *filter)
{
    struct tmk_choice start = {.sort = TMK_SORT_USED, .ascii = ascii};
    snprintf(start.filter, sizeof start.filter, "%s", filter ? filter : "");
    return start;
}

/* ---- order of processes ---- */

static bool is_process_shown(const struct tmk_choice *v, const struct tmk_top_process *p)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%" PRIu32, p->pid);
    return v->filter[0] == '\0' || strcasestr(p->command, v->filter) ||
           strcasestr(p->user, v->filter) || strstr(pid, v->filter);
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
    switch (sort) {
    case TMK_SORT_PID:
        return p->pid;
    case TMK_SORT_RANK:
        return p->is_watched ? p->job.rank : -1;
    case TMK_SORT_STEP:
        return has_job ? p->job.step : INT64_MIN;
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
        if (is_process_shown(v, &m->processes[i]))
            ret[n++] = (uint32_t)i;
    struct process_ordering ordering = {v, m->processes};
    if (n > 1)
        qsort_r(ret, n, sizeof *ret, by_choice, &ordering);
    return n;
}

uint32_t tmk_choice_selected(const struct tmk_choice *v, const struct tmk_top_model *m,
                             const uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (m->processes[order[i]].pid == v->pid)
            return i;
    return 0;
}

/* ---- keys ---- */

/* Select the row that is `by` rows further, or the one at `place` on the screen that was
 * clicked. */
static void select_row(struct tmk_choice *v, const struct tmk_top_model *m, int64_t by,
                       const uint32_t *place)
{
    uint32_t *order = malloc((m->n_processes + 1) * sizeof *order);
    if (!order)
        return;
    uint32_t n = tmk_choice_order(v, m, order);
    int64_t at = place ? *place : tmk_choice_selected(v, m, order, n) + by;
    at = at < 0 ? 0 : at >= n ? (int64_t)n - 1 : at;
    v->pid = n ? m->processes[order[at]].pid : 0;
    free(order);
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

static void open_details(struct tmk_choice *v, const struct tmk_top_model *m)
{
    select_row(v, m, 0, NULL); /* so that a process is selected */
    if (v->pid == 0)
        return;
    v->shown = TMK_SHOWN_DETAILS;
    v->scroll = 0;
}

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
    select_row(v, m, 0, &place);
    if (v->pid == before)
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

static void press_key(struct tmk_choice *v, uint32_t c, const struct tmk_top_model *m,
                      const struct tmk_hits *hits)
{
    if (c == 'q' && v->shown == TMK_SHOWN_LIST)
        v->ends = true;
    else if (c == 'q')
        go_back(v);
    else if (c == ' ')
        v->is_paused = !v->is_paused;
    else if ((c == '?' || c == 'h') && v->shown != TMK_SHOWN_HELP) {
        v->before_help = v->shown;
        v->shown = TMK_SHOWN_HELP;
    } else if (c == 'j' || c == 'k')
        move_selection(v, c == 'j' ? 1 : -1, m, hits);
    else if (v->shown != TMK_SHOWN_LIST)
        return;
    else if (c == 's' || c == '>')
        sort_next(v, 1, hits);
    else if (c == 'S' || c == '<')
        sort_next(v, -1, hits);
    else if (c == 'r')
        v->is_reversed = !v->is_reversed;
    else if (c == '/')
        v->is_typing = true;
}

/* Add a character to the filter, or remove the last one. */
static void edit_filter(struct tmk_choice *v, const struct tmk_key *key)
{
    size_t n = strlen(v->filter);
    char text[5];
    if (key->kind == TMK_KEY_ENTER)
        v->is_typing = false;
    else if (key->kind == TMK_KEY_ESCAPE) {
        v->is_typing = false;
        v->filter[0] = '\0';
    } else if (key->kind == TMK_KEY_BACKSPACE) {
        while (n > 0 && ((unsigned char)v->filter[--n] & 0xc0) == 0x80)
            ;
        v->filter[n] = '\0';
    } else if (key->kind == TMK_KEY_CHARACTER && key->c >= ' ' &&
               n + tmk_grid_encode(key->c, text) < sizeof v->filter)
        strcpy(v->filter + n, text);
}

void tmk_choice_key(struct tmk_choice *v, const struct tmk_key *key, const struct tmk_top_model *m,
                    const struct tmk_hits *hits)
{
    int64_t leap = hits->n_rows > 1 ? hits->n_rows - 1 : 10;
    if (v->is_typing) {
        edit_filter(v, key);
        return;
    }
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
        v->graph -= v->graph > 0;
        break;
    case TMK_KEY_RIGHT:
        v->graph += v->graph < hits->graph_most;
        break;
    case TMK_KEY_ENTER:
        if (v->shown == TMK_SHOWN_LIST)
            open_details(v, m);
        break;
    case TMK_KEY_ESCAPE:
    case TMK_KEY_BACKSPACE:
        go_back(v);
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
