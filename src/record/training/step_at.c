/* SPDX-License-Identifier: MIT */
/* record/training/step_at.c - see step_at.h. What Python is asked to do is in step_at.py. */
#include "record/training/step_at.h"

#include <stddef.h>

#include "record/core/recorder.h"
#include "record/training/training_context.h"
#include "tidemark/tidemark.h"

static struct {
    uint32_t generation; /* the recording that it is armed for, or was refused in */
    uint32_t counts;     /* the recording that n_steps belongs to */
    int64_t n_steps;
    struct tmk_object *names; /* step_at.py's namespace */
} step_at;

/* begin_step(), for step_at.py: the line has been reached. */
static struct tmk_object *begin_step(struct tmk_object *self, struct tmk_object *arguments)
{
    const char *reason;
    const struct tmk_python *py = tmk_python_find(&reason);
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    (void)self, (void)arguments;
    if (step_at.counts != generation)
        step_at.n_steps = 0;
    step_at.counts = generation;
    if (generation == step_at.generation)
        tidemark_record_step(step_at.n_steps++);
    return py ? py->Py_BuildValue("") : NULL;
}

static struct tmk_python_method begin_method = {"begin_step", begin_step, TMK_PYTHON_VARARGS, NULL};

static void set_name(const struct tmk_python *py, const char *name, struct tmk_object *value)
{
    if (value)
        py->PyDict_SetItemString(step_at.names, name, value);
    py->Py_DecRef(value);
}

/* NULL, or why not. */
static const char *call_arm(const struct tmk_python *py, const char *place)
{
    step_at.names = tmk_python_names(py, "_tidemark_step_at");
    if (!step_at.names)
        return "the Python side could not be loaded";
    set_name(py, "begin_step", py->PyCFunction_NewEx(&begin_method, NULL, NULL));
    if (!py->PyDict_GetItemString(step_at.names, "arm") &&
        !tmk_python_run(py, step_at.names, tmk_step_at_source))
        return "--step-at needs Python 3.12 or later";
    set_name(py, "place", py->Py_BuildValue("s", place));
    struct tmk_object *answer =
        py->PyObject_CallObject(py->PyDict_GetItemString(step_at.names, "arm"), NULL);
    bool is_armed = answer && py->PyObject_IsTrue(answer) == 1;
    py->Py_DecRef(answer);
    return is_armed ? NULL : "other tools have all places of sys.monitoring";
}

void tmk_step_at_arm(const struct tmk_python *py)
{
    const char *place = tmk_recorder.settings.step_at;
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    if (!*place || step_at.generation == generation)
        return;
    step_at.generation = generation;
    const char *why = call_arm(py, place);
    py->PyErr_Clear();
    tmk_training_context_say_steps(!why);
    if (why)
        tidemark_record_mark("steps not counted", why);
}

bool tmk_step_at_is_armed(void)
{
    return step_at.names != NULL;
}

void tmk_step_at_disarm(const struct tmk_python *py)
{
    struct tmk_object *disarm =
        step_at.names ? py->PyDict_GetItemString(step_at.names, "disarm") : NULL;
    step_at.generation = 0;
    tmk_training_context_say_steps(false);
    if (disarm)
        py->Py_DecRef(py->PyObject_CallObject(disarm, NULL));
    py->PyErr_Clear();
}
