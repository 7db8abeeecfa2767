/* SPDX-License-Identifier: MIT */
/* kit/json.h - a writer of JSON text that places commas, quotes and brackets itself. Numbers are
 * exact: sizes and times are whole. Commands write through kit/tree.h; exports, which follow
 * formats of other tools, write here.
 *
 *     struct tmk_json j;
 *     tmk_json_init(&j, stdout, 1);
 *     tmk_json_object(&j, NULL);
 *     tmk_json_u64(&j, "allocated", n);
 *     tmk_json_end(&j); */
#ifndef TMK_KIT_JSON_H
#define TMK_KIT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TMK_JSON_MAX_DEPTH = 32 };

struct tmk_json {
    FILE *out;
    unsigned depth;
    unsigned lines; /* levels whose elements get a line each */
    bool in_array[TMK_JSON_MAX_DEPTH];
    bool has_element[TMK_JSON_MAX_DEPTH];
};

/* Elements of the `lines` outermost levels stand on separate lines. The end of the outermost value
 * writes a newline. */
void tmk_json_init(struct tmk_json *j, FILE *out, unsigned lines);

/* Values. `key` inside an object, NULL inside an array and at the top. Text that is not UTF-8 is
 * repaired with U+FFFD; NULL text and numbers that are not finite are null. */
void tmk_json_object(struct tmk_json *j, const char *key);
void tmk_json_array(struct tmk_json *j, const char *key);
void tmk_json_end(struct tmk_json *j);
void tmk_json_text(struct tmk_json *j, const char *key, const char *text);
void tmk_json_u64(struct tmk_json *j, const char *key, uint64_t value);
void tmk_json_i64(struct tmk_json *j, const char *key, int64_t value);
void tmk_json_double(struct tmk_json *j, const char *key, double value);
/* Writes a number with `decimals` digits after the point, at least one, so that readers do not take
 * it for an integer. */
void tmk_json_fixed(struct tmk_json *j, const char *key, double value, unsigned decimals);
void tmk_json_bool(struct tmk_json *j, const char *key, bool value);
void tmk_json_null(struct tmk_json *j, const char *key);

#endif
