/* SPDX-License-Identifier: MIT */
/* fleet/process_facts.h - what /proc tells of a process: its container, its job's name, and the
 * GPUs that it sees. The environment is another program's: its texts may be anything. */
#ifndef TMK_FLEET_PROCESS_FACTS_H
#define TMK_FLEET_PROCESS_FACTS_H

#include "fleet/container.h"

enum { TMK_JOB_NAME_BYTES = 256 };

struct tmk_process_facts {
    struct tmk_container container;
    char job[TMK_JOB_NAME_BYTES]; /* "": the environment names none */
    bool has_cuda_visible, has_nvidia_visible;
    char cuda_visible[256];   /* CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES */
    char nvidia_visible[256]; /* NVIDIA_VISIBLE_DEVICES: the GPUs that the container got */
};

/* Read them; what this user may not see is not known. `proc`: where /proc is. */
void tmk_process_facts_read(const char *proc, uint32_t pid, struct tmk_process_facts *ret);

/* The name of a job: TIDEMARK_JOB, else SLURM_JOB_ID, else TORCHELASTIC_RUN_ID unless that is
 * "none", which says nothing. "": none of them. */
void tmk_job_name_of_environ(const char *environment, size_t n, char ret[TMK_JOB_NAME_BYTES]);
/* The name of a job without any of them: that of its run's folder without ".tmk". */
void tmk_job_name_of_run(const char *folder, char ret[TMK_JOB_NAME_BYTES]);

#endif
