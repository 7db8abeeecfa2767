/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_plan.h - what a sweep has to do: read from the command line, or from the journal
 * of an interrupted sweep. */
#ifndef TMK_CLI_SWEEP_SWEEP_PLAN_H
#define TMK_CLI_SWEEP_SWEEP_PLAN_H

#include "cli/front/command.h"
#include "cli/run/watch.h"
#include "sweep/results.h"

enum { TMK_SWEEP_MAX_JOBS = 256, TMK_SWEEP_MAX_SECRETS = 32 };

enum tmk_keep_traces { TMK_KEEP_ALL, TMK_KEEP_FAILED, TMK_KEEP_NONE };

struct tmk_sweep_plan {
    struct tmk_results *results; /* laid out, with the results known already */
    int journal;                 /* -1: none, as in a dry run */
    bool goes_on;                /* the sweep is resumed from its journal */
    struct tmk_watch watch;      /* everything but program and folder */
    char **command;              /* its words with {NAME} in them; ends in NULL */
    uint64_t timeout_ns;         /* for a configuration; 0: none */
    uint64_t capacity;           /* --capacity; 0: not given */
    unsigned n_jobs;             /* configurations that run at once */
    char **devices;           /* n_jobs values for CUDA_VISIBLE_DEVICES; NULL: leave it as it is */
    const char *devices_name; /* the variable */
    enum tmk_keep_traces keep;
    bool skip_hopeless;
    bool detailed;
    bool no_pictures;
    bool dry_run;
    char *secrets[TMK_SWEEP_MAX_SECRETS]; /* words that must not appear anywhere */
    unsigned n_secrets;
    char *resume; /* the command that resumes the sweep */
};

/* Make a plan. 0, or an exit status after a message; call fini in both cases. */
int tmk_sweep_plan_init(struct tmk_sweep_plan *p, const struct tmk_args *args);
void tmk_sweep_plan_fini(struct tmk_sweep_plan *p);

/* Parts of init (sweep_how.c): read how to run: devices, limits, traces to keep. 0, or an exit
 * status after a message. */
int tmk_sweep_read_how(struct tmk_sweep_plan *p, const struct tmk_args *args);
/* Read a whole number from 1 to `most`; *value stays as it is if the option is not given. Returns
 * the same. */
int tmk_sweep_read_count(const struct tmk_args *args, const char *name, unsigned most,
                         unsigned *value);

/* Secrets (sweep_secrets.c): read --redact. 0, or an exit status after a message. */
int tmk_sweep_read_secrets(struct tmk_sweep_plan *p, const struct tmk_args *args);
/* Check that no secret is where it cannot be hidden. Returns the same. */
int tmk_sweep_check_secrets(const struct tmk_sweep_plan *p);
bool tmk_sweep_has_secret(const struct tmk_sweep_plan *p, const char *text);
/* A copy of `text` with "***" for each secret; the caller's. */
char *tmk_sweep_redacted(const struct tmk_sweep_plan *p, const char *text);

/* Check that the sweep in a folder is the one that the user asks for now (sweep_same.c). 0: it has
 * the same command over the same grid. Else TMK_EXIT_USAGE after a message that says what
 * differs. */
int tmk_sweep_compare(const struct tmk_results *then, const struct tmk_results *now);

#endif
