/* SPDX-License-Identifier: MIT */
/* cli/page/page_stacks.c - see page_stacks.h. */
#include "cli/page/page_stacks.h"

#include <stdlib.h>

#include "base/error.h"
#include "cli/output/say.h"
#include "cli/output/source_line.h"
#include "cli/output/xalloc.h"
#include "kit/grow.h"
#include "trace/defs.h"
#include "trace/reader.h"

/* Frames beyond the first are rare and cost the page more than they tell; opening a file for each
 * of many lines takes time. */
enum { MAX_FRAMES = 96, MAX_SOURCE_LINES = 400 };

struct frame_numbers { /* ids of the trace become numbers from 1 */
    uint32_t *number_of;
    uint32_t room;
    uint32_t *frames;
    uint64_t n, frame_room;
};

void tmk_page_stacks_init(struct tmk_page_stacks *s, const struct tmk_process *p)
{
    *s = (struct tmk_page_stacks){.p = p, .n_known = tmk_reader_n_stacks(p->reader) + 1};
    s->number_of = tmk_xcalloc(s->n_known, sizeof *s->number_of);
}

void tmk_page_stacks_fini(struct tmk_page_stacks *s)
{
    free(s->number_of);
    free(s->stacks);
    *s = (struct tmk_page_stacks){0};
}

uint32_t tmk_page_stack(struct tmk_page_stacks *s, uint32_t stack)
{
    struct tmk_stack frames;
    if (stack >= s->n_known || !tmk_reader_stack(s->p->reader, stack, &frames))
        return 0;
    if (s->number_of[stack])
        return s->number_of[stack];
    if (TMK_GROW(s->stacks, s->n + 1, s->room) < 0)
        tmk_die("out of memory");
    s->stacks[s->n++] = stack;
    return s->number_of[stack] = (uint32_t)s->n;
}

static uint32_t number_of_frame(struct frame_numbers *f, uint32_t frame)
{
    while (frame >= f->room) {
        uint32_t room = f->room ? 2 * f->room : 1024;
        uint32_t *grown = tmk_xcalloc(room, sizeof *grown);
        for (uint32_t i = 0; i < f->room; i++)
            grown[i] = f->number_of[i];
        free(f->number_of);
        f->number_of = grown;
        f->room = room;
    }
    if (!f->number_of[frame]) {
        if (TMK_GROW(f->frames, f->n + 1, f->frame_room) < 0)
            tmk_die("out of memory");
        f->frames[f->n++] = frame;
        f->number_of[frame] = (uint32_t)f->n;
    }
    return f->number_of[frame];
}

static void put_stacks(const struct tmk_page_stacks *s, struct tmk_page_columns *c,
                       struct frame_numbers *f)
{
    struct tmk_stack frames;
    tmk_page_column(c, TMK_PAGE_PLAIN, "stacks.frames");
    for (uint64_t i = 0; i < s->n; i++) {
        if (!tmk_reader_stack(s->p->reader, s->stacks[i], &frames))
            continue;
        for (uint32_t k = 0; k < frames.n_frames && k < MAX_FRAMES; k++)
            tmk_page_put(c, number_of_frame(f, frames.frames[k]));
    }
    tmk_page_column(c, TMK_PAGE_PLAIN, "stacks.n");
    for (uint64_t i = 0; i < s->n; i++) {
        bool known = tmk_reader_stack(s->p->reader, s->stacks[i], &frames);
        uint32_t n = known ? frames.n_frames : 0;
        tmk_page_put(c, n < MAX_FRAMES ? n : MAX_FRAMES);
    }
}

struct told_frame {
    struct tmk_frame frame;
    const char *source; /* the line's text */
    bool is_known;
};

static struct told_frame *tell_frames(const struct tmk_page_stacks *s, struct tmk_page_columns *c,
                                      const struct frame_numbers *f)
{
    struct told_frame *told = tmk_xcalloc(f->n + 1, sizeof *told);
    unsigned n_lines = 0;
    for (uint64_t i = 0; i < f->n; i++) {
        struct told_frame *t = &told[i];
        char line[TMK_SOURCE_LINE_BYTES];
        t->is_known = tmk_process_frame(s->p, f->frames[i], &t->frame);
        if (!t->is_known || !t->frame.file || !tmk_frame_is_users(&t->frame) ||
            n_lines++ >= MAX_SOURCE_LINES)
            continue;
        const char *text = tmk_source_line(s->p, &t->frame, line);
        t->source = text ? tmk_xarena_format(&c->arena, "%s", text) : NULL;
    }
    return told;
}

static void put_frames(const struct told_frame *told, uint64_t n, struct tmk_page_columns *c)
{
    tmk_page_column(c, TMK_PAGE_PLAIN, "frames.file");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_text(c, told[i].is_known && told[i].frame.file && told[i].frame.file[0]
                                 ? told[i].frame.file
                                 : NULL);
    tmk_page_column(c, TMK_PAGE_PLAIN, "frames.function");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_text(c, told[i].is_known ? told[i].frame.function : NULL);
    tmk_page_column(c, TMK_PAGE_PLAIN, "frames.line");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, told[i].is_known ? told[i].frame.line : 0);
    tmk_page_column(c, TMK_PAGE_PLAIN, "frames.kind");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, told[i].is_known ? tmk_frame_kind(&told[i].frame) : TMK_FRAME_INNER);
    tmk_page_column(c, TMK_PAGE_PLAIN, "frames.source");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_text(c, told[i].source);
}

void tmk_page_stacks_put(const struct tmk_page_stacks *s, struct tmk_page_columns *c)
{
    struct frame_numbers f = {0};
    put_stacks(s, c, &f);
    struct told_frame *told = tell_frames(s, c, &f);
    put_frames(told, f.n, c);
    free(told);
    free(f.number_of);
    free(f.frames);
}
