/* SPDX-License-Identifier: MIT */
/* kit/json.h - the letters of JSON: commas, quotes and brackets come out right by themselves.
 * Numbers are exact: sizes and times are whole. Commands write through kit/tree.h; exports, which
 * follow formats of other tools, write here.
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

/* `lines`: elements of the outermost so many levels stand on lines of their own. The end of the
 * outermost value writes a newline. */
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
/* With so many digits behind the point, at least one: a number that readers take for no integer. */
void tmk_json_fixed(struct tmk_json *j, const char *key, double value, unsigned decimals);
void tmk_json_bool(struct tmk_json *j, const char *key, bool value);
void tmk_json_null(struct tmk_json *j, const char *key);

#endif
