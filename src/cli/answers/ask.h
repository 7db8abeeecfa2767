/* SPDX-License-Identifier: MIT */
/* cli/answers/ask.h - ask a watched process something over its control socket (base/wire.h). */
#ifndef TMK_CLI_ANSWERS_ASK_H
#define TMK_CLI_ANSWERS_ASK_H

#include <stddef.h>

#include "base/error.h"
#include "base/wire.h"
#include "model/watched.h"

struct tmk_ask {
    enum tmk_wire_verb verb;
    uint32_t flags;
    uint32_t timeout_ms; /* eval's */
    const char *code;    /* eval's */
    size_t n_code;
    /* Is called with each part of the answer as it comes, except DONE. */
    void (*hear)(void *arg, enum tmk_wire_kind kind, const char *bytes, size_t n);
    void *arg;
};

/* Ask, and wait for the answer. 0: the process has said all. TMK_EPROCESS: it cannot be reached, or
 * it went away meanwhile. */
int tmk_ask(const struct tmk_watched *w, const struct tmk_ask *ask, struct tmk_error *err);

/* Find the watched process that `text` names. 0, or an exit status after a message. */
int tmk_ask_find(const char *text, struct tmk_watched *ret);

#endif
