/* SPDX-License-Identifier: MIT */
/* fake_machine.h - the machine that the stand-ins for NVIDIA's libraries tell of.
 *
 * It is computed from a text, the file that $FAKE_CUDA_STATE names, which is read anew whenever
 * somebody asks: a test changes the machine by changing the file. A line is one of
 *
 *     driver 580.95.05           version of the driver
 *     cuda 13000                 the newest CUDA that it can run
 *     device TOTAL NAME          a card; lines below are about it, until the next one
 *     mig TOTAL NAME             a part of the last card; likewise
 *     uuid TEXT                  else GPU-0, GPU-1, and MIG-0-0 for parts
 *     reserved BYTES             what the driver keeps
 *     mode N                     compute mode
 *     migmode 0|1                else the card knows nothing of MIG
 *     process PID BYTES|-        a compute process; -: the driver does not tell its bytes
 *     graphics PID BYTES|-
 *     busy PERCENT               utilisation; without this line, and likewise for the next
 *     power MILLIWATTS LIMIT     three: not supported; of a LIMIT `-` too
 *     temperature CELSIUS
 *     hidden BYTES               by processes of namespaces that the asker is not told of
 *     fail FUNCTION CODE         NVML's answers CODE: for this card, or, before the first, always
 *
 * Processes that use the stand-in libcuda.so.1 are on their cards too (fake_use.h).
 *
 * The accounts add up: used = processes and hidden, a card's and its parts'; free = total -
 * reserved - used. */
#ifndef FAKE_MACHINE_H
#define FAKE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nvml_abi.h"

enum {
    FAKE_MOST_DEVICES = 64,
    FAKE_MOST_PROCESSES = 2048,
    FAKE_MOST_FAILURES = 16,
    FAKE_EVERYWHERE = -1
};

/* A card, or a part of one. NVML's handles are addresses of these, hence the name. */
struct tmk_nvml_device {
    int card; /* index in fake_machine.devices; of a part: whose it is */
    bool is_part;
    unsigned number; /* among the cards, or among the card's parts */
    char name[TMK_NVML_TEXT_BYTES], uuid[TMK_NVML_TEXT_BYTES];
    uint64_t total_bytes, reserved_bytes, hidden_bytes;
    unsigned mode;
    int mig_mode;                                              /* -1: none */
    int busy_percent, power_mw, power_limit_mw, temperature_c; /* -1: not supported */
};

struct fake_process {
    int device; /* index in fake_machine.devices */
    bool is_graphics;
    unsigned pid;
    uint64_t used_bytes; /* or TMK_NVML_UNAVAILABLE */
    bool is_user;        /* of libcuda.so.1: not in the text */
};

struct fake_failure {
    int device; /* or FAKE_EVERYWHERE */
    char function[64];
    int code;
};

struct fake_machine {
    char driver[80];
    int cuda;
    struct tmk_nvml_device devices[FAKE_MOST_DEVICES];
    int n_devices;
    struct fake_process processes[FAKE_MOST_PROCESSES];
    int n_processes;
    struct fake_failure failures[FAKE_MOST_FAILURES];
    int n_failures;
};

/* The machine as it is now, over what *m had; false: there is no file, so no driver. A line that
 * makes no sense is the test's mistake: abort. */
bool fake_machine_read(struct fake_machine *m);

/* The card or part `number`, of `card` for a part; NULL: none. */
struct tmk_nvml_device *fake_machine_find(struct fake_machine *m, bool is_part, int card,
                                          unsigned number);

/* Is what is on the device of this index on `d`? What is on a part is on its card too. */
bool fake_machine_is_on(const struct fake_machine *m, int index, const struct tmk_nvml_device *d);

/* By processes and by who is hidden. */
uint64_t fake_machine_used(const struct fake_machine *m, const struct tmk_nvml_device *d);
/* What is there for all users of libcuda.so.1 together. */
uint64_t fake_machine_capacity(const struct fake_machine *m, const struct tmk_nvml_device *d);

#endif
