/* SPDX-License-Identifier: MIT */
/* sql/rows.h - rows in the making: a typed array for each wanted column.
 *
 * Setting an unwanted column does nothing, so a table's code sets everything it knows. A row
 * begins with every value unknown. Columns that are the same in all rows (the process's rank) are
 * set once. Running out of memory is remembered in `failed`. */
#ifndef TMK_SQL_ROWS_H
#define TMK_SQL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tmk_cell_kind {
    TMK_CELL_INT,     /* int64_t; TMK_NULL_INT: unknown */
    TMK_CELL_COUNT,   /* uint32_t; TMK_NULL_COUNT: unknown */
    TMK_CELL_TEXT,    /* uint32_t, number in the text pool; 0: unknown */
    TMK_CELL_MB,      /* int64_t bytes, shown as bytes / 1048576.0 */
    TMK_CELL_SECONDS, /* int64_t ns, shown as ns / 1e9 */
    /* This one is in bins only; it takes half the memory of the kind it stands for: */
    TMK_CELL_SHORT_MB, /* int32_t units of 256 bytes; TMK_NULL_SHORT: unknown */
};

enum { TMK_SHORT_MB_SHIFT = 8 };

#define TMK_NULL_INT INT64_MIN /* the same as TMK_NO_STEP */
#define TMK_NULL_COUNT UINT32_MAX
#define TMK_NULL_SHORT INT32_MIN

enum { TMK_MAX_COLUMNS = 32 };

/* Properties of a column that a query may rely on. */
enum tmk_column_flag {
    TMK_PLAIN = 0,
    TMK_FEW = 1,        /* few values: rows may be wanted in groups of equal values */
    TMK_ORDER_TIME = 2, /* run time that never falls from row to row of a process */
    TMK_ORDER_STEP = 4, /* likewise, where the process's steps are in order; also has few values */
    TMK_IN_STEP = 8,    /* rises from row to row of a step */
};

struct tmk_column_spec {
    uint8_t kind;  /* enum tmk_cell_kind */
    uint8_t flags; /* enum tmk_column_flag */
};

struct tmk_rows {
    const struct tmk_column_spec *specs;
    uint32_t n_columns;
    uint64_t wanted;    /* bit by column */
    uint64_t constants; /* columns with one value for all rows */
    uint64_t n;
    uint64_t room; /* rows that all wanted columns have room for */
    bool failed;
    void *columns[TMK_MAX_COLUMNS]; /* NULL where not wanted */
    void *buffers[TMK_MAX_COLUMNS]; /* kept between uses */
    uint64_t rooms[TMK_MAX_COLUMNS];
};

static inline size_t tmk_cell_bytes(uint8_t kind)
{
    bool is_narrow = kind == TMK_CELL_COUNT || kind == TMK_CELL_TEXT || kind == TMK_CELL_SHORT_MB;
    return is_narrow ? sizeof(uint32_t) : sizeof(int64_t);
}

void tmk_rows_init(struct tmk_rows *r, const struct tmk_column_spec *specs, uint32_t n_columns);
void tmk_rows_fini(struct tmk_rows *r);

/* Start again without rows and with other columns. */
void tmk_rows_begin(struct tmk_rows *r, uint64_t wanted);
/* Make room for `n` more rows. Returns 0 or TMK_ENOMEM. Rows are then made by `rows->n++`, and
 * all of their columns set in the arrays directly. */
int tmk_rows_reserve(struct tmk_rows *r, uint64_t n);
/* Add a row with all values unknown. Returns its number. */
uint64_t tmk_rows_add(struct tmk_rows *r);

static inline void tmk_rows_int(struct tmk_rows *r, uint32_t column, uint64_t row, int64_t value)
{
    int64_t *cells = r->columns[column];
    if (cells && row < r->n)
        cells[row] = value;
}

/* Clamp to INT64_MAX, which no honest trace exceeds. */
static inline int64_t tmk_int_of(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static inline void tmk_rows_u64(struct tmk_rows *r, uint32_t column, uint64_t row, uint64_t value)
{
    tmk_rows_int(r, column, row, tmk_int_of(value));
}

static inline void tmk_rows_text(struct tmk_rows *r, uint32_t column, uint64_t row, uint32_t id)
{
    uint32_t *cells = r->columns[column];
    if (cells && row < r->n)
        cells[row] = id;
}

/* Set the same value in all rows, also in later ones. */
void tmk_rows_constant_int(struct tmk_rows *r, uint32_t column, int64_t value);
void tmk_rows_constant_text(struct tmk_rows *r, uint32_t column, uint32_t id);

/* True when the column is wanted: for values that are expensive to find. */
static inline bool tmk_rows_want(const struct tmk_rows *r, uint32_t column)
{
    return r->columns[column] != NULL;
}

#endif
