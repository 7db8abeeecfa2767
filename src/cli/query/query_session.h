/* SPDX-License-Identifier: MIT */
/* cli/query/query_session.h - a target that statements are put to, one after the other.
 *
 * A run is opened once. A process that runs is looked at anew for each text, so that answers are of
 * now. A process on another machine is asked there, statement by statement, by the same command. */
#ifndef TMK_CLI_QUERY_QUERY_SESSION_H
#define TMK_CLI_QUERY_QUERY_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/front/command.h"
#include "cli/query/query_output.h"
#include "model/run.h"
#include "sql/sql.h"

enum { TMK_QUERY_INTERRUPTED = 130 }; /* a status: 128 + SIGINT */

struct tmk_query {
    const struct tmk_args *args; /* operand 0 is the target */
    bool is_remote, is_live;
    bool is_shell; /* messages are for somebody who types, and one error does not end it */
    bool times;    /* say how long each statement took */
    struct tmk_query_style style;
    int64_t fixed_width;         /* columns that a table may take, 0: any; -1: as the screen has */
    uint64_t n_texts, n_results; /* texts so far; statements of this one */
    struct tmk_run *run;
    struct tmk_sql *sql;
    sqlite3 *db; /* the run's; of a remote target an empty one, for names of functions */
};

/* Opens the target. `args`, `is_shell` and `style` are set. 0, or an exit status after a message.
 */
int tmk_query_open(struct tmk_query *q);
void tmk_query_close(struct tmk_query *q);

/* Runs the statements of `text` and prints their rows. Stops at the first that fails. 0, or an exit
 * status after a message; TMK_QUERY_INTERRUPTED after ^C. */
int tmk_query_run(struct tmk_query *q, const char *text);

/* Returns all of a file, the caller's; NULL with errno set when it cannot be read. */
char *tmk_query_read_all(FILE *in);

#endif
