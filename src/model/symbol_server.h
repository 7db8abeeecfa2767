/* SPDX-License-Identifier: MIT */
/* model/symbol_server.h - the child process that reads the files that a trace names.
 *
 * elfutils is good, but a file made to break it can (tests/unit/test_symbols.c found a read beyond
 * a section's end). So names and lines are looked up in a child process. It talks through one
 * socket; at worst it dies or answers nonsense. */
#ifndef TMK_MODEL_SYMBOL_SERVER_H
#define TMK_MODEL_SYMBOL_SERVER_H

#include <stdint.h>

enum { TMK_SYMBOL_PATH_BYTES = 4096, TMK_SYMBOL_ID_BYTES = 64, TMK_SYMBOL_TEXT_BYTES = 8192 };

struct tmk_symbol_request { /* one message */
    uint64_t address;       /* a return address */
    uint32_t build_id_bytes;
    uint8_t build_id[TMK_SYMBOL_ID_BYTES];
    char path[TMK_SYMBOL_PATH_BYTES];
};

struct tmk_symbol_reply { /* one message */
    uint32_t line;
    uint32_t file_at; /* offset in text; 0: none. At 0 is the function's name, "": not known */
    char text[TMK_SYMBOL_TEXT_BYTES];
};

/* Answer requests from `fd` until it is closed. This is the child's main function. */
void tmk_symbol_server_main(int fd, const char *debug_folder);

#endif
