/* SPDX-License-Identifier: MIT */
/* record/identity/redact.h - command lines without secrets. docs/THREATS.md has the rule. */
#ifndef TMK_RECORD_REDACT_H
#define TMK_RECORD_REDACT_H

#include <stddef.h>

#include "base/text.h"

/* Write a command line as one line of text, with the values of secrets replaced by ***. `arguments`
 * are n bytes, each argument ends in a zero byte, and one more zero byte lies behind them all. */
void tmk_redact_command(const char *arguments, size_t n, struct tmk_text *out);

#endif
