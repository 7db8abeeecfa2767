/* SPDX-License-Identifier: MIT */
/* kit/csv.h - write rows as RFC 4180 has them, with plain newlines: commas, quotes where needed.
 * Unknown is an empty field, an empty text is "". */
#ifndef TMK_KIT_CSV_H
#define TMK_KIT_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tmk_csv {
    FILE *out;
    bool in_row;
};

void tmk_csv_init(struct tmk_csv *c, FILE *out);
void tmk_csv_text(struct tmk_csv *c, const char *text); /* NULL: unknown */
void tmk_csv_u64(struct tmk_csv *c, uint64_t value);
void tmk_csv_i64(struct tmk_csv *c, int64_t value);
void tmk_csv_end_row(struct tmk_csv *c);

#endif
