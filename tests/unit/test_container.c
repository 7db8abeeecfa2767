/* SPDX-License-Identifier: MIT */
/* test_container.c - containers and jobs by their control groups and environments, as Docker,
 * Podman, containerd, CRI-O and systemd write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/container.h"
#include "fleet/process_facts.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "8d4bd1a1-1a2b-4c3d-9e8f-0123456789ab"
#define UID_ "8d4bd1a1_1a2b_4c3d_9e8f_0123456789ab"

static void test_groups(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_container, is_pod;
    } cases[] = {
        {"0::/\n", false, false},
        {"0::/user.slice/user-1000.slice/session-2.scope\n", false, false},
        {"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", false, false},
        {"0::/system.slice/docker-" ID ".scope\n", true, false},
        {"12:memory:/docker/" ID "\n0::/\n", true, false},
        {"0::/machine.slice/libpod-" ID ".scope/container\n", true, false},
        {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n", true,
         false},
        {"0::/system.slice/containerd.service/kubepods-burstable-pod" UID_
         ".slice:cri-containerd:" ID "\n",
         true, true},
        {"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
         ".slice/cri-containerd-" ID ".scope\n",
         true, true},
        {"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", true, true},
        {"4:memory:/kubepods/burstable/pod" UID "/" ID "\n", true, true},
        {"0::/../../kubepods-pod" UID_ ".slice/cri-containerd-" ID ".scope\n", true, true},
        {"0::/x" ID "0\n", false, false}, /* 65 digits */
        {"0::/" ID "\n", true, false},
        {"nonsense", false, false},
        {"::::\n\n:", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_cgroup_name group;
        bool found = tmk_cgroup_name_parse(cases[i].text, &group);
        if (found != cases[i].is_container || group.is_pod != cases[i].is_pod)
            fail_msg("case %zu: %s", i, cases[i].text);
        assert_string_equal(group.id, found ? ID : "");
        assert_string_equal(group.pod_uid, group.is_pod ? UID : "");
    }
}

static struct tmk_container name_of(const char *group_text, const char *environment, size_t n,
                                    const char *account)
{
    struct tmk_cgroup_name group;
    struct tmk_container c;
    tmk_cgroup_name_parse(group_text, &group);
    tmk_container_name(&group, environment, n, account, &c);
    return c;
}

static void check_names(struct tmk_container c, const char *namespace, const char *pod,
                        const char *container)
{
    assert_string_equal(c.namespace, namespace);
    assert_string_equal(c.pod, pod);
    assert_string_equal(c.container, container);
}

static void test_names(void **state)
{
    (void)state;
    static const char docker[] = "0::/system.slice/docker-" ID ".scope\n";
    static const char pod[] = "0::/kubepods/pod" UID "/" ID "\n";
    static const char named[] = "HOSTNAME=train-0\0POD_NAMESPACE=ml\0POD_NAME=train-0-x\0"
                                "CONTAINER_NAME=torch\0";
    static const char plain[] = "PATH=/bin\0HOSTNAME=train-0\0";
    check_names(name_of("0::/\n", named, sizeof named - 1, "ml"), "", "", "");
    check_names(name_of(docker, plain, sizeof plain - 1, NULL), "", "", "0123456789ab");
    check_names(name_of(pod, named, sizeof named - 1, "other"), "ml", "train-0-x", "torch");
    check_names(name_of(pod, plain, sizeof plain - 1, "team-a"), "team-a", "train-0",
                "0123456789ab");
    check_names(name_of(pod, NULL, 0, NULL), "", "", "0123456789ab");
    check_names(name_of(docker, plain, sizeof plain - 1, "team-a"), "team-a", "train-0",
                "0123456789ab");
}

static void test_environ(void **state)
{
    (void)state;
    static const char bytes[] = "A=1\0AB=2\0=3\0NOTHING\0EMPTY=\0A=4\0CUT=of";
    size_t n = sizeof bytes - 1; /* the last has no end */
    assert_string_equal(tmk_environ_get(bytes, n, "A"), "1");
    assert_string_equal(tmk_environ_get(bytes, n, "AB"), "2");
    assert_string_equal(tmk_environ_get(bytes, n, "EMPTY"), "");
    assert_null(tmk_environ_get(bytes, n, "NOTHING"));
    assert_null(tmk_environ_get(bytes, n, "CUT"));
    assert_null(tmk_environ_get(bytes, n, "B"));
    assert_null(tmk_environ_get(NULL, 0, "A"));
}

static void check_job(const char *environment, size_t n, const char *expected)
{
    char job[TMK_JOB_NAME_BYTES];
    tmk_job_name_of_environ(environment, n, job);
    assert_string_equal(job, expected);
}

static void test_jobs(void **state)
{
    (void)state;
    char job[TMK_JOB_NAME_BYTES];
#define CHECK_JOB(text, expected) check_job(text, sizeof text, expected)
    CHECK_JOB("SLURM_JOB_ID=77\0TORCHELASTIC_RUN_ID=r", "77");
    CHECK_JOB("TORCHELASTIC_RUN_ID=none\0X=1", "");
    CHECK_JOB("TORCHELASTIC_RUN_ID=llama-7\0X=1", "llama-7");
    CHECK_JOB("SLURM_JOB_ID=77\0TIDEMARK_JOB=mine", "mine");
    CHECK_JOB("X=1", "");
    tmk_job_name_of_run("/scratch/ana/llama.tmk", job);
    assert_string_equal(job, "llama");
    tmk_job_name_of_run(".tmk", job);
    assert_string_equal(job, ".tmk");
    tmk_job_name_of_run("", job);
    assert_string_equal(job, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_environ),
        cmocka_unit_test(test_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
