/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_value.h - the values of a pickle, and the visitor that receives them
 * (pickle.h). */
#ifndef TMK_INTEROP_PICKLE_PICKLE_VALUE_H
#define TMK_INTEROP_PICKLE_PICKLE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum tmk_pickle_kind {
    TMK_PICKLE_NONE,
    TMK_PICKLE_BOOL,
    TMK_PICKLE_INT,
    TMK_PICKLE_BIG, /* an int of more than 64 bits: its value is not kept */
    TMK_PICKLE_FLOAT,
    TMK_PICKLE_TEXT,
    TMK_PICKLE_BYTES, /* not kept */
    TMK_PICKLE_TUPLE,
    TMK_PICKLE_LIST,
    TMK_PICKLE_DICT,
    TMK_PICKLE_MARK, /* on the machine's stack only */
};

struct tmk_pickle_value {
    union {
        int64_t number;                   /* BOOL, INT */
        double real;                      /* FLOAT */
        struct tmk_pickle_object *object; /* TEXT, BYTES, TUPLE, LIST, DICT */
    };
    enum tmk_pickle_kind kind;
};

/* A value shared by all that refer to it; good while the item or the root that holds it is. */
struct tmk_pickle_object {
    union {
        struct tmk_pickle_value *items; /* TUPLE, LIST; DICT: keys and values in turn */
        char *text;                     /* TEXT: also ends in a zero byte */
    };
    union {
        uint64_t memo;                  /* its number in the memo, + 1; 0: it is not kept */
        struct tmk_pickle_object *link; /* the next free object */
    };
    uint32_t n;   /* items, or bytes of the text */
    uint32_t tag; /* set by the visitor; 0 at first */
    uint32_t n_refs;
    uint16_t stream;    /* the visitor's answer for a list, + 1; 0: not asked yet */
    uint8_t room_class; /* of `items` or `text`; 0: none */
    uint8_t kind : 4;   /* enum tmk_pickle_kind */
    uint8_t is_folded : 1;
};

/* The visitor's functions. `arg` is its own. */
struct tmk_pickle_visitor {
    void *arg;
    /* Asked once about each list found at root[key] (`level` 1) or root[key][index] (2). Returns
     * 0 to keep the list as it is, else a number with which its dicts are handed to item(). */
    uint16_t (*stream)(void *arg, const char *key, unsigned level, uint64_t index);
    /* Receives a complete dict of such a list. Returns 0, or an error that ends the reading (fill
     * *err). */
    int (*item)(void *arg, uint16_t stream, struct tmk_pickle_object *dict, struct tmk_error *err);
    /* Called now and then with the bytes of the file on disk, of all passes together. May be
     * NULL. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
};

#endif
