/* SPDX-License-Identifier: MIT */
/* monitor/sampler.c - see sampler.h. */
#include "monitor/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/host.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/kernel_files.h"
#include "monitor/growth.h"

struct tmk_sampler {
    struct tmk_devices *devices;
    struct tmk_sampler_settings settings;
    uint64_t start_ns;
    uint64_t n_due;    /* the number of the next sample */
    uint64_t n_missed; /* samples before it that were slept through */
    uint64_t next_processes_ns;
    struct tmk_device_processes listed; /* too large for the stack */
    unsigned n;
    struct tmk_watched_device uses[];
};

/* ---- open, close ---- */

static bool is_chosen(const struct tmk_selection *selection, unsigned index)
{
    for (unsigned i = 0; i < selection->n; i++)
        if (selection->items[i] == index)
            return true;
    return false;
}

int tmk_sampler_open(struct tmk_devices *devices, const struct tmk_selection *selection,
                     const struct tmk_sampler_settings *settings, struct tmk_sampler **ret,
                     struct tmk_error *err)
{
    struct tmk_sampler *s = calloc(1, sizeof *s + selection->n * sizeof s->uses[0]);
    if (!s)
        return tmk_fail(err, TMK_ENOMEM, "no memory to watch %u devices", selection->n);
    s->devices = devices;
    s->settings = *settings;
    s->n = selection->n;
    for (unsigned i = 0; i < s->n; i++) {
        struct tmk_watched_device *u = &s->uses[i];
        u->index = selection->items[i];
        u->device = tmk_devices_get(devices, u->index);
        u->is_part_of_other =
            u->device->mig == TMK_MIG_PART && is_chosen(selection, u->device->card);
        memcpy(u->label, selection->labels[i], sizeof u->label);
        tmk_history_init(&u->history,
                         settings->history_most ? settings->history_most : TMK_HISTORY_DEVICE);
    }
    s->start_ns = tmk_clock_monotonic_ns();
    *ret = s;
    return 0;
}

struct tmk_sampler *tmk_sampler_close(struct tmk_sampler *s)
{
    for (unsigned i = 0; s && i < s->n; i++) {
        struct tmk_watched_device *u = &s->uses[i];
        tmk_history_fini(&u->history);
        for (uint64_t k = 0; k < u->n_processes; k++)
            tmk_history_fini(&u->processes[k].history);
        free(u->processes);
    }
    free(s);
    return NULL;
}

/* ---- memory ---- */

double tmk_device_use_percent(const struct tmk_watched_device *u)
{
    return u->now.total_bytes ? 100.0 * (double)u->now.used_bytes / (double)u->now.total_bytes : 0;
}

uint64_t tmk_device_free_bytes(const struct tmk_device_memory *m)
{
    uint64_t kept = m->reserved_bytes == TMK_BYTES_UNKNOWN ? 0 : m->reserved_bytes;
    uint64_t taken = m->used_bytes + kept;
    return taken < m->total_bytes ? m->total_bytes - taken : 0;
}

double tmk_device_taken_percent(const struct tmk_watched_device *u)
{
    uint64_t total = u->now.total_bytes;
    return total ? 100.0 * (double)(total - tmk_device_free_bytes(&u->now)) / (double)total : 0;
}

static void note_missed_answer(struct tmk_watched_device *u, const char *reason)
{
    u->has_now = false;
    u->n_gaps++;
    snprintf(u->reason, sizeof u->reason, "%.159s", reason);
    tmk_history_gap(&u->history);
}

static int take_memory_sample(struct tmk_watched_device *u, uint64_t time_ns,
                              const struct tmk_device_memory *m)
{
    u->now = *m;
    u->has_now = true;
    u->reason[0] = '\0';
    double percent = tmk_device_use_percent(u);
    if (u->n_samples == 0 || m->used_bytes < u->min_bytes)
        u->min_bytes = m->used_bytes;
    if (u->n_samples == 0 || m->used_bytes > u->max_bytes) {
        u->max_bytes = m->used_bytes;
        u->max_ns = time_ns;
    }
    if (percent > u->max_percent)
        u->max_percent = percent;
    u->sum_bytes += m->used_bytes;
    u->sum_percent += percent;
    u->n_samples++;
    return tmk_history_add(&u->history, time_ns, m->used_bytes);
}

/* Apply a container's limit: the container may be full although the machine is almost empty. */
static void apply_host_limit(const struct tmk_sampler *s, struct tmk_watched_device *u,
                             struct tmk_device_memory *m)
{
    struct tmk_host_limit l;
    if (u->device->kind != TMK_DEVICE_HOST || !s->settings.roots ||
        tmk_host_limit_read(s->settings.roots, &l, NULL) < 0)
        return;
    u->has_limit = l.limit_bytes < m->total_bytes && l.used_bytes != TMK_BYTES_UNKNOWN;
    if (!u->has_limit)
        return;
    m->total_bytes = l.limit_bytes;
    m->used_bytes = l.used_bytes;
}

static int sample_device(struct tmk_sampler *s, struct tmk_watched_device *u, uint64_t time_ns)
{
    struct tmk_device_memory m;
    struct tmk_error why = {0};
    if (tmk_devices_memory(s->devices, u->index, &m, &why) < 0) {
        note_missed_answer(u, why.text);
        return 0;
    }
    if (m.total_bytes == TMK_BYTES_UNKNOWN || m.used_bytes == TMK_BYTES_UNKNOWN) {
        note_missed_answer(u, "it has no memory of its own but the host's: --devices host");
        return 0;
    }
    apply_host_limit(s, u, &m);
    return take_memory_sample(u, time_ns, &m);
}

/* ---- processes ---- */

static uint64_t start_ticks_of(const struct tmk_sampler *s, pid_t pid)
{
    return s->settings.roots ? tmk_process_start_ticks(s->settings.roots->proc, pid) : 0;
}

/* The kernel reuses PIDs; only the start time tells two processes apart. A process that was gone
 * and is back counts as the same only if that is certain. */
static bool is_same_process(const struct tmk_process_use *p, pid_t pid, uint64_t start_ticks)
{
    if (p->now.pid != pid)
        return false;
    bool is_known = p->start_ticks && start_ticks;
    return is_known ? p->start_ticks == start_ticks : !p->has_ended;
}

static struct tmk_process_use *find_watched_process(struct tmk_watched_device *u, pid_t pid,
                                                    uint64_t start_ticks)
{
    for (uint64_t i = 0; i < u->n_processes; i++)
        if (is_same_process(&u->processes[i], pid, start_ticks))
            return &u->processes[i];
    return NULL;
}

static struct tmk_process_use *add_watched_process(struct tmk_watched_device *u)
{
    if (TMK_GROW(u->processes, u->n_processes + 1, u->processes_room) < 0)
        return NULL;
    struct tmk_process_use *p = &u->processes[u->n_processes++];
    memset(p, 0, sizeof *p);
    tmk_history_init(&p->history, TMK_HISTORY_PROCESS);
    return p;
}

static int take_process_sample(const struct tmk_sampler *s, struct tmk_watched_device *u,
                               uint64_t time_ns, const struct tmk_device_process *now)
{
    uint64_t start_ticks = start_ticks_of(s, now->pid);
    struct tmk_process_use *p = find_watched_process(u, now->pid, start_ticks);
    if (!p && !(p = add_watched_process(u)))
        return TMK_ENOMEM;
    p->now = *now;
    p->start_ticks = start_ticks ? start_ticks : p->start_ticks;
    p->is_there = true;
    p->has_ended = false;
    if (now->used_bytes != TMK_BYTES_UNKNOWN)
        return tmk_history_add(&p->history, time_ns, now->used_bytes);
    tmk_history_gap(&p->history);
    return 0;
}

/* ---- processes that have ended ---- */

static int64_t process_rise(const struct tmk_process_use *p)
{
    const struct tmk_history *h = &p->history;
    return (int64_t)(h->entries[h->n - 1].last_bytes - h->entries[0].min_bytes);
}

static void forget_process(struct tmk_watched_device *u, uint64_t i)
{
    tmk_history_fini(&u->processes[i].history);
    u->n_processes--;
    memmove(&u->processes[i], &u->processes[i + 1], (u->n_processes - i) * sizeof u->processes[0]);
}

/* Forget the ended process that grew least; true: there may still be too many. */
static bool forget_least(struct tmk_watched_device *u)
{
    uint64_t least = u->n_processes, n = 0;
    for (uint64_t i = 0; i < u->n_processes; i++) {
        if (!u->processes[i].has_ended)
            continue;
        n++;
        if (least == u->n_processes ||
            process_rise(&u->processes[i]) < process_rise(&u->processes[least]))
            least = i;
    }
    if (n <= TMK_ENDED_MOST)
        return false;
    forget_process(u, least);
    return true;
}

/* Keep a process that has ended if it lived long enough to be judged: one that leaked until it was
 * killed is exactly what a user looks for. */
static void keep_ended(struct tmk_watched_device *u)
{
    for (uint64_t i = u->n_processes; i-- > 0;) {
        struct tmk_process_use *p = &u->processes[i];
        if (p->is_there || p->has_ended)
            continue;
        p->has_ended = true;
        tmk_history_gap(&p->history);
        if (!tmk_growth_judge(&p->history, 0, 0).is_known)
            forget_process(u, i);
    }
    while (forget_least(u))
        ;
}

/* If the list cannot be read now, the processes stay as they were, with a gap. */
static int look_at_processes(struct tmk_sampler *s, struct tmk_watched_device *u, uint64_t time_ns)
{
    struct tmk_error why = {0};
    if (tmk_devices_processes(s->devices, u->index, &s->listed, &why) < 0) {
        snprintf(u->process_reason, sizeof u->process_reason, "%.159s", why.text);
        for (uint64_t i = 0; i < u->n_processes; i++)
            tmk_history_gap(&u->processes[i].history);
        return 0;
    }
    u->process_reason[0] = '\0';
    if (!u->has_list)
        u->first_list_ns = time_ns;
    u->has_list = true;
    for (uint64_t i = 0; i < u->n_processes; i++)
        u->processes[i].is_there = false;
    int rc = 0;
    for (unsigned i = 0; i < s->listed.n && rc == 0; i++)
        rc = take_process_sample(s, u, time_ns, &s->listed.items[i]);
    if (rc == 0)
        keep_ended(u);
    return rc;
}

/* ---- the schedule ---- */

/* How many samples there are in all. */
static uint64_t count_all(const struct tmk_sampler_settings *settings)
{
    if (settings->duration_ns == 0)
        return UINT64_MAX;
    return (settings->duration_ns - 1) / settings->interval_ns + 1;
}

bool tmk_sampler_due_ns(const struct tmk_sampler *s, uint64_t *ret_ns)
{
    if (s->n_due >= count_all(&s->settings))
        return false;
    *ret_ns = s->start_ns + s->n_due * s->settings.interval_ns;
    return true;
}

/* Advance to the next sample that is still in the future. */
static void advance_due_time(struct tmk_sampler *s, uint64_t now_ns)
{
    uint64_t passed = (now_ns - s->start_ns) / s->settings.interval_ns;
    uint64_t next = s->n_due + 1, all = count_all(&s->settings);
    passed = passed < all ? passed : all;
    if (passed > next) {
        s->n_missed += passed - next;
        next = passed;
    }
    s->n_due = next;
}

static bool wants_processes(struct tmk_sampler *s, uint64_t time_ns)
{
    if (s->settings.process_interval_ns == 0 || time_ns < s->next_processes_ns)
        return false;
    s->next_processes_ns =
        time_ns - time_ns % s->settings.process_interval_ns + s->settings.process_interval_ns;
    return true;
}

int tmk_sampler_look(struct tmk_sampler *s, struct tmk_error *err)
{
    uint64_t time_ns = tmk_clock_monotonic_ns() - s->start_ns;
    bool with_processes = wants_processes(s, time_ns);
    int rc = 0;
    for (unsigned i = 0; i < s->n && rc == 0; i++) {
        rc = sample_device(s, &s->uses[i], time_ns);
        if (rc == 0 && with_processes)
            rc = look_at_processes(s, &s->uses[i], time_ns);
    }
    advance_due_time(s, tmk_clock_monotonic_ns());
    return rc < 0 ? tmk_fail(err, rc, "no memory for the history of %u devices", s->n) : 0;
}

/* ---- getters ---- */

unsigned tmk_sampler_n_devices(const struct tmk_sampler *s)
{
    return s->n;
}

const struct tmk_watched_device *tmk_sampler_device(const struct tmk_sampler *s, unsigned i)
{
    return &s->uses[i];
}

uint64_t tmk_sampler_start_ns(const struct tmk_sampler *s)
{
    return s->start_ns;
}

uint64_t tmk_sampler_n_missed(const struct tmk_sampler *s)
{
    return s->n_missed;
}

const struct tmk_sampler_settings *tmk_sampler_settings(const struct tmk_sampler *s)
{
    return &s->settings;
}
