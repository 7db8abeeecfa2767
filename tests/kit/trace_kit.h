/* SPDX-License-Identifier: MIT */
/* tests/kit/trace_kit.h - functions that the tests of src/trace share.
 *
 * A source makes up records as a busy program would: allocations, frees, some of them wrong, tags,
 * nested ranges on several threads, steps, marks, reserved bytes, devices that end, definitions of
 * all kinds. The same seed gives the same records. kit_apply() gives a record its meaning by
 * calling the state as the packer does, so a state that saw everything is the oracle for one that
 * was restored, cut or merged. */
#ifndef TMK_TESTS_TRACE_KIT_H
#define TMK_TESTS_TRACE_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/events.h"
#include "trace/layout.h"
#include "trace/packer.h"

struct kit_random {
    uint64_t state;
};
uint64_t kit_random_next(struct kit_random *r);
uint64_t kit_random_below(struct kit_random *r, uint64_t n);

enum { KIT_ADDRESSES = 2048, KIT_THREADS = 5, KIT_DEVICES = 3 };
extern const uint16_t kit_devices[KIT_DEVICES];

/* A source of random records. Text pointers of a record are valid until the next one. */
struct kit_source {
    struct kit_random random;
    uint64_t now_ns;
    uint32_t n_strings, n_frames, n_stacks, n_codes, n_modules, n_streams, n_torch_modules,
        n_parameters;
    int64_t step;
    uint32_t steps_rarer; /* divides the number of steps, for traces with a small history */
    bool live[KIT_DEVICES][KIT_ADDRESSES];
    uint8_t text[TMK_STRING_MAX_BYTES];
};
void kit_source_init(struct kit_source *s, uint64_t seed);
void kit_source_next(struct kit_source *s, struct tmk_input *ret);

bool kit_is_event(const struct tmk_input *in); /* false: it is a definition */

/* Apply a record to a state. Its time must not be before the state's. */
void kit_apply(struct tmk_state *s, const struct tmk_input *in);

/* Compare two states: NULL if blocks, ranges, devices, step and totals are equal; else what
 * differs. */
const char *kit_state_difference(struct tmk_state *a, struct tmk_state *b);

/* Whether the event equals the record, in every field that its kind has. */
bool kit_is_same_event(const struct tmk_input *in, const struct tmk_event *ev);

/* Make a fresh folder under $TMPDIR or /tmp; the text is valid until the next call.
 * kit_folder_remove() removes it and its files. */
const char *kit_folder_make(void);
void kit_folder_remove(const char *folder);

/* Read, write and copy whole files. */
uint8_t *kit_file_read(const char *path, size_t *ret_n); /* malloc */
void kit_file_write(const char *path, const void *bytes, size_t n);
void kit_file_copy(const char *from, const char *to);

#endif
