/* SPDX-License-Identifier: MIT */
/* sql/plan.c - see plan.h.
 *
 * An ORDER BY or GROUP BY is served by splitting its terms in two: the first ones become keys of
 * bins, the rest must be what natural order gives anyway. The fewest sufficient keys are taken:
 * none for `step`, two for `module, stage`, one for `module, step`. What cannot be served is left
 * to SQLite. */
#include "sql/plan.h"

#include <math.h>
#include <string.h>

#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"

#define GUESS_FEW_ROWS 1000.0
#define GUESS_EQUAL 50.0 /* one row in this many equals a given value */
#define GUESS_KEY 10.0   /* likewise for a column of few values */
#define GUESS_RANGE 4.0

/* ---- what the table can do ---- */

static bool is_column_in_order(struct tmk_store *s, int column)
{
    uint8_t flags = s->def->specs[column].flags;
    if (!(flags & TMK_ORDER_STEP))
        return flags & TMK_ORDER_TIME;
    for (uint32_t i = 0; i < s->n_sources; i++)
        if (tmk_source_read_steps(&s->sources[i], NULL) < 0 || !s->sources[i].steps_in_order)
            return false;
    return true;
}

static bool is_key_column(const struct tmk_store *s, int column)
{
    return s->def->specs[column].flags & (TMK_FEW | TMK_ORDER_STEP);
}

static int key_index(const struct tmk_plan *plan, int column)
{
    for (int i = 0; i < plan->n_keys; i++)
        if (plan->keys[i] == column)
            return i;
    return -1;
}

/* ---- constraints ---- */

static int filter_op(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return TMK_FILTER_EQ;
    case SQLITE_INDEX_CONSTRAINT_GT:
        return TMK_FILTER_GT;
    case SQLITE_INDEX_CONSTRAINT_GE:
        return TMK_FILTER_GE;
    case SQLITE_INDEX_CONSTRAINT_LT:
        return TMK_FILTER_LT;
    case SQLITE_INDEX_CONSTRAINT_LE:
        return TMK_FILTER_LE;
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
        return TMK_FILTER_NOT_NULL;
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
        return TMK_FILTER_IS_NULL;
    default:
        return -1;
    }
}

/* Take constraint `i`: its value will come with the filters. With `exact`, SQLite need not check
 * it again. */
static void take_constraint(struct tmk_plan *plan, sqlite3_index_info *info, int i,
                            enum tmk_filter_op op, int column, bool exact)
{
    plan->filters[plan->n_filters++] =
        (struct tmk_filter){.op = (uint8_t)op, .column = (uint8_t)column};
    info->aConstraintUsage[i].argvIndex = plan->n_filters;
    info->aConstraintUsage[i].omit = exact;
}

static bool take_bound(struct tmk_store *s, struct tmk_plan *plan, sqlite3_index_info *info, int i,
                       enum tmk_filter_op op)
{
    int column = info->aConstraint[i].iColumn;
    if ((plan->bounded_by >= 0 && plan->bounded_by != column) || !is_column_in_order(s, column))
        return false;
    plan->bounded_by = column;
    take_constraint(plan, info, i, op, column, true);
    return true;
}

/* Equality with a text is left for SQLite to confirm: comparing with a number may follow other
 * rules than comparing bytes. */
static bool take_plan_key(struct tmk_store *s, struct tmk_plan *plan, sqlite3_index_info *info,
                          int i)
{
    int column = info->aConstraint[i].iColumn;
    if (!(s->def->specs[column].flags & TMK_FEW) || plan->n_keys == TMK_MAX_KEYS ||
        key_index(plan, column) >= 0 || strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
        return false;
    plan->keys[plan->n_keys++] = (uint8_t)column;
    plan->by_row = true;
    take_constraint(plan, info, i, TMK_FILTER_EQ, column,
                    s->def->specs[column].kind == TMK_CELL_INT);
    return true;
}

static int take_constraints(struct tmk_store *s, struct tmk_plan *plan, sqlite3_index_info *info,
                            double *n_rows)
{
    int n_columns = (int)s->def->doc.n_columns;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        int op = filter_op(c->op);
        bool is_arg = c->iColumn >= n_columns;
        if (is_arg && !c->usable)
            return SQLITE_CONSTRAINT;
        if (!c->usable || c->iColumn < 0 || op < 0 || plan->n_filters == TMK_MAX_FILTERS)
            continue;
        if (is_arg) {
            if (op == TMK_FILTER_EQ)
                take_constraint(plan, info, i, TMK_FILTER_ARG, c->iColumn - n_columns, true);
        } else if (take_bound(s, plan, info, i, (enum tmk_filter_op)op)) {
            *n_rows /= op == TMK_FILTER_EQ        ? GUESS_EQUAL
                       : op < TMK_FILTER_NOT_NULL ? GUESS_RANGE
                                                  : 1;
        } else if (op == TMK_FILTER_EQ && take_plan_key(s, plan, info, i)) {
            *n_rows /= GUESS_KEY;
        }
    }
    return SQLITE_OK;
}

/* Take IS NULL tests on keys: a bin tells at no cost. */
static void take_null_tests(const struct tmk_store *s, struct tmk_plan *plan,
                            sqlite3_index_info *info)
{
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        int op = filter_op(c->op);
        bool is_test = op == TMK_FILTER_NOT_NULL || op == TMK_FILTER_IS_NULL;
        if (is_test && c->usable && c->iColumn >= 0 && c->iColumn < (int)s->def->doc.n_columns &&
            info->aConstraintUsage[i].argvIndex == 0 && key_index(plan, c->iColumn) >= 0 &&
            plan->n_filters < TMK_MAX_FILTERS)
            take_constraint(plan, info, i, (enum tmk_filter_op)op, c->iColumn, true);
    }
}

/* ---- order ---- */

struct terms {
    int n;
    int columns[16];
    bool falling[16];
};

/* List the terms of the ORDER BY, without columns that an equality makes constant. Returns false
 * when it has a term that is no column. */
static bool list_terms(const struct tmk_store *s, const struct tmk_plan *plan,
                       const sqlite3_index_info *info, struct terms *ret)
{
    ret->n = 0;
    for (int i = 0; i < info->nOrderBy; i++) {
        int column = info->aOrderBy[i].iColumn;
        if (column < 0 || column >= (int)s->def->doc.n_columns || ret->n == 16)
            return false;
        if (key_index(plan, column) >= 0)
            continue;
        ret->columns[ret->n] = column;
        ret->falling[ret->n++] = info->aOrderBy[i].desc;
    }
    return true;
}

/* True when natural order, or its reverse, serves the terms from `first` on. */
static bool is_natural_order(struct tmk_store *s, const struct terms *t, int first)
{
    for (int i = first; i < t->n; i++) {
        bool in_step = s->def->specs[t->columns[i]].flags & TMK_IN_STEP;
        bool after_step = i > first && s->def->specs[t->columns[i - 1]].flags & TMK_ORDER_STEP;
        if (t->falling[i] != t->falling[first])
            return false;
        if (in_step ? !after_step || !s->sources[0].steps_distinct
                    : !is_column_in_order(s, t->columns[i]))
            return false;
    }
    return true;
}

static bool make_keys(const struct tmk_store *s, struct tmk_plan *plan, const struct terms *t,
                      int n)
{
    if (plan->n_keys + n > TMK_MAX_KEYS)
        return false;
    for (int i = 0; i < n; i++)
        if (!is_key_column(s, t->columns[i]))
            return false;
    for (int i = 0; i < n; i++) {
        plan->keys[plan->n_keys] = (uint8_t)t->columns[i];
        plan->falling[plan->n_keys++] = t->falling[i];
    }
    return true;
}

/* Serve the order with the terms before `split` as keys. */
static bool try_term_split(struct tmk_store *s, struct tmk_plan *plan, const struct terms *t,
                           int split)
{
    bool has_rest = split < t->n;
    bool is_merged = has_rest && s->n_sources > 1;
    if (is_merged && (plan->n_keys + split > 0 || t->n > 1))
        return false;
    if (!is_natural_order(s, t, split) || !make_keys(s, plan, t, split))
        return false;
    plan->backwards = has_rest && t->falling[split];
    if (is_merged) {
        plan->merge_by = t->columns[split];
        plan->wanted |= UINT64_C(1) << t->columns[split];
    }
    return true;
}

static bool take_query_order(struct tmk_store *s, struct tmk_plan *plan,
                             const sqlite3_index_info *info)
{
    struct terms t;
    if (info->nOrderBy == 0 || !list_terms(s, plan, info, &t))
        return false;
    for (int split = 0; split <= t.n; split++)
        if (try_term_split(s, plan, &t, split))
            return true;
    return false;
}

/* ---- the plan ---- */

static double guess_rows(const struct tmk_store *s)
{
    double n = GUESS_FEW_ROWS;
    for (uint32_t i = 0; s->def->rows_per_event && i < s->n_sources; i++)
        for (uint32_t k = 0; k < s->sources[i].n_chunks; k++)
            n += s->sources[i].chunks[k].header->n_items;
    return n;
}

static char *describe_plan(const struct tmk_plan *plan)
{
    return plan->n_keys          ? "grouped"
           : plan->merge_by >= 0 ? "merged in order"
           : plan->backwards     ? "from the end"
                                 : "from the start";
}

int tmk_plan_make(struct tmk_store *store, sqlite3_index_info *info, struct tmk_plan *ret_plan)
{
    struct tmk_plan plan = {.bounded_by = -1, .merge_by = -1};
    plan.wanted = info->colUsed & ((UINT64_C(1) << store->def->doc.n_columns) - 1);
    double n_all = guess_rows(store), n_rows = n_all;
    int rc = take_constraints(store, &plan, info, &n_rows);
    if (rc != SQLITE_OK)
        return rc;
    info->orderByConsumed = take_query_order(store, &plan, info);
    take_null_tests(store, &plan, info);
    info->idxStr = describe_plan(&plan);
    info->estimatedRows = (sqlite3_int64)n_rows + 1;
    info->estimatedCost = n_rows + (plan.n_keys ? n_all / 2 : 0);
    *ret_plan = plan;
    return SQLITE_OK;
}

bool tmk_plan_same(const struct tmk_plan *a, const struct tmk_plan *b)
{
    if (a->wanted != b->wanted || a->bounded_by != b->bounded_by || a->merge_by != b->merge_by ||
        a->backwards != b->backwards || a->by_row != b->by_row || a->n_keys != b->n_keys ||
        a->n_filters != b->n_filters)
        return false;
    for (uint32_t i = 0; i < a->n_keys; i++)
        if (a->keys[i] != b->keys[i] || a->falling[i] != b->falling[i])
            return false;
    for (uint32_t i = 0; i < a->n_filters; i++)
        if (a->filters[i].op != b->filters[i].op || a->filters[i].column != b->filters[i].column)
            return false;
    return true;
}

/* ---- comparing ---- */

static void narrow_to_nothing(struct tmk_bounds *b)
{
    b->low = INT64_MAX;
    b->high = INT64_MIN;
}

static void narrow_to_at_least(struct tmk_bounds *b, int64_t value)
{
    if (value > b->low)
        b->low = value;
}

static void narrow_to_at_most(struct tmk_bounds *b, int64_t value)
{
    if (value < b->high)
        b->high = value;
}

static void narrow_by_int(struct tmk_bounds *b, enum tmk_filter_op op, int64_t value)
{
    if ((op == TMK_FILTER_GT && value == INT64_MAX) ||
        (op == TMK_FILTER_LT && value == INT64_MIN)) {
        narrow_to_nothing(b);
        return;
    }
    if (op == TMK_FILTER_EQ || op == TMK_FILTER_GE)
        narrow_to_at_least(b, value);
    if (op == TMK_FILTER_EQ || op == TMK_FILTER_LE)
        narrow_to_at_most(b, value);
    if (op == TMK_FILTER_GT)
        narrow_to_at_least(b, value + 1);
    if (op == TMK_FILTER_LT)
        narrow_to_at_most(b, value - 1);
}

/* Compare integers with a real: it counts as the integer below it, or the one above. */
static void narrow_by_real(struct tmk_bounds *b, enum tmk_filter_op op, double value)
{
    bool above_all = value >= 0x1p63, below_all = value < -0x1p63;
    bool wants_larger = op == TMK_FILTER_GT || op == TMK_FILTER_GE;
    bool wants_less = op == TMK_FILTER_LT || op == TMK_FILTER_LE;
    if (above_all || below_all) {
        if (op == TMK_FILTER_EQ || (wants_larger && above_all) || (wants_less && below_all))
            narrow_to_nothing(b);
        return;
    }
    double down = floor(value);
    if (down == value)
        narrow_by_int(b, op, (int64_t)down);
    else if (op == TMK_FILTER_EQ)
        narrow_to_nothing(b);
    else
        narrow_by_int(b, wants_less ? TMK_FILTER_LE : TMK_FILTER_GT, (int64_t)down);
}

void tmk_bounds_narrow(struct tmk_bounds *bounds, enum tmk_filter_op op, sqlite3_value *value)
{
    if (op == TMK_FILTER_IS_NULL) {
        narrow_to_at_most(bounds, TMK_NULL_INT);
        return;
    }
    narrow_to_at_least(bounds, TMK_NULL_INT + 1);
    if (op == TMK_FILTER_NOT_NULL)
        return;
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
        narrow_by_int(bounds, op, sqlite3_value_int64(value));
        break;
    case SQLITE_FLOAT:
        narrow_by_real(bounds, op, sqlite3_value_double(value));
        break;
    case SQLITE_NULL:
        narrow_to_nothing(bounds);
        break;
    default: /* numbers come before texts and blobs */
        if (op != TMK_FILTER_LT && op != TMK_FILTER_LE)
            narrow_to_nothing(bounds);
    }
}
