/* SPDX-License-Identifier: MIT */
/* cli/answers/frag_text.c - see frag_answer.h: for people. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/frag_answer.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "model/owners.h"
#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/group.h"
#include "passes/timeline.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { SHOWN_PINS = 8, SITE_BYTES = 160 };

/* ---- the headline ---- */

static void say_moment(const struct tmk_frag_answer *a, const struct tmk_frag_device *d)
{
    char device[24], time[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES], step[TMK_STEP_TEXT_BYTES];
    tmk_print(stdout, "%s", tmk_device_name(d->device, device));
    if (d->is_oom)
        tmk_print(stdout, _(" when a request for %s failed"),
                  tmk_size_text(d->request_bytes, size));
    else if (a->moment.kind == TMK_FRAG_WORST)
        tmk_print(stdout, _(" when most was reserved"));
    else if (a->moment.kind == TMK_FRAG_STEP)
        tmk_print(stdout, _(" at the step's peak"));
    tmk_print(stdout, _(", after %s%s\n"), tmk_time_text(d->time_ns + a->p->offset_ns, time),
              tmk_step_text(a->p, d->step, ", ", step));
}

static void say_sum(const struct tmk_frag_device *d)
{
    const struct tmk_frag_sum *s = &d->sum;
    char held[TMK_AMOUNT_BYTES], unused[TMK_AMOUNT_BYTES], share[TMK_AMOUNT_BYTES];
    char pieces[TMK_AMOUNT_BYTES], largest[TMK_AMOUNT_BYTES], serves[TMK_AMOUNT_BYTES];
    tmk_size_text(s->reserved_bytes, held);
    tmk_size_text(s->free_bytes, unused);
    tmk_percent_text(s->free_bytes, s->reserved_bytes, share);
    char *text =
        d->has_segments
            ? tmk_xformat(_("%s reserved, %s of it (%s) cached, in %s free piece%s, the largest "
                            "%s. A larger "
                            "request than %s needs new memory from the driver."),
                          held, unused, share, tmk_count_text(s->n_free, pieces),
                          s->n_free == 1 ? "" : "s", tmk_size_text(s->largest_bytes, largest),
                          tmk_size_text(s->allocatable_bytes, serves))
            : tmk_xformat(
                  _("%s reserved, %s of it (%s) cached. The number of free pieces is not known, "
                    "because no segment with blocks in it was seen."),
                  held, unused, share);
    tmk_sheet_wrap(stdout, text, "  ");
    free(text);
}

/* Say what the driver could add, and what could be given back to it. */
static void say_driver_room(const struct tmk_frag_device *d)
{
    char size[TMK_AMOUNT_BYTES], whole[TMK_AMOUNT_BYTES], total[TMK_AMOUNT_BYTES];
    if (!d->has_segments)
        return;
    char *more =
        d->allocatable_new_bytes == TMK_BYTES_UNKNOWN
            ? tmk_xstrdup("")
            : tmk_xformat(_(" After that, a request for %s would have succeeded (the GPU has %s)."),
                          tmk_size_text(d->allocatable_new_bytes, size),
                          tmk_size_text(d->capacity_bytes, total));
    char *text = tmk_xformat(_("torch.cuda.empty_cache() would release %s.%s"),
                             tmk_size_text(d->sum.whole_bytes, whole), more);
    tmk_sheet_wrap(stdout, text, "  ");
    free(text);
    free(more);
}

/* ---- pools ---- */

static void show_pools(const struct tmk_frag_answer *a, const struct tmk_frag_device *d,
                       struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"pool", TMK_LEFT, TMK_FIXED},      {"stream", TMK_LEFT, TMK_SHRINK},
        {"segments", TMK_RIGHT, TMK_FIXED}, {"reserved", TMK_RIGHT, TMK_FIXED},
        {"blocks", TMK_RIGHT, TMK_FIXED},   {"allocated", TMK_RIGHT, TMK_FIXED},
        {"free", TMK_RIGHT, TMK_FIXED},     {"largest", TMK_RIGHT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < d->n_pools; i++) {
        const struct tmk_frag_pool_row *row = &d->pools[i];
        uint64_t handle;
        tmk_table_cell(t, row->pool == TMK_FRAG_SMALL ? _("small") : _("large"));
        if (!tmk_frag_stream(a->p, row, &handle))
            tmk_table_cell(t, NULL);
        else if (handle == 0)
            tmk_table_cell(t, _("default"));
        else
            tmk_table_cellf(t, "0x%" PRIx64, handle);
        tmk_table_count(t, row->sum.n_segments);
        tmk_table_size(t, row->sum.reserved_bytes);
        tmk_table_count(t, row->sum.n_blocks);
        tmk_table_size(t, row->sum.allocated_bytes);
        tmk_table_size(t, row->sum.free_bytes);
        tmk_table_size(t, row->sum.largest_bytes);
    }
    tmk_sheet_table(sheet, t);
}

/* ---- what is pinned ---- */

/* Segments in which the largest block comes from the same line and category. */
struct pin {
    const char *category;
    char site[SITE_BYTES];
    uint64_t n_segments, n_blocks, free_bytes, block_bytes;
};

struct pins {
    struct pin *rows;
    uint64_t n, room;
};

static const struct tmk_block *largest_block(const struct tmk_frag_answer *a, uint64_t device,
                                             const struct tmk_frag_segment *g)
{
    const struct tmk_block *best = NULL;
    for (uint64_t i = 0; i < g->n_blocks; i++) {
        const struct tmk_block *b = tmk_fragmentation_block(a->frag, device, g->first_block + i);
        if (!best || b->size_bytes > best->size_bytes)
            best = b;
    }
    return best;
}

static struct pin *pin_for(struct pins *pins, const struct pin *key)
{
    for (uint64_t i = 0; i < pins->n; i++)
        if (pins->rows[i].category == key->category && strcmp(pins->rows[i].site, key->site) == 0)
            return &pins->rows[i];
    if (TMK_GROW(pins->rows, pins->n + 1, pins->room) < 0)
        tmk_die("out of memory");
    pins->rows[pins->n] = *key;
    return &pins->rows[pins->n++];
}

static void add_pin(struct pins *pins, const struct tmk_frag_answer *a, uint64_t device,
                    const struct tmk_frag_segment *g)
{
    const struct tmk_block *b = largest_block(a, device, g);
    const struct tmk_context *contexts = tmk_fragmentation_labels(a->frag)->contexts;
    struct pin key = {.category = tmk_category_name(tmk_block_category(a->p, contexts, b))};
    char text[TMK_FRAME_TEXT_BYTES];
    struct tmk_frame f;
    bool known = tmk_stack_site(a->p, b->stack, &f);
    snprintf(key.site, sizeof key.site, "%.*s", SITE_BYTES - 1,
             tmk_frame_text(known ? &f : NULL, true, text));
    struct pin *pin = pin_for(pins, &key);
    pin->n_segments++;
    pin->n_blocks += g->n_blocks;
    pin->free_bytes += g->free_bytes;
    pin->block_bytes += g->size_bytes - g->free_bytes;
}

static int by_pin_free(const void *va, const void *vb)
{
    const struct pin *a = va, *b = vb;
    if (a->free_bytes != b->free_bytes)
        return a->free_bytes > b->free_bytes ? -1 : 1;
    return strcmp(a->site, b->site);
}

static void print_pins(const struct pins *pins, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"free", TMK_RIGHT, TMK_FIXED},    {"segments", TMK_RIGHT, TMK_FIXED},
        {"blocks", TMK_RIGHT, TMK_FIXED},  {"size", TMK_RIGHT, TMK_FIXED},
        {"category", TMK_LEFT, TMK_FIXED}, {"largest from", TMK_LEFT, TMK_SHRINK},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < pins->n && i < SHOWN_PINS; i++) {
        const struct pin *pin = &pins->rows[i];
        tmk_table_size(t, pin->free_bytes);
        tmk_table_count(t, pin->n_segments);
        tmk_table_count(t, pin->n_blocks);
        tmk_table_size(t, pin->block_bytes);
        tmk_table_cell(t, _(pin->category));
        tmk_table_cell(t, pin->site);
    }
    tmk_sheet_table(sheet, t);
    if (pins->n > SHOWN_PINS)
        tmk_print(stdout, _("  and %" PRIu64 " more lines; --json has the segments\n"),
                  pins->n - SHOWN_PINS);
}

static void show_pinned(const struct tmk_frag_answer *a, uint64_t device, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_fragmentation_pinned(a->frag, device, NULL, 0), bytes = 0;
    if (n == 0)
        return;
    const struct tmk_frag_segment **pinned = tmk_xcalloc(n, sizeof(void *));
    struct pins pins = {0};
    tmk_fragmentation_pinned(a->frag, device, pinned, n);
    for (uint64_t i = 0; i < n; i++) {
        add_pin(&pins, a, device, pinned[i]);
        bytes += pinned[i]->free_bytes;
    }
    qsort(pins.rows, (size_t)pins.n, sizeof *pins.rows, by_pin_free);
    char size[TMK_AMOUNT_BYTES];
    char *text = tmk_xformat(
        _("Pinned: %" PRIu64 " segment%s at least half free, %s in all. Blocks in %s keep them "
          "from being released:"),
        n, n == 1 ? " is" : "s are", tmk_size_text(bytes, size), n == 1 ? _("it") : _("them"));
    tmk_print(stdout, "\n");
    tmk_sheet_wrap(stdout, text, "  ");
    print_pins(&pins, sheet);
    free(text);
    free(pins.rows);
    free(pinned);
}

/* ---- over time ---- */

static const struct tmk_timeline_part *parts_of(const struct tmk_frag_answer *a, uint16_t device)
{
    for (uint32_t i = 0; i < tmk_timeline_n_devices(a->timeline); i++)
        if (tmk_timeline_device(a->timeline, i) == device)
            return tmk_timeline_parts(a->timeline, i);
    return NULL;
}

static uint64_t unused_bytes(uint64_t reserved, uint64_t allocated)
{
    return reserved > allocated ? reserved - allocated : 0;
}

/* Find the step that reserved most beyond its own peak of allocated memory. */
static const struct tmk_step_row *worst_step(const struct tmk_process *p, uint16_t device)
{
    const struct tmk_step_row *worst = NULL;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->device != device || !row->has_reserved || row->step == TMK_NO_STEP)
            continue;
        if (!worst || unused_bytes(row->peak_reserved_bytes, row->peak_bytes) >
                          unused_bytes(worst->peak_reserved_bytes, worst->peak_bytes))
            worst = row;
    }
    return worst;
}

static void show_time(const struct tmk_frag_answer *a, const struct tmk_frag_device *d,
                      struct tmk_sheet *sheet)
{
    const struct tmk_timeline_part *parts = parts_of(a, d->device);
    uint64_t values[TMK_CHART_MOST] = {0};
    uint32_t n = tmk_timeline_n_parts(a->timeline);
    bool known = false;
    for (uint32_t i = 0; parts && i < n && i < TMK_CHART_MOST; i++) {
        known |= parts[i].has_reserved;
        values[i] = parts[i].has_reserved
                        ? unused_bytes(parts[i].max_reserved_bytes, parts[i].max_bytes)
                        : 0;
    }
    if (!known)
        return;
    tmk_print(stdout, _("\n  Reserved beyond the most that was allocated, over time:\n"));
    tmk_sheet_chart(sheet, values, n, a->p->offset_ns, a->p->end_ns + a->p->offset_ns);
    const struct tmk_step_row *worst = worst_step(a->p, d->device);
    char reserved[TMK_AMOUNT_BYTES], blocks[TMK_AMOUNT_BYTES];
    if (worst)
        tmk_print(stdout, _("  worst step: %" PRId64 ", %s reserved, at most %s allocated\n"),
                  worst->step, tmk_size_text(worst->peak_reserved_bytes, reserved),
                  tmk_size_text(worst->peak_bytes, blocks));
}

void tmk_frag_text(const struct tmk_frag_answer *a)
{
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    bool is_first = true;
    for (uint64_t i = 0; i < tmk_fragmentation_n(a->frag); i++) {
        const struct tmk_frag_device *d = tmk_fragmentation_get(a->frag, i);
        if (a->has_device && d->device != a->device)
            continue;
        if (!is_first)
            tmk_print(stdout, "\n");
        is_first = false;
        say_moment(a, d);
        say_sum(d);
        say_driver_room(d);
        if (d->n_pools > 0) {
            tmk_print(stdout, "\n");
            show_pools(a, d, &sheet);
        }
        show_pinned(a, i, &sheet);
        show_time(a, d, &sheet);
    }
}
