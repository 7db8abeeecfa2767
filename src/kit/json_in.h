/* SPDX-License-Identifier: MIT */
/* kit/json_in.h - reads JSON that a stranger wrote; the caller says what it expects next.
 *
 *     struct tmk_json_in j;
 *     tmk_json_in_init(&j, bytes, n, &arena);
 *     const char *key;
 *     tmk_json_in_object(&j);
 *     while ((key = tmk_json_in_key(&j)))
 *         if (strcmp(key, "size") == 0)
 *             size = tmk_json_in_u64(&j);
 *         else
 *             tmk_json_in_skip(&j);
 *     tmk_json_in_end(&j);
 *     if (j.problem)
 *         ... it stands at byte j.at - j.start ...
 *
 * The reader is strict: it takes RFC 8259 and nothing else. The first problem stays; after it every
 * call gives 0, NULL or false, so that loops end and one test at the end is enough. Nothing
 * recurses: depth is bounded. */
#ifndef TMK_KIT_JSON_IN_H
#define TMK_KIT_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kit/arena.h"

enum { TMK_JSON_IN_DEPTH = 32 };

struct tmk_json_in {
    const char *start, *at, *end;
    struct tmk_arena *texts;             /* of keys and texts */
    const char *problem;                 /* NULL: none so far */
    unsigned depth;                      /* of what is open */
    bool is_array[TMK_JSON_IN_DEPTH];    /* else an object */
    bool has_element[TMK_JSON_IN_DEPTH]; /* a comma comes before the next */
};

/* The bytes and the arena are borrowed. */
void tmk_json_in_init(struct tmk_json_in *j, const char *bytes, size_t n, struct tmk_arena *texts);

/* An object or an array begins here. */
void tmk_json_in_object(struct tmk_json_in *j);
void tmk_json_in_array(struct tmk_json_in *j);
/* Takes the next key of the object; NULL at its end, which is taken. The key lives as long as the
 * arena. A key with a zero byte in it is a problem. */
const char *tmk_json_in_key(struct tmk_json_in *j);
/* Whether the array has one more item; its end is taken. */
bool tmk_json_in_item(struct tmk_json_in *j);

const char *tmk_json_in_text(struct tmk_json_in *j); /* NULL: it is none */
uint64_t tmk_json_in_u64(struct tmk_json_in *j);     /* a whole number, not negative */
double tmk_json_in_double(struct tmk_json_in *j);    /* any number; too large: infinite */
/* Skips any value with all that is in it; it must be well-formed. */
void tmk_json_in_skip(struct tmk_json_in *j);
/* Nothing but blanks may follow. */
void tmk_json_in_end(struct tmk_json_in *j);

/* The first byte of the next value, 0 at the end: '{' '[' '"' and so on. */
char tmk_json_in_peek(struct tmk_json_in *j);

#endif
