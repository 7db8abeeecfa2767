/* SPDX-License-Identifier: MIT */
/* passes/marks.c - see marks.h. */
#include "passes/marks.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "trace/events.h"
#include "trace/reader.h"
#include "trace/replay.h"

enum { MAX_KEPT = 1000 };

struct tmk_marks {
    const struct tmk_process *p;
    struct tmk_mark *marks;
    uint64_t n, n_kept, room;
    struct tmk_arena texts;
    bool failed;
};

static void keep_mark_text(struct tmk_marks *m, const struct tmk_event *ev, int64_t step)
{
    const char *text = tmk_arena_text(&m->texts, ev->text, ev->text_bytes);
    if (!text || TMK_GROW(m->marks, m->n_kept + 1, m->room) < 0) {
        m->failed = true;
        return;
    }
    m->marks[m->n_kept++] = (struct tmk_mark){.time_ns = ev->time_ns,
                                              .step = step,
                                              .name = tmk_reader_string(m->p->reader, ev->name),
                                              .text = text};
}

static void on_mark_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    (void)b;
    struct tmk_marks *m = arg;
    if (m->n++ < MAX_KEPT)
        keep_mark_text(m, ev, rp->state.step);
}

struct tmk_visitor tmk_marks_visitor(struct tmk_marks *m)
{
    return (struct tmk_visitor){.arg = m, .kinds = TMK_HEARS(MARK), .event = on_mark_event};
}

int tmk_marks_finish(struct tmk_marks *m, struct tmk_error *err)
{
    return m->failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the marks") : 0;
}

uint64_t tmk_marks_n(const struct tmk_marks *m)
{
    return m->n;
}

uint64_t tmk_marks_n_kept(const struct tmk_marks *m)
{
    return m->n_kept;
}

const struct tmk_mark *tmk_marks_get(const struct tmk_marks *m, uint64_t i)
{
    return &m->marks[i];
}

int tmk_marks_open(const struct tmk_process *p, struct tmk_marks **ret_marks)
{
    struct tmk_marks *m = calloc(1, sizeof *m);
    if (!m)
        return TMK_ENOMEM;
    m->p = p;
    *ret_marks = m;
    return 0;
}

struct tmk_marks *tmk_marks_close(struct tmk_marks *m)
{
    if (!m)
        return NULL;
    free(m->marks);
    tmk_arena_fini(&m->texts);
    free(m);
    return NULL;
}
