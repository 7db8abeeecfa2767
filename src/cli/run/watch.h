/* SPDX-License-Identifier: MIT */
/* cli/run/watch.h - run a program with the recorder in it: its environment, its signals, its end.
 */
#ifndef TMK_CLI_RUN_WATCH_H
#define TMK_CLI_RUN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_watch {
    char *const *argv;       /* the program and its arguments; ends in NULL */
    const char *folder;      /* absolute; where traces go. It is made by the first event */
    bool folder_was_there;   /* else whoever finds it knows that there was an event */
    const char *refusals;    /* the file of a refusal_watch.h; NULL: none */
    const char *library;     /* absolute path of libtidemark.so */
    uint64_t max_size_bytes; /* of a trace; 0: the recorder's default */
    const char *ranks;       /* "0,8-15": only these; NULL: all */
    const char *step_at;     /* "FILE:LINE" where steps begin; NULL: they are found */
    bool cpu_tensors;        /* CPU tensors all along */
    bool native;             /* C and C++ frames too */
    bool no_stacks;          /* torch's blocks without lines */
    bool no_modules;         /* no calls of torch's modules */
    bool no_categories;      /* no tensors by what they are for */
};

/* A variable of the environment that tells the recorder something. LD_PRELOAD is not among them. */
struct tmk_setting {
    const char *name;
    char *value; /* the caller's, for free(); NULL: to be unset */
};

enum { TMK_N_SETTINGS = 11 };

/* Fill in all settings, whether set or not. `run` and `env` use them. */
void tmk_watch_settings(const struct tmk_watch *w, struct tmk_setting ret[TMK_N_SETTINGS]);

struct tmk_outcome {
    bool started;
    int status;   /* for exit(): the program's, 128 + signal, 127 not found, 126 not executable */
    int signal;   /* that ended it, 0: none */
    bool was_key; /* and that came from the terminal, for all of us: ^C or ^\ */
};

/* Ignore SIGXFSZ from now on, and remember what to give back to a watched program. Call first. */
void tmk_watch_prepare(void);

/* Become the program, watched, with signals as we found them. Call it in a child. When it fails,
 * errno is written to `failure` as an int, and the process ends. */
_Noreturn void tmk_watch_become(const struct tmk_watch *w, int failure);
/* Read from `failure` what became of that: errno, or 0 when the program has begun. Closes it. */
int tmk_watch_failure(int failure);
/* Become the program in this very process, not watched. Returns only when that fails, with the
 * status to end with. */
int tmk_watch_leave(const struct tmk_watch *w);
/* Translate what waitpid() says for exit(). */
struct tmk_outcome tmk_watch_outcome(int wait_status);
/* Say why the program could not be started. Returns the status to end with. */
struct tmk_outcome tmk_watch_not_started(const char *program, int reason);

/* Run the program, hand signals on (relay.h) and wait for its end. Says so when it could not be
 * started. */
struct tmk_outcome tmk_watch_run(const struct tmk_watch *w);

#endif
