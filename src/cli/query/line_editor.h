/* SPDX-License-Identifier: MIT */
/* cli/query/line_editor.h - lines that somebody types, with editing, history and completion.
 *
 * The history is kept in $XDG_STATE_HOME/tidemark/history (~/.local/state), for the user alone: it
 * may have names of their code. */
#ifndef TMK_CLI_QUERY_LINE_EDITOR_H
#define TMK_CLI_QUERY_LINE_EDITOR_H

#include <sqlite3.h>

struct tmk_line_editor;

enum tmk_line { TMK_LINE_TYPED, TMK_LINE_DROPPED /* by ^C */, TMK_LINE_END /* by ^D */ };

/* `db` knows the functions to complete; borrowed until it is set anew. Dies without memory. */
struct tmk_line_editor *tmk_line_editor_open(void);
struct tmk_line_editor *tmk_line_editor_close(struct tmk_line_editor *e);

/* Reads a line. `before` is what was typed of the statement in earlier lines, "" for none. The line
 * ends in '\n' and is the editor's until the next call. */
enum tmk_line tmk_line_editor_read(struct tmk_line_editor *e, sqlite3 *db, const char *before,
                                   const char **ret_line);
/* Adds a statement or command to the history, as one line. */
void tmk_line_editor_remember(struct tmk_line_editor *e, const char *text);

#endif
