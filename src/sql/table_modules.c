/* SPDX-License-Identifier: MIT */
/* sql/table_modules.c - the table modules: time and memory of each module, a row for each process
 * and module.
 *
 * Time includes the modules called inside; bytes are those of the blocks made while the module
 * was the innermost one. Forward is everything outside backward and optimizer: also evaluation,
 * and what activation checkpointing recomputes. Modules that the model has but that were never
 * called have a row too. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"
#include "kit/textmap.h"
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
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(module, TEXT, TMK_FEW, "dotted path of the module")                                          \
    X(calls, INT, TMK_PLAIN, "how often it opened, in backward too")                               \
    X(duration_ns, INT, TMK_PLAIN, "time in calls that ended")                                     \
    X(allocations, INT, TMK_PLAIN, "blocks made in it")                                            \
    X(bytes, INT, TMK_PLAIN, "bytes of these blocks")                                              \
    X(peak_allocated, INT, TMK_PLAIN, "most bytes of its blocks alive at once")                    \
    X(end_allocated, INT, TMK_PLAIN, "bytes of its blocks alive at the end")                       \
    X(class, TEXT, TMK_FEW, "its class; NULL: not known")                                          \
    X(component, TEXT, TMK_FEW, "attention, mlp, embedding and so on")                             \
    X(parameter_bytes, INT, TMK_PLAIN, "bytes of its own parameters, without those inside")        \
    X(forward_ns, INT, TMK_PLAIN, "of duration_ns: in forward")                                    \
    X(backward_ns, INT, TMK_PLAIN, "of duration_ns: in backward")                                  \
    X(forward_bytes, INT, TMK_PLAIN, "of bytes: made in forward")                                  \
    X(backward_bytes, INT, TMK_PLAIN, "of bytes: made in backward")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

enum way { FORWARD, BACKWARD, NEITHER, N_WAYS };

struct module_use {
    uint64_t n_calls, duration_ns, n_allocs, alloc_bytes, peak_bytes, live_bytes;
    uint64_t ns[N_WAYS], bytes[N_WAYS], parameter_bytes;
};

struct modules_sweep {
    struct tmk_source *source;
    struct tmk_textmap names; /* number: index of modules */
    struct module_use *modules;
    uint64_t room;
    uint32_t *by_string;       /* index + 1; 0: not met yet */
    struct module_use nowhere; /* for blocks without a module, or without memory */
    bool failed;
};

static struct module_use *add_module_name(struct modules_sweep *w, const char *name)
{
    uint64_t n_before = w->names.n;
    uint32_t i;
    if (TMK_GROW(w->modules, n_before + 1, w->room) < 0 ||
        tmk_textmap_put(&w->names, name, &i) < 0) {
        w->failed = true;
        return &w->nowhere;
    }
    if (w->names.n > n_before)
        w->modules[i] = (struct module_use){0};
    return &w->modules[i];
}

static struct module_use *add_module(struct modules_sweep *w, uint32_t string)
{
    const char *name = tmk_reader_string(w->source->p->reader, string);
    if (!name || string >= w->source->n_strings)
        return &w->nowhere;
    struct module_use *m = add_module_name(w, name);
    if (!w->failed)
        w->by_string[string] = (uint32_t)(m - w->modules) + 1;
    return m;
}

static struct module_use *find_module(struct modules_sweep *w, uint32_t string)
{
    if (string < w->source->n_strings && w->by_string[string])
        return &w->modules[w->by_string[string] - 1];
    return add_module(w, string);
}

static struct module_use *module_of_block(struct modules_sweep *w, const struct tmk_state *s,
                                          const struct tmk_block *b)
{
    uint32_t context = s->contexts[b->context].module;
    return context ? find_module(w, s->contexts[context].name) : &w->nowhere;
}

static void hold_bytes(struct module_use *m, uint64_t size_bytes)
{
    m->live_bytes += size_bytes;
    if (m->live_bytes > m->peak_bytes)
        m->peak_bytes = m->live_bytes;
}

static enum way way_of(const struct tmk_state *s, uint32_t context)
{
    uint8_t stage = s->contexts[context].stage_kind;
    if (stage == TMK_STAGE_BACKWARD)
        return BACKWARD;
    bool is_forward =
        stage == TMK_STAGE_FORWARD || stage == TMK_STAGE_EVAL || stage == TMK_STAGE_OTHER;
    return is_forward ? FORWARD : NEITHER;
}

static void on_block(struct modules_sweep *w, const struct tmk_state *s, uint8_t kind,
                     const struct tmk_block *b)
{
    struct module_use *m = module_of_block(w, s, b);
    if (kind == TMK_KIND_ALLOC) {
        m->n_allocs++;
        m->alloc_bytes += b->size_bytes;
        m->bytes[way_of(s, b->context)] += b->size_bytes;
        hold_bytes(m, b->size_bytes);
    } else if (kind == TMK_KIND_FREE) {
        m->live_bytes -= b->size_bytes < m->live_bytes ? b->size_bytes : m->live_bytes;
    }
}

static void add_time(struct module_use *m, enum way way, uint64_t ns)
{
    m->duration_ns += ns;
    m->ns[way] += ns;
}

static void on_module_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                            struct tmk_block *b)
{
    struct modules_sweep *w = arg;
    if (b)
        on_block(w, &rp->state, ev->kind, b);
    else if (ev->kind == TMK_KIND_PUSH && ev->range_kind == TIDEMARK_MODULE)
        find_module(w, ev->name)->n_calls++;
    else if (ev->kind == TMK_KIND_POP && rp->closed.kind == TIDEMARK_MODULE)
        add_time(find_module(w, rp->closed.name), way_of(&rp->state, rp->closed.context),
                 ev->time_ns - rp->closed.start_ns);
}

static void on_modules_restored(void *arg, const struct tmk_replay *rp)
{
    struct modules_sweep *w = arg;
    for (uint64_t i = 0; i < w->names.n; i++)
        w->modules[i].live_bytes = 0;
    for (uint32_t i = 1; i <= rp->state.n_entries; i++)
        if (rp->state.entries[i].live)
            hold_bytes(module_of_block(w, &rp->state, &rp->state.entries[i]),
                       rp->state.entries[i].size_bytes);
}

static void add_module_row(struct tmk_fill *f, const char *name, const struct module_use *m)
{
    struct tmk_rows *rows = f->rows;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_text(rows, COL_module, row, tmk_textpool_put(f->pool, name));
    tmk_rows_u64(rows, COL_calls, row, m->n_calls);
    tmk_rows_u64(rows, COL_duration_ns, row, m->duration_ns);
    tmk_rows_u64(rows, COL_allocations, row, m->n_allocs);
    tmk_rows_u64(rows, COL_bytes, row, m->alloc_bytes);
    tmk_rows_u64(rows, COL_peak_allocated, row, m->peak_bytes);
    tmk_rows_u64(rows, COL_end_allocated, row, m->live_bytes);
    tmk_rows_text(rows, COL_class, row,
                  tmk_textpool_put(f->pool, tmk_module_class(f->source->p, name)));
    if (tmk_rows_want(rows, COL_component))
        tmk_rows_text(rows, COL_component, row,
                      tmk_textpool_put(f->pool, tmk_module_component(f->source->p, name)));
    tmk_rows_u64(rows, COL_parameter_bytes, row, m->parameter_bytes);
    tmk_rows_u64(rows, COL_forward_ns, row, m->ns[FORWARD]);
    tmk_rows_u64(rows, COL_backward_ns, row, m->ns[BACKWARD]);
    tmk_rows_u64(rows, COL_forward_bytes, row, m->bytes[FORWARD]);
    tmk_rows_u64(rows, COL_backward_bytes, row, m->bytes[BACKWARD]);
}

/* Add the model's modules in the order of its definitions, with the bytes of their parameters. */
static void add_model(struct modules_sweep *w)
{
    struct tmk_process *p = w->source->p;
    for (uint32_t i = 1; i < w->source->n_strings && !w->failed; i++)
        if (tmk_reader_class(p->reader, i))
            find_module(w, i);
    for (uint32_t i = 0; i < tmk_parameters_n(p) && !w->failed; i++) {
        const struct tmk_parameter *parameter = tmk_parameter_get(p, i);
        const char *module = tmk_parameter_module(p, i);
        if (module && !(parameter->flags & (TMK_PARAMETER_IS_BUFFER | TMK_PARAMETER_IS_TIED)))
            add_module_name(w, module)->parameter_bytes += parameter->size_bytes;
    }
}

static int fill_modules(struct tmk_fill *f, struct tmk_error *err)
{
    struct modules_sweep w = {.source = f->source};
    struct tmk_visitor visitor = {
        .arg = &w, .event = on_module_event, .restored = on_modules_restored};
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    w.by_string = calloc((size_t)f->source->n_strings + 1, sizeof *w.by_string);
    int rc = w.by_string ? tmk_process_sweep(f->source->p, &visitor, 1, NULL, err) : TMK_ENOMEM;
    if (rc == 0)
        add_model(&w);
    if (rc == 0 && w.failed)
        rc = TMK_ENOMEM;
    for (uint64_t i = 0; rc == 0 && i < w.names.n; i++)
        add_module_row(f, w.names.texts[i], &w.modules[i]);
    tmk_textmap_fini(&w.names);
    free(w.modules);
    free(w.by_string);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_modules = {
    .doc = {.name = "modules",
            .meaning = "what each module did and kept",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT module, calls, peak_allocated FROM modules ORDER BY 3 DESC LIMIT 10",
            .more = {"SELECT module, duration_ns / calls / 1e6 AS ms FROM modules WHERE calls "
                     "ORDER BY ms DESC LIMIT 10",
                     "SELECT module, end_allocated FROM modules WHERE end_allocated > 0 ORDER BY "
                     "end_allocated DESC"}},
    .name = "modules",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_modules,
};
