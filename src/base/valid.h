/* SPDX-License-Identifier: MIT */
/* base/valid.h - invariants of data structures, written as functions and checked by the tests.
 *
 * A structure with invariants has a function `bool tmk_x_is_valid(const struct tmk_x *x)`. The
 * comment at its declaration lists the invariants; its body has one TMK_HOLDS for each:
 *
 *     bool tmk_free_set_is_valid(const struct tmk_free_set *s)
 *     {
 *         TMK_HOLDS(s->n_leaves <= s->n_made);
 *         ...
 *         return true;
 *     }
 *
 * When one does not hold, tmk_invalid says which. The function lies in a separate file, x_valid.c:
 * where nobody calls it, the linker leaves it out, so neither the recorder nor the tool has it.
 *
 * Where tests are built with a sanitizer (TMK_CHECKS), TMK_ASSERT_VALID calls it after each
 * operation of the structure, in any test or program. Elsewhere the macro is empty. A check costs
 * time in proportion to the structure's size, so large ones are not checked after every operation;
 * see tmk_check_is_due(). */
#ifndef TMK_BASE_VALID_H
#define TMK_BASE_VALID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The last invariant that was found not to hold. */
struct tmk_invalid {
    const char *text; /* its condition, as in the source; NULL: none yet */
    const char *file;
    int line;
};
extern struct tmk_invalid tmk_invalid;

/* Notes the invariant that does not hold. Returns false. */
bool tmk_note_invalid(const char *text, const char *file, int line);

/* One invariant, in a function that returns whether all of them hold. */
#define TMK_HOLDS(condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tmk_note_invalid(#condition, __FILE__, __LINE__);                               \
    } while (0)

enum {
    TMK_CHECK_PAID_ITEMS = 4,    /* by an operation */
    TMK_CHECK_FIRST = 1000,      /* operations that are checked whatever they have paid ... */
    TMK_CHECK_FIRST_ITEMS = 4096 /* ... while the structure has no more items */
};

/* Counts for the operations at one place in the source. */
struct tmk_checks {
    _Atomic uint64_t n_paid; /* items, since the last check */
    _Atomic uint64_t n_first;
};

/* Whether a check that looks at `n_items` is to be made now. The first operations are all checked.
 * After that each one pays for some items, and a check is due when enough is paid: small structures
 * are still checked behind each operation, large ones at a bounded cost per operation. */
static inline bool tmk_check_is_due(struct tmk_checks *c, uint64_t n_items)
{
    uint64_t n_paid =
        atomic_fetch_add_explicit(&c->n_paid, TMK_CHECK_PAID_ITEMS, memory_order_relaxed);
    bool is_first =
        n_items <= TMK_CHECK_FIRST_ITEMS &&
        atomic_fetch_add_explicit(&c->n_first, 1, memory_order_relaxed) < TMK_CHECK_FIRST;
    if (!is_first && n_paid + TMK_CHECK_PAID_ITEMS < n_items)
        return false;
    atomic_store_explicit(&c->n_paid, 0, memory_order_relaxed);
    return true;
}

/* Prints on stderr which invariant does not hold after an operation, and aborts. */
__attribute__((noreturn)) void tmk_die_invalid(const char *check, const char *file, int line);

#ifdef TMK_CHECKS
#define TMK_ASSERT_VALID(check, n_items)                                                           \
    do {                                                                                           \
        static struct tmk_checks checks;                                                           \
        if (tmk_check_is_due(&checks, n_items) && !(check))                                        \
            tmk_die_invalid(#check, __FILE__, __LINE__);                                           \
    } while (0)
#else
#define TMK_ASSERT_VALID(check, n_items) ((void)0)
#endif

#endif
