/* SPDX-License-Identifier: MIT */
/* cli/live/monitoring.h - what the sampling monitors (profile, oom, leak, monitor) share: their
 * options, the loop that looks at devices until the time is over or a signal comes, and what they
 * print.
 *
 * SIGINT, SIGTERM and SIGHUP end the loop, not the program: the report is written all the same.
 * tmk_monitoring_run() holds them back until tmk_monitoring_release() or close. */
#ifndef TMK_CLI_LIVE_MONITORING_H
#define TMK_CLI_LIVE_MONITORING_H

#include <signal.h>

#include "cli/front/command.h"
#include "device/device.h"
#include "kit/progress.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

/* Rows for a command's table of options. `duration` names the default. */
#define TMK_MONITORING_OPTIONS(duration)                                                           \
    {"devices", 0, "N...", NULL, "0 1, 0:2 (a MIG part), host, all, visible, GPU-..."},            \
        {"duration", 0, "S", NULL, "seconds to watch; 0: until ^C (" duration ")"},                \
    {                                                                                              \
        "interval", 0, "S", NULL, "seconds between two samples (0.1)"                              \
    }

/* Paragraphs for their manuals. */
#define TMK_MONITORING_NOTES                                                                       \
    "Devices are numbered as the driver numbers them, NVIDIA's first, then AMD's. 0:2 is "         \
    "part 2 of GPU 0 (MIG). Without a GPU, device 0 is the host; in a container with a "           \
    "memory limit, that limit is its size. `--devices visible` is what "                           \
    "CUDA_VISIBLE_DEVICES leaves to programs started here, numbered as they number them; "         \
    "visible:0 or cuda:0 is the first of these. A device that is not there is named on "           \
    "stderr and left out.",                                                                        \
        "A device that does not answer leaves a gap, not a zero. At most 5 MB of samples are "     \
        "kept for each device."

struct tmk_monitoring {
    struct tmk_device_roots roots;
    struct tmk_devices *devices;
    struct tmk_sampler *sampler;
    const char *name; /* of the command */
    time_t started;
    uint64_t elapsed_ns;
    uint64_t next_tell_ns; /* when the progress line is worth writing anew */
    bool is_silent;        /* no progress line: stderr is somebody else's */
    /* Is called from the first look on when stdin has something to read or has ended. Returns true
     * to end the loop. May be NULL. */
    bool (*asked)(void *arg);
    struct tmk_progress progress;
    sigset_t held, before; /* signals, while it is holding them back */
    bool is_holding;
    int signal_fd; /* of the held ones, while it runs and may be asked; -1: none */
};

struct tmk_monitoring_needs {
    double duration_s; /* when none is given; 0: until a signal */
    bool once;         /* one look, whatever is given */
    bool wants_processes;
};

/* Read the options and find the devices. 0, or an exit status after a message; close in both
 * cases. */
int tmk_monitoring_open(struct tmk_monitoring *m, const struct tmk_args *args,
                        const struct tmk_monitoring_needs *needs);
void tmk_monitoring_close(struct tmk_monitoring *m);
/* Flush stdout, and let signals end the program again: all is written. Close does it too. */
void tmk_monitoring_release(struct tmk_monitoring *m);

/* Look at the devices until the end, with a progress line. `each` (may be NULL) is called after
 * every look. 0, or an exit status after a message. */
int tmk_monitoring_run(struct tmk_monitoring *m, void (*each)(void *arg), void *arg);
/* Wipe the progress line. `each` calls it before it prints. */
void tmk_monitoring_clear(struct tmk_monitoring *m);

/* Say why a device did not answer, or does not list its processes. `reason` is a driver's text and
 * is made harmless. */
void tmk_monitoring_say(const struct tmk_watched_device *u, const char *what, const char *reason);

/* Returns the report as of now. */
struct tmk_monitor_status tmk_monitoring_status(const struct tmk_monitoring *m);

/* Read a time: seconds, or a number with a unit. *ret_ns is untouched when the option was not
 * given. 0, or an exit status after a message. */
int tmk_monitoring_time(const struct tmk_args *args, const char *option, uint64_t *ret_ns);
/* Read a positive number, `otherwise` where the option was not given. 0, or an exit status after a
 * message. */
int tmk_monitoring_number(const struct tmk_args *args, const char *option, double otherwise,
                          double most, double *ret);

#endif
