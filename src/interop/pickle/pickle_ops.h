/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_ops.h - the instructions of pickles, for those who read and write them.
 *
 * An instruction is a byte and an argument of a fixed length. The list has Python's names for them
 * (pickletools.py) and what follows the byte, so that nobody counts bytes on his own; what an
 * instruction does is said by those who do it: pickle.c reads snapshots and takes no names and
 * calls, checkpoint_pickle.c reads weights and keeps these as data, pickle_out.c writes. */
#ifndef TMK_INTEROP_PICKLE_PICKLE_OPS_H
#define TMK_INTEROP_PICKLE_PICKLE_OPS_H

#include <stdint.h>

/* The facts that let a reader skip an instruction and number the values that it keeps. */
enum tmk_pickle_form {
    TMK_PICKLE_ENDS = 0, /* the end, or what no plain data has */
    TMK_PICKLE_PLAIN,
    TMK_PICKLE_COUNTED, /* the argument says how many bytes come behind it */
    TMK_PICKLE_GETS,    /* the argument is the number of something kept */
    TMK_PICKLE_PUTS,    /* likewise, of what is kept now; without argument the next number */
};

/* X(name, byte, bytes of argument, form) */
#define TMK_PICKLE_OPS(X)                                                                          \
    X(PROTO, 0x80, 1, PLAIN)                                                                       \
    X(FRAME, 0x95, 8, PLAIN)                                                                       \
    X(STOP, '.', 0, ENDS)                                                                          \
    X(NONE, 'N', 0, PLAIN)                                                                         \
    X(NEWTRUE, 0x88, 0, PLAIN)                                                                     \
    X(NEWFALSE, 0x89, 0, PLAIN)                                                                    \
    X(BININT1, 'K', 1, PLAIN)                                                                      \
    X(BININT2, 'M', 2, PLAIN)                                                                      \
    X(BININT, 'J', 4, PLAIN)                                                                       \
    X(LONG1, 0x8a, 1, COUNTED)                                                                     \
    X(LONG4, 0x8b, 4, COUNTED)                                                                     \
    X(BINFLOAT, 'G', 8, PLAIN)                                                                     \
    X(SHORT_BINUNICODE, 0x8c, 1, COUNTED)                                                          \
    X(BINUNICODE, 'X', 4, COUNTED)                                                                 \
    X(BINUNICODE8, 0x8d, 8, COUNTED)                                                               \
    X(SHORT_BINSTRING, 'U', 1, COUNTED) /* a text of Python 2, as BINSTRING is */                  \
    X(BINSTRING, 'T', 4, COUNTED)                                                                  \
    X(SHORT_BINBYTES, 'C', 1, COUNTED)                                                             \
    X(BINBYTES, 'B', 4, COUNTED)                                                                   \
    X(BINBYTES8, 0x8e, 8, COUNTED)                                                                 \
    X(BYTEARRAY8, 0x96, 8, COUNTED)                                                                \
    X(EMPTY_DICT, '}', 0, PLAIN)                                                                   \
    X(EMPTY_LIST, ']', 0, PLAIN)                                                                   \
    X(EMPTY_TUPLE, ')', 0, PLAIN)                                                                  \
    X(MARK, '(', 0, PLAIN)                                                                         \
    X(LIST, 'l', 0, PLAIN)                                                                         \
    X(DICT, 'd', 0, PLAIN)                                                                         \
    X(TUPLE, 't', 0, PLAIN)                                                                        \
    X(TUPLE1, 0x85, 0, PLAIN)                                                                      \
    X(TUPLE2, 0x86, 0, PLAIN)                                                                      \
    X(TUPLE3, 0x87, 0, PLAIN)                                                                      \
    X(APPEND, 'a', 0, PLAIN)                                                                       \
    X(APPENDS, 'e', 0, PLAIN)                                                                      \
    X(SETITEM, 's', 0, PLAIN)                                                                      \
    X(SETITEMS, 'u', 0, PLAIN)                                                                     \
    X(POP, '0', 0, PLAIN)                                                                          \
    X(POP_MARK, '1', 0, PLAIN)                                                                     \
    X(DUP, '2', 0, PLAIN)                                                                          \
    X(BINGET, 'h', 1, GETS)                                                                        \
    X(LONG_BINGET, 'j', 4, GETS)                                                                   \
    X(BINPUT, 'q', 1, PUTS)                                                                        \
    X(LONG_BINPUT, 'r', 4, PUTS)                                                                   \
    X(MEMOIZE, 0x94, 0, PUTS)                                                                      \
    X(GLOBAL, 'c', 0, ENDS) /* two lines follow: module and name */                                \
    X(INST, 'i', 0, ENDS)   /* the same two lines, and a call */                                   \
    X(STACK_GLOBAL, 0x93, 0, ENDS)                                                                 \
    X(REDUCE, 'R', 0, ENDS)                                                                        \
    X(BUILD, 'b', 0, ENDS)                                                                         \
    X(OBJ, 'o', 0, ENDS)                                                                           \
    X(NEWOBJ, 0x81, 0, ENDS)                                                                       \
    X(NEWOBJ_EX, 0x92, 0, ENDS)                                                                    \
    X(EXT1, 0x82, 0, ENDS)                                                                         \
    X(EXT2, 0x83, 0, ENDS)                                                                         \
    X(EXT4, 0x84, 0, ENDS)                                                                         \
    X(PERSID, 'P', 0, ENDS)                                                                        \
    X(BINPERSID, 'Q', 0, ENDS)                                                                     \
    X(NEXT_BUFFER, 0x97, 0, ENDS)                                                                  \
    X(READONLY_BUFFER, 0x98, 0, ENDS)                                                              \
    X(EMPTY_SET, 0x8f, 0, ENDS)                                                                    \
    X(ADDITEMS, 0x90, 0, ENDS)                                                                     \
    X(FROZENSET, 0x91, 0, ENDS)                                                                    \
    X(INT, 'I', 0, ENDS) /* from here on: lines of text, protocol 0 */                             \
    X(LONG, 'L', 0, ENDS)                                                                          \
    X(FLOAT, 'F', 0, ENDS)                                                                         \
    X(STRING, 'S', 0, ENDS)                                                                        \
    X(UNICODE, 'V', 0, ENDS)                                                                       \
    X(GET, 'g', 0, ENDS)                                                                           \
    X(PUT, 'p', 0, ENDS)

enum tmk_pickle_op {
#define X(name, byte, argument, form) TMK_OP_##name = (byte),
    TMK_PICKLE_OPS(X)
#undef X
};

enum { TMK_OP_MAX_BYTES = 9 }; /* of one, what is counted left out */

struct tmk_pickle_instruction {
    uint8_t argument; /* its bytes */
    uint8_t form;     /* enum tmk_pickle_form */
};

/* The instructions, indexed by their first byte. */
extern const struct tmk_pickle_instruction tmk_pickle_ops[256];

#endif
