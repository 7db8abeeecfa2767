/* SPDX-License-Identifier: MIT */
/* sql/vtab.c - the functions of virtual tables that SQLite calls; see vtab.h.
 *
 * The table object keeps plans by number; SQLite keeps the object as long as a statement uses it.
 * The three functions at the end run for every row and every value. */
#include "sql/vtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"
#include "sql/plan.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/store.h"
#include "sql/textpool.h"

struct kept_plan { /* allocated one by one: cursors point to them */
    struct tmk_plan *plan;
};

struct vtab_table {
    sqlite3_vtab base;
    struct tmk_vtab_context *context;
    struct kept_plan *plans;
    uint64_t n_plans, plan_room;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct tmk_scan scan;
    const struct tmk_textpool *pool;
    int n_columns;
    bool has_own_data; /* a table-valued function's rows are the cursor's */
    struct tmk_table_data own_data;
    int64_t args[TMK_MAX_ARGS];
};

/* ---- errors ---- */

static int sqlite_code(int rc)
{
    return rc == 0 ? SQLITE_OK : rc == TMK_ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

static int fail_vtab(sqlite3_vtab *t, int rc, const struct tmk_error *err)
{
    if (rc == 0)
        return SQLITE_OK;
    sqlite3_free(t->zErrMsg);
    t->zErrMsg = sqlite3_mprintf("%s", err->text[0] ? err->text : tmk_result_text(rc));
    return sqlite_code(rc);
}

/* ---- tables ---- */

static char *make_declaration(const struct tmk_vtab_def *def)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    for (size_t i = 0; i < def->doc.n_columns; i++)
        sqlite3_str_appendf(s, "%s\"%w\" %s", i ? ", " : "CREATE TABLE x(",
                            def->doc.columns[i].name, def->doc.columns[i].type);
    for (size_t i = 0; i < def->n_args; i++)
        sqlite3_str_appendf(s, ", \"%w\" INTEGER HIDDEN", def->arg_names[i]);
    sqlite3_str_appendall(s, ")");
    return sqlite3_str_finish(s);
}

static int connect_table(sqlite3 *db, void *arg, int n_args, const char *const *args,
                         sqlite3_vtab **ret_table, char **ret_error)
{
    (void)n_args, (void)args, (void)ret_error;
    struct tmk_vtab_context *context = arg;
    char *sql = make_declaration(context->def);
    int rc = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc != SQLITE_OK)
        return rc;
    struct vtab_table *t = calloc(1, sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    t->context = context;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *ret_table = &t->base;
    return SQLITE_OK;
}

/* This must be another function than connect, else the table would exist without being made. */
static int create_table(sqlite3 *db, void *arg, int n_args, const char *const *args,
                        sqlite3_vtab **ret_table, char **ret_error)
{
    return connect_table(db, arg, n_args, args, ret_table, ret_error);
}

static int disconnect_table(sqlite3_vtab *base)
{
    struct vtab_table *t = (struct vtab_table *)base;
    for (uint64_t i = 0; i < t->n_plans; i++)
        free(t->plans[i].plan);
    free(t->plans);
    free(t);
    return SQLITE_OK;
}

static int need_table_data(struct tmk_vtab_context *c)
{
    if (c->has_data)
        return 0;
    int rc = tmk_store_init(&c->data.store, c->def, c->sources, c->n_sources, c->pool, NULL);
    c->has_data = rc == 0;
    return rc;
}

void tmk_vtab_context_fini(struct tmk_vtab_context *context)
{
    if (context->has_data)
        tmk_table_data_fini(&context->data);
    context->has_data = false;
}

/* ---- plans ---- */

static int keep_plan(struct vtab_table *t, const struct tmk_plan *plan, int *ret_number)
{
    for (uint64_t i = 0; i < t->n_plans; i++) {
        if (tmk_plan_same(t->plans[i].plan, plan)) {
            *ret_number = (int)i;
            return SQLITE_OK;
        }
    }
    if (TMK_GROW(t->plans, t->n_plans + 1, t->plan_room) < 0)
        return SQLITE_NOMEM;
    struct tmk_plan *copy = malloc(sizeof *copy);
    if (!copy)
        return SQLITE_NOMEM;
    *copy = *plan;
    *ret_number = (int)t->n_plans;
    t->plans[t->n_plans++].plan = copy;
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    struct vtab_table *t = (struct vtab_table *)base;
    struct tmk_plan plan;
    if (need_table_data(t->context) < 0)
        return SQLITE_NOMEM;
    int rc = tmk_plan_make(&t->context->data.store, info, &plan);
    return rc == SQLITE_OK ? keep_plan(t, &plan, &info->idxNum) : rc;
}

/* ---- cursors ---- */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
    const struct vtab_table *t = (const struct vtab_table *)base;
    struct cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->pool = t->context->pool;
    c->n_columns = (int)t->context->def->doc.n_columns;
    *ret_cursor = &c->base;
    return SQLITE_OK;
}

static void drop_own_data(struct cursor *c)
{
    tmk_scan_end(&c->scan);
    if (c->has_own_data)
        tmk_table_data_fini(&c->own_data);
    c->has_own_data = false;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    drop_own_data(c);
    free(c);
    return SQLITE_OK;
}

static void take_args(struct cursor *c, const struct tmk_vtab_def *def, const struct tmk_plan *plan,
                      sqlite3_value **values)
{
    memcpy(c->args, def->arg_defaults, sizeof c->args);
    for (int i = 0; i < plan->n_filters; i++)
        if (plan->filters[i].op == TMK_FILTER_ARG && sqlite3_value_type(values[i]) != SQLITE_NULL)
            c->args[plan->filters[i].column] = sqlite3_value_int64(values[i]);
}

static int filter_cursor(sqlite3_vtab_cursor *base, int number, const char *text, int n_values,
                         sqlite3_value **values)
{
    (void)text, (void)n_values;
    struct cursor *c = (struct cursor *)base;
    const struct vtab_table *t = (const struct vtab_table *)base->pVtab;
    struct tmk_vtab_context *context = t->context;
    const struct tmk_plan *plan = t->plans[number].plan;
    struct tmk_table_data *data = &context->data;
    struct tmk_error err = {0};
    drop_own_data(c);
    int rc = need_table_data(context);
    if (rc == 0 && context->def->n_args > 0) {
        take_args(c, context->def, plan, values);
        data = &c->own_data;
        rc = tmk_store_init(&data->store, context->def, context->sources, context->n_sources,
                            context->pool, c->args);
        c->has_own_data = rc == 0;
    }
    if (rc == 0)
        rc = tmk_scan_begin(&c->scan, data, plan, values, &err);
    return fail_vtab(base->pVtab, rc, &err);
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = tmk_scan_row_id(&((const struct cursor *)base)->scan);
    return SQLITE_OK;
}

/* ---- for every row ---- */

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    struct tmk_scan *s = &c->scan;
    if (__builtin_expect(s->row != s->last, 1)) {
        s->row += (uint64_t)s->stride;
        return SQLITE_OK;
    }
    struct tmk_error err = {0};
    return fail_vtab(base->pVtab, s->next(s, &err), &err);
}

static int is_cursor_at_end(sqlite3_vtab_cursor *base)
{
    return ((const struct cursor *)base)->scan.done;
}

static int read_cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int i)
{
    const struct cursor *c = (const struct cursor *)base;
    if (__builtin_expect(i >= c->n_columns, 0)) {
        sqlite3_result_int64(out, c->args[i - c->n_columns]);
        return SQLITE_OK;
    }
    const struct tmk_column_values *cell = &c->scan.cells[i];
    size_t row = c->scan.row & cell->index_mask;
    const int64_t *wide = cell->data;
    const uint32_t *narrow = cell->data;
    switch (cell->kind) { /* no result is NULL */
    case TMK_CELL_INT:
        if (wide[row] != TMK_NULL_INT)
            sqlite3_result_int64(out, wide[row]);
        break;
    case TMK_CELL_MB: /* the factor is exact, and multiplying is quicker */
        if (wide[row] != TMK_NULL_INT)
            sqlite3_result_double(out, (double)wide[row] * 0x1p-20);
        break;
    case TMK_CELL_SHORT_MB:
        if ((int32_t)narrow[row] != TMK_NULL_SHORT)
            sqlite3_result_double(out, (int32_t)narrow[row] * 0x1p-12);
        break;
    case TMK_CELL_TEXT:
        if (narrow[row])
            sqlite3_result_text(out, tmk_textpool_text(c->pool, narrow[row]),
                                tmk_textpool_length(c->pool, narrow[row]), SQLITE_STATIC);
        break;
    case TMK_CELL_COUNT:
        if (narrow[row] != TMK_NULL_COUNT)
            sqlite3_result_int64(out, narrow[row]);
        break;
    case TMK_CELL_SECONDS:
        if (wide[row] != TMK_NULL_INT)
            sqlite3_result_double(out, (double)wide[row] / 1e9);
        break;
    default:
        break;
    }
    return SQLITE_OK;
}

/* ---- registering ---- */

static const sqlite3_module function_module = {
    /* exists without being made */
    .iVersion = 0,
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter_cursor,
    .xNext = next_row,
    .xEof = is_cursor_at_end,
    .xColumn = read_cursor_column,
    .xRowid = row_id,
};

static const sqlite3_module table_module = {
    .iVersion = 0,
    .xCreate = create_table,
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter_cursor,
    .xNext = next_row,
    .xEof = is_cursor_at_end,
    .xColumn = read_cursor_column,
    .xRowid = row_id,
};

static int make_schema_table(sqlite3 *db, const struct tmk_vtab_def *def, const char *module)
{
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\".\"%w\" USING \"%w\"", def->schema,
                                def->name, module);
    int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

int tmk_vtab_register(sqlite3 *db, struct tmk_vtab_context *context)
{
    const struct tmk_vtab_def *def = context->def;
    if (!def->schema)
        return sqlite3_create_module(db, def->name, &function_module, context);
    char *module = sqlite3_mprintf("tidemark_%s", def->name);
    if (!module)
        return SQLITE_NOMEM;
    int rc = sqlite3_create_module(db, module, &table_module, context);
    if (rc == SQLITE_OK)
        rc = make_schema_table(db, def, module);
    sqlite3_free(module);
    return rc;
}
