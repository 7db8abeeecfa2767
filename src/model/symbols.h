/* SPDX-License-Identifier: MIT */
/* model/symbols.h - names and lines of native frames, looked up by (module, address).
 *
 *     struct tmk_symbols *s = tmk_symbols_open();
 *     struct tmk_symbol sym;
 *     tmk_symbols_find(s, &(struct tmk_code_address){path, build_id, 20, address}, &sym);
 *
 * A frame is looked up when first asked for, then remembered. The best available answer counts:
 * function, file and line by DWARF (in the module, or by its build id in /usr/lib/debug or
 * TIDEMARK_DEBUG_DIR); else the symbol and an offset; else "libfoo.so+0x1234". A file must have the
 * recorded build id; if none was recorded, the file is used as it is.
 *
 * This opens the files that a trace names, and a trace may come from anyone. So only regular files
 * are opened, in a process of its own (symbol_server.h); they are never mapped or executed, and
 * nothing is fetched from the network. TIDEMARK_NO_SYMBOLS=1 turns this off, and all frames read
 * "libfoo.so+0x1234". */
#ifndef TMK_MODEL_SYMBOLS_H
#define TMK_MODEL_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_symbols;

struct tmk_code_address {
    const char *path; /* the module's path */
    const uint8_t *build_id;
    uint32_t build_id_bytes; /* 0: the module had none */
    uint64_t address;        /* a return address, relative to the module's file */
};

struct tmk_symbol {
    const char *function; /* never NULL; no arguments; "name+0x1f" when the line is not known */
    bool is_known;        /* false: `function` is "libfoo.so+0x1234" */
    const char *file;     /* source file, NULL when not known */
    uint32_t line;        /* 0: not known */
};

/* NULL: no memory. */
struct tmk_symbols *tmk_symbols_open(void);
struct tmk_symbols *tmk_symbols_close(struct tmk_symbols *s); /* takes NULL, returns NULL */

/* Look an address up. Texts are valid until close. 0 or TMK_ENOMEM. */
int tmk_symbols_find(struct tmk_symbols *s, const struct tmk_code_address *where,
                     struct tmk_symbol *ret);

#endif
