/* SPDX-License-Identifier: MIT */
/* sql/table_parameters.c - the table parameters: the parameters and buffers of the models, each
 * name once.
 *
 * Each is shown as last defined: one that was moved or loaded again has its last place. Tied
 * weights have a row for each name, with the same address and block; `tied` is 1 in all but one. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/owners.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

#define COLUMNS(X)                                                                                 \
    X(id, INT, TMK_PLAIN, "number of the parameter, in order of definition")                       \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(name, TEXT, TMK_FEW, "dotted name, as in named_parameters()")                                \
    X(module, TEXT, TMK_FEW, "the module it is in")                                                \
    X(component, TEXT, TMK_FEW, "kind of module: attention, mlp, embedding and so on")             \
    X(kind, TEXT, TMK_FEW, "parameter or buffer")                                                  \
    X(dtype, TEXT, TMK_FEW, "type of its elements: float32 and so on")                             \
    X(shape, TEXT, TMK_FEW, "as in [256, 1024]")                                                   \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(bytes, INT, TMK_PLAIN, "bytes of its elements")                                              \
    X(requires_grad, INT, TMK_FEW, "1: a gradient is computed for it, 0: it is frozen")            \
    X(trained, INT, TMK_FEW, "1: an optimizer has it")                                             \
    X(tied, INT, TMK_FEW, "1: another name for one in an earlier row")                             \
    X(address, INT, TMK_PLAIN, "where its storage is")                                             \
    X(block_id, INT, TMK_PLAIN, "the block that holds it: allocations.id; NULL: not known")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

/* ---- the blocks that hold them ---- */

struct parameter_place {
    uint64_t address;
    uint64_t serial; /* of the last block there that was tagged as a parameter; 0: none */
    uint16_t device;
};

struct parameters_sweep {
    struct parameter_place *places; /* sorted; one for each parameter, some the same */
    uint32_t n;
};

static int compare_places(const void *va, const void *vb)
{
    const struct parameter_place *a = va, *b = vb;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static struct parameter_place *find_parameter_place(const struct parameters_sweep *w,
                                                    uint16_t device, uint64_t address)
{
    struct parameter_place key = {.device = device, .address = address};
    return bsearch(&key, w->places, w->n, sizeof key, compare_places);
}

static void note_parameter_block(struct parameters_sweep *w, const struct tmk_block *b)
{
    bool is_one = b->category == TIDEMARK_PARAMETER || b->category == TIDEMARK_BUFFER;
    struct parameter_place *place = is_one ? find_parameter_place(w, b->device, b->address) : NULL;
    if (place)
        place->serial = b->serial;
}

static void on_parameter_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                               struct tmk_block *b)
{
    (void)rp;
    if (ev->kind == TMK_KIND_TAG && b)
        note_parameter_block(arg, b);
}

static void on_parameters_restored(void *arg, const struct tmk_replay *rp)
{
    for (uint32_t i = 1; i <= rp->state.n_entries; i++)
        if (rp->state.entries[i].live)
            note_parameter_block(arg, &rp->state.entries[i]);
}

/* Sort the places and drop equal ones, so that a search finds each. */
static void sort_places(struct parameters_sweep *w)
{
    uint32_t n = 0;
    if (w->n > 1)
        qsort(w->places, w->n, sizeof *w->places, compare_places);
    for (uint32_t i = 0; i < w->n; i++)
        if (n == 0 || compare_places(&w->places[n - 1], &w->places[i]) != 0)
            w->places[n++] = w->places[i];
    w->n = n;
}

static int find_parameter_blocks(struct parameters_sweep *w, struct tmk_process *p,
                                 struct tmk_error *err)
{
    struct tmk_visitor visitor = {
        .arg = w, .event = on_parameter_event, .restored = on_parameters_restored};
    uint32_t n = tmk_parameters_n(p);
    w->places = calloc((size_t)n + 1, sizeof *w->places);
    if (!w->places)
        return TMK_ENOMEM;
    for (w->n = 0; w->n < n; w->n++) {
        const struct tmk_parameter *parameter = tmk_parameter_get(p, w->n);
        w->places[w->n] =
            (struct parameter_place){.address = parameter->address, .device = parameter->device};
    }
    sort_places(w);
    return n ? tmk_process_sweep(p, &visitor, 1, NULL, err) : 0;
}

/* ---- rows ---- */

/* Set the shape: "float32 [256, 1024]", type first. */
static void set_shape(struct tmk_fill *f, uint64_t row, const char *text)
{
    const char *space = strchrnul(text, ' ');
    size_t n = (size_t)(space - text);
    tmk_rows_text(f->rows, COL_dtype, row, n ? tmk_textpool_copy(f->pool, text, n) : 0);
    tmk_rows_text(f->rows, COL_shape, row, *space ? tmk_textpool_put(f->pool, space + 1) : 0);
}

static void add_parameter_row(struct tmk_fill *f, const struct parameters_sweep *w, uint32_t i)
{
    const struct tmk_process *p = f->source->p;
    const struct tmk_parameter *parameter = tmk_parameter_get(p, i);
    struct tmk_rows *rows = f->rows;
    uint64_t row = tmk_rows_add(rows);
    bool is_buffer = parameter->flags & TMK_PARAMETER_IS_BUFFER;
    tmk_rows_int(rows, COL_id, row, tmk_source_id(f->source, tmk_parameter_id(p, i)));
    tmk_rows_text(rows, COL_name, row, tmk_textpool_put(f->pool, parameter->name));
    tmk_rows_text(rows, COL_module, row, tmk_textpool_put(f->pool, tmk_parameter_module(p, i)));
    if (tmk_rows_want(rows, COL_component))
        tmk_rows_text(rows, COL_component, row,
                      tmk_textpool_put(f->pool, tmk_parameter_component(p, i)));
    tmk_rows_text(rows, COL_kind, row,
                  tmk_textpool_put(f->pool, is_buffer ? "buffer" : "parameter"));
    set_shape(f, row, parameter->shape);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, parameter->device));
    tmk_rows_u64(rows, COL_bytes, row, parameter->size_bytes);
    tmk_rows_int(rows, COL_requires_grad, row,
                 (parameter->flags & TMK_PARAMETER_REQUIRES_GRAD) != 0);
    tmk_rows_int(rows, COL_trained, row, (parameter->flags & TMK_PARAMETER_OPTIMIZED) != 0);
    tmk_rows_int(rows, COL_tied, row, (parameter->flags & TMK_PARAMETER_IS_TIED) != 0);
    tmk_rows_int(rows, COL_address, row, (int64_t)parameter->address);
    const struct parameter_place *place =
        w->places ? find_parameter_place(w, parameter->device, parameter->address) : NULL;
    if (place)
        tmk_rows_int(rows, COL_block_id, row, tmk_source_id(f->source, place->serial));
}

static int fill_parameters(struct tmk_fill *f, struct tmk_error *err)
{
    struct parameters_sweep w = {0};
    int rc = 0;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    if (tmk_rows_want(f->rows, COL_block_id))
        rc = find_parameter_blocks(&w, f->source->p, err);
    for (uint32_t i = 0; rc == 0 && i < tmk_parameters_n(f->source->p); i++)
        add_parameter_row(f, &w, i);
    free(w.places);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_parameters = {
    .doc =
        {.name = "parameters",
         .meaning = "parameters and buffers of the models",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT component, sum(bytes) FROM parameters GROUP BY component",
         .more = {"SELECT sum(bytes) AS bytes FROM parameters WHERE requires_grad AND NOT trained",
                  "SELECT address, group_concat(name) AS names FROM parameters GROUP BY address "
                  "HAVING count(*) > 1"}},
    .name = "parameters",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_parameters,
};
