/* SPDX-License-Identifier: MIT */
/* interop/out/fates.c - see fates.h. A block's entry in the replay's state has the number of its
 * byte (`row`, from 1). */
#include "interop/out/fates.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "interop/out/out.h"
#include "model/owners.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/replay.h"
#include "trace/state.h"

struct fates_sweep {
    const struct tmk_process *p;
    struct tmk_out out;
    uint64_t n;
};

static void settle_fate(struct fates_sweep *w, const struct tmk_state *s, const struct tmk_block *b)
{
    struct tmk_block settled = tmk_state_settled(s, b);
    if (b->row > 0 && b->row <= w->n)
        tmk_out_change(&w->out, b->row - 1, tmk_block_category(w->p, s->contexts, &settled));
}

static void on_fate_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    struct fates_sweep *w = arg;
    if (ev->kind == TMK_KIND_ALLOC && b) {
        tmk_out_byte(&w->out, TIDEMARK_UNKNOWN);
        b->row = ++w->n < UINT32_MAX ? (uint32_t)w->n : 0; /* at most four thousand million */
    } else if (ev->kind == TMK_KIND_FREE && b) {
        settle_fate(w, &rp->state, b);
        b->row = 0;
    }
}

static int sweep_fates(struct fates_sweep *w, struct tmk_process *p,
                       const struct tmk_visitor *progress, struct tmk_error *err)
{
    struct tmk_replay rp = {0};
    struct tmk_visitor both[] = {{.arg = w, .event = on_fate_event}, *progress};
    int rc = tmk_process_sweep(p, both, 2, &rp, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 1; i <= rp.state.n_entries; i++)
        if (rp.state.entries[i].live)
            settle_fate(w, &rp.state, &rp.state.entries[i]);
    tmk_replay_fini(&rp);
    return tmk_out_finish(&w->out, err);
}

int tmk_fates_make(struct tmk_fates *f, struct tmk_process *p, const struct tmk_visitor *progress,
                   struct tmk_error *err)
{
    struct fates_sweep w = {.p = p};
    f->file = tmpfile();
    if (!f->file)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot make a temporary file");
    int rc = tmk_out_init(&w.out, fileno(f->file));
    rc = rc < 0 ? tmk_fail(err, rc, "no memory to write") : sweep_fates(&w, p, progress, err);
    tmk_out_fini(&w.out);
    rewind(f->file);
    return rc;
}

void tmk_fates_fini(struct tmk_fates *f)
{
    if (f->file)
        fclose(f->file);
    f->file = NULL;
}

uint8_t tmk_fates_next(struct tmk_fates *f)
{
    int c = getc_unlocked(f->file);
    return c == EOF ? TIDEMARK_UNKNOWN : (uint8_t)c;
}
