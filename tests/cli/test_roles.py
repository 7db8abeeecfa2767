# SPDX-License-Identifier: MIT
"""The column `role`: what the launcher's environment says that a rank does."""
import csv
import os
import subprocess

import pytest
from test_golden import BUILD, SMALL, environment

TIDEMARK = os.path.join(BUILD, "tidemark")

#: The environment of a rank, and its role; "": NULL.
ROLES = [
    ({}, ""),
    ({"RANK": "3", "WORLD_SIZE": "8"}, ""),
    ({"LOCAL_RANK": "3"}, ""),  # nobody's rank
    ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "GROUP_RANK": "0", "ROLE_NAME": "trainer", "ROLE_RANK": "3"},
     "trainer"),
    ({"RANK": "3", "LOCAL_RANK": "1", "GROUP_RANK": "0", "ROLE_NAME": ""}, "local=1,node=0"),
    ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_JOB_NAME": "pretrain"},
     "pretrain"),
    ({"SLURM_JOB_NAME": "interactive"}, ""),  # no task of srun's
    ({"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NODEID": "1"}, "local=1,node=1"),
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, "local=1"),
    ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, "local=0"),
    ({"RANK": "0", "ROLE_NAME": "default", "TP_RANK": "0", "DP_RANK": "2", "PIPELINE_MODEL_PARALLEL_RANK": "1"},
     "dp=2,pp=1,tp=0"),
    ({"RANK": "0", "TENSOR_MODEL_PARALLEL_RANK": "1", "TP_RANK": "7", "EP_RANK": "x", "CP_RANK": "0"}, "cp=0,tp=1"),
    ({"RANK": "0", "ROLE_NAME": "a\\n=\nb"}, "a\\n= b"),
    ({"RANK": "0", "ROLE_NAME": "x" * 128}, ""),  # longer than any role is
]


@pytest.mark.parametrize("variables, role", ROLES)
def test_role(tmp_path, variables, role):
    run = str(tmp_path / "a.tmk")
    subprocess.run([TIDEMARK, "run", "--quiet", "-o", run, "--", "tinytrain", "--steps", "1", *SMALL.split()], check=True,
                   timeout=240, env={**environment(), **variables}, stdout=subprocess.DEVNULL)
    for sql in ("SELECT DISTINCT role IS NULL, role FROM python.torch_trace", "SELECT role IS NULL, role FROM processes"):
        done = subprocess.run([TIDEMARK, "query", run, sql, "--format", "csv"], capture_output=True, text=True, check=True)
        assert list(csv.reader(done.stdout.splitlines()))[1:] == [[str(int(not role)), role]]
