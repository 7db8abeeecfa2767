/* SPDX-License-Identifier: MIT */
/* cli/live/follow.h - `monitor --follow`: the monitors for a program that reads along, the Python
 * package for one.
 *
 * A line of JSON on stdout for each sample {"samples": [...]}, warning {"warning": {...}} and
 * report {"timestamp", "devices", ...}. A report is written for each line on stdin, at
 * once (as of the last sample; from the first on), and at the end.
 * The end of stdin ends the loop, so it outlives no program that was killed. */
#ifndef TMK_CLI_LIVE_FOLLOW_H
#define TMK_CLI_LIVE_FOLLOW_H

#include "cli/live/oom_watch.h"

struct tmk_follow_wants {
    uint64_t leak_bytes;    /* growth that counts */
    uint64_t least_ns;      /* growth over less is not judged */
    uint64_t tell_every_ns; /* samples are written no more often than this; taken they are all */
    pid_t process;          /* whose memory of the host is looked at too; 0: nobody's */
};

/* Run until the end, as tmk_monitoring_run() does. 0, or an exit status after a message. */
int tmk_follow_run(struct tmk_monitoring *m, struct tmk_oom_watch *w,
                   const struct tmk_follow_wants *wants);

#endif
