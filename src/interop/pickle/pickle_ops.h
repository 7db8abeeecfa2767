/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_ops.h - the instructions of pickles. Private to the pickle reader. */
#ifndef TMK_INTEROP_PICKLE_PICKLE_OPS_H
#define TMK_INTEROP_PICKLE_PICKLE_OPS_H

#include <stdbool.h>
#include <stdint.h>

/* What an instruction does. Those that make no plain data are listed to name them in errors. */
enum tmk_pickle_op {
    TMK_OP_UNKNOWN,
    TMK_OP_PROTO,
    TMK_OP_FRAME,
    TMK_OP_STOP,
    TMK_OP_NONE,
    TMK_OP_TRUE,
    TMK_OP_FALSE,
    TMK_OP_INT1,
    TMK_OP_INT2,
    TMK_OP_INT4,
    TMK_OP_LONG1,
    TMK_OP_LONG4,
    TMK_OP_FLOAT,
    TMK_OP_TEXT1,
    TMK_OP_TEXT4,
    TMK_OP_TEXT8,
    TMK_OP_BYTES1,
    TMK_OP_BYTES4,
    TMK_OP_BYTES8,
    TMK_OP_EMPTY_DICT,
    TMK_OP_EMPTY_LIST,
    TMK_OP_EMPTY_TUPLE,
    TMK_OP_MARK,
    TMK_OP_LIST,
    TMK_OP_DICT,
    TMK_OP_TUPLE,
    TMK_OP_TUPLE1,
    TMK_OP_TUPLE2,
    TMK_OP_TUPLE3,
    TMK_OP_APPEND,
    TMK_OP_APPENDS,
    TMK_OP_SETITEM,
    TMK_OP_SETITEMS,
    TMK_OP_POP,
    TMK_OP_POP_MARK,
    TMK_OP_DUP,
    TMK_OP_GET1,
    TMK_OP_GET4,
    TMK_OP_PUT1,
    TMK_OP_PUT4,
    TMK_OP_MEMOIZE,
    TMK_OP_FIRST_REFUSED,
    TMK_OP_GLOBAL = TMK_OP_FIRST_REFUSED, /* two lines follow: module and name */
    TMK_OP_STACK_GLOBAL,                  /* both are on the stack */
    TMK_OP_CALL,
    TMK_OP_EXTENSION,
    TMK_OP_PERSISTENT,
    TMK_OP_BUFFER,
    TMK_OP_SET,
    TMK_OP_TEXTUAL, /* protocol 0 */
};

enum { TMK_OP_MAX_BYTES = 9 }; /* of one instruction, not counting the bytes of a text */

struct tmk_pickle_instruction {
    uint8_t op;       /* enum tmk_pickle_op */
    uint8_t argument; /* bytes that follow, not counting those of a text */
    bool is_simple;   /* a search for references can skip it */
};

extern const struct tmk_pickle_instruction tmk_pickle_ops[256];

#endif
