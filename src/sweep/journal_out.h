/* SPDX-License-Identifier: MIT */
/* sweep/journal_out.h - write the journal of a sweep, sweep.jsonl; results.h reads it.
 *
 *     {"tidemark_sweep":1,"title":"train --seq {seq}","params":[{"name":"seq","values":["128"]}],
 *      "where":["physical<=batch"],"repeats":1,"command":["train","--seq","{seq}"],
 *      "has_secret":false,"cwd":"/home/ada","options":["--timeout=10m"]}
 *     {"cell":0,"params":{"seq":"128"},"repeat":0,"outcome":"done","exit_status":0,"message":null,
 *      "ns":1234567,"run":"runs/0000.tmk","log":"logs/0000.log","device":"cuda:0",
 *      "capacity":150000000000,"peak_allocated":1024,"peak_reserved":2097152,"peak_device":null,
 *      "peak_step":1,"n_steps":3,"categories":{"parameter":1024},"components":{"other":1024},
 *      "at_stage":{"forward":1024},
 *      "stages":[{"name":"forward","peak":1024,"end":0,"allocated":2048,"times":3,"ns":100}],
 *      "ranks":[{"rank":null,"pid":77,"device":"cuda:0","peak_allocated":1024,
 *                "peak_reserved":2097152}]}
 *
 * Each of these is one line. A line is one write, then synced. The file is locked while a sweep
 * writes, so that two never share a folder. */
#ifndef TMK_SWEEP_JOURNAL_OUT_H
#define TMK_SWEEP_JOURNAL_OUT_H

#include "sweep/results.h"

enum { TMK_JOURNAL_VERSION = 1 };

/* Whether this is empty, or an incomplete first line of a journal: the sweep that made it was
 * killed before there was anything to resume. */
bool tmk_journal_is_stillborn(const char *bytes, size_t n);
/* Make the folder's journal with its first line, from results that are laid out. 0 and *ret_fd;
 * TMK_EBUSY: a sweep is writing it; TMK_EIO: it cannot be made, or exists and is not stillborn. */
int tmk_journal_make(const struct tmk_results *r, int *ret_fd, struct tmk_error *err);
/* Continue a journal that was loaded; a torn line at its end is cut off. Returns as above. */
int tmk_journal_go_on(const struct tmk_results *r, int *ret_fd, struct tmk_error *err);
/* Append cell `number` as it is now. 0, TMK_ENOMEM or TMK_EIO. */
int tmk_journal_add(int fd, const struct tmk_results *r, uint32_t number, struct tmk_error *err);

#endif
