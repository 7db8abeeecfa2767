/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_live.c - see leak_live.h. */
#include "cli/answers/leak_live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/wire.h"
#include "cli/answers/ask.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "device/device.h"
#include "device/host.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "kit/textmap.h"
#include "model/watched.h"
#include "monitor/growth.h"

enum { TIMEOUT_MS = 20000, MOST_LOOKS = 10, LEAST_LEAKED = 100, COST_PARTS = 100 };
#define LEAST_PAUSE_S 0.2

/* python/tidemark/_objects.py, which says what to heed. */
extern const char tmk_objects_source[];

/* One look at Python: the names of types, and how many objects each has. */
struct look {
    struct tmk_textmap types;
    uint64_t *counts;
    uint64_t room;
    uint64_t n_objects;
    double cost_ms;
    char *text; /* that the types are in */
    size_t n_text;
    FILE *out;
    char reason[256];
};

static void hear_python(void *arg, enum tmk_wire_kind kind, const char *bytes, size_t n)
{
    struct look *look = arg;
    if (kind == TMK_WIRE_STDOUT)
        fwrite(bytes, 1, n, look->out);
    else if (kind == TMK_WIRE_FAIL || kind == TMK_WIRE_ERROR)
        snprintf(look->reason, sizeof look->reason, "%.*s", (int)n, bytes);
}

static void hear_nothing(void *arg, enum tmk_wire_kind kind, const char *bytes, size_t n)
{
    (void)arg, (void)kind, (void)bytes, (void)n;
}

static void add_count(struct look *look, const char *type, uint64_t count)
{
    uint32_t i;
    if (tmk_textmap_put(&look->types, type, &i) < 0 ||
        TMK_GROW(look->counts, i + 1u, look->room) < 0)
        tmk_die("out of memory");
    look->counts[i] = (i + 1u == look->types.n ? 0 : look->counts[i]) + count;
}

/* Read the answer. Its first line has the cost and the number of objects, each other line a number
 * and a type. */
static void read_answer(struct look *look)
{
    char *rest = NULL, *line = strtok_r(look->text, "\n", &rest), *end = line;
    if (line)
        look->cost_ms = strtod(line, &end);
    if (!line || end == line || *end != ' ') {
        snprintf(look->reason, sizeof look->reason,
                 _("the process gave no answer that makes sense"));
        return;
    }
    look->n_objects = strtoull(end, NULL, 10);
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
        char *type;
        uint64_t count = strtoull(line, &type, 10);
        if (type > line && *type == ' ')
            add_count(look, type + 1, count);
    }
}

/* Returns the code that counts. It has names of its own, so that it touches none of the script's.
 */
static char *counting_code(void)
{
    char *code;
    if (asprintf(&code, "exec('''%s\nprint_counts()\n''', {'__name__': 'tidemark'})\n",
                 tmk_objects_source) < 0)
        tmk_die("out of memory");
    return code;
}

/* Have the process put on record what holds its tensors (record/training/bridge.py, inquire()). */
static void ask_for_holders(const struct tmk_watched *w)
{
    static const char code[] = "exec('''import sys\n"
                               "bridge = sys.modules.get(\"_tidemark_bridge\")\n"
                               "if hasattr(bridge, \"inquire\"):\n"
                               "    bridge.inquire(1.0)\n"
                               "''', {})\n";
    struct tmk_ask ask = {.verb = TMK_WIRE_EVAL,
                          .timeout_ms = TIMEOUT_MS,
                          .code = code,
                          .n_code = sizeof code - 1,
                          .hear = hear_nothing};
    tmk_ask(w, &ask, NULL); /* without an answer it is not known */
}

static void look_at_python(const struct tmk_watched *w, struct look *look)
{
    struct tmk_error err = {0};
    char *code = counting_code();
    struct tmk_ask ask = {.verb = TMK_WIRE_EVAL,
                          .timeout_ms = TIMEOUT_MS,
                          .code = code,
                          .n_code = strlen(code),
                          .hear = hear_python,
                          .arg = look};
    look->out = open_memstream(&look->text, &look->n_text);
    if (!look->out)
        tmk_die("out of memory");
    int rc = tmk_ask(w, &ask, &err);
    fclose(look->out);
    free(code);
    if (rc < 0)
        snprintf(look->reason, sizeof look->reason, "%.255s", err.text);
    if (!look->reason[0])
        read_answer(look);
    look->reason[strcspn(look->reason, "\n")] = '\0';
}

static void fini_look(struct look *look)
{
    tmk_textmap_fini(&look->types);
    free(look->counts);
    free(look->text);
}

/* ---- comparing ---- */

static int by_type_growth(const void *va, const void *vb)
{
    const struct tmk_type_growth *a = va, *b = vb;
    uint64_t more_a = a->after - a->before, more_b = b->after - b->before;
    if (a->is_leak != b->is_leak)
        return a->is_leak ? -1 : 1;
    if (more_a != more_b)
        return more_a > more_b ? -1 : 1;
    return strcmp(a->type, b->type);
}

struct looks {
    struct look items[MOST_LOOKS];
    unsigned n;
};

static int64_t count_of_type(const struct look *look, const char *type)
{
    uint32_t i;
    return tmk_textmap_find(&look->types, type, &i) ? (int64_t)look->counts[i] : 0;
}

static bool is_leaked_type(const struct looks *looks, const char *type)
{
    int64_t counts[MOST_LOOKS];
    unsigned start = 0;
    for (unsigned i = 0; i < looks->n; i++)
        counts[i] = count_of_type(&looks->items[i], type);
    while (start + 1 < looks->n && counts[start + 1] == counts[0]) /* it had not begun */
        start++;
    return looks->n - start >= TMK_LEAK_LIVE_LOOKS &&
           tmk_growth_of_series(counts + start, looks->n - start) >= LEAST_LEAKED;
}

static void compare_types(struct tmk_leak_live *live, const struct looks *looks)
{
    const struct look *before = &looks->items[0], *after = &looks->items[looks->n - 1];
    for (uint32_t i = 0; i < after->types.n; i++) {
        const char *type = after->types.texts[i];
        uint64_t old = (uint64_t)count_of_type(before, type);
        if (after->counts[i] <= old)
            continue;
        if (TMK_GROW(live->types, live->n_types + 1, live->room) < 0)
            tmk_die("out of memory");
        bool is_leak = is_leaked_type(looks, type);
        live->n_leaks += is_leak;
        live->types[live->n_types++] = (struct tmk_type_growth){.type = tmk_xstrdup(type),
                                                                .before = old,
                                                                .after = after->counts[i],
                                                                .is_leak = is_leak};
    }
    if (live->n_types > 1)
        qsort(live->types, (size_t)live->n_types, sizeof *live->types, by_type_growth);
}

static void take_looks(struct tmk_leak_live *live, const struct looks *looks)
{
    const struct look *last = &looks->items[looks->n - 1];
    snprintf(live->reason, sizeof live->reason, "%s", last->reason);
    live->has_python = !last->reason[0];
    live->n_looks = looks->n;
    if (!live->has_python)
        return;
    live->n_objects_before = looks->items[0].n_objects;
    live->n_objects = last->n_objects;
    for (unsigned i = 0; i < looks->n; i++)
        if (looks->items[i].cost_ms > live->cost_ms)
            live->cost_ms = looks->items[i].cost_ms;
    compare_types(live, looks);
}

/* ---- all looks ---- */

static bool read_rss(uint32_t pid, uint64_t *ret)
{
    struct tmk_device_roots roots = tmk_device_roots_get();
    struct tmk_host_process process;
    if (tmk_host_process_read(&roots, (pid_t)pid, &process, NULL) < 0 ||
        process.rss_bytes == TMK_BYTES_UNKNOWN)
        return false;
    *ret = process.rss_bytes;
    return true;
}

static void wait_seconds(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) < 0)
        ;
}

/* How many more looks to take after the first, which cost so much. */
static unsigned count_more_looks(double seconds, double cost_ms)
{
    double pause = cost_ms / 1e3 * COST_PARTS;
    pause = pause > LEAST_PAUSE_S ? pause : LEAST_PAUSE_S;
    double n = seconds / pause;
    return n > MOST_LOOKS - 1 ? MOST_LOOKS - 1 : n < 1 ? 1 : (unsigned)n;
}

/* Returns whether it was answered. */
static bool take_look(const struct tmk_watched *w, struct looks *looks)
{
    struct look *look = &looks->items[looks->n++];
    look_at_python(w, look);
    return !look->reason[0];
}

/* Look for so many seconds, at the host's memory first and last. */
static void look_for_seconds(const struct tmk_watched *w, bool wants_python, struct looks *looks,
                             struct tmk_leak_live *live)
{
    bool has_host = read_rss(w->pid, &live->rss_before);
    bool goes_on = wants_python && take_look(w, looks);
    unsigned n = goes_on ? count_more_looks(live->seconds, looks->items[0].cost_ms) : 1;
    for (unsigned i = 0; live->seconds > 0 && i < n; i++) {
        wait_seconds(live->seconds / n);
        if (i == n - 1)
            live->has_host = has_host && read_rss(w->pid, &live->rss_after);
        goes_on = goes_on && take_look(w, looks);
    }
    if (live->seconds <= 0)
        live->has_host = has_host && read_rss(w->pid, &live->rss_after);
    if (wants_python)
        take_looks(live, looks);
    if (goes_on)
        ask_for_holders(w);
}

void tmk_leak_live_look(const char *pid, double seconds, bool wants_python,
                        struct tmk_leak_live *ret)
{
    struct tmk_error err = {0};
    struct tmk_watched w;
    struct looks looks = {0};
    *ret = (struct tmk_leak_live){.seconds = seconds};
    if (tmk_watched_find(tmk_watched_parse(pid), &w, &err) < 0) {
        snprintf(ret->reason, sizeof ret->reason, "%.255s", err.text);
        return;
    }
    look_for_seconds(&w, wants_python, &looks, ret);
    for (unsigned i = 0; i < looks.n; i++)
        fini_look(&looks.items[i]);
}

const char *tmk_leak_live_reason(const struct tmk_leak_live *live, char *buffer)
{
    if (!live->has_python || tmk_leak_live_is_judged(live))
        return NULL;
    double enough = live->cost_ms / 1e3 * COST_PARTS * (TMK_LEAK_LIVE_LOOKS - 1);
    double least = LEAST_PAUSE_S * (TMK_LEAK_LIVE_LOOKS - 1);
    snprintf(buffer, TMK_LEAK_LIVE_REASON_BYTES,
             _("too short to tell: %u look%s in %.3g s; a verdict takes %d: --duration %.0f"),
             live->n_looks, live->n_looks == 1 ? "" : "s", live->seconds, TMK_LEAK_LIVE_LOOKS,
             ceil(enough > least ? enough : least));
    return buffer;
}

void tmk_leak_live_fini(struct tmk_leak_live *live)
{
    for (uint64_t i = 0; i < live->n_types; i++)
        free(live->types[i].type);
    free(live->types);
    *live = (struct tmk_leak_live){0};
}
