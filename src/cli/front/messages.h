/* SPDX-License-Identifier: MIT */
/* cli/front/messages.h - the texts of the program's tables that people read, for translators. */
#ifndef TMK_CLI_FRONT_MESSAGES_H
#define TMK_CLI_FRONT_MESSAGES_H

#include <stdio.h>

/* Write, as a list in JSON, the texts of all commands and of all SQL tables. tools/translations
 * joins them with the messages in the code. */
void tmk_messages_write(FILE *out);

#endif
