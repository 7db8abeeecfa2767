/* SPDX-License-Identifier: MIT */
/* record/socket/eval.h - run Python in the watched process for a client of the control socket.
 *
 * The code runs in the namespace of `__main__`, on a thread of its own or on the main thread. What
 * it prints, the value of a last expression and a traceback go to the client as they come. There is
 * one eval at a time.
 *
 * The job is never held up. A client that does not read is given up after some seconds. Code that
 * takes too long gets an exception. Code that is inside a call into C, which no exception reaches,
 * is left alone; the client is told, and no other eval is taken until it has ended. An eval that
 * ran out of time before it began is never run. */
#ifndef TMK_RECORD_EVAL_H
#define TMK_RECORD_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_eval_order {
    int client; /* the connection: borrowed until run() returns */
    bool on_main;
    uint32_t timeout_ms;
    size_t n_bytes; /* of the code */
};

/* The buffer of TMK_WIRE_CODE_MAX bytes for the code; NULL and a reason while an earlier eval is
 * not over. Only for the control socket's thread, like run(). */
char *tmk_eval_claim(char *reason, size_t n);

/* Run the code in the buffer. Returns when the client has been told everything but DONE. */
void tmk_eval_run(const struct tmk_eval_order *order);

/* How many threads are in an eval now. */
unsigned tmk_eval_n_threads(void);

/* The Python source of the Python side. */
extern const char tmk_eval_source[];

#endif
