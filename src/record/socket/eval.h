/* SPDX-License-Identifier: MIT */
/* record/socket/eval.h - run Python in the watched process for a client of the control socket.
 *
 * In `__main__`'s namespace, on a thread of its own or on the main thread. What the code prints,
 * the value of a last expression and a traceback go to the client as they come. One eval at a time.
 *
 * The job is never held up: a client that does not read is given up after some seconds; code that
 * takes too long gets an exception; code that is inside a call into C, where no exception reaches
 * it, is left alone and the client told, and until it has ended no other eval is taken. An eval
 * whose time ran out before it began is never run. */
#ifndef TMK_RECORD_EVAL_H
#define TMK_RECORD_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_eval_order {
    int client; /* the connection: borrowed until run() returns */
    bool on_main;
    uint32_t timeout_ms;
    size_t n_bytes; /* of code */
};

/* The buffer of TMK_WIRE_CODE_MAX bytes that the code goes to; NULL and a reason when an earlier
 * eval is not over. For the door's thread alone, like run(). */
char *tmk_eval_claim(char *reason, size_t n);

/* Run the code in the buffer; returns when the client has been told all but DONE. */
void tmk_eval_run(const struct tmk_eval_order *order);

/* Threads that are in an eval now. */
unsigned tmk_eval_n_threads(void);

/* The Python that does the Python side of it. */
extern const char tmk_eval_source[];

#endif
